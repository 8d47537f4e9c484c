package outgoing_test

import (
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// claimRow is a queued payout, and the effect of a claim on it.
type claimRow struct {
	name     string
	before   func(g *coretest.Gateway, p payment.Payout)
	claimed  bool
	sent     int64 // the number of the send that begins; 0 if none does
	status   payment.PayoutStatus
	step     payment.PayoutStep
	sends    []store.SendOutcome
	event    bool // the merchant sees a change
	conflict bool
}

// wasNotSent is a first send that did not leave, two seconds ago.
func wasNotSent(g *coretest.Gateway, p payment.Payout) {
	answered(g, claimed(g, p), notSent)
	g.Jump(2 * time.Second)
}

// hadOtherContents is a first send of other bytes, that did not leave.
func hadOtherContents(g *coretest.Gateway, p payment.Payout) {
	addSend(g, store.Send{
		Merchant: p.Merchant, Payout: p.ID, Number: 1, Processor: p.Processor, BodyHash: []byte("other"), Outcome: store.SendNotSent,
	})
}

func restored(g *coretest.Gateway, _ payment.Payout) {
	g.Execute(rewind)
	g.Heartbeat()
	g.ClearAccount()
}

// lookedUp was looked up since the database was restored, and not found.
func lookedUp(g *coretest.Gateway, p payment.Payout) {
	restored(g, p)
	change(g, p, func(p *payment.Payout) { p.Lookups = 1 })
}

func TestDecideClaimSends(t *testing.T) {
	const pending, processing = payment.PayoutPending, payment.PayoutProcessing
	untouched := func(name string, before func(g *coretest.Gateway, p payment.Payout)) claimRow {
		return claimRow{name: name, before: before, status: pending, step: payment.StepQueued}
	}
	later := func(g *coretest.Gateway, p payment.Payout) {
		change(g, p, func(p *payment.Payout) { p.NextAt = g.Clock.Now().Add(time.Microsecond) })
	}
	eachRow(t, []claimRow{
		{name: "new", claimed: true, sent: 1, status: processing, step: payment.StepIntent, sends: outcomes(store.SendIntent), event: true},
		{
			name: "not sent before", before: wasNotSent, claimed: true, sent: 2, status: processing, step: payment.StepIntent,
			sends: outcomes(store.SendNotSent, store.SendIntent),
		},
		{
			name: "sent before with other contents", before: hadOtherContents, claimed: true, conflict: true, status: pending, step: payment.StepReview,
			sends: outcomes(store.SendNotSent),
		},
		untouched("due later", later),
		{name: "the database was restored", before: restored, claimed: true, status: processing, step: payment.StepUnknown, event: true},
		{
			name: "looked up since it was restored", before: lookedUp, claimed: true, sent: 1, status: processing, step: payment.StepIntent,
			sends: outcomes(store.SendIntent), event: true,
		},
	}, func(r claimRow) string { return r.name }, checkClaim)
}

func checkClaim(g *coretest.Gateway, r claimRow) {
	g.T.Helper()
	p := request(g, r.name)
	if r.before != nil {
		r.before(g, p)
	}
	before := stateOf(g, p)
	op := claimSends(g)
	g.Must(decide(g, op, p, func() any {
		sends, conflicting, claimed := op.Result()
		return []any{slices.Clone(sends), conflicting, claimed}
	}, func() {
		sends, conflicting, claimed := op.Result()
		got := stateOf(g, p)
		if (claimed == 1) != r.claimed || (len(conflicting) == 1) != r.conflict {
			g.T.Errorf("%d claimed, %d conflicting", claimed, len(conflicting))
		}
		if got.Status != r.status || got.Step != r.step || (got.Version > before.Version) != r.event || (got.Events > before.Events) != r.event {
			g.T.Errorf("it is %s/%s, version %d after %d", got.Status, got.Step, got.Version, before.Version)
		}
		wantSends(g, p, r.sends...)
		r.checkSend(g, got, before, sends)
	}))
}

// checkSend compares the new send with the stored rows.
func (r claimRow) checkSend(g *coretest.Gateway, got, before state, sends []outgoing.ClaimedSend) {
	g.T.Helper()
	now := g.Clock.Now()
	if r.sent == 0 {
		if len(sends) != 0 || !got.ClaimedBy.IsZero() || !got.SentAt.IsZero() {
			g.T.Errorf("sends %+v, claimed by %v, sent at %v", sends, got.ClaimedBy, got.SentAt)
		}
		if kinds := len(got.Cases); kinds > 0 != r.conflict || r.conflict && got.Cases[0].Params["reason"] != "other_contents" {
			g.T.Errorf("cases %+v", got.Cases)
		}
		return
	}
	if len(sends) != 1 || sends[0].Number != r.sent || sends[0].Request.ExternalID != got.ExternalID || !sends[0].Deadline.Equal(now.Add(5*time.Second)) {
		g.T.Fatalf("sends %+v", sends)
	}
	first := before.SentAt
	if r.sent == 1 {
		first = now
	}
	if got.ClaimedBy != g.Node.ID() || !got.NextAt.IsZero() || !got.SentAt.Equal(first) {
		g.T.Errorf("claimed by %v, due at %v, sent at %v", got.ClaimedBy, got.NextAt, got.SentAt)
	}
	if s := got.Sends[r.sent-1]; s.Node != g.Node.ID() || !s.Deadline.Equal(sends[0].Deadline) || s.Processor != got.Processor {
		g.T.Errorf("the intent is %+v", s)
	}
}

// A claim takes the oldest payouts, and the others stay due.
func TestClaimTakesTheOldest(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		var list []payment.Payout
		for _, reference := range []string{"a", "b", "c"} {
			list = append(list, g.Payout(reference, int64(amount)))
			g.Pass(time.Second)
		}
		sends, claimed, err := g.Outgoing.Claim(t.Context(), store.Due{Merchant: g.Merchant.ID, Processor: coretest.BankName}, 2)
		g.Must(err)
		if claimed != 2 || len(sends) != 2 || sends[0].Payout.ID != list[0].ID || sends[1].Payout.ID != list[1].ID {
			t.Errorf("claimed %d: %+v", claimed, sends)
		}
		g.WantPayout(list[2], payment.PayoutPending, payment.StepQueued)
	})
}

// Payouts with an unknown or late result are claimed to be looked up; others are not.
func TestDecideClaimLookUps(t *testing.T) {
	type row struct {
		given   given
		due     bool
		claimed bool
	}
	eachRow(t, []row{
		{unknown, true, true},
		{accepted, true, true},
		{released, true, true},
		{unknown, false, false},
		{accepted, false, false},
		{queued, true, false},
		{intent, true, false},
		{completed, true, false},
		{failed, true, false},
		{inReview, true, false},
	}, func(r row) string { return string(r.given) }, func(g *coretest.Gateway, r row) {
		p, _ := give(g, r.given)
		next := g.Clock.Now()
		if !r.due {
			next = next.Add(time.Microsecond)
		}
		before := stateOf(g, p)
		if !before.NextAt.IsZero() {
			change(g, p, func(p *payment.Payout) { p.NextAt = next })
		}
		op := claimLookUps(g)
		g.Must(decide(g, op, p, func() any { return op.Result() }, func() {
			mine := slices.ContainsFunc(op.Result(), func(got payment.Payout) bool { return got.ID == p.ID && got.ClaimedBy == g.Node.ID() })
			got := stateOf(g, p)
			if mine != r.claimed || r.claimed && (got.ClaimedBy != g.Node.ID() || !got.NextAt.IsZero()) {
				g.T.Errorf("claimed %v: by %v, due at %v", mine, got.ClaimedBy, got.NextAt)
			}
			if got.Status != before.Status || got.Step != before.Step || got.Version != before.Version || got.Events != before.Events {
				g.T.Errorf("it is %s/%s, version %d", got.Status, got.Step, got.Version)
			}
		}))
	})
}

// An accepted payout is looked up if its result is not reported, and is completed by
// the look-up.
func TestLookUpOfAnAcceptedPayout(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferProcessing)}
		}
		p := g.Payout("r", int64(amount))
		g.Send()
		g.Bank.Transfers[p.ExternalID].State = processor.TransferPaid
		g.LookUp()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepAccepted) // not yet
		g.Pass(6 * time.Second)
		g.LookUp()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
	})
}
