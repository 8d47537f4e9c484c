package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/store"
)

// The sandbox's merchant, with published credentials. It exists in development only.
const (
	SandboxKey           = "sandbox_key"
	SandboxSecret        = "sandbox_secret"
	SandboxWebhookSecret = "whsec_c2FuZGJveC13ZWJob29rLXNlY3JldC0wMDAx"
	// SandboxFunds is its initial balance, in cents.
	SandboxFunds money.Cents = 1_000_000_00

	sandboxMerchant = "sandbox" // its name
)

// seedTries bounds the attempts to seed while other processes create merchants
// concurrently.
const seedTries = 5

// seed creates the sandbox's merchant if it does not exist.
func seed(ctx context.Context, s *store.Store, merchants *merchant.Service) error {
	for range seedTries {
		_, err := s.MerchantByName(ctx, sandboxMerchant)
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		err = merchants.Seed(ctx, merchant.Seed{
			Merchant:      store.Merchant{Name: sandboxMerchant, City: "SAO PAULO", Processor: sandbox.Name},
			WebhookSecret: SandboxWebhookSecret, Funds: SandboxFunds,
			Credential: merchant.NewCredential{KeyID: SandboxKey, Secret: SandboxSecret, Label: "sandbox"},
		})
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrCommitUnknown) {
			return err
		}
	}
	return fmt.Errorf("app: cannot create merchant %q: credential %q belongs to another merchant", sandboxMerchant, SandboxKey)
}

// refuseSandbox refuses to run production on a database with the sandbox's published
// credential.
func refuseSandbox(ctx context.Context, s *store.Store) error {
	c, err := s.Credential(ctx, SandboxKey)
	if errors.Is(err, store.ErrNotFound) || err == nil && !c.RevokedAt.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("this database was created by porteira dev, and the secret of its credential %s is public: use another database, or run porteira credential revoke %s", SandboxKey, SandboxKey)
}
