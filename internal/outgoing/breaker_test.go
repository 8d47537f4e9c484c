package outgoing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Once a processor is known to be unreachable, payouts stay PENDING, unsent, and can be
// canceled. When it is reachable again they are sent.
func TestUnreachableProcessorLeavesPayoutsPending(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = always(notSent)
		var tried, waiting []payment.Payout
		for i := range 3 { // that many failures open the breaker
			tried = append(tried, g.Payout(fmt.Sprint("tried ", i), 10_00))
			g.Send()
		}
		for i := range 5 {
			waiting = append(waiting, g.Payout(fmt.Sprint("waiting ", i), 10_00))
		}
		g.Send()
		g.WantBank(3, 0)
		for _, p := range tried {
			g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
		}
		for _, p := range waiting {
			g.WantPayout(p, payment.PayoutPending, payment.StepQueued)
			g.WantSends(p)
		}
		g.WantBalances(coretest.Opening-80_00, 80_00)

		canceled, err := g.Payouts.Cancel(t.Context(), g.Merchant.ID, waiting[4].ID)
		g.Must(err)
		if canceled.Status != payment.PayoutCanceled {
			t.Errorf("canceled: %s", canceled.Status)
		}
		g.WantBalances(coretest.Opening-70_00, 70_00)

		g.Bank.AnswerTransfer = nil
		for range 30 {
			g.Pass(time.Second)
			g.Send()
		}
		for _, p := range append(tried, waiting[:4]...) {
			g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		}
		g.WantPayout(canceled, payment.PayoutCanceled, payment.StepDone)
		g.WantBalances(coretest.Opening-70_00, 0)
		g.WantBank(3+7, 7)
	})
}

// An unreachable processor is probed at growing intervals, with one payout at a time.
func TestUnreachableProcessorIsTriedLessAndLess(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = always(notSent)
		for i := range 20 {
			g.Payout(fmt.Sprint("r-", i), 10_00)
			if i < 3 {
				g.Send()
			}
		}
		last := len(g.Bank.Calls)
		for range 5 * 60 {
			g.Pass(time.Second)
			g.Send()
			if now := len(g.Bank.Calls); now > last+1 {
				t.Fatalf("tried %d times within a second, after %d", now-last, last)
			}
			last = len(g.Bank.Calls)
		}
		// After 2, 4, 8, 16, 32 and then every 60 s.
		if last < 3+7 || last > 3+10 {
			t.Errorf("tried %d times in five minutes", last)
		}
	})
}

// Any answer shows that the processor can be reached.
func TestAnswersDoNotOpenTheBreaker(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = always(refused)
		for i := range 5 {
			p := g.Payout(fmt.Sprint("r-", i), 10_00)
			g.Send()
			g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
			g.WantSends(p, store.SendRefused)
		}
		g.WantBalances(coretest.Opening, 0)
	})
}

// A process that lost the right to send between the claim and the call has learned
// nothing about the processor.
func TestLostLeaseDoesNotOpenTheBreaker(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.OnSend = func() { g.Node.Lease.Drop() }
		for i := range 5 {
			p := g.Payout(fmt.Sprint("late-", i), 10_00)
			g.Send()
			g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
			g.WantSends(p, store.SendNotSent)
			g.Heartbeat()
		}
		g.WantBank(0, 0)
		g.Bank.OnSend = nil
		p := g.Payout("in time", 10_00)
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(1, 1)
	})
}

// delayed is an environment in which that much time passes between the claim of a
// payout and the call.
func delayed(delay *time.Duration) func(e *env.Env) {
	return func(e *env.Env) {
		clock := e.Clock.(*env.VirtualClock)
		e.OnFailpoint = func(f env.Failpoint) error {
			if f == env.BeforeTransfer {
				clock.Advance(*delay)
			}
			return nil
		}
	}
}

// Nor has a process if the deadline passed before the call.
func TestMissedDeadlineDoesNotOpenTheBreaker(t *testing.T) {
	var delay time.Duration
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		delay = 6 * time.Second
		for i := range 5 {
			p := g.Payout(fmt.Sprint("late-", i), 10_00)
			g.Send()
			g.WantSends(p, store.SendNotSent)
			g.Heartbeat()
		}
		delay = 0
		p := g.Payout("in time", 10_00)
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
	}, delayed(&delay))
}
