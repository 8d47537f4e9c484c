package outgoing_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// claimLookUp makes a payout due to be looked up, and claims it.
func claimLookUp(g *coretest.Gateway, p payment.Payout) payment.Payout {
	g.T.Helper()
	change(g, p, func(p *payment.Payout) { p.NextAt = g.Clock.Now() })
	op := claimLookUps(g)
	g.Must(g.Commit(op))
	for _, got := range op.Result() {
		if got.ID == p.ID {
			return got
		}
	}
	g.T.Fatal("the payout was not claimed")
	return p
}

// lookUpRow is the answer to a look-up, and its effect on the payout.
type lookUpRow struct {
	reportRow

	since     time.Duration // the send's deadline, which is 5 s after the send
	lookups   int           // before this one
	doubtful  bool          // the processor is not idempotent on our id
	notMine   bool          // another process has taken it over
	lookupsTo int           // the number of look-ups afterwards
}

func (r lookUpRow) run(g *coretest.Gateway) {
	before := balancesOf(g)
	p, _ := give(g, r.given)
	if r.doubtful { // after the first send, which needs a look-up else
		g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe
	}
	g.Jump(5*time.Second + r.since)
	p = change(g, p, func(p *payment.Payout) { p.Lookups = r.lookups })
	p = claimLookUp(g, p)
	if r.notMine {
		p.ClaimedBy[15]++
	}
	op := g.Outgoing.NewRecordLookUp(p, r.report)
	g.Must(decide(g, op, p, result(op), func() {
		got := stateOf(g, p).Payout
		wantState(g, p, before, r.want)
		r.check(g, op, p)
		if got.Lookups != r.lookupsTo {
			g.T.Errorf("%d look-ups, want %d", got.Lookups, r.lookupsTo)
		}
		if !got.ClaimedBy.IsZero() != r.notMine {
			g.T.Errorf("claimed by %v", got.ClaimedBy)
		}
	}))
}

func lookUps(t *testing.T, rows []lookUpRow) {
	t.Helper()
	eachRow(t, rows, func(r lookUpRow) string { return string(r.given) + ", " + r.name }, func(g *coretest.Gateway, r lookUpRow) { r.run(g) })
}

// The effect of a look-up that found the transfer.
func TestDecideLookUpFound(t *testing.T) {
	lookUps(t, []lookUpRow{
		{reportRow: reportRow{name: "paid", given: unknown, report: reportsPaid, want: isPaid(store.SendPaid)}, lookups: 3, lookupsTo: 3},
		{reportRow: reportRow{name: "failed", given: unknown, report: reportsFailed, want: hasFailed(store.SendFailed)}},
		{reportRow: reportRow{
			name: "accepted", given: unknown, report: reportsAccepted, want: stays(payment.StepAccepted, 5*time.Second, store.SendAccepted),
		}, lookups: 7, lookupsTo: 2},
		{reportRow: reportRow{
			name: "still accepted", given: accepted, report: reportsAccepted, want: stays(payment.StepAccepted, 30*time.Second, store.SendAccepted),
		}, lookups: 3, lookupsTo: 4},
		{reportRow: reportRow{
			name: "seventh time accepted", given: accepted, report: reportsAccepted, want: stays(payment.StepAccepted, 15*time.Minute, store.SendAccepted),
		}, lookups: 6, lookupsTo: 7},
		{reportRow: reportRow{
			name: "accepted for hours", given: accepted, report: reportsAccepted, want: stays(payment.StepAccepted, 6*time.Hour, store.SendAccepted),
			kind: store.CasePayoutUnknown, reason: "still_processing",
		}, lookups: 8, lookupsTo: 9},
		{reportRow: reportRow{
			name: "another amount", given: unknown, report: reportsOther, want: stays(payment.StepReview, 0, store.SendUnknown).contradicted("other_amount"),
			kind: store.CaseContradiction, reason: "other_amount",
		}},
		{reportRow: reportRow{name: "paid, though another process claimed it", given: released, report: reportsPaid, want: isPaid(store.SendPaid)}},
	})
}

// The effect of "not found".
func TestDecideLookUpNotFound(t *testing.T) {
	const s = time.Second
	again := wanted{payment.PayoutProcessing, payment.StepQueued, outcomes(store.SendNotFound), held, -65 * s, ""} // first in its queue
	row := func(name string, state given, w wanted) reportRow {
		return reportRow{name: name, given: state, report: reportsNotFound, want: w}
	}
	resent := row("after the quiet period", unknown, again)
	resent.again = true
	review := row("after the quiet period, not idempotent", unknown, stays(payment.StepReview, 0, store.SendNotFound))
	review.kind, review.reason = store.CasePayoutUnknown, "not_idempotent"
	lookUps(t, []lookUpRow{
		{reportRow: row("within the quiet period", unknown, stays(payment.StepUnknown, 2*s, store.SendUnknown)), since: 10 * s, lookupsTo: 1},
		{reportRow: row("shortly before its end", unknown, stays(payment.StepUnknown, 10*s, store.SendUnknown)), since: 50 * s, lookups: 5, lookupsTo: 6},
		{reportRow: resent, since: time.Minute, lookupsTo: 1},
		{reportRow: review, since: time.Minute, doubtful: true, lookupsTo: 1},
		{reportRow: row("long after, but accepted once", accepted, stays(payment.StepAccepted, 10*s, store.SendAccepted)), since: time.Hour, lookups: 2, lookupsTo: 3},
		{reportRow: row("to a process that lost it", unknown, stays(payment.StepUnknown, 0, store.SendUnknown)), since: time.Hour, notMine: true},
	})
}

// The effect of a look-up without an answer: the look-ups continue, and the ninth opens
// one case.
func TestDecideLookUpUnanswered(t *testing.T) {
	const s = time.Second
	row := func(name string, state given, w wanted) reportRow {
		return reportRow{name: name, given: state, report: reportsNothing, want: w}
	}
	withCase := func(r reportRow) reportRow { r.kind, r.reason = store.CasePayoutUnknown, "no_answer"; return r }
	// A state without the transfer itself is no proof, in any form.
	unproved := func(lookup processor.Lookup, state processor.TransferState) reportRow {
		r := row("without the transfer, but "+string(state), unknown, stays(payment.StepUnknown, 2*s, store.SendUnknown))
		r.report = processor.TransferReport{Lookup: lookup, State: state, Evidence: "E"}
		return r
	}
	lookUps(t, []lookUpRow{
		{reportRow: row("first", unknown, stays(payment.StepUnknown, 2*s, store.SendUnknown)), lookupsTo: 1},
		{reportRow: row("first", accepted, stays(payment.StepAccepted, 10*s, store.SendAccepted)), lookups: 2, lookupsTo: 3},
		{reportRow: unproved(processor.LookupUnknown, processor.TransferFailed), lookupsTo: 1},
		{reportRow: unproved(processor.LookupUnknown, processor.TransferPaid), lookupsTo: 1},
		{reportRow: unproved(processor.NotFound, processor.TransferFailed), lookupsTo: 1},
		{reportRow: row("eighth", unknown, stays(payment.StepUnknown, time.Hour, store.SendUnknown)), lookups: 7, lookupsTo: 8},
		{reportRow: withCase(row("ninth", unknown, stays(payment.StepUnknown, 6*time.Hour, store.SendUnknown))), lookups: 8, lookupsTo: 9},
		{reportRow: row("tenth", unknown, stays(payment.StepUnknown, 24*time.Hour, store.SendUnknown)), lookups: 9, lookupsTo: 10},
		{reportRow: withCase(row("ninth", accepted, stays(payment.StepAccepted, 6*time.Hour, store.SendAccepted))), lookups: 8, lookupsTo: 9},
		{reportRow: row("hundredth", accepted, stays(payment.StepAccepted, 24*time.Hour, store.SendAccepted)), lookups: 99, lookupsTo: 100},
		{reportRow: row("to a process that lost it", unknown, stays(payment.StepUnknown, 0, store.SendUnknown)), notMine: true},
	})
}

// After a restore, "not found" counts from the restore: the payout may have been sent
// right before it.
func TestDecideLookUpNotFoundAfterARestore(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", int64(amount))
		g.Jump(time.Hour)
		g.Execute(rewind)
		g.Heartbeat()
		g.ClearAccount()
		g.Send()
		for _, since := range []struct {
			pass time.Duration
			step payment.PayoutStep
		}{{59 * time.Second, payment.StepUnknown}, {time.Second, payment.StepQueued}} {
			g.Jump(since.pass)
			p = claimLookUp(g, p)
			op := g.Outgoing.NewRecordLookUp(p, processor.TransferReport{Lookup: processor.NotFound})
			g.Must(decide(g, op, p, result(op), func() {
				g.WantPayout(p, payment.PayoutProcessing, since.step)
				if again, _, _ := op.Result(); again != (since.step == payment.StepQueued) {
					t.Errorf("to be sent again: %v", again)
				}
			}))
		}
		g.WantSends(p)
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone) // it is not looked up twice before it is sent
	})
}
