package outgoing_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// A refund that waits for the lists of another account costs no look-up each minute at a processor
// that would pay it twice. It is looked up again before it is sent.
func TestFrozenRefundCostsFewLookUps(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Refund.Repeat = processor.RepeatUnsafe
		r, other := refundBesideUnreadAccount(g)
		queries := 0
		g.Bank.Refunds.AnswerQuery = func(b *coretest.Bank, id string) processor.TransferReport {
			queries++
			return processor.TransferReport{Lookup: processor.NotFound}
		}
		for range 4 * 60 {
			g.Send()
			g.LookUp()
			g.Jump(61 * time.Second)
			g.Heartbeat()
		}
		wantSteps(g, r, payment.StepQueued)
		if queries > 4 {
			t.Errorf("%d look-ups in four hours", queries)
		}
		other.Mu.Lock()
		other.Down = false
		other.Mu.Unlock()
		g.ReadFeeds()
		g.Heartbeat()
		before := queries
		for range 20 {
			g.Send()
			g.LookUp()
			g.Pass(10 * time.Second)
		}
		if queries == before {
			t.Error("it was not looked up before it was sent")
		}
		g.Bank.Refunds.AnswerQuery = nil
		g.WantRefund(r, payment.RefundCompleted, 60_00, payment.PayinPartiallyRefunded, 60_00)
		wantOneRefund(g)
	})
}
