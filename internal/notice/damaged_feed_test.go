package notice_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// A listed change of an order that cannot be opened delays no other.
func TestFeedPassesADamagedPayout(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		bad, good := g.Payout("bad", 10_00), g.Payout("good", 10_00)
		g.Send()
		g.Damage("payouts", "beneficiary", "external_id = '"+bad.ExternalID+"'")
		g.Bank.Return(bad.ExternalID, 10_00)
		g.Bank.Return(good.ExternalID, 10_00)
		for range 3 {
			g.Pass(10 * time.Second)
			g.ReadFeeds()
		}
		g.WantPayout(good, payment.PayoutReturned, payment.StepDone)
		for range 12 { // until the last retry
			g.Jump(3 * time.Hour)
			g.Apply()
		}
		g.WantCases(store.CaseNotice)
	})
}

// The same for a payment.
func TestFeedPassesADamagedPayin(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		bad, good := g.Payin(g.Merchant, "bad", ""), g.Payin(g.Merchant, "good", "")
		g.Execute("UPDATE payins SET details = '{' WHERE external_id = '" + bad.ExternalID + "'")
		g.Bank.Receive(bad.ExternalID, "pay-1", 100_00)
		g.Bank.Receive(good.ExternalID, "pay-2", 100_00)
		for range 3 {
			g.Pass(10 * time.Second)
			g.ReadFeeds()
		}
		g.WantPayin(good, payment.PayinPaid, 100_00, 1)
		g.Apply()
		g.WantReason(store.CaseNotice, store.ReasonOrderDamaged)
		g.ReadFeeds()
		g.Apply()
		g.WantCases(store.CaseNotice) // one
	})
}
