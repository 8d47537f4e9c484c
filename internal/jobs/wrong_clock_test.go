package jobs_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// What was put off by a clock that ran a year ahead, as before a machine has
// heard of the time, is not put off for a year once the clock is right.
func TestClockThatRanAhead(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		defer g.clock.SetOffset(0)
		g.clock.SetOffset(365 * 24 * time.Hour)
		g.beat()
		queued := g.payout("queued", 10_00)
		g.bank.transfer = unknown
		g.submit()
		asked := queued
		lost := g.payout("never arrived", 30_00)
		g.submit()
		g.bank.transfer = nil
		queued = g.payout("not sent yet", 20_00)
		told := g.order(g.merchant, "told", "https://shop.example/hook")
		_, err := g.flow.CancelPayin(t.Context(), told.Merchant, told.ID)
		g.must(err)
		p := g.order(g.merchant, "paid", "")
		g.bank.receive(p.ExternalID, "pay-1", 100_00)
		g.notify("n", "charge "+p.ExternalID)

		g.clock.SetOffset(0)
		g.beat()
		g.submit()
		g.want(queued, payment.PayoutCompleted, payment.StepDone)
		g.bank.pay(processor.TransferRequest{ExternalID: asked.ExternalID, Amount: asked.Amount}, processor.TransferPaid)
		g.resolve()
		g.want(asked, payment.PayoutCompleted, payment.StepDone)
		g.pass(3 * time.Minute)
		g.resolve() // not found, and the quiet period is over
		g.submit()
		g.want(lost, payment.PayoutCompleted, payment.StepDone)
		g.apply()
		g.wantPayin(p, payment.PayinPaid, 100_00, 1)
		g.claimed()
	})
}
