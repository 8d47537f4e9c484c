package checker

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"math/big"
)

// seal decrypts the gateway's sealed values: XAES-256-GCM.
type seal struct {
	block  cipher.Block
	subkey *big.Int
}

func newSeal(master []byte) (*seal, error) {
	key, err := hkdf.Key(sha256.New, master, nil, "porteira/seal", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	var zero [aes.BlockSize]byte
	block.Encrypt(zero[:], zero[:])
	double := new(big.Int).Lsh(new(big.Int).SetBytes(zero[:]), 1)
	if double.Bit(128) == 1 {
		double.SetBit(double, 128, 0)
		double.Xor(double, big.NewInt(0x87))
	}
	return &seal{block, double}, nil
}

// errSealed means that a stored value was not sealed for its row and column.
var errSealed = errors.New("not sealed for this row and column")

// sealHeader is what precedes the nonce of a sealed value: a version and four bytes that
// name the key. sealNonce is the length of the nonce: 12 bytes derive the key, 12 are its nonce.
const (
	sealHeader = 5
	sealNonce  = 24
)

// openBody returns the body of an event.
func (s *seal) openBody(event rowKey, sealed []byte) ([]byte, error) {
	if len(sealed) < sealHeader+sealNonce {
		return nil, errSealed
	}
	data := append([]byte("events\x00"), event.merchant[:]...)
	data = append(append(data, event.id[:]...), "body"...)
	nonce, text := sealed[sealHeader:sealHeader+sealNonce], sealed[sealHeader+sealNonce:]
	var key []byte
	for counter := byte(1); counter <= 2; counter++ {
		message := new(big.Int).SetBytes(append([]byte{0, counter, 'X', 0}, nonce[:12]...))
		part := message.Xor(message, s.subkey).FillBytes(make([]byte, aes.BlockSize))
		s.block.Encrypt(part, part)
		key = append(key, part...)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	body, err := aead.Open(nil, nonce[12:], text, data)
	if err != nil {
		return nil, errSealed
	}
	return body, nil
}
