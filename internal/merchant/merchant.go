// Package merchant manages merchants, their credentials, brands and funding.
package merchant

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// WebhookSecretPrefix is the prefix by which secret scanners recognise leaked webhook
// secrets.
const WebhookSecretPrefix = "whsec_"

// secretBytes is the entropy of a secret, in bytes.
const secretBytes = 32

// Options configure a Service.
type Options struct {
	Store      *store.Store
	Env        env.Env
	Processors processor.Accounts
	Author     actor.Author // of all changes; without one they are refused
}

// Service implements the use cases of merchants.
type Service struct{ Options }

// New returns a Service.
func New(o Options) *Service { return &Service{o} }

// As returns the use cases with another author of all changes.
func (s *Service) As(by actor.Author) *Service {
	o := s.Options
	o.Author = by
	return New(o)
}

// Create adds a merchant with the limits of new merchants. webhookSecret "" generates one. Errors: problem kind
// validation_failed if the name is taken or invalid, unavailable if a route names an account
// that cannot be opened.
func (s *Service) Create(ctx context.Context, m store.Merchant, webhookSecret string) (store.Merchant, error) {
	if err := tidyDetails(&m); err != nil {
		return m, err
	}
	for _, r := range m.Routes {
		if _, err := s.Processors.Of(r.Account); err != nil || !s.Processors.OpenTo(r.Account, m.ID) {
			return m, problem.New(problem.Unavailable, "The account "+r.Account+" does not exist, cannot be opened, or belongs to another merchant.").With(err)
		}
	}
	if webhookSecret == "" {
		webhookSecret = WebhookSecretPrefix + base64.StdEncoding.EncodeToString(s.random(secretBytes))
	}
	err := s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) (err error) {
		if m.Limits, err = tx.Limits(ctx, payment.ID{}); err != nil {
			return err
		}
		m, err = tx.CreateMerchant(ctx, m, webhookSecret)
		return err
	})
	return m, nameProblem(err)
}

// RotateWebhookSecret gives a merchant a new secret for deliveries to per-order URLs, and
// returns it. Both sign until the overlap has passed; nodes follow within 2 s.
func (s *Service) RotateWebhookSecret(ctx context.Context, merchant payment.ID, by actor.Actor, overlap time.Duration) (string, error) {
	secret := WebhookSecretPrefix + base64.StdEncoding.EncodeToString(s.random(secretBytes))
	sealed := s.Store.SealWebhookSecret(merchant, secret)
	return secret, store.Problem(s.Store.Administer(ctx, actor.Author{Actor: by}, func(tx *store.AdminTx) error {
		return tx.RotateWebhookSecret(ctx, merchant, sealed, tx.Now.Add(overlap))
	}))
}

// Seed is a merchant created with a credential and with money.
type Seed struct {
	Merchant      store.Merchant
	WebhookSecret string
	Credential    NewCredential // KeyID and Secret are given; Merchant is set
	Funds         money.Cents
}

// Seed creates a merchant, its credential and its money in one commit. The unique name
// makes it happen once, even if several processes start at the same time: ErrConflict of
// the store means that another process was faster, or that the credential belongs to
// another merchant.
func (s *Service) Seed(ctx context.Context, seed Seed) error {
	return store.Problem(s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) error {
		m, err := tx.CreateMerchant(ctx, seed.Merchant, seed.WebhookSecret)
		if err != nil {
			return err
		}
		hash := s.Store.Keys().SecretHash(seed.Credential.Secret)
		err = tx.CreateCredential(ctx, store.Credential{
			KeyID: seed.Credential.KeyID, Merchant: m.ID, Label: seed.Credential.Label, SecretHash: hash[:], Scopes: store.Scopes,
		})
		if err != nil {
			return err
		}
		return credit(ctx, tx, m, seed.Funds)
	}))
}

// Close makes the gateway reject a merchant's credentials from now on; what is under way goes on, and
// is returned. Unless anyway is set, a merchant with anything unfinished is not closed: problem kind
// invalid_state. A merchant that is closed already is ErrConflict of the store.
func (s *Service) Close(ctx context.Context, id payment.ID, anyway bool) (left store.Unfinished, err error) {
	err = s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) (err error) {
		if left, err = tx.Unfinished(ctx, id); err != nil {
			return err
		}
		if !left.Nothing() && !anyway {
			return problem.New(problem.InvalidState, "The merchant has money, or orders, disputes or cases that are not final.")
		}
		return tx.CloseMerchant(ctx, id)
	})
	return left, store.Problem(err)
}

// Reopen makes the gateway accept the credentials of a closed merchant again. A merchant that is not
// closed is ErrConflict of the store.
func (s *Service) Reopen(ctx context.Context, id payment.ID) error {
	return store.Problem(s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) error { return tx.ReopenMerchant(ctx, id) }))
}

// Fund credits the operator's own money at the merchant's account to the merchant. It is
// not idempotent, so it is not repeated if the outcome of its commit is unknown: the error
// is then a problem of kind unavailable, and the operator checks the balance.
func (s *Service) Fund(ctx context.Context, m store.Merchant, amount money.Cents) error {
	ctx = context.WithoutCancel(ctx)
	return store.Problem(s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) error { return credit(ctx, tx, m, amount) }))
}

// credit credits money to a merchant, at the first account of its payouts, and repays its
// debt.
func credit(ctx context.Context, tx *store.AdminTx, m store.Merchant, amount money.Cents) error {
	routes := payment.RoutesOf(m.Routes, payment.OperationPayout, payment.PIX)
	if len(routes) == 0 {
		return problem.New(problem.MethodNotEnabled, "The merchant has no route for payouts, so its money has no account.")
	}
	account := routes[0].Account
	var needs store.Needs
	needs.Balances(m.ID)
	return tx.Apply(ctx, &needs, func(l *store.Loaded, c *store.Changes) error {
		if err := c.Post(m.ID, m.ID, ledger.Fund(account, amount)); err != nil {
			return err
		}
		return transition.RepayDebt(l, c, m.ID, m.ID)
	})
}

func (s *Service) random(n int) []byte {
	b := make([]byte, n)
	s.Env.Random.Read(b)
	return b
}
