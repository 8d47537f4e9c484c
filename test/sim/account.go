package sim

import (
	"cmp"
	"log/slog"
	"slices"

	"github.com/porteira/porteira/internal/account"
	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/test/sim/checker"
)

// Profiles of accounts, by what a repeated transfer does.
const (
	idempotent    = "idempotent"
	rejecting     = "rejects repeats"
	notIdempotent = "not idempotent" // looked up before the first send
	consenting    = "asks consent"   // not idempotent, but each transfer needs our consent
)

var profiles = []string{idempotent, rejecting, notIdempotent, consenting}

// contract is one account of the gateway: a contract with the bank.
type contract struct {
	id, profile string
	repeat      bankapi.Repeat
	name        string // "": the bank's own

	bank      *sandboxbank.Bank
	control   *sandbox.Control
	noticeURL string
	hangs     hanging
}

func newContracts() []*contract {
	return []*contract{
		{id: "first", profile: idempotent},
		{id: "second", profile: rejecting, repeat: bankapi.RepeatRejects, name: "second"},
		{id: "third", profile: notIdempotent, repeat: bankapi.RepeatPaysAgain, name: "third"},
		{id: "fourth", profile: consenting, repeat: bankapi.RepeatAsksConsent, name: "fourth"},
	}
}

// accountsOf are the ids of the accounts with these profiles.
func (s *simulation) accountsOf(profiles ...string) (ids []string) {
	for _, c := range s.contracts {
		if slices.Contains(profiles, c.profile) {
			ids = append(ids, c.id)
		}
	}
	return ids
}

// path is the path before the contract's API.
func (c *contract) path() string {
	if c.name == "" {
		return ""
	}
	return bankapi.ContractPath(c.repeat, c.name)
}

func (c *contract) account() store.Account {
	a := store.Account{
		ID: c.id, Driver: sandbox.Name, Settings: map[string]string{sandbox.SettingBaseURL: bankURL},
		Secrets: store.AccountSecrets{Current: map[string]string{sandbox.SecretBank: bankSecret}},
	}
	if c.name != "" {
		a.Settings[sandbox.SettingContract], a.Settings[sandbox.SettingRepeat] = c.name, string(c.repeat)
	}
	return a
}

// contractOf is the account of an order; the first one if the order does not exist.
func (s *simulation) contractOf(externalID string) *contract {
	id := s.checker.Account(externalID)
	for _, c := range s.contracts {
		if c.id == id {
			s.accounts[externalID] = c // a copy of the database may lack the order
		}
	}
	return cmp.Or(s.accounts[externalID], s.contracts[0])
}

// outcomeGroups are the groups of outcomes by the kind of their order.
var outcomeGroups = map[string]string{checker.Payout: "send", checker.Payin: "charge outcome", checker.Refund: "refund outcome"}

// countOutcome counts an outcome of a call by the profile of its account and by the state of
// the work that it continues.
func (s *simulation) countOutcome(kind, account, before, outcome string) {
	for _, c := range s.contracts {
		if c.id == account {
			s.coverage.count(outcomeGroups[kind]+", "+c.profile, outcome, before)
		}
	}
}

// accountOptions open accounts in a process.
func accountOptions(st *store.Store, e env.Env) account.Options {
	return account.Options{Store: st, Env: e, Drivers: []processor.Driver{sandbox.Driver{}}, Author: actor.Author{Actor: actor.System}}
}

// createAccounts creates the accounts.
func (s *simulation) createAccounts(st *store.Store, e env.Env) error {
	service := account.New(accountOptions(st, e))
	for _, c := range s.contracts {
		a, err := service.Add(s.ctx, c.account())
		if err != nil {
			return err
		}
		c.noticeURL = "http://gateway.sim" + account.NoticePath(&a)
	}
	return nil
}

// openAccounts opens the accounts in a process.
func (n *node) openAccounts(e env.Env, log *slog.Logger) (*account.Registry, error) {
	r := account.NewRegistry(accountOptions(n.store, e), log, nil)
	_, err := r.Follow(n.sim.ctx)
	return r, err
}

// routesOf are the routes of a merchant. All accounts take payouts and pay-ins of each
// merchant: by method, by shares or by amounts.
func routesOf(merchant int) []payment.Route {
	turn := []string{"first", "second", "third", "fourth"}
	turn = append(turn[merchant:], turn[:merchant]...)
	routes := []payment.Route{
		{Operation: payment.OperationPayin, Method: payment.Boleto, Account: turn[0]},
		{Operation: payment.OperationPayin, Method: payment.CreditCard, Account: turn[1]},
	}
	for _, operation := range []payment.Operation{payment.OperationPayin, payment.OperationPayout} {
		if merchant == 0 { // by amounts
			routes = append(routes,
				payment.Route{Operation: operation, Account: turn[0], Maximum: 75_00},
				payment.Route{Operation: operation, Account: turn[1], Minimum: 75_01, Maximum: 150_00},
				payment.Route{Operation: operation, Account: turn[2], Minimum: 150_01, Maximum: 225_00},
				payment.Route{Operation: operation, Account: turn[3], Minimum: 225_01})
			continue
		}
		routes = append(routes,
			payment.Route{Operation: operation, Account: turn[0], Share: 30},
			payment.Route{Operation: operation, Account: turn[1], Share: 25},
			payment.Route{Operation: operation, Account: turn[2], Share: 25},
			payment.Route{Operation: operation, Account: turn[3]})
	}
	return routes
}
