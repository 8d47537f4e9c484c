package review_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// A listed payment of a damaged order is booked once the row is repaired; before that it
// remains a case.
func TestListedPaymentOfADamagedOrder(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p := d.Payin(d.Merchant, "damaged", "")
		d.Execute("UPDATE payins SET details = details || '{' WHERE external_id = '" + p.ExternalID + "'")
		d.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		d.ReadFeeds()
		d.Apply()
		v := d.only(store.CaseNotice)
		d.resolve(request(&v, store.ResolvedRetry))
		d.WantCases()
		d.Apply()
		v = d.only(store.CaseNotice)
		d.Execute("UPDATE payins SET details = substr(details, 1, length(details) - 1) WHERE external_id = '" + p.ExternalID + "'")
		d.resolve(request(&v, store.ResolvedRetry))
		d.Apply()
		d.WantPayin(p, payment.PayinPaid, 100_00, 1)
		d.WantCases()
		d.WantProven()
	})
}
