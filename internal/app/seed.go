package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/store"
)

// The sandbox's merchant, as everybody knows it. It exists in development only.
const (
	SandboxMerchant      = "sandbox"
	SandboxKey           = "sandbox_key"
	SandboxSecret        = "sandbox_secret"
	SandboxWebhookSecret = "whsec_c2FuZGJveC13ZWJob29rLXNlY3JldC0wMDAx"
	// SandboxFunds is what it has available at first, in cents.
	SandboxFunds money.Cents = 1_000_000_00
)

// seedTries bounds how often seeding is tried against other processes that
// create merchants at the same moment.
const seedTries = 5

// seed makes the sandbox's merchant, once.
func seed(ctx context.Context, s *store.Store, f *flow.Flow) error {
	for range seedTries {
		_, err := s.MerchantByName(ctx, SandboxMerchant)
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		err = f.SeedMerchant(ctx, flow.Seed{
			Merchant:      store.Merchant{Name: SandboxMerchant, City: "SAO PAULO", Processor: sandbox.Name},
			WebhookSecret: SandboxWebhookSecret, Funds: SandboxFunds,
			Credential: flow.NewCredential{KeyID: SandboxKey, Secret: SandboxSecret, Label: "sandbox"},
		})
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrCommitUnknown) {
			return err
		}
	}
	return fmt.Errorf("app: the merchant %q cannot be made: its credential %q exists, but belongs to another", SandboxMerchant, SandboxKey)
}

// refuseSandbox keeps production away from a database whose credential is
// printed in every manual.
func refuseSandbox(ctx context.Context, s *store.Store) error {
	c, err := s.Credential(ctx, SandboxKey)
	if errors.Is(err, store.ErrNotFound) || err == nil && !c.RevokedAt.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("this database was made by porteira dev, and everybody knows the secret of its credential %s: use a database of its own, or end it by porteira credential revoke %s", SandboxKey, SandboxKey)
}
