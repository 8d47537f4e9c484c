package db

import (
	"crypto/cipher"
	"crypto/sha256"

	"golang.org/x/crypto/chacha20poly1305"
)

// sealNonce and sealTag are the lengths of the nonce and of the tag of a sealed value, in bytes.
const (
	sealNonce = chacha20poly1305.NonceSizeX
	sealTag   = chacha20poly1305.Overhead
)

// sealer seals with XChaCha20-Poly1305, whose random nonces of 192 bits never collide. Those of
// AES-GCM, of 96 bits, would last for 2^32 values, which is days of a busy gateway.
type sealer struct {
	cipher.AEAD

	id [4]byte // of the key, in each value
}

func newSealer(master []byte) (*sealer, error) {
	key, err := derive(master, "seal")
	if err != nil {
		return nil, err
	}
	aead, err := chacha20poly1305.NewX(key)
	name := sha256.Sum256(key)
	return &sealer{aead, [4]byte(name[:4])}, err
}
