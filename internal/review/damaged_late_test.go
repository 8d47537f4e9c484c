package review_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A payout whose row is damaged, and cannot be restored, was released and then paid. A person books
// that it left.
func TestPaidAfterReleaseOfADamagedPayout(t *testing.T) {
	for _, how := range []store.Resolution{store.ResolvedPaid, store.ResolvedWriteOff} {
		t.Run(string(how), func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				d := newDesk(g)
				g.Bank.AnswerTransfer = coretest.Unknown
				p := g.Payout("r", 10_00)
				g.Send()
				g.Bank.AnswerTransfer = nil
				d.Execute("UPDATE payouts SET beneficiary = substr(beneficiary, 2) WHERE external_id = '" + p.ExternalID + "'")
				g.Pass(10 * time.Second)
				g.LookUp()
				g.Jump(2 * time.Minute)
				g.ReadFeeds()
				v := d.only(store.CaseDamaged)
				d.agree(&v, store.ResolvedRelease)
				g.Bank.Mu.Lock()
				g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: 10_00}, processor.TransferPaid)
				g.Bank.Mu.Unlock()
				for range 3 {
					g.Jump(3 * time.Hour)
					g.ReadFeeds()
				}
				v = d.only(store.CaseContradiction)
				if how == store.ResolvedPaid {
					d.resolve(request(&v, how))
					g.WantBalances(coretest.Opening-10_00, 0)
				} else {
					d.agree(&v, how)
					g.WantBalances(coretest.Opening, 0)
				}
				g.WantCases()
				for range 3 {
					g.Jump(3 * time.Hour)
					g.ReadFeeds()
					g.LookUp()
				}
				g.WantCases()
				d.restoreBeneficiary(p)
				d.WantPayout(p, payment.PayoutFailed, payment.StepPaidLate)
				d.WantProven()
			})
		})
	}
}
