package flow

import (
	"context"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// Prefixes by which secret scanners recognise what must not leak.
const (
	KeyIDPrefix         = "ptr_key_"
	SecretPrefix        = "ptr_secret_"
	WebhookSecretPrefix = "whsec_"
)

// secretBytes is the entropy of a secret, in bytes.
const secretBytes = 32

// CreateMerchant adds a merchant. webhookSecret "" makes a new one. Errors:
// problem kind validation_failed where the name is taken or faulty.
func (f *Flow) CreateMerchant(ctx context.Context, m store.Merchant, webhookSecret string) (store.Merchant, error) {
	if m.Name = strings.TrimSpace(m.Name); m.Name == "" || len(m.Name) > 255 {
		return m, problem.New(problem.ValidationFailed, "The merchant's name must have 1 to 255 bytes.")
	}
	if _, err := f.processorOf(m.Processor); err != nil {
		return m, err
	}
	if webhookSecret == "" {
		webhookSecret = WebhookSecretPrefix + base64.StdEncoding.EncodeToString(f.random(secretBytes))
	}
	err := f.write(ctx, func(tx *store.Tx) error {
		var err error
		m, err = tx.CreateMerchant(ctx, m, webhookSecret)
		return err
	})
	if errors.Is(err, store.ErrConflict) {
		err = problem.New(problem.ValidationFailed, "A merchant with this name already exists.").With(err)
	}
	return m, err
}

// Seed is a merchant that begins with a credential and with money.
type Seed struct {
	Merchant      store.Merchant
	WebhookSecret string
	Credential    NewCredential // KeyID and Secret are given; Merchant is set
	Funds         money.Cents
}

// SeedMerchant makes a merchant, its credential and its money in one commit: it
// is there whole or not at all, and its unique name makes it once, however many
// processes begin at the same time. ErrConflict of the store means that somebody
// was faster, or that the credential is another merchant's.
func (f *Flow) SeedMerchant(ctx context.Context, seed Seed) error {
	return f.write(ctx, func(tx *store.Tx) error {
		m, err := tx.CreateMerchant(ctx, seed.Merchant, seed.WebhookSecret)
		if err != nil {
			return err
		}
		hash := f.store.Keys().SecretHash(seed.Credential.Secret)
		err = tx.CreateCredential(ctx, store.Credential{
			KeyID: seed.Credential.KeyID, Merchant: m.ID, Label: seed.Credential.Label, SecretHash: hash[:], Scopes: store.Scopes,
		})
		if err != nil {
			return err
		}
		return tx.Post(ctx, m.ID, m.ID, ledger.Fund(m.Processor, seed.Funds))
	})
}

// CloseMerchant refuses a merchant's credentials from now on.
func (f *Flow) CloseMerchant(ctx context.Context, id payment.ID) error {
	return f.write(ctx, func(tx *store.Tx) error { return tx.CloseMerchant(ctx, id) })
}

// NewCredential is what a credential is to allow. KeyID and Secret are made
// where they are empty.
type NewCredential struct {
	Merchant   payment.ID
	Label      string
	Scopes     []string
	AllowedIPs []netip.Prefix
	ExpiresAt  time.Time
	KeyID      string
	Secret     string
}

// CreateCredential lets a program of a merchant in. The secret is returned
// here and never again: only its keyed hash is kept.
func (f *Flow) CreateCredential(ctx context.Context, n NewCredential) (c store.Credential, secret string, err error) {
	if n.KeyID == "" {
		n.KeyID = KeyIDPrefix + token(f.random(12))
	}
	if n.Secret == "" {
		n.Secret = SecretPrefix + token(f.random(secretBytes))
	}
	if len(n.Scopes) == 0 {
		n.Scopes = store.Scopes
	}
	hash := f.store.Keys().SecretHash(n.Secret)
	c = store.Credential{
		KeyID: n.KeyID, Merchant: n.Merchant, Label: n.Label, SecretHash: hash[:], Scopes: n.Scopes,
		AllowedIPs: n.AllowedIPs, ExpiresAt: n.ExpiresAt,
	}
	err = f.write(ctx, func(tx *store.Tx) error {
		c.CreatedAt = tx.Now
		return tx.CreateCredential(ctx, c)
	})
	return c, n.Secret, err
}

// RevokeCredential ends a credential; nodes refuse it within 2 s.
func (f *Flow) RevokeCredential(ctx context.Context, keyID string) error {
	return f.write(ctx, func(tx *store.Tx) error { return tx.RevokeCredential(ctx, keyID) })
}

// Fund credits the operator's own money, held at the merchant's processor, to
// the merchant.
func (f *Flow) Fund(ctx context.Context, m store.Merchant, amount money.Cents) error {
	return f.write(ctx, func(tx *store.Tx) error {
		if err := tx.Post(ctx, m.ID, m.ID, ledger.Fund(m.Processor, amount)); err != nil {
			return err
		}
		return repay(ctx, tx, m.ID, m.ID)
	})
}

func (f *Flow) random(n int) []byte {
	b := make([]byte, n)
	f.env.Random.Read(b)
	return b
}

// token writes random bytes in letters and digits that survive any shell.
func token(b []byte) string {
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}
