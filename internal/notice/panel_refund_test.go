package notice_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// A refund that was made at the processor's panel is followed from its notice to its end, also if that
// has no notice of its own, and the refund is in no list.
func TestNoticeOfAPanelRefundThatIsNotPaidYet(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Refunds.Unlisted = true
		paid, failed := g.PaidPayin("paid", 100_00), g.PaidPayin("failed", 100_00)
		for id, of := range map[string]payment.Payin{"panel-1": paid, "panel-2": failed} {
			list, err := g.Store.Receipts(t.Context(), of.Merchant, of.ID)
			g.Must(err)
			g.Bank.StartAtPanel(id, list[0].ExternalID, 30_00)
			g.Notify("n "+id, "charge "+of.ExternalID, "refund "+id+" of "+list[0].ExternalID)
		}
		g.Apply()
		g.WantBalances(coretest.Opening+140_00, 60_00) // it cannot be paid out meanwhile
		g.Bank.EndRefund("panel-1", processor.TransferPaid)
		g.Bank.EndRefund("panel-2", processor.TransferFailed)
		for range 5 {
			g.Jump(time.Hour)
			g.Apply()
			g.LookUp()
		}
		g.WantPayin(paid, payment.PayinPartiallyRefunded, 100_00, 1)
		g.WantPayin(failed, payment.PayinPaid, 100_00, 1)
		g.WantBalances(coretest.Opening+170_00, 0)
		g.WantCases()
		g.WantProven()
	})
}
