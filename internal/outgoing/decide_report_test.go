package outgoing_test

import (
	"math"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// reportRow is a report about a payout in a state, and its effect on the payout.
type reportRow struct {
	name   string
	given  given
	report processor.TransferReport
	want   wanted
	again  bool              // it is to be sent again at once
	kind   store.CaseKind    // of the open case; "" for none
	reason string            // of that case
	back   money.Cents       // what the receiver's bank has returned
	event  payment.EventType // of the last event
}

// result is the effect of a report besides its changes.
func result(op *outgoing.RecordReport) func() any {
	return func() any {
		again, manual, contradiction := op.Result()
		return []any{again, manual, contradiction}
	}
}

func (r reportRow) check(g *coretest.Gateway, op *outgoing.RecordReport, p payment.Payout) {
	g.T.Helper()
	again, manual, contradiction := op.Result()
	if again != r.again || manual != (r.reason == "not_idempotent") || contradiction != r.want.contradiction {
		g.T.Errorf("again %v, manual %v, contradiction %q", again, manual, contradiction)
	}
	got := stateOf(g, p)
	if got.ReturnedAmount != r.back {
		g.T.Errorf("%d returned, want %d", got.ReturnedAmount, r.back)
	}
	var kind store.CaseKind
	var reason string
	for _, v := range got.Cases {
		kind, reason = v.Kind, v.Params["reason"]
	}
	if kind != r.kind || reason != r.reason {
		g.T.Errorf("case %q %q, want %q %q", kind, reason, r.kind, r.reason)
	}
	if r.event != "" {
		if last := lastEvent(g); last.Type != r.event || last.Subject != p.ID || last.Version != got.Version {
			g.T.Errorf("the last event is %+v, want %s", last, r.event)
		}
	}
}

// The possible effects of a report on a payout.
func isPaid(sends ...store.SendOutcome) wanted {
	return wanted{payment.PayoutCompleted, payment.StepDone, sends, gone, 0, ""}
}

func hasFailed(sends ...store.SendOutcome) wanted {
	return wanted{payment.PayoutFailed, payment.StepDone, sends, available, 0, ""}
}

func stays(step payment.PayoutStep, next time.Duration, sends ...store.SendOutcome) wanted {
	return wanted{payment.PayoutProcessing, step, sends, held, next, ""}
}

func (w wanted) contradicted(reason string) wanted { w.contradiction = reason; return w }

// returned is the report of a paid transfer of which total was returned.
func returned(total money.Cents) processor.TransferReport {
	r := report(processor.TransferPaid)
	r.Returned = total
	return r
}

// Reports of the tables.
var (
	reportsPaid     = report(processor.TransferPaid)
	reportsAccepted = report(processor.TransferProcessing)
	reportsFailed   = report(processor.TransferFailed)
	reportsOther    = doneOther.Report
	reportsNotFound = processor.TransferReport{Lookup: processor.NotFound}
	reportsNothing  = processor.TransferReport{} // no answer
)

// checkReports decides each report as of a notice.
func checkReports(t *testing.T, rows []reportRow, first func(g *coretest.Gateway)) {
	t.Helper()
	eachRow(t, rows, func(r reportRow) string { return string(r.given) + ", " + r.name }, func(g *coretest.Gateway, r reportRow) {
		first(g)
		before := balancesOf(g)
		p, _ := give(g, r.given)
		op := g.Outgoing.NewRecordNotice(p, r.report)
		g.Must(decide(g, op, p, result(op), func() {
			if r.given != inReview { // whose case is older
				wantState(g, p, before, r.want)
			}
			r.check(g, op, p)
		}))
	})
}

// The effect of a report about a payout with a recorded result.
func TestDecideReportOfAQueuedPayout(t *testing.T) {
	pending := wanted{payment.PayoutPending, payment.StepQueued, nil, held, 1, ""}
	checkReports(t, []reportRow{
		{name: "paid", given: queued, report: reportsPaid, want: isPaid(store.SendPaid), event: payment.EventPayoutCompleted},
		{name: "accepted", given: queued, report: reportsAccepted, want: stays(payment.StepAccepted, 5*time.Second), event: payment.EventPayoutProcessing},
		{name: "failed", given: queued, report: reportsFailed, want: hasFailed(), event: payment.EventPayoutFailed},
		{name: "not found", given: queued, report: reportsNotFound, want: pending},
		{name: "no answer", given: queued, report: reportsNothing, want: pending},
		{
			name: "another amount", given: queued, report: reportsOther, want: pending.contradicted("other_amount"),
			kind: store.CaseContradiction, reason: "other_amount",
		},
	}, func(g *coretest.Gateway) { g.Execute("UPDATE installation SET restored_at = 1") }) // only for the check of consistency
}

// The effect of a report about a payout that was sent and has no result yet.
func TestDecideReportOfASentPayout(t *testing.T) {
	isReturned := wanted{payment.PayoutReturned, payment.StepDone, outcomes(store.SendPaid), available, 0, ""}
	checkReports(t, []reportRow{
		{name: "paid", given: intent, report: reportsPaid, want: isPaid(store.SendPaid), event: payment.EventPayoutCompleted},
		{name: "accepted", given: intent, report: reportsAccepted, want: stays(payment.StepAccepted, 5*time.Second, store.SendAccepted)},
		{name: "failed", given: intent, report: reportsFailed, want: hasFailed(store.SendFailed), event: payment.EventPayoutFailed},
		{name: "not found", given: intent, report: reportsNotFound, want: stays(payment.StepIntent, 0, store.SendIntent)},
		{name: "paid", given: sentAgain, report: reportsPaid, want: isPaid(store.SendNotSent, store.SendPaid)},
		{name: "paid", given: unknown, report: reportsPaid, want: isPaid(store.SendPaid)},
		{name: "accepted", given: unknown, report: reportsAccepted, want: stays(payment.StepAccepted, 5*time.Second, store.SendAccepted)},
		{name: "not found", given: unknown, report: reportsNotFound, want: stays(payment.StepUnknown, time.Second, store.SendUnknown)},
		{name: "no answer", given: unknown, report: reportsNothing, want: stays(payment.StepUnknown, time.Second, store.SendUnknown)},
		{name: "accepted", given: accepted, report: reportsAccepted, want: stays(payment.StepAccepted, 10*time.Second, store.SendAccepted)},
		{name: "failed", given: accepted, report: reportsFailed, want: hasFailed(store.SendFailed)},
		{name: "all of it returned", given: accepted, report: returned(amount), want: isReturned, back: amount, event: payment.EventPayoutReturned},
		{name: "paid", given: inReview, report: reportsPaid, want: isPaid(store.SendPaid), kind: store.CaseContradiction, reason: "other_amount"},
	}, func(*coretest.Gateway) {})
}

// The effect of a report about a payout whose result is recorded.
func TestDecideReportOfAnEndedPayout(t *testing.T) {
	isReturned := wanted{payment.PayoutReturned, payment.StepDone, outcomes(store.SendPaid), available, 0, ""}
	isCanceled := wanted{payment.PayoutCanceled, payment.StepDone, nil, available, 0, ""}
	contradicts := func(state given, r processor.TransferReport, reason string, w wanted) reportRow {
		return reportRow{name: reason, given: state, report: r, want: w.contradicted(reason), kind: store.CaseContradiction, reason: reason}
	}
	checkReports(t, []reportRow{
		{name: "paid: known", given: completed, report: reportsPaid, want: isPaid(store.SendPaid)},
		{name: "accepted: older", given: completed, report: reportsAccepted, want: isPaid(store.SendPaid)},
		{name: "all of it returned", given: completed, report: returned(amount), want: isReturned, back: amount, event: payment.EventPayoutReturned},
		contradicts(completed, returned(amount+1), "returned_too_much", isPaid(store.SendPaid)),
		contradicts(completed, returned(-1), "returned_too_much", isPaid(store.SendPaid)),
		contradicts(completed, returned(math.MinInt64), "returned_too_much", isPaid(store.SendPaid)),
		contradicts(completed, reportsFailed, "failed_after_paid", isPaid(store.SendPaid)),
		contradicts(completed, reportsOther, "other_amount", isPaid(store.SendPaid)),

		{name: "failed: known", given: failed, report: reportsFailed, want: hasFailed(store.SendRefused)},
		{name: "accepted: older", given: failed, report: reportsAccepted, want: hasFailed(store.SendRefused)},
		contradicts(failed, reportsPaid, "paid_after_release", hasFailed(store.SendRefused)),
		contradicts(failed, returned(amount), "paid_after_release", hasFailed(store.SendRefused)),
		contradicts(failed, reportsOther, "paid_after_release", hasFailed(store.SendRefused)),

		{name: "failed: known", given: canceled, report: reportsFailed, want: isCanceled},
		{name: "accepted: known", given: canceled, report: reportsAccepted, want: isCanceled},
		contradicts(canceled, reportsPaid, "paid_after_release", isCanceled),
		contradicts(canceled, reportsOther, "paid_after_release", isCanceled),
	}, func(*coretest.Gateway) {})
}

// A returned amount whose difference from the known amount overflows books nothing.
func TestDecideReturnThatOverflows(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p, _ := give(g, completed)
		g.Must(g.Writer.Do(g.T.Context(), g.Outgoing.NewRecordNotice(p, returned(3_00))))
		g.Must(g.Writer.Do(g.T.Context(), g.Outgoing.NewRecordNotice(p, returned(math.MinInt64))))
		if got := g.WantPayout(p, payment.PayoutCompleted, payment.StepDone); got.ReturnedAmount != 3_00 {
			g.T.Errorf("%d returned, want 300", got.ReturnedAmount)
		}
		g.WantBalances(coretest.Opening-amount+3_00, 0)
		g.WantCases(store.CaseContradiction)
	})
}

// A transfer that is reported as paid without an endToEndId proves nothing: not in the
// answer to a send, not in a look-up, not for a notice.
func TestPaidWithoutEndToEndID(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		unproved := func(b *coretest.Bank, externalID string) processor.TransferReport {
			r := b.Report(externalID)
			r.EndToEndID = ""
			return r
		}
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			b.Pay(r, processor.TransferPaid)
			return processor.TransferAnswer{Outcome: processor.Done, Report: unproved(b, r.ExternalID)}
		}
		g.Bank.AnswerQuery = unproved
		p := g.Payout("r", int64(amount))
		g.Send()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		g.Notify("n", p.ExternalID)
		g.Apply()
		g.Pass(2 * time.Second)
		g.LookUp()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		g.WantBalances(coretest.Opening-amount, amount)
		g.Bank.AnswerQuery = nil
		g.Pass(10 * time.Second)
		g.Apply()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantProven()
	})
}

// A part of a payout may be returned, and later the rest. A report that is older than
// another changes nothing.
func TestDecideRecordReturns(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p, _ := give(g, completed)
		for _, step := range []struct {
			total, back money.Cents
			status      payment.PayoutStatus
		}{
			{0, 0, payment.PayoutCompleted},
			{3_00, 3_00, payment.PayoutCompleted},
			{1_00, 3_00, payment.PayoutCompleted},
			{amount, amount, payment.PayoutReturned},
			{3_00, amount, payment.PayoutReturned},
		} {
			op := g.Outgoing.NewRecordNotice(p, returned(step.total))
			g.Must(decide(g, op, p, result(op), func() {}))
			if got := g.WantPayout(p, step.status, payment.StepDone); got.ReturnedAmount != step.back {
				g.T.Errorf("%d returned, want %d", got.ReturnedAmount, step.back)
			}
			g.WantBalances(coretest.Opening-amount+step.back, 0)
		}
		g.WantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted, payment.EventPayoutReturned, payment.EventPayoutReturned)
		g.WantCases()
		g.WantProven()
	})
}

// A report about a payout that does not exist is refused.
func TestDecideReportOfNoPayout(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p, _ := give(g, queued)
		other := p
		other.ID[15]++
		op := g.Outgoing.NewRecordNotice(other, report(processor.TransferPaid))
		if err := decide(g, op, p, result(op), func() {}); !problem.Is(err, problem.NotFound) {
			t.Errorf("%v, want not_found", err)
		}
		g.WantPayout(p, payment.PayoutPending, payment.StepQueued)
	})
}
