package merchant

import (
	"context"
	"encoding/base32"
	"net/netip"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Prefixes by which secret scanners recognise leaked credentials.
const (
	keyIDPrefix  = "ptr_key_"
	secretPrefix = "ptr_secret_"
)

// NewCredential is the description of a new credential. KeyID and Secret are
// generated if they are empty.
type NewCredential struct {
	Merchant   payment.ID
	Label      string
	Scopes     []string
	AllowedIPs []netip.Prefix
	ExpiresAt  time.Time
	KeyID      string
	Secret     string
}

// CreateCredential creates a credential for a program of a merchant. The secret is
// returned here and never again: only its keyed hash is stored.
func (s *Service) CreateCredential(ctx context.Context, n NewCredential) (c store.Credential, secret string, err error) {
	if n.KeyID == "" {
		n.KeyID = keyIDPrefix + token(s.random(12))
	}
	if n.Secret == "" {
		n.Secret = secretPrefix + token(s.random(secretBytes))
	}
	if len(n.Scopes) == 0 {
		n.Scopes = store.Scopes
	}
	hash := s.Store.Keys().SecretHash(n.Secret)
	c = store.Credential{
		KeyID: n.KeyID, Merchant: n.Merchant, Label: n.Label, SecretHash: hash[:], Scopes: n.Scopes,
		AllowedIPs: n.AllowedIPs, ExpiresAt: n.ExpiresAt,
	}
	err = s.Store.Transact(ctx, func(tx *store.Tx) error {
		c.CreatedAt = tx.Now
		return tx.CreateCredential(ctx, c)
	})
	return c, n.Secret, store.Problem(err)
}

// RevokeCredential revokes a credential; nodes reject it within 2 s.
func (s *Service) RevokeCredential(ctx context.Context, keyID string) error {
	return store.Problem(s.Store.Transact(ctx, func(tx *store.Tx) error { return tx.RevokeCredential(ctx, keyID) }))
}

// token encodes random bytes in letters and digits that need no quoting in a shell.
func token(b []byte) string {
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}
