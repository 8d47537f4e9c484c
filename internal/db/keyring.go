package db

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
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

// sealVersion begins every sealed value; then comes the id of its key, the nonce and the sealed
// bytes (XChaCha20-Poly1305).
const sealVersion = 3

// sealHead is the length of version and key id, in bytes.
const sealHead = 1 + 4

// RootLength is the length of the root of keyed hashes, in bytes.
const RootLength = 32

// ErrSealed means that a sealed value was not made with this key for this cell.
var ErrSealed = errors.New("db: sealed value does not open")

// Keyring seals personal data and secrets, and makes keyed hashes. Its master key
// is kept outside the database.
type Keyring struct {
	sealers []*sealer // the present master key's, then those of retired ones
	random  env.Random
	macs    []macKeys   // likewise, or the one of the root
	tokens  []*tokenKey // likewise
}

// macKeys makes keyed hashes under one master key, by their purpose.
type macKeys map[string]*sync.Pool

// The purposes of keyed hashes; each has a key of its own.
const (
	PurposeSecret      = "credential-secret"
	PurposeFingerprint = "request-fingerprint"
	PurposeDecision    = "decision-chain"
	PurposeAudit       = "audit-chain"
	PurposeCredential  = "credential-row"
	PurposeEntry       = "entry-chain"
	PurposeRow         = "row"
	PurposeKey         = "pix-key"
	PurposeSearch      = "search"
)

var purposes = []string{PurposeSecret, PurposeFingerprint, PurposeDecision, PurposeAudit, PurposeCredential, PurposeEntry, PurposeRow, PurposeKey, PurposeSearch}

// NewKeyring derives all keys from a master key of 32 bytes. What was sealed and hashed under a
// retired master key remains valid.
func NewKeyring(master []byte, random env.Random, retired ...[]byte) (*Keyring, error) {
	k := &Keyring{random: random}
	for _, m := range append([][]byte{master}, retired...) {
		if len(m) != MasterKeyLength {
			return nil, fmt.Errorf("db: master key has %d bytes, not %d", len(m), MasterKeyLength)
		}
		of, err := newSealer(m)
		if err != nil {
			return nil, err
		}
		k.sealers = append(k.sealers, of)
		if err := k.addHashes(m); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// WithRoot is the keyring whose keyed hashes and tokens come from a root, not from the master keys:
// what is hashed cannot be hashed again, so the root outlives each master key, which seals it.
func (k *Keyring) WithRoot(root []byte) (*Keyring, error) {
	if len(root) != RootLength {
		return nil, fmt.Errorf("db: the root of keyed hashes has %d bytes, not %d", len(root), RootLength)
	}
	of := &Keyring{sealers: k.sealers, random: k.random}
	return of, of.addHashes(root)
}

func (k *Keyring) addHashes(secret []byte) error {
	token, err := newTokenKey(secret)
	if err != nil {
		return err
	}
	of, err := newMACKeys(secret)
	if err != nil {
		return err
	}
	k.tokens, k.macs = append(k.tokens, token), append(k.macs, of)
	return nil
}

func newMACKeys(master []byte) (macKeys, error) {
	keys := macKeys{}
	for _, purpose := range purposes {
		key, err := derive(master, purpose)
		if err != nil {
			return nil, err
		}
		keys[purpose] = &sync.Pool{New: func() any { return &hasher{Hash: hmac.New(sha256.New, key)} }}
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
	const nonce = sealHead + sealNonce
	of := k.sealers[0]
	out := make([]byte, nonce, nonce+len(plain)+sealTag)
	out[0] = sealVersion
	copy(out[1:], of.id[:])
	k.random.Read(out[sealHead:nonce])
	var buffer [96]byte
	return of.AEAD.Seal(out, out[sealHead:nonce], plain, a.appendTo(buffer[:0]))
}

// Open decrypts what Seal made for the same cell; else ErrSealed.
func (k *Keyring) Open(a AssociatedData, sealed []byte) ([]byte, error) {
	const nonce = sealHead + sealNonce
	if len(sealed) < nonce || sealed[0] != sealVersion {
		return nil, fmt.Errorf("%w: %s.%s", ErrSealed, a.Table, a.Column)
	}
	for _, of := range k.sealers {
		if [4]byte(sealed[1:sealHead]) != of.id {
			continue
		}
		var buffer [96]byte
		plain, err := of.AEAD.Open(nil, sealed[sealHead:nonce], sealed[nonce:], a.appendTo(buffer[:0]))
		if err != nil {
			return nil, fmt.Errorf("%w: %s.%s", ErrSealed, a.Table, a.Column)
		}
		return plain, nil
	}
	return nil, fmt.Errorf("%w: %s.%s was sealed with another master key", ErrSealed, a.Table, a.Column)
}

// IsPresent reports whether a value was sealed with the present master key.
func (k *Keyring) IsPresent(sealed []byte) bool {
	return len(sealed) >= sealHead && sealed[0] == sealVersion && [4]byte(sealed[1:sealHead]) == k.sealers[0].id
}

// KeyOf names the master key that a value was sealed with, "" if it is no sealed value.
func KeyOf(sealed []byte) string {
	if len(sealed) < sealHead || sealed[0] != sealVersion {
		return ""
	}
	return hex.EncodeToString(sealed[1:sealHead])
}

// MAC is the keyed hash (HMAC-SHA256) of data under the purpose's own key.
func (k *Keyring) MAC(purpose string, data []byte) [sha256.Size]byte {
	return k.macs[0].sum(purpose, data)
}

// AppendMAC appends MAC to dst.
func (k *Keyring) AppendMAC(dst []byte, purpose string, data []byte) []byte {
	sum := k.MAC(purpose, data)
	return append(dst, sum[:]...)
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
	h := pool.Get().(*hasher)
	h.Reset()
	_, _ = h.Write(data) // a hash never fails
	sum := [sha256.Size]byte(h.Sum(h.sum[:0]))
	pool.Put(h)
	return sum
}

// hasher has a buffer for its sum, which is allocated with it.
type hasher struct {
	hash.Hash

	sum [sha256.Size]byte
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
