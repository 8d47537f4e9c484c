package outgoing_test

import (
	"errors"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// sentTwice makes a payout of all money whose first send waits in a queue of the bank
// longer than its quiet period, and whose second send is refused.
func sentTwice(g *coretest.Gateway) payment.Payout {
	g.T.Helper()
	g.Bank.AnswerTransfer = coretest.Unknown
	p := g.Payout("r", int64(coretest.Opening))
	g.Send()
	notFoundYet(g)
	g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
	g.Bank.AnswerTransfer = always(refused)
	g.Send()
	return p
}

// notFoundYet looks up for longer than the quiet period and all waits of the schedule
// before it.
func notFoundYet(g *coretest.Gateway) {
	g.T.Helper()
	for range 12 {
		g.Pass(10 * time.Second)
		g.LookUp()
	}
}

// Rule 8: a refusal says nothing about an earlier send, which may be its reason.
func TestRule08RefusalOfTheSecondSend(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := sentTwice(g)
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		g.WantSends(p, store.SendNotFound, store.SendRefused)
		g.WantBalances(0, coretest.Opening)
		_, _, err := g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest("other", 1_00))
		if !problem.Is(err, problem.InsufficientBalance) {
			t.Fatalf("a payout of the same money: %v", err)
		}
		queries := g.Bank.Queries
		g.LookUp()
		if g.Bank.Queries != queries+1 {
			t.Fatalf("looked up %d times at once, want once", g.Bank.Queries-queries)
		}
		g.Bank.Pay(g.Bank.Calls[0], processor.TransferPaid) // the first send leaves the queue
		g.Pass(10 * time.Second)
		g.LookUp()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantSends(p, store.SendPaid, store.SendRefused)
		g.WantBalances(0, 0)
		g.WantCases()
		g.WantProven()
	})
}

// A second refusal, after a look-up that found nothing and another quiet period, is proof.
func TestRule08SecondRefusal(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p := sentTwice(g)
		for range 5 { // within the quiet period nothing is concluded
			g.Pass(10 * time.Second)
			g.LookUp()
			g.Send()
		}
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		g.WantBank(2, 0)
		notFoundYet(g)
		g.Bank.AnswerTransfer = always(notSent) // says nothing
		g.Send()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
		g.Bank.AnswerTransfer = always(refused)
		g.Pass(time.Minute)
		g.Send()
		g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
		g.WantSends(p, store.SendNotFound, store.SendRefused, store.SendNotSent, store.SendRefused)
		g.WantBalances(coretest.Opening, 0)
		g.WantCases()
		g.WantProven()
	})
}

// A refusal that is recorded after a look-up has found the first send's transfer
// contradicts nothing.
func TestRule08RefusalAfterTheFirstSendPaid(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = coretest.Unknown
		p := g.Payout("r", 10_00)
		g.Send()
		notFoundYet(g)
		s := claim(g)
		g.Bank.Pay(s.Request, processor.TransferPaid)
		g.Notify("n", p.ExternalID)
		g.Apply()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		record(g, s, refused)
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBalances(coretest.Opening-10_00, 0)
		g.WantCases()
	})
}

// A refusal of the only send is proof, even if a look-up had not found it.
func TestRule08LateRefusalOfTheOnlySend(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		s := claim(g)
		g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe // after the first send, which needs a look-up else
		g.Heartbeat()
		other := g.Second()
		other.Pass(4 * time.Second) // g is stopped
		for range 12 {
			other.Pass(10 * time.Second)
			other.LookUp()
		}
		other.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
		record(g, s, refused)
		other.WantPayout(p, payment.PayoutFailed, payment.StepDone)
		other.WantSends(p, store.SendRefused)
		other.WantBalances(coretest.Opening, 0)
		other.WantCases()
	})
}

// "Not sent" about the last send of a dead process is proof: at a processor that is not
// idempotent on our id no operator must decide.
func TestRule06NotSentByADeadProcess(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		s := claim(g)
		g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe // after the first send, which needs a look-up else
		other := g.Second()
		other.Pass(4 * time.Second) // g is stopped
		other.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		if err := g.Outgoing.Guard(&s)(); !errors.Is(err, outgoing.ErrStale) {
			t.Fatalf("guard: %v, want ErrStale", err)
		}
		record(g, s, processor.TransferAnswer{Outcome: processor.NotSent, Cause: outgoing.ErrStale})
		other.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
		other.Pass(10 * time.Second)
		other.Send() // which needs a look-up
		other.LookUp()
		other.Send()
		other.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		other.WantSends(p, store.SendNotSent, store.SendPaid)
		other.WantBank(1, 1)
		other.WantCases()
	})
}
