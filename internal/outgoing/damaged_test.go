package outgoing_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// damage makes the sealed beneficiary of a payout unreadable.
func damage(g *coretest.Gateway, p payment.Payout) {
	g.T.Helper()
	g.Damage("payouts", "beneficiary", "external_id = '"+p.ExternalID+"'")
}

// A payout that cannot be opened gets a case, and delays no other payout of any merchant.
func TestSendParksADamagedPayout(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		bad := g.Payout("bad", 10_00)
		beside := g.Payout("beside", 10_00)
		damage(g, bad)
		g.Send()
		g.WantPayout(beside, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(1, 1)
		g.WantCases(store.CaseDamaged)
		g.Pass(10 * time.Second)
		g.Send()
		g.WantCases(store.CaseDamaged)
		g.WantBalances(coretest.Opening-20_00, 10_00) // its money stays held
	})
}

// The same for a payout that must be looked up.
func TestLookUpParksADamagedPayout(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			b.Pay(r, processor.TransferPaid)
			return processor.TransferAnswer{}
		}
		bad := g.Payout("bad", 10_00)
		beside := g.Payout("beside", 10_00)
		g.Send()
		damage(g, bad)
		g.Pass(2 * time.Second)
		g.LookUp()
		g.WantPayout(beside, payment.PayoutCompleted, payment.StepDone)
		g.WantCases(store.CaseDamaged)
		g.WantBalances(coretest.Opening-20_00, 10_00)
	})
}
