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

// A case about money that names a pay-in whose row is damaged can be shown and resolved: two people say
// whose money it is.
func TestMoneyNamesADamagedOrder(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.receive(d.Store.ExternalID(&d.Merchant, payment.OperationPayin, "lost"), 100_00)
		v := d.only(store.CaseUnmatchedReceipt)
		p := d.Payin(d.Merchant, "lost", "")
		d.Execute("UPDATE payins SET details = details || '{' WHERE external_id = '" + p.ExternalID + "'")
		list, err := d.reviews.Possible(t.Context(), &v)
		if d.Must(err); list[0].How != store.ResolvedApply || list[0].Persons != 2 || list[0].Named != nil {
			t.Errorf("%+v", list)
		}
		r := request(&v, store.ResolvedApply)
		r.Merchant = d.Merchant.ID
		if got := d.resolve(r); got.Action != store.DecisionProposed {
			t.Errorf("it is %s", got.Action)
		}
	})
}
