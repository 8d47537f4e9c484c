package notice_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// A notice that cannot be opened gets a case, and delays no other.
func TestApplyParksADamagedNotice(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		due(g, "bad")
		g.Damage("notices", "body", "notice_id = 'bad'")
		g.Notify("good", "charge "+p.ExternalID)
		g.Apply()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		g.WantCases(store.CaseNotice)
	})
}
