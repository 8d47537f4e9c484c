package outgoing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A payout that waits for the account's own budget of requests was not sent: no case says
// that the processor does not take it, and the breaker is not touched.
func TestOwnBudgetIsNoAnswerOfTheProcessor(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		budget := processor.TransferAnswer{Outcome: processor.Later, Wait: 40 * time.Second, Cause: fmt.Errorf("rate: %w", processor.ErrBudget)}
		g.Bank.AnswerTransfer = always(budget)
		p := g.Payout("r", 10_00)
		var want []store.SendOutcome
		for range 12 { // more than open a case, or the breaker
			g.Send()
			want = append(want, store.SendNotSent)
			wait := g.ReadPayout(p).NextAt.Sub(g.Clock.Now())
			if wait < budget.Wait || wait > 6*time.Minute {
				t.Errorf("sent again after %v", wait)
			}
			g.Jump(wait)
		}
		g.WantSends(p, want...)
		g.WantCases()
		g.Bank.AnswerTransfer = nil
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(13, 1)
	})
}

// A breaker that a processor has opened stays so while the account's own budget is used up.
func TestOwnBudgetClosesNoBreaker(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = always(notSent)
		for i := range 3 {
			g.Payout(fmt.Sprint("down ", i), 1_00)
			g.Send()
		}
		g.Pass(3 * time.Second) // until a probe
		g.Bank.AnswerTransfer = always(processor.TransferAnswer{Outcome: processor.Later, Cause: processor.ErrBudget})
		g.Send()
		calls := len(g.Bank.Calls)
		for i := range 3 {
			g.Payout(fmt.Sprint("new ", i), 1_00)
		}
		g.Send()
		g.WantBank(calls, 0)
	})
}
