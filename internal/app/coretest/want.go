package coretest

import (
	"fmt"
	"slices"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// ReadPayout reads a payout as it is stored.
func (g *Gateway) ReadPayout(p payment.Payout) payment.Payout {
	g.T.Helper()
	got, err := g.Store.Payout(g.T.Context(), p.Merchant, p.ID)
	g.Must(err)
	return got
}

// WantPayout compares a payout's status and step, and returns the stored payout.
func (g *Gateway) WantPayout(p payment.Payout, status payment.PayoutStatus, step payment.PayoutStep) payment.Payout {
	g.T.Helper()
	got := g.ReadPayout(p)
	if got.Status != status || got.Step != step {
		g.T.Fatalf("payout is %s/%s, want %s/%s\n%s", got.Status, got.Step, status, step, g.Log)
	}
	return got
}

// WantPayin compares a pay-in's status, paid amount in cents, and number of receipts.
func (g *Gateway) WantPayin(p payment.Payin, status payment.PayinStatus, paid money.Cents, receipts int) {
	g.T.Helper()
	got, err := g.Store.Payin(g.T.Context(), p.Merchant, p.ID)
	g.Must(err)
	list, err := g.Store.Receipts(g.T.Context(), p.Merchant, p.ID)
	g.Must(err)
	if got.Status != status || got.PaidAmount != paid || len(list) != receipts {
		g.T.Fatalf("pay-in is %s, paid %d in %d receipts; want %s, %d in %d\n%s", got.Status, got.PaidAmount, len(list), status, paid, receipts, g.Log)
	}
}

// Balances are the merchant's accounts.
func (g *Gateway) Balances() ledger.Balances {
	g.T.Helper()
	b, err := g.Store.Balances(g.T.Context(), g.Merchant.ID)
	g.Must(err)
	return b
}

// Spend pays available money of the merchant out.
func (g *Gateway) Spend(amount money.Cents) {
	g.T.Helper()
	p := g.Payout(fmt.Sprint("spend ", amount), int64(amount))
	g.Send()
	g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
}

// Events are the events of the merchant, oldest first.
func (g *Gateway) Events() []payment.Event {
	g.T.Helper()
	list, err := g.Store.Events(g.T.Context(), g.Merchant.ID, 0, 1000)
	g.Must(err)
	return list
}

// WantBalances compares the merchant's accounts in cents, and checks that all accounts
// add up to zero.
func (g *Gateway) WantBalances(available, held money.Cents) {
	g.T.Helper()
	b, err := g.Store.Balances(g.T.Context(), g.Merchant.ID)
	g.Must(err)
	if b[ledger.Available] != available || b[ledger.Held] != held {
		g.T.Fatalf("available %s, held %s; want %s and %s", b[ledger.Available].Decimal(), b[ledger.Held].Decimal(), available.Decimal(), held.Decimal())
	}
	var sum money.Cents
	for _, v := range b {
		sum += v
	}
	if sum != 0 {
		g.T.Fatalf("the ledger's sum is %d, want 0", sum)
	}
}

// WantSends compares the outcomes of a payout's sends, in order.
func (g *Gateway) WantSends(p payment.Payout, outcomes ...store.SendOutcome) {
	g.T.Helper()
	sends, err := g.Store.Sends(g.T.Context(), p.Merchant, p.ID)
	g.Must(err)
	var got []store.SendOutcome
	for i := range sends {
		got = append(got, sends[i].Outcome)
	}
	if !slices.Equal(got, outcomes) {
		g.T.Fatalf("sends %v, want %v", got, outcomes)
	}
}

// WantCases compares the kinds of the open cases, oldest first.
func (g *Gateway) WantCases(kinds ...store.CaseKind) {
	g.T.Helper()
	list, err := g.Store.OpenCases(g.T.Context(), 100)
	g.Must(err)
	var got []store.CaseKind
	for i := range list {
		got = append(got, list[i].Kind)
	}
	if !slices.Equal(got, kinds) {
		g.T.Fatalf("cases %v, want %v", got, kinds)
	}
}

// WantBank compares how many requests for transfers the bank got, and how many
// transfers it made.
func (g *Gateway) WantBank(calls, transfers int) {
	g.T.Helper()
	g.Bank.Mu.Lock()
	defer g.Bank.Mu.Unlock()
	if len(g.Bank.Calls) != calls || len(g.Bank.Transfers) != transfers {
		g.T.Fatalf("the bank got %d requests and made %d transfers, want %d and %d", len(g.Bank.Calls), len(g.Bank.Transfers), calls, transfers)
	}
}

// WantEvents compares the types of all events of the merchant, in order.
func (g *Gateway) WantEvents(types ...payment.EventType) {
	g.T.Helper()
	list, err := g.Store.Events(g.T.Context(), g.Merchant.ID, 0, 1000)
	g.Must(err)
	var got []payment.EventType
	for i := range list {
		if list[i].Number != int64(i+1) {
			g.T.Fatalf("event %d has number %d", i+1, list[i].Number)
		}
		got = append(got, list[i].Type)
	}
	if !slices.Equal(got, types) {
		g.T.Fatalf("events %v, want %v", got, types)
	}
}

// WantReason compares the one open case.
func (g *Gateway) WantReason(kind store.CaseKind, reason store.CaseReason) {
	g.T.Helper()
	list, err := g.Store.OpenCases(g.T.Context(), 10)
	g.Must(err)
	if len(list) != 1 || list[0].Kind != kind || list[0].Params.Reason() != reason {
		g.T.Fatalf("cases %+v, want one %s: %s\n%s", list, kind, reason, g.Log)
	}
}
