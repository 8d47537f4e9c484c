package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/porteira/porteira/internal/ledger"
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

// seed makes the sandbox's merchant, its credential and its money, all in one
// commit: it is there whole or not at all, and its unique name makes it once,
// however many processes begin at the same time.
func seed(ctx context.Context, s *store.Store) error {
	for range seedTries {
		_, err := s.MerchantByName(ctx, SandboxMerchant)
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		err = s.Write(ctx, func(tx *store.Tx) error { return seedOnce(ctx, tx, s.Keys()) })
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrCommitUnknown) {
			return err
		}
	}
	return fmt.Errorf("app: the merchant %q cannot be made: its credential %q exists, but belongs to another", SandboxMerchant, SandboxKey)
}

func seedOnce(ctx context.Context, tx *store.Tx, keys *store.Keyring) error {
	m, err := tx.CreateMerchant(ctx, store.Merchant{Name: SandboxMerchant, City: "SAO PAULO", Processor: sandbox.Name}, SandboxWebhookSecret)
	if err != nil {
		return err
	}
	hash := keys.SecretHash(SandboxSecret)
	err = tx.CreateCredential(ctx, store.Credential{
		KeyID: SandboxKey, Merchant: m.ID, Label: "sandbox", SecretHash: hash[:], Scopes: store.Scopes,
	})
	if err != nil {
		return err
	}
	return tx.Post(ctx, m.ID, m.ID, ledger.Fund(m.Processor, SandboxFunds))
}
