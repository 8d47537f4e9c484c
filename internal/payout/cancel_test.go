package payout_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

func TestCancelDecisions(t *testing.T) {
	const canceled = `
		payouts next_at:now→- status:PENDING→CANCELED step:queued→done version:1→2
		limit_counters amount:1000→0 payouts:1→0
		+postings payout_released held -1000
		+postings payout_released available 1000
		+events payout.canceled`
	type move struct {
		on    payment.Trigger
		step  payment.PayoutStep
		entry []ledger.Entry
	}
	sent := func(step payment.PayoutStep) move { return move{payment.OnSend, step, nil} }
	done := func(on payment.Trigger, entry ledger.Entry) move {
		return move{on, payment.StepDone, []ledger.Entry{entry}}
	}
	intent, paid := sent(payment.StepIntent), done(payment.OnComplete, ledger.PayPayout(coretest.BankName, 10_00, 0))
	for _, row := range []struct {
		name     string
		given    []move
		restore  time.Duration // of the database, after it was requested; 0 for none
		unproved bool          // it was a cold start, and the account's list showed nothing
		changes  string
		refused  problem.Kind
	}{
		{name: "queued", changes: canceled},
		{name: "canceled already", given: []move{done(payment.OnCancel, ledger.ReleasePayout(10_00, 0))}},
		{name: "queued before the database was restored", restore: 1, refused: problem.InvalidState},
		{name: "queued when the database was restored", restore: -1, refused: problem.InvalidState},
		{name: "queued a week after the database was restored", restore: -7 * 24 * time.Hour, refused: problem.InvalidState},
		{name: "queued later than that", restore: -7*24*time.Hour - 1, changes: canceled},
		{name: "queued before a cold start", restore: 1, unproved: true, changes: canceled},
		{name: "being sent", given: []move{intent}, refused: problem.InvalidState},
		{name: "not sent, queued again", given: []move{sent(payment.StepQueued)}, refused: problem.InvalidState},
		{name: "unknown", given: []move{sent(payment.StepUnknown)}, refused: problem.InvalidState},
		{name: "accepted", given: []move{sent(payment.StepAccepted)}, refused: problem.InvalidState},
		{name: "in manual review", given: []move{sent(payment.StepReview)}, refused: problem.InvalidState},
		{name: "completed", given: []move{intent, paid}, refused: problem.InvalidState},
		{name: "failed", given: []move{intent, done(payment.OnFail, ledger.ReleasePayout(10_00, 0))}, refused: problem.InvalidState},
		{name: "returned", given: []move{intent, paid, done(payment.OnReturn, ledger.ReturnPayout(coretest.BankName, 10_00))}, refused: problem.InvalidState},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := coretest.NewWith(t, coretest.Opening)
			if row.restore != 0 {
				restored, proved := m.Clock.Now().Add(row.restore).UnixMicro(), int64(0)
				if !row.unproved {
					proved = restored
				}
				m.Execute(fmt.Sprintf("UPDATE installation SET restored_at = %d, proved_at = %d", restored, proved))
				m.Heartbeat()
			}
			p := m.Payout("r", 10_00)
			for _, v := range row.given {
				movePayout(m, p, v.on, v.step, v.entry...)
			}
			op := m.Payouts.NewCancel(p.Merchant, p.ID)
			if row.refused != "" {
				m.WantRefusal(op, row.refused)
			} else {
				m.WantDecision(op, row.changes, "")
				m.WantProven()
			}
		})
	}
	m := coretest.NewWith(t, coretest.Opening)
	p := m.Payout("r", 10_00)
	m.WantRefusal(m.Payouts.NewCancel(m.Merchant.ID, payment.ID{1}), problem.NotFound)
	m.WantRefusal(m.Payouts.NewCancel(payment.ID{}, p.ID), problem.NotFound)
}

// movePayout moves a payout through a cell of its table, to a step.
func movePayout(g *coretest.Gateway, p payment.Payout, on payment.Trigger, step payment.PayoutStep, entries ...ledger.Entry) {
	g.T.Helper()
	var n store.Needs
	n.Payout(p.Merchant, p.ID)
	n.Balances(p.Merchant)
	g.Must(g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
		return tx.Apply(g.T.Context(), &n, func(l *store.Loaded, c *store.Changes) error {
			p, _ := l.Payout(p.Merchant, p.ID)
			if outgoing.Finish(&p); step != payment.StepDone {
				p.Step = step
			}
			moved, err := transition.Payout(l, c, &p, on, entries...)
			if !moved {
				g.T.Errorf("a payout does not move from %s by %s", p.Status, on)
			}
			return err
		})
	}))
}

// A payout that a restored database shows as unsent may have been paid: until it
// has been looked up, canceling it would release the money without proof.
func TestCancelAfterARestoreNeedsProof(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("sent in the lost past", 10_00)
		g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: 10_00}, processor.TransferPaid)
		g.Execute("UPDATE installation SET epoch = epoch - 3")
		g.Heartbeat()
		g.WantRefusal(g.Payouts.NewCancel(p.Merchant, p.ID), problem.InvalidState)
		if got, err := g.Payouts.Cancel(t.Context(), p.Merchant, p.ID); !problem.Is(err, problem.InvalidState) || got.Status != payment.PayoutPending {
			t.Errorf("cancel: %s, %v, want invalid_state", got.Status, err)
		}
		g.WantBalances(coretest.Opening-10_00, 10_00)
		g.ClearAccount()
		g.Send()
		g.LookUp()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantCases()
	})
}

// Until a process has recorded that the database went back, no payout is canceled or rejected
// there, nor does its approval expire. What one process has recorded holds for the others at once.
func TestReleaseOnARestoredDatabase(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := g.Second()
		queued, undecided := g.Payout("queued", 10_00), approvalOf(g, 1)
		g.Jump(72 * time.Hour)
		other.Heartbeat()
		g.Execute("UPDATE installation SET epoch = epoch - 10")
		want := func(g *coretest.Gateway, kind problem.Kind) {
			t.Helper()
			if _, err := g.Payouts.Cancel(t.Context(), queued.Merchant, queued.ID); !problem.Is(err, kind) {
				t.Errorf("cancel: %v, want %s", err, kind)
			}
		}
		for _, g := range []*coretest.Gateway{g, other} {
			want(g, problem.Unavailable)
			if _, err := g.Payouts.Reject(t.Context(), undecided.Merchant, undecided.ID, actor.Author{Actor: "credential:boss", Reason: "no"}); !problem.Is(err, problem.Unavailable) {
				t.Errorf("reject: %v", err)
			}
			if _, err := g.Payouts.Expire(t.Context()); !problem.Is(err, problem.Unavailable) {
				t.Errorf("expire: %v", err)
			}
		}
		g.Heartbeat()
		want(g, problem.InvalidState)
		want(other, problem.InvalidState) // which has not seen it yet
		_, err := other.Payouts.Reject(t.Context(), undecided.Merchant, undecided.ID, actor.Author{Actor: "credential:boss", Reason: "no"})
		g.Must(err)
		g.WantPayout(queued, payment.PayoutPending, payment.StepQueued)
		g.WantPayout(undecided, payment.PayoutProcessing, payment.StepUnknown)
		g.WantBalances(coretest.Opening-20_00, 20_00)
		g.WantProven()
	})
}

// A cancel that was committed is answered with the payout, even if its request's time ends at
// the same time.
func TestCancelWhoseTimeEnds(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got, err := g.Payouts.Cancel(ctx, p.Merchant, p.ID)
		g.Must(err)
		if got.ID != p.ID || got.Status != payment.PayoutCanceled {
			t.Errorf("the answer is %s %s", got.ID, got.Status)
		}
	})
}
