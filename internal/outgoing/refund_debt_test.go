package outgoing_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// After the backup the processor refused a refund, whose money was released, and the merchant paid out
// all that it had. In the restored database the refund is queued: it waits until the merchant owes
// nothing, as a payout does, or more would leave than the merchant had.
func TestRefundOfABackupWaitsForDebt(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		const had = coretest.Opening + 100_00
		p := g.PaidPayin("p", 100_00)
		r := g.Refund(p, "queued", 60_00)
		payLost(g, "lost", had)
		g.Clear()
		g.Send()
		wantOwed(g, 60_00)
		for range 40 {
			g.Send()
			g.LookUp()
			g.Jump(10 * time.Minute)
		}
		wantSteps(g, r, payment.StepQueued)
		left := func() (sum money.Cents) {
			g.Bank.Mu.Lock()
			defer g.Bank.Mu.Unlock()
			for _, v := range g.Bank.Refunds.Made {
				sum += v.Request.Amount
			}
			return sum + had
		}
		if left() > had {
			t.Errorf("%s have left, of %s that the merchant had", left(), had)
		}
		g.WantProven()
		list, err := g.Store.OpenCases(t.Context(), 10)
		g.Must(err)
		if len(list) != 2 || list[1].Kind != store.CaseRefundWaiting || list[1].Params.Reason() != store.ReasonRefundDebt || list[1].Params["owed"] != "6000" {
			t.Errorf("cases %+v, want one about the transfer that was found, one about the refund that waits", list)
		}
		repay(g)
		workForHours(g)
		g.WantRefund(r, payment.RefundCompleted, 60_00, payment.PayinPartiallyRefunded, 60_00)
		if left() != had+60_00 {
			t.Errorf("%s have left", left())
		}
		g.WantCases(store.CasePayoutFound)
		g.WantProven()
	})
}

// A refund from after the restore does not wait, nor does a refund of a merchant without debt.
func TestRefundAfterARestoreWithoutDebt(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		r := g.Refund(p, "queued", 60_00)
		payLost(g, "lost", coretest.Opening)
		g.Clear()
		workForHours(g)
		g.WantRefund(r, payment.RefundCompleted, 60_00, payment.PayinPartiallyRefunded, 60_00)
		rest := g.Refund(p, "new", 40_00)
		workForHours(g)
		g.WantRefund(rest, payment.RefundCompleted, 40_00, payment.PayinRefunded, 100_00)
		g.WantProven()
	})
}
