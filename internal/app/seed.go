package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
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
			Merchant:      store.Merchant{Name: sandboxMerchant, City: "SAO PAULO", Routes: payment.AllRoutes(sandbox.Name)},
			WebhookSecret: SandboxWebhookSecret, Funds: SandboxFunds,
			Credential: merchant.NewCredential{KeyID: SandboxKey, Secret: SandboxSecret, Label: "sandbox"},
		})
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrCommitUnknown) {
			return err
		}
	}
	return fmt.Errorf("app: cannot create merchant %q: credential %q belongs to another merchant", sandboxMerchant, SandboxKey)
}

// WebhookSecret is the webhook secret of the sandbox's merchant: at first
// SandboxWebhookSecret, but it can rotate.
func (a *App) WebhookSecret(ctx context.Context) (string, error) {
	m, err := a.store.MerchantByName(ctx, sandboxMerchant)
	if err != nil {
		return "", err
	}
	return a.store.WebhookSecret(ctx, m.ID)
}

// isSandbox reports whether the database is marked as a sandbox.
func isSandbox(ctx context.Context, s *store.Store) (bool, error) {
	mark, err := s.Setting(ctx, store.SettingSandbox)
	return mark != "", err
}

// markSandbox marks a database as a sandbox, forever: its credential, its webhook secret
// and its money are published or synthetic. A database that has merchants and no mark is
// refused, as it may be that of production.
func markSandbox(ctx context.Context, s *store.Store) error {
	list, err := s.Merchants(ctx) // first: another process marks before it creates one
	if err != nil {
		return err
	}
	marked, err := isSandbox(ctx, s)
	if err != nil || marked {
		return err
	}
	if len(list) > 0 {
		return errors.New("this database has merchants and was not created by porteira dev, which would make it a sandbox forever: use another database (--data or --database)")
	}
	return s.Transact(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, store.SettingSandbox, "true") })
}

// refuseSandbox refuses to run production on a sandbox's database, even if its credentials were
// revoked since.
func refuseSandbox(ctx context.Context, s *store.Store) error {
	marked, err := isSandbox(ctx, s)
	if err != nil || !marked {
		return err
	}
	return errors.New("this database was created by porteira dev: it is a sandbox forever, with synthetic money and a public webhook secret. Use another database (--data or --database), which porteira migrate creates")
}
