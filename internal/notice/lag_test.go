package notice_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A notice of a payment that the processor's answer does not show yet is applied again;
// what the answer shows is booked at once.
func TestNoticeOutlastsAnAnswerThatLags(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 40_00)
		g.Notify("n-2", "charge "+p.ExternalID+"/pay-2")
		g.Apply()
		g.WantPayin(p, payment.PayinPending, 40_00, 1)
		g.Bank.Receive(p.ExternalID, "pay-2", 60_00)
		g.Pass(2 * time.Second)
		g.Apply()
		g.WantPayin(p, payment.PayinPaid, 100_00, 2)
		g.WantCases()
		queries := g.Bank.Queries
		g.Jump(3 * time.Hour)
		g.Apply()
		if g.Bank.Queries != queries {
			g.T.Errorf("%d queries after the notice was applied", g.Bank.Queries-queries)
		}
	})
}

// So is one of a paid transfer that the processor still reports as processing.
func TestNoticeOutlastsATransferThatLags(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferProcessing)}
		}
		p := g.Payout("r", 10_00)
		g.Send()
		g.Notify("n-1", "paid "+p.ExternalID)
		g.Apply()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepAccepted)
		g.Bank.Transfers[p.ExternalID].State = processor.TransferPaid
		g.Pass(2 * time.Second)
		g.Apply()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
	})
}

// Finding M11: a processor that sends each change under the id of the first one is queried
// about each. Any other processor's notice with a known id is a copy.
func TestNoticesWithOneID(t *testing.T) {
	for name, repeat := range map[string]bool{"repeated": true, "unique": false} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				g.Bank.Profiled.NoticeIDsRepeat = repeat
				p := g.Payin(g.Merchant, "r", "")
				g.Bank.Receive(p.ExternalID, "pay-1", 40_00)
				g.Notify("token", "charge "+p.ExternalID)
				g.Apply()
				g.WantPayin(p, payment.PayinPending, 40_00, 1)
				g.Bank.Receive(p.ExternalID, "pay-2", 60_00)
				g.Notify("token", "charge "+p.ExternalID)
				g.Notify("token", "charge "+p.ExternalID)
				g.Apply()
				if repeat {
					g.WantPayin(p, payment.PayinPaid, 100_00, 2)
				} else {
					g.WantPayin(p, payment.PayinPending, 40_00, 1)
				}
				g.WantCases()
				g.WantProven()
			})
		})
	}
}

// A notice of a refund that nobody requested here is booked from the list of refunds; if the
// processor has none it has a case, once. The other reports of the same notice are applied.
func TestNoticeOfAnUnknownRefund(t *testing.T) {
	for _, listed := range []bool{true, false} {
		t.Run(fmt.Sprint("listed ", listed), func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				g.Bank.Refunds.Unlisted = !listed
				p := g.Payin(g.Merchant, "r", "")
				g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
				g.Notify("n-1", "refund "+p.ExternalID, "charge "+p.ExternalID)
				g.Notify("n-2", "refund "+p.ExternalID)
				for range 2 {
					g.Apply()
					g.Jump(100 * time.Hour)
				}
				g.WantPayin(p, payment.PayinPaid, 100_00, 1)
				if listed {
					g.WantCases()
				} else {
					g.WantReason(store.CaseNotice, store.ReasonUnknownRefund)
				}
			})
		})
	}
}
