package db

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
)

// sealNonce and sealTag are the lengths of the nonce and of the tag of a sealed value, in bytes.
const (
	sealNonce = 24
	sealTag   = 16
)

// sealer seals with XAES-256-GCM (c2sp.org/XAES-256-GCM): the first half of a random nonce derives
// the value's own AES-GCM key, and the second half is its nonce. Under one AES-GCM key, random
// nonces of 96 bits would last for 2^32 values, which is days of a busy gateway.
type sealer struct {
	id    [4]byte // of the key, in each value
	block cipher.Block
	mask  [aes.BlockSize]byte // the subkey of CMAC
}

func newSealer(master []byte) (*sealer, error) {
	key, err := derive(master, "seal")
	if err != nil {
		return nil, err
	}
	s, err := newXAES(key)
	if err == nil {
		name := sha256.Sum256(key)
		s.id = [4]byte(name[:4])
	}
	return s, err
}

func newXAES(key []byte) (*sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	s := &sealer{block: block}
	block.Encrypt(s.mask[:], s.mask[:])
	carry := s.mask[0] >> 7
	for i := range s.mask {
		s.mask[i] <<= 1
		if i+1 < len(s.mask) {
			s.mask[i] |= s.mask[i+1] >> 7
		}
	}
	s.mask[len(s.mask)-1] ^= carry * 0x87
	return s, nil
}

// derived is the AES-GCM of one nonce.
func (s *sealer) derived(nonce []byte) cipher.AEAD {
	var key [2 * aes.BlockSize]byte
	for i := range 2 {
		half := key[i*aes.BlockSize : (i+1)*aes.BlockSize]
		half[1], half[2] = byte(i+1), 'X'
		copy(half[4:], nonce[:12])
		for j := range half {
			half[j] ^= s.mask[j]
		}
		s.block.Encrypt(half, half)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the length of the key is right
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // so is that of the block
	}
	return aead
}

// seal appends the sealed form of plain to dst.
func (s *sealer) seal(dst, nonce, plain, data []byte) []byte {
	return s.derived(nonce).Seal(dst, nonce[12:], plain, data)
}

func (s *sealer) open(nonce, sealed, data []byte) ([]byte, error) {
	return s.derived(nonce).Open(nil, nonce[12:], sealed, data)
}
