package refund_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Money that a partly paid order gave back does not count as paid. If it was in flight when the
// rest was paid, the order shows it, and the rest can be refunded.
func TestRestOfAnOrderThatWasGivenBack(t *testing.T) {
	for name, row := range map[string]struct {
		panel  money.Cents
		paid   bool // when the rest comes; else after it
		status payment.PayinStatus
	}{
		"all of the first payment": {40_00, true, payment.PayinPending},
		"a part of it":             {10_00, true, payment.PayinPending},
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
				var none []store.CaseKind
				g.WantCases(none...)
				events := []payment.EventType{payment.EventPayinUnderpaid, payment.EventPayinPaid, payment.EventRefundCompleted, payment.EventPayinPartiallyRefunded}
				paid := money.Cents(100_00)
				if row.paid {
					events = []payment.EventType{payment.EventPayinUnderpaid, payment.EventRefundCompleted, lastRefund(row.panel, 40_00), payment.EventPayinUnderpaid}
				}
				g.WantEvents(events...)
				if row.paid { // what is missing now is what was given back
					g.Bank.Receive(p.ExternalID, "p 3", row.panel)
					g.Notify("given back", "charge "+p.ExternalID)
					g.Apply()
					paid += row.panel
					g.WantPayin(p, payment.PayinPaid, paid, 3)
					g.WantEvents(append(events, payment.EventPayinPaid)...)
				}
				rest := g.Refund(p, "rest", 0)
				for range 6 { // of up to three parts
					g.Send()
					g.LookUp()
					g.Pass(5 * time.Second)
				}
				g.WantRefund(rest, payment.RefundCompleted, paid-row.panel, payment.PayinRefunded, paid)
				g.WantBalances(coretest.Opening, 0)
				g.WantProven()
			})
		})
	}
}

func lastRefund(refunded, paid money.Cents) payment.EventType {
	if refunded == paid {
		return payment.EventPayinRefunded
	}
	return payment.EventPayinPartiallyRefunded
}

// The paid money of an order can be given back in every status, less refunds and disputes. The
// order keeps its status unless it was paid in full and is not disputed.
func TestRefundInEveryStatus(t *testing.T) {
	for name, row := range map[string]struct {
		paid, disputed money.Cents
		state          processor.ChargeState
		dispute        processor.DisputeState
		status         payment.PayinStatus
		left           money.Cents
	}{
		"pending":                   {paid: 40_00, status: payment.PayinPending, left: 40_00},
		"expired":                   {paid: 40_00, state: processor.ChargeExpired, status: payment.PayinExpired, left: 40_00},
		"failed":                    {paid: 40_00, state: processor.ChargeFailed, status: payment.PayinFailed, left: 40_00},
		"pending, disputed in part": {paid: 40_00, disputed: 10_00, dispute: processor.DisputeOpen, status: payment.PayinPending, left: 30_00},
		"disputed":                  {paid: 100_00, disputed: 30_00, dispute: processor.DisputeOpen, status: payment.PayinDisputed, left: 70_00},
		"charged back":              {paid: 100_00, disputed: 30_00, dispute: processor.DisputeLost, status: payment.PayinChargeback, left: 70_00},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				p := g.PaidPayin("p", row.paid)
				charge := g.Bank.Charges[p.ExternalID]
				if row.state != "" {
					charge.State = row.state
				}
				if row.disputed > 0 {
					g.Bank.Dispute(p.ExternalID, "D", row.disputed, row.dispute)
				}
				g.Notify("changed", "charge "+p.ExternalID)
				g.Apply()
				refused(t, g, p.ID, int64(row.left)+1, problem.ValidationFailed, "at most "+row.left.String())
				part := g.Refund(p, "part", 10_00)
				g.Send()
				g.WantRefund(part, payment.RefundCompleted, 10_00, row.status, 10_00)
				rest := g.Refund(p, "rest", 0)
				g.Send()
				g.WantRefund(rest, payment.RefundCompleted, row.left-10_00, row.status, row.left)
				refused(t, g, p.ID, 0, problem.ValidationFailed, "nothing is left")
				g.WantProven()
				if row.disputed == 0 {
					return
				}
				g.Bank.Dispute(p.ExternalID, "D", row.disputed, map[processor.DisputeState]processor.DisputeState{
					processor.DisputeOpen: processor.DisputeWon, processor.DisputeLost: processor.DisputeReversed,
				}[row.dispute])
				g.Notify("in favor", "charge "+p.ExternalID)
				g.Apply()
				after := row.status
				if after != payment.PayinPending {
					after = payment.PayinPartiallyRefunded
				}
				g.WantRefund(rest, payment.RefundCompleted, row.left-10_00, after, row.left)
				g.WantProven()
			})
		})
	}
}

// A refund of a part fails after it was completed, and after the rest was paid: what was paid is as much as
// the order's amount with it.
func TestPaidByARefundThatFailed(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 40_00)
		r := g.Refund(p, "r", 0)
		g.Send()
		g.WantRefund(r, payment.RefundCompleted, 40_00, payment.PayinPending, 40_00)
		g.Bank.Receive(p.ExternalID, "p 2", 60_00)
		g.Notify("more", "charge "+p.ExternalID)
		g.Apply()
		g.WantPayin(p, payment.PayinPending, 100_00, 2)
		g.Bank.EndRefund(r.ExternalID, processor.TransferFailed)
		g.ReadFeeds()
		g.WantRefund(r, payment.RefundFailed, 0, payment.PayinPaid, 0)
		g.WantBalances(coretest.Opening+100_00, 0)
		g.WantProven()
	})
}

// A refund of a part fails after it was completed, and after the order was paid in full: the order is PAID,
// and all of its money can be given back.
func TestRefundThatFailsAfterTheOrderWasPaid(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetPrice(payment.PIX, payment.Terms{BasisPoints: 100, RefundsFee: true})
		p := g.PaidPayin("p", 40_00)
		if got := g.ReadPayin(p).Fee; got != 40 {
			t.Errorf("the fee of a part is %d", got)
		}
		r := g.Refund(p, "r", 0)
		g.Send()
		g.Bank.Receive(p.ExternalID, "p 2", 100_00)
		g.Notify("all", "charge "+p.ExternalID)
		g.Apply()
		g.WantPayin(p, payment.PayinPaid, 140_00, 2)
		if got := g.ReadPayin(p).Fee; got != 1_00 {
			t.Errorf("the fee is %d", got)
		}
		g.Bank.EndRefund(r.ExternalID, processor.TransferFailed)
		g.ReadFeeds()
		g.WantRefund(r, payment.RefundFailed, 0, payment.PayinPaid, 0)
		g.WantBalances(coretest.Opening+140_00-1_40, 0)
		all := g.Refund(p, "all", 0)
		for range 4 {
			g.Send()
			g.LookUp()
			g.Pass(5 * time.Second)
		}
		g.WantRefund(all, payment.RefundCompleted, 140_00, payment.PayinRefunded, 140_00)
		g.WantBalances(coretest.Opening, 0)
		g.WantProven()
	})
}
