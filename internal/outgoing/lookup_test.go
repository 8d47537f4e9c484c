package outgoing_test

import (
	"context"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Rule 6: an unknown payout is looked up, not sent; it is sent again, same id and same
// bytes, only after a "not found" beyond the quiet period, and only to a processor that
// is idempotent on our id; else it needs manual review.

func TestRule06PaidAfterAll(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			b.Pay(r, processor.TransferPaid)
			return processor.TransferAnswer{Cause: context.DeadlineExceeded}
		}
		p := g.Payout("r", 10_00)
		g.Send()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		g.Pass(2 * time.Second)
		g.Send()
		g.LookUp()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(1, 1)
		g.WantBalances(coretest.Opening-10_00, 0)
	})
}

func TestRule06SentAgainToAnIdempotentProcessor(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = coretest.Unknown
		p := g.Payout("r", 10_00)
		g.Send()
		for range 30 { // within the quiet period nothing is concluded
			g.Pass(time.Second)
			g.Send()
			g.LookUp()
		}
		if g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown); g.Bank.Queries < 3 {
			t.Fatalf("looked up %d times in 30 s", g.Bank.Queries)
		}
		g.WantBank(1, 0)
		g.Bank.AnswerTransfer = nil
		g.Pass(2 * time.Minute)
		g.LookUp()
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantSends(p, store.SendNotFound, store.SendPaid)
		g.WantBank(2, 1)
	})
}

func TestRule06ManualReviewElse(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = coretest.Unknown
		p := g.Payout("r", 10_00)
		g.Send()
		g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe // after the first send, which needs a look-up else
		for range 20 {
			g.Pass(10 * time.Second)
			g.LookUp()
			g.Send()
		}
		g.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
		g.WantBank(1, 0)
		g.WantBalances(coretest.Opening-10_00, 10_00)
		g.WantCases(store.CasePayoutUnknown)

		// It was queued at the processor for longer than the quiet period, and is paid after
		// all: the records show the transfer that paid.
		g.Bank.Pay(g.Bank.Calls[0], processor.TransferPaid)
		g.Notify("n", p.ExternalID)
		g.Apply()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantSends(p, store.SendPaid)
		g.WantProven()
	})
}

// lookUpFor200Hours runs the workers every hour.
func lookUpFor200Hours(g *coretest.Gateway) {
	g.T.Helper()
	for range 200 {
		g.Jump(time.Hour)
		g.LookUp()
		g.Send()
	}
}

// A transfer that the processor accepts and never decides: one case, and the look-ups go
// on until it does.
func TestRule06NeverDecided(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferProcessing)}
		}
		p := g.Payout("r", 10_00)
		g.Send()
		lookUpFor200Hours(g)
		g.WantPayout(p, payment.PayoutProcessing, payment.StepAccepted)
		g.WantBank(1, 1)
		g.WantBalances(coretest.Opening-10_00, 10_00)
		g.WantCases(store.CasePayoutUnknown)
		g.Bank.Transfers[p.ExternalID].State = processor.TransferPaid
		g.Jump(27 * time.Hour)
		g.LookUp()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantCases()
	})
}

func TestRule06LookUpsDoNotEnd(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer, g.Bank.AnswerQuery = coretest.Unknown, noAnswer
		p := g.Payout("r", 10_00)
		g.Send()
		lookUpFor200Hours(g)
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		g.WantBank(1, 0)
		g.WantBalances(coretest.Opening-10_00, 10_00)
		g.WantCases(store.CasePayoutUnknown) // one, however long it lasts
		g.Bank.AnswerQuery = nil
		g.Bank.Pay(g.Bank.Calls[0], processor.TransferPaid)
		g.Jump(27 * time.Hour)
		g.LookUp()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantCases() // closed by the proof
	})
}

// An answer with a commit of unknown outcome is recorded again. If this process has claimed the
// payout meanwhile to send it, the answer changes nothing any more.
func TestLookUpRecordedTwice(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = always(processor.TransferAnswer{})
		p := g.Payout("r", 10_00)
		g.Send()
		g.Jump(5 * time.Minute)
		due, err := g.Store.PayoutsDue(t.Context(), g.Clock.Now(), store.ToLookUp)
		g.Must(err)
		list, err := g.Outgoing.ClaimLookUps(t.Context(), due[0], 1)
		g.Must(err)
		notFound := processor.TransferReport{Lookup: processor.NotFound}
		g.Must(g.Outgoing.RecordLookUp(t.Context(), list[0], notFound))
		s := claim(g)
		g.Must(g.Outgoing.RecordLookUp(t.Context(), list[0], notFound))
		g.WantPayout(p, payment.PayoutProcessing, payment.StepIntent)
		record(g, s, processor.TransferAnswer{})
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		g.Bank.AnswerTransfer = nil
		g.Jump(5 * time.Minute)
		g.LookUp()
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
	})
}
