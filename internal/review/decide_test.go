package review_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

var (
	merchantID = payment.ID{1}
	subjectID  = payment.ID{2}
	reviewID   = payment.ID{3}
)

// given is a payout of 10.00 at a step, with one send that ended long ago, the accounts
// of its merchant, and a case about it.
func given(kind store.CaseKind, reason store.CaseReason, status payment.PayoutStatus, step payment.PayoutStep) store.Given {
	serial := byte(10)
	g := store.Given{
		Now: coretest.Start, NewID: func() payment.ID { serial++; return payment.ID{serial} },
		Payouts: []store.NewPayout{store.GivenPayout(payment.Payout{
			Merchant: merchantID, ID: subjectID, ExternalID: "x", Amount: 10_00, Status: status, Step: step, Version: 2, Processor: "bank",
		}, nil)},
		Sends: []store.Send{{
			Merchant: merchantID, Payout: subjectID, Number: 1, Outcome: store.SendUnknown, Deadline: coretest.Start.Add(-time.Hour),
		}},
		Cases:    []store.Case{{Merchant: merchantID, ID: reviewID, Kind: kind, Subject: subjectID, Amount: 10_00, Params: reason.With(nil)}},
		Balances: map[payment.ID]ledger.Balances{merchantID: {ledger.Available: 4_00, ledger.Held: 10_00, ledger.Clearing("bank"): -14_00}},
	}
	if status != payment.PayoutProcessing {
		g.Balances[merchantID] = ledger.Balances{ledger.Available: 4_00, ledger.Clearing("bank"): -4_00}
	}
	return g
}

// Each resolution of a payout's case by each state of the payout, confirmed by the second
// person if it takes two.
func TestDecideAboutPayouts(t *testing.T) {
	t.Parallel()
	const (
		unknown, contradiction = store.CasePayoutUnknown, store.CaseContradiction
		processing, failed     = payment.PayoutProcessing, payment.PayoutFailed
		inReview, done         = payment.StepReview, payment.StepDone
		refused                = "refused"
	)
	for _, row := range []struct {
		kind   store.CaseKind
		reason store.CaseReason
		status payment.PayoutStatus
		step   payment.PayoutStep
		how    store.Resolution
		want   string // status, step, outcome of the send, available, owed, held in cents
	}{
		{unknown, store.ReasonNoAnswer, processing, payment.StepUnknown, store.ResolvedPaid, "COMPLETED done paid 400 0 0"},
		{unknown, store.ReasonNoAnswer, processing, payment.StepAccepted, store.ResolvedRelease, "FAILED done failed 1400 0 0"},
		{unknown, store.ReasonNotIdempotent, processing, inReview, store.ResolvedResend, "PROCESSING queued not_found 400 0 1000"},
		{unknown, store.ReasonOtherContents, processing, inReview, store.ResolvedPaid, "COMPLETED done paid 400 0 0"},
		{unknown, store.ReasonNoAnswer, processing, payment.StepQueued, store.ResolvedPaid, refused},
		{unknown, store.ReasonNoAnswer, processing, payment.StepIntent, store.ResolvedRelease, refused},
		{unknown, store.ReasonNoAnswer, payment.PayoutPending, payment.StepQueued, store.ResolvedRelease, refused},
		{unknown, store.ReasonNoAnswer, payment.PayoutCompleted, done, store.ResolvedRelease, refused},
		{unknown, store.ReasonNoAnswer, failed, done, store.ResolvedPaid, refused},
		{contradiction, store.ReasonOtherAmount, processing, inReview, store.ResolvedPaid, "COMPLETED done paid 400 0 0"},
		{contradiction, store.ReasonOtherAmount, processing, inReview, store.ResolvedRelease, "FAILED done failed 1400 0 0"},
		{contradiction, store.ReasonOtherAmount, processing, inReview, store.ResolvedDismiss, refused},
		{contradiction, store.ReasonOtherAmount, payment.PayoutCompleted, done, store.ResolvedDismiss, "COMPLETED done unknown 400 0 0"},
		{contradiction, store.ReasonPaidAfterRelease, failed, done, store.ResolvedPaid, "FAILED paid_late unknown 0 -600 0"},
		{contradiction, store.ReasonPaidAfterRelease, payment.PayoutCanceled, done, store.ResolvedWriteOff, "CANCELED paid_late unknown 400 0 0"},
		{contradiction, store.ReasonPaidAfterRelease, failed, done, store.ResolvedDismiss, "FAILED done unknown 400 0 0"},
		{contradiction, store.ReasonPaidAfterRelease, failed, payment.StepPaidLate, store.ResolvedPaid, refused},
		{contradiction, store.ReasonFailedAfterPaid, payment.PayoutCompleted, done, store.ResolvedRelease, "RETURNED done unknown 1400 0 0"},
		{contradiction, store.ReasonFailedAfterPaid, payment.PayoutReturned, done, store.ResolvedRelease, refused},
	} {
		t.Run(fmt.Sprintf("%s %s %s %s", row.reason, row.status, row.step, row.how), func(t *testing.T) {
			t.Parallel()
			g := given(row.kind, row.reason, row.status, row.step)
			for _, actor := range []string{"ana", "bia"} {
				r := request(&g.Cases[0], row.how)
				r.Actor = actor
				op := review.NewDecision(g.Cases[0], r)
				op.Identify(actor)
				var n store.Needs
				op.Needs(&n)
				after, err := g.Decide(&n, op.Decide)
				if (err != nil) != (row.want == refused) {
					t.Fatalf("%s: %v, want %s", actor, err, row.want)
				}
				if g = after; err != nil || !g.Cases[0].ClosedAt.IsZero() {
					break
				}
			}
			if row.want != refused {
				wantAfter(t, &g, row.how, row.want)
			} else if len(g.Decided)+len(g.Postings)+len(g.Events) > 0 {
				t.Errorf("the refused decision left %+v", g)
			}
		})
	}
}

func wantAfter(t *testing.T, g *store.Given, how store.Resolution, want string) {
	t.Helper()
	p, b := g.Payouts[0].Payout, g.Balances[merchantID]
	if got := fmt.Sprint(p.Status, " ", p.Step, " ", g.Sends[0].Outcome, " ", int64(b[ledger.Available]), " ", int64(b[ledger.Owed]), " ", int64(b[ledger.Held])); got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
	if g.Cases[0].Resolution != how {
		t.Errorf("the case is closed with %q", g.Cases[0].Resolution)
	}
	var sum money.Cents
	for _, amount := range b {
		sum += amount
	}
	if sum != 0 {
		t.Errorf("the ledger sums to %d", sum)
	}
	if last := g.Decided[len(g.Decided)-1]; last.Resolution != how || last.Action != store.DecisionResolved && last.Action != store.DecisionConfirmed {
		t.Errorf("the last decision is %+v", last)
	}
}

// A send whose last byte may still be leaving delays the decision.
func TestDecideWaitsForTheDeadline(t *testing.T) {
	t.Parallel()
	g := given(store.CasePayoutUnknown, store.ReasonNoAnswer, payment.PayoutProcessing, payment.StepUnknown)
	g.Sends[0].Deadline = g.Now.Add(time.Second)
	op := review.NewDecision(g.Cases[0], request(&g.Cases[0], store.ResolvedRelease))
	var n store.Needs
	op.Needs(&n)
	if _, err := g.Decide(&n, op.Decide); err == nil {
		t.Error("decided before the deadline")
	}
	g.Sends[0].Deadline = g.Now.Add(2 * time.Minute)
	if _, err := g.Decide(&n, op.Decide); err == nil {
		t.Error("decided while a clock that is ahead by a minute may send")
	}
	g.Sends[0].Deadline = g.Now
	if after, err := g.Decide(&n, op.Decide); err != nil || len(after.Decided) != 1 {
		t.Errorf("at the deadline: %v", err)
	}
}
