package db

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"sync"

	"github.com/porteira/porteira/internal/payment"
)

// Parts of a pay-in's token, in characters and bytes: the merchant's short
// number, as in an external id, then tag and id.
const (
	tokenTag    = 16
	tokenNumber = 5
	tokenLength = tokenNumber + 43 // 32 bytes in base64url without padding
)

// tokenForm rejects a second spelling of the same bytes.
var tokenForm = base64.RawURLEncoding.Strict()

// tokenKey makes and reads tokens under one master key. A token is the order's
// id, encrypted so that equal ids make equal tokens and nobody can make one
// without the key (deterministic authenticated encryption as in RFC 5297, with
// HMAC-SHA256 for its CMAC): tag = HMAC(number || id), cut to 16 bytes, and id
// XOR AES(tag), which is AES-CTR of the id's single block.
type tokenKey struct {
	block  cipher.Block
	makers sync.Pool
}

// tokenMaker is the memory for making one token.
type tokenMaker struct {
	mac  hash.Hash
	text [8 + 16]byte
	sum  [sha256.Size]byte
	out  [32]byte
}

func newTokenKey(master []byte) (*tokenKey, error) {
	authentic, err := derive(master, "checkout-token-tag")
	if err != nil {
		return nil, err
	}
	secret, err := derive(master, "checkout-token-id")
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return &tokenKey{block: block, makers: sync.Pool{New: func() any {
		return &tokenMaker{mac: hmac.New(sha256.New, authentic)}
	}}}, nil
}

// tag authenticates the text in m.
func (m *tokenMaker) tag(number int64, id *payment.ID) []byte {
	binary.BigEndian.PutUint64(m.text[:], uint64(number))
	copy(m.text[8:], id[:])
	m.mac.Reset()
	_, _ = m.mac.Write(m.text[:]) // a hash never fails
	return m.mac.Sum(m.sum[:0])[:tokenTag]
}

// AppendOrderToken appends the token of a pay-in: 48 letters, digits, hyphens and
// underscores, the same each time. Only the gateway can read the pay-in's id from it.
// Anyone who has the token may see the payer's page.
func (k *Keyring) AppendOrderToken(dst []byte, number int64, id payment.ID) []byte {
	key := k.tokens[0]
	m := key.makers.Get().(*tokenMaker)
	copy(m.out[:tokenTag], m.tag(number, &id))
	key.block.Encrypt(m.out[tokenTag:], m.out[:tokenTag])
	subtle.XORBytes(m.out[tokenTag:], m.out[tokenTag:], id[:])
	dst = payment.AppendMerchantNumber(dst, number)
	dst = tokenForm.AppendEncode(dst, m.out[:])
	key.makers.Put(m)
	return dst
}

// ReadOrderToken returns the merchant's number and the id of the pay-in that a token
// names; ok is false if this installation did not make it.
func (k *Keyring) ReadOrderToken(token string) (number int64, id payment.ID, ok bool) {
	if len(token) != tokenLength {
		return 0, id, false
	}
	number, err := payment.ParseMerchantNumber(token[:tokenNumber])
	if err != nil {
		return 0, id, false
	}
	raw, err := tokenForm.DecodeString(token[tokenNumber:])
	if err != nil || len(raw) != 2*tokenTag {
		return 0, id, false
	}
	for _, key := range k.tokens {
		if id, ok = key.open(number, raw); ok {
			return number, id, true
		}
	}
	return 0, payment.ID{}, false
}

func (t *tokenKey) open(number int64, raw []byte) (id payment.ID, ok bool) {
	m := t.makers.Get().(*tokenMaker)
	defer t.makers.Put(m)
	t.block.Encrypt(m.out[:tokenTag], raw[:tokenTag])
	subtle.XORBytes(id[:], m.out[:tokenTag], raw[tokenTag:])
	return id, subtle.ConstantTimeCompare(m.tag(number, &id), raw[:tokenTag]) == 1
}
