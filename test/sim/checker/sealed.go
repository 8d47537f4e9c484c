package checker

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"

	"golang.org/x/crypto/chacha20poly1305"
)

// seal decrypts the gateway's sealed values: XChaCha20-Poly1305.
type seal struct{ cipher.AEAD }

func newSeal(master []byte) (*seal, error) {
	key, err := hkdf.Key(sha256.New, master, nil, "porteira/seal", 32)
	if err != nil {
		return nil, err
	}
	aead, err := chacha20poly1305.NewX(key)
	return &seal{aead}, err
}

// errSealed means that a stored value was not sealed for its row and column.
var errSealed = errors.New("not sealed for this row and column")

// sealHeader is what precedes the nonce of a sealed value: a version and four bytes that
// name the key.
const sealHeader = 5

// openBody returns the body of an event.
func (s *seal) openBody(event rowKey, sealed []byte) ([]byte, error) {
	if len(sealed) < sealHeader+s.NonceSize() {
		return nil, errSealed
	}
	data := append([]byte("events\x00"), event.merchant[:]...)
	data = append(append(data, event.id[:]...), "body"...)
	nonce, text := sealed[sealHeader:sealHeader+s.NonceSize()], sealed[sealHeader+s.NonceSize():]
	body, err := s.Open(nil, nonce, text, data)
	if err != nil {
		return nil, errSealed
	}
	return body, nil
}
