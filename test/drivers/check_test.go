package drivers

import (
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

// settleWithin bounds the simulated time in which everything ends once nobody dies any more: it
// is longer than quiet periods and confirmations.
const (
	settleWithin = 3 * time.Hour
	settleStep   = 10 * time.Minute
)

// finish lets everything end. Two people send again what a processor that is not idempotent
// may or may not have got, after they have read its statement.
func (g *gateway) finish() {
	g.t.Helper()
	g.nemesis.off = true
	g.pass()
	for range settlements {
		if g.resolve() == 0 {
			return
		}
		g.pass()
	}
}

// claimedTogether is how many payouts may be claimed at once: a death leaves all of them unknown.
const claimedTogether = 2

// settlements is how often people look at the cases.
const settlements = 3

// resolve resolves the cases of refunds and payouts that the bank does not have, and returns
// their number.
func (g *gateway) resolve() (resolved int) {
	g.t.Helper()
	reviews := review.New(review.Options{
		Store: g.store, Writer: g.core.Writer, Env: g.env, Links: func(*payment.Payin) payment.Links { return payment.Links{} },
		Processors: processor.Registry{account: g.driver},
	})
	cases, err := g.store.OpenCases(g.t.Context(), 100)
	g.must(err)
	for i := range cases {
		c := &cases[i]
		if !g.missing(c) {
			continue // the check reports it
		}
		resolved++
		for _, by := range []actor.Actor{"operator:ana", "operator:bia"} {
			r := review.Request{Case: c.ID, How: store.ResolvedResend, Actor: by, Reason: "the process died", Evidence: "not in the statement"}
			_, err := reviews.Resolve(g.t.Context(), r)
			g.must(err)
		}
	}
	if g.nemesis.resolved += resolved; g.nemesis.resolved > claimedTogether*len(g.nemesis.killed) {
		g.t.Errorf("%d cases after %d deaths", g.nemesis.resolved, len(g.nemesis.killed))
	}
	return resolved
}

// missing reports whether a case is about a refund or a payout that the bank does not have, and
// that only people may send again.
func (g *gateway) missing(c *store.Case) bool {
	g.t.Helper()
	switch {
	case c.Kind == store.CaseRefundUnknown && c.Params["cause"] == string(store.ReasonNotIdempotent):
		refund, err := g.store.Refund(g.t.Context(), c.Merchant, c.Subject)
		g.must(err)
		of, err := g.store.Payin(g.t.Context(), c.Merchant, refund.Payin)
		g.must(err)
		return len(g.bank.refunds(&of)[c.Params["externalId"]]) == 0
	case c.Kind == store.CasePayoutUnknown && c.Params.Reason() == store.ReasonNotIdempotent:
		p, err := g.store.Payout(g.t.Context(), c.Merchant, c.Subject)
		g.must(err)
		return len(g.bank.transfers(&p)) == 0
	default:
		return false
	}
}

// pass lets as much time pass as everything needs.
func (g *gateway) pass() {
	g.t.Helper()
	g.rest()
	for d := time.Duration(0); d < settleWithin; d += settleStep {
		g.tick(settleStep)
	}
	g.rest()
}

// check compares the bank's records with the gateway's.
func (all *played) check(g *gateway) {
	g.t.Helper()
	for _, p := range all.payins {
		all.checkPayin(g, p)
	}
	for _, p := range all.payouts {
		got, err := g.store.Payout(g.t.Context(), p.Merchant, p.ID)
		g.must(err)
		transfers := g.bank.transfers(&p.Payout)
		unanswered := got.Status == payment.PayoutFailed && g.bank.questions() > 0 && len(g.nemesis.killed) >= g.bank.questions()
		if got.Status != p.ends && !unanswered {
			g.t.Errorf("payout %s is %s/%s, want %s", p.ReferenceID, got.Status, got.Step, p.ends)
		}
		if len(transfers) > 1 || (len(transfers) == 1) != (got.Status == payment.PayoutCompleted) || len(transfers) == 1 && transfers[0] != p.Amount {
			g.t.Errorf("payout %s is %s, and the bank has the transfers %v", p.ReferenceID, got.Status, transfers)
		}
	}
	clearing := -coretest.Opening // which the bank has not seen
	for _, merchant := range []payment.ID{g.merchant.ID, {}} {
		b, err := g.store.Balances(g.t.Context(), merchant)
		g.must(err)
		clearing -= b[ledger.Clearing(account)]
		proofs, err := g.store.Verify(g.t.Context(), merchant)
		g.must(err)
		for _, p := range proofs {
			if len(p.Defects) > 0 {
				g.t.Errorf("verify, %s: %v", p.Check, p.Defects)
			}
		}
	}
	if holds := g.bank.holds(); clearing != holds {
		g.t.Errorf("the ledger has %s at the bank, and the bank holds %s", clearing.Decimal(), holds.Decimal())
	}
	cases, err := g.store.OpenCases(g.t.Context(), 100)
	g.must(err)
	for i := range cases {
		g.t.Errorf("there is a case %s: %v", cases[i].Kind, cases[i].Params)
	}
}

func (all *played) checkPayin(g *gateway, p *payin) {
	g.t.Helper()
	got, err := g.store.Payin(g.t.Context(), p.Merchant, p.ID)
	g.must(err)
	if got.Status != p.ends || got.RefundedAmount != p.refunded {
		g.t.Errorf("pay-in %s is %s, %s refunded, want %s, %s", p.ReferenceID, got.Status, got.RefundedAmount.Decimal(), p.ends, p.refunded.Decimal())
	}
	if registered, open := g.bank.charges(&p.Payin); registered != p.installments || open != 0 {
		g.t.Errorf("pay-in %s: the bank has %d charges, of which %d can be paid", p.ReferenceID, registered, open)
	}
	if n := g.bank.defenses(&p.Payin); (n == 1) != p.defended || n > 1 {
		g.t.Errorf("pay-in %s: the bank has %d defenses", p.ReferenceID, n)
	}
	made := g.bank.refunds(&p.Payin)
	var sum money.Cents
	parts := 0
	refunds, err := g.store.Refunds(g.t.Context(), p.Merchant, store.Filter{Limit: 100})
	g.must(err)
	for i := range refunds {
		if refunds[i].Payin != p.ID {
			continue
		}
		list, err := g.store.RefundParts(g.t.Context(), p.Merchant, refunds[i].ID)
		g.must(err)
		for j := range list {
			if amounts, ok := made[list[j].ExternalID]; ok && (len(amounts) != 1 || amounts[0] != list[j].Amount) {
				g.t.Errorf("pay-in %s: the bank has %v for a part of %s", p.ReferenceID, amounts, list[j].Amount.Decimal())
			} else if ok {
				parts++
			}
		}
	}
	for _, amounts := range made {
		for _, amount := range amounts {
			sum += amount
		}
	}
	if sum != p.refunded || parts < p.requests {
		g.t.Errorf("pay-in %s: the bank has given back %v, of %d requests, want %s", p.ReferenceID, made, p.requests, p.refunded.Decimal())
	}
}
