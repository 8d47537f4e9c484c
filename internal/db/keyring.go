package db

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
)

// MasterKeyLength is the length of a master key, in bytes.
const MasterKeyLength = 32

// sealVersion begins every sealed value; then comes the key's id, the nonce
// and the sealed bytes (AES-256-GCM).
const sealVersion = 1

// sealHead is the length of version and key id, in bytes.
const sealHead = 1 + 4

// ErrSealed means that a sealed value was not made with this key for this cell.
var ErrSealed = errors.New("db: sealed value does not open")

// Keyring seals personal data and secrets, and makes keyed hashes. Its master key
// is kept outside the database.
type Keyring struct {
	id     [4]byte
	aead   cipher.AEAD
	random env.Random
	macs   []macKeys   // the present master key's, then those of retired ones
	tokens []*tokenKey // likewise
}

// macKeys makes keyed hashes under one master key, by their purpose.
type macKeys map[string]*sync.Pool

// The purposes of keyed hashes; each has a key of its own.
const (
	PurposeSecret      = "credential-secret"
	PurposeFingerprint = "request-fingerprint"
	PurposeDecision    = "decision-chain"
	PurposeCredential  = "credential-row"
	PurposeEntry       = "entry-chain"
	PurposeRow         = "row"
	PurposeKey         = "pix-key"
	PurposeSearch      = "search"
)

var purposes = []string{PurposeSecret, PurposeFingerprint, PurposeDecision, PurposeCredential, PurposeEntry, PurposeRow, PurposeKey, PurposeSearch}

// NewKeyring derives all keys from a master key of 32 bytes. Merchants have sent checkout
// links to payers, and have stored secrets, so tokens, secrets and rows that were
// authenticated under a retired master key remain valid.
func NewKeyring(master []byte, random env.Random, retired ...[]byte) (*Keyring, error) {
	var tokens []*tokenKey
	var macs []macKeys
	for _, m := range append([][]byte{master}, retired...) {
		if len(m) != MasterKeyLength {
			return nil, fmt.Errorf("db: master key has %d bytes, not %d", len(m), MasterKeyLength)
		}
		key, err := newTokenKey(m)
		if err != nil {
			return nil, err
		}
		of, err := newMACKeys(m)
		if err != nil {
			return nil, err
		}
		tokens, macs = append(tokens, key), append(macs, of)
	}
	sealing, err := derive(master, "seal")
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(sealing)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	name := sha256.Sum256(sealing)
	return &Keyring{id: [4]byte(name[:4]), aead: aead, random: random, macs: macs, tokens: tokens}, nil
}

func newMACKeys(master []byte) (macKeys, error) {
	keys := macKeys{}
	for _, purpose := range purposes {
		key, err := derive(master, purpose)
		if err != nil {
			return nil, err
		}
		keys[purpose] = &sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}
	}
	return keys, nil
}

func derive(master []byte, purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, master, nil, "porteira/"+purpose, 32)
}

// ParseMasterKey reads a master key in its configured form: 32 bytes in base64.
func ParseMasterKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != MasterKeyLength {
		return nil, errors.New("db: a master key is 32 bytes in base64")
	}
	return key, nil
}

// AssociatedData names the cell that a sealed value belongs to: the value opens
// only with it.
type AssociatedData struct {
	Table    string
	Merchant payment.ID
	ID       payment.ID
	Column   string
}

func (a AssociatedData) appendTo(b []byte) []byte {
	b = append(b, a.Table...)
	b = append(b, 0)
	b = append(b, a.Merchant[:]...)
	b = append(b, a.ID[:]...)
	return append(b, a.Column...)
}

// Seal encrypts plain for one cell.
func (k *Keyring) Seal(a AssociatedData, plain []byte) []byte {
	const head = sealHead
	nonce := head + k.aead.NonceSize()
	out := make([]byte, nonce, nonce+len(plain)+k.aead.Overhead())
	out[0] = sealVersion
	copy(out[1:], k.id[:])
	k.random.Read(out[head:nonce])
	var buffer [96]byte
	return k.aead.Seal(out, out[head:nonce], plain, a.appendTo(buffer[:0]))
}

// Open decrypts what Seal made for the same cell; else ErrSealed.
func (k *Keyring) Open(a AssociatedData, sealed []byte) ([]byte, error) {
	const head = sealHead
	nonce := head + k.aead.NonceSize()
	if len(sealed) < nonce || sealed[0] != sealVersion {
		return nil, fmt.Errorf("%w: %s.%s", ErrSealed, a.Table, a.Column)
	}
	if [4]byte(sealed[1:head]) != k.id {
		return nil, fmt.Errorf("%w: %s.%s was sealed with another master key", ErrSealed, a.Table, a.Column)
	}
	var buffer [96]byte
	plain, err := k.aead.Open(nil, sealed[head:nonce], sealed[nonce:], a.appendTo(buffer[:0]))
	if err != nil {
		return nil, fmt.Errorf("%w: %s.%s", ErrSealed, a.Table, a.Column)
	}
	return plain, nil
}

// MAC is the keyed hash (HMAC-SHA256) of data under the purpose's own key.
func (k *Keyring) MAC(purpose string, data []byte) [sha256.Size]byte {
	return k.macs[0].sum(purpose, data)
}

// Authentic reports whether mac is the keyed hash of data, under the present master key or
// a retired one. It compares in constant time.
func (k *Keyring) Authentic(purpose string, data, mac []byte) bool {
	for _, keys := range k.macs {
		if sum := keys.sum(purpose, data); hmac.Equal(sum[:], mac) {
			return true
		}
	}
	return false
}

// AuthenticHalf is Authentic for the first half of a keyed hash.
func (k *Keyring) AuthenticHalf(purpose string, data []byte, mac [sha256.Size / 2]byte) bool {
	for _, keys := range k.macs {
		if sum := keys.sum(purpose, data); hmac.Equal(sum[:len(mac)], mac[:]) {
			return true
		}
	}
	return false
}

func (m macKeys) sum(purpose string, data []byte) [sha256.Size]byte {
	pool := m[purpose]
	h := pool.Get().(hash.Hash)
	h.Reset()
	_, _ = h.Write(data) // a hash never fails
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	pool.Put(h)
	return sum
}

// SecretHash is the stored form of a credential's secret, by which it is
// compared.
func (k *Keyring) SecretHash(secret string) [sha256.Size]byte {
	return k.MAC(PurposeSecret, []byte(secret))
}

// RetiredSecretHashes are the forms of a secret under the retired master keys, in which
// credentials of their time have it; nil if no key is retired.
func (k *Keyring) RetiredSecretHashes(secret string) [][sha256.Size]byte {
	var list [][sha256.Size]byte
	for _, keys := range k.macs[1:] {
		list = append(list, keys.sum(PurposeSecret, []byte(secret)))
	}
	return list
}
