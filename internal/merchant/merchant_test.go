package merchant_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

func TestFund(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, row := range []struct {
			name    string
			given   func(g *coretest.Gateway)
			amount  money.Cents
			changes string
		}{
			{"a merchant without debt", func(*coretest.Gateway) {}, 50_00, `
				+postings funded clearing:bank -5000
				+postings funded available 5000`},
			{"a merchant in debt", indebted, 1_500_00, `
				+postings funded clearing:bank -150000
				+postings funded available 150000
				+postings owed_repaid available -100000
				+postings owed_repaid owed 100000`},
			{"a merchant with more debt", indebted, 50_00, `
				+postings funded clearing:bank -5000
				+postings funded available 5000
				+postings owed_repaid available -5000
				+postings owed_repaid owed 5000`},
		} {
			t.Run(row.name, func(t *testing.T) {
				g := g.For(t)
				row.given(g)
				got := g.Changes(func() { g.Must(g.Merchants.Fund(t.Context(), g.Merchant, row.amount)) })
				if want := coretest.Lines(row.changes); got != want {
					t.Errorf("changes\n%s\nwant\n%s", got, want)
				}
				g.WantProven()
			})
		}
	})
}

// indebted leaves the merchant a debt of all its money: a payment that was spent is
// disputed.
func indebted(g *coretest.Gateway) {
	g.T.Helper()
	r := coretest.PayinRequest("order", "")
	r.Amount.V = int64(coretest.Opening)
	p, _, err := g.Payins.Create(g.T.Context(), g.Merchant, r)
	g.Must(err)
	g.Bank.Receive(p.ExternalID, g.T.Name(), coretest.Opening)
	g.ReadFeeds()
	g.Payout("spend", int64(2*coretest.Opening))
	g.Send()
	g.Bank.Dispute(p.ExternalID, g.T.Name(), coretest.Opening, processor.DisputeOpen)
	g.ReadFeeds()
	b, err := g.Store.Balances(g.T.Context(), g.Merchant.ID)
	g.Must(err)
	if b[ledger.Owed] != -coretest.Opening || b[ledger.Available] != 0 {
		g.T.Fatalf("balances %v", b)
	}
}

// Money is credited once, or not at all, if the outcome of its commit is unknown: only
// the operator can distinguish a second credit from a repeated one.
func TestFundOfAnUnknownCommit(t *testing.T) {
	for when, credited := range map[env.Failpoint]money.Cents{env.BeforeCommit: 0, env.AfterCommit: 50_00} {
		t.Run(string(when), func(t *testing.T) {
			var cuts *atomic.Int64
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				cuts.Store(1)
				var err error
				g.Until(func() { err = g.Merchants.Fund(t.Context(), g.Merchant, 50_00) })
				if !problem.Is(err, problem.Unavailable) || cuts.Load() != 0 {
					t.Errorf("answered %v, want unavailable", err)
				}
				g.WantBalances(coretest.Opening+credited, 0)
			}, func(e *env.Env) { cuts = coretest.CutCommits(e, when) })
		})
	}
}

func TestCreate(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, row := range []struct {
			name, merchant, processor string
			refused                   problem.Kind
		}{
			{"a new name", "Padaria", coretest.BankName, ""},
			{"spaces around the name", "  Banca ", coretest.BankName, ""},
			{"a taken name", "Loja", coretest.BankName, problem.ValidationFailed},
			{"a taken name, but for spaces", " Loja ", coretest.BankName, problem.ValidationFailed},
			{"no name", "  ", coretest.BankName, problem.ValidationFailed},
			{"a name of 256 bytes", strings.Repeat("x", 256), coretest.BankName, problem.ValidationFailed},
			{"an unknown processor", "Outra", "nobody", problem.Unavailable},
		} {
			m, err := g.Merchants.Create(t.Context(), store.Merchant{Name: row.merchant, City: "OLINDA", Routes: payment.AllRoutes(row.processor)}, "")
			switch {
			case row.refused != "":
				if problem.From(err) == nil || problem.From(err).Kind != row.refused {
					t.Errorf("%s: %v, want %s", row.name, err, row.refused)
				}
			case err != nil:
				t.Errorf("%s: %v", row.name, err)
			default:
				got, err := g.Store.MerchantByName(t.Context(), strings.TrimSpace(row.merchant))
				if err != nil || got.ID != m.ID || got.Number != m.Number {
					t.Errorf("%s: %+v, %v", row.name, got, err)
				}
				secret, err := g.Store.WebhookSecret(t.Context(), m.ID)
				if err != nil || !strings.HasPrefix(secret, "whsec_") {
					t.Errorf("%s: secret of %d bytes, %v", row.name, len(secret), err)
				}
			}
		}
	})
}
