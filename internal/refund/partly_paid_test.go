package refund_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// What was given back of a partly paid order is not forgotten when the rest is paid: the order shows it,
// and what is left can be refunded.
func TestRestOfAnOrderThatWasGivenBack(t *testing.T) {
	for name, row := range map[string]struct {
		panel  money.Cents
		paid   bool // when the rest comes; else after it
		status payment.PayinStatus
	}{
		"all of the first payment": {40_00, true, payment.PayinPartiallyRefunded},
		"a part of it":             {10_00, true, payment.PayinPartiallyRefunded},
		"paid later":               {40_00, false, payment.PayinPartiallyRefunded},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				p := g.PaidPayin("p", 40_00)
				if row.paid {
					g.Bank.RefundAtPanel("panel", "p 1", row.panel)
				} else {
					g.Bank.StartAtPanel("panel", "p 1", row.panel)
					g.Bank.Refunds.Listed = append(g.Bank.Refunds.Listed, processor.ListedRefund{
						ExternalID: "panel", PaymentID: "p 1", State: processor.TransferProcessing, Amount: row.panel,
					})
				}
				g.ReadFeeds()
				g.WantPayin(p, payment.PayinPending, 40_00, 1)
				g.Bank.Receive(p.ExternalID, "p 2", 60_00)
				g.Notify("rest", "charge "+p.ExternalID)
				g.Apply()
				if !row.paid {
					g.WantPayin(p, payment.PayinPaid, 100_00, 2)
					g.Bank.EndRefund("panel", processor.TransferPaid)
					g.ReadFeeds()
				}
				g.WantPayin(p, row.status, 100_00, 2)
				if got := g.ReadPayin(p); got.RefundedAmount != row.panel {
					t.Errorf("%s is refunded, want %s", got.RefundedAmount, row.panel)
				}
				events := []payment.EventType{payment.EventPayinUnderpaid, payment.EventRefundCompleted, payment.EventPayinPaid, payment.EventPayinPartiallyRefunded}
				if !row.paid {
					events[1], events[2] = events[2], events[1]
				}
				g.WantEvents(events...)
				g.WantCases(store.CaseRefundUnexpected)
				rest := g.Refund(p, "rest", 0)
				for range 4 { // of two parts
					g.Send()
					g.LookUp()
					g.Pass(5 * time.Second)
				}
				g.WantRefund(rest, payment.RefundCompleted, 100_00-row.panel, payment.PayinRefunded, 100_00)
				g.WantBalances(coretest.Opening, 0)
				g.WantProven()
			})
		})
	}
}
