package review_test

import (
	"slices"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// ofAmount is the open case about an amount of surplus.
func (d *desk) ofAmount(amount money.Cents) store.Case {
	d.T.Helper()
	list, err := d.Store.OpenCases(d.T.Context(), 10)
	d.Must(err)
	i := slices.IndexFunc(list, func(v store.Case) bool { return v.Kind == store.CaseOverpaid && v.Amount == amount })
	if i < 0 {
		d.T.Fatalf("open cases %+v, want one of %s", list, amount)
	}
	return list[i]
}

// twoSurpluses is an order of 100.00 that a payer paid, and to which a second and a third payer paid
// 30.00 and 20.00 more: the merchant has the 30.00, and the 20.00 are resolved as given.
func (d *desk) twoSurpluses(last store.Resolution) string {
	d.T.Helper()
	p := d.PaidPayin("p", 100_00, 30_00, 20_00)
	v := d.ofAmount(30_00)
	d.resolve(request(&v, store.ResolvedApply))
	v = d.ofAmount(20_00)
	if last == store.ResolvedWriteOff {
		d.agree(&v, last)
	} else {
		d.resolve(request(&v, last))
	}
	return p.ExternalID
}

// paidByForeignMoney is an order of 100.00 that two people paid with an amount that named no order.
func (d *desk) paidByForeignMoney(amount money.Cents) payment.Payin {
	d.T.Helper()
	d.receive(d.Store.ExternalID(&d.Merchant, payment.OperationPayin, "never requested"), amount)
	v := d.only(store.CaseUnmatchedReceipt)
	p := d.Payin(d.Merchant, "in", "")
	r := request(&v, store.ResolvedApply)
	r.Merchant, r.Order = d.Merchant.ID, p.ID
	d.resolve(r)
	r.Actor = "operator:bia"
	d.resolve(r)
	return p
}

// Surplus goes back to the payer who sent it, not to another one.
func TestSurplusIsReturnedToItsOwnPayer(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.twoSurpluses(store.ResolvedReturn)
		d.Send()
		if made := d.Bank.Refunds.Calls; len(made) != 1 || made[0].PaymentID != "p 3" || made[0].Amount != 20_00 {
			t.Errorf("refunds %+v, want 20.00 of p 3", made)
		}
		d.wantUnapplied(received+30_00, 0, 0)
	})
}

// The merchant pays for a refund of the surplus that it was given; what the platform
// has of another payment stays.
func TestSurplusOfAnotherPaymentIsNotBroughtBack(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.twoSurpluses(store.ResolvedWriteOff)
		d.Bank.RefundAtPanel("panel", "p 2", 30_00)
		d.ReadFeeds()
		d.wantUnapplied(received, 0, 20_00)
		d.Bank.RefundAtPanel("panel 2", "p 3", 20_00)
		d.ReadFeeds()
		d.wantUnapplied(received, 0, 0)
		d.WantCases()
	})
}

// A dispute of it likewise.
func TestDisputedSurplusIsNotOfAnotherPayment(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		id := d.twoSurpluses(store.ResolvedWriteOff)
		d.Bank.Disputes(id, processor.Dispute{ID: "D", PaymentID: "p 2", Amount: 30_00, State: processor.DisputeOpen})
		d.Notify("D", "charge "+id)
		d.Apply()
		d.wantUnapplied(received, 0, 20_00)
		d.WantCases()
	})
}

// The rest of money that named no order, which an operator gave to an order, is of none of the order's
// payments: it cannot be returned as one of them.
func TestRestOfForeignMoneyIsOfNoPayment(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		q := d.paidByForeignMoney(110_00)
		d.receive(q.ExternalID, 30_00)
		v := d.ofAmount(30_00)
		d.resolve(request(&v, store.ResolvedApply))
		v = d.only(store.CaseOverpaid)
		d.refused(request(&v, store.ResolvedReturn), problem.RefundNotPossible)
	})
}

// The platform cannot keep surplus that a dispute has taken from the merchant; once the dispute is won,
// it can.
func TestDisputedSurplusIsNotWrittenOff(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p := d.PaidPayin("p", 100_00, 30_00)
		report := func(state processor.DisputeState) {
			d.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "D", PaymentID: "p 2", Amount: 10_00, State: state})
			d.Notify(string(state), "charge "+p.ExternalID)
			d.Apply()
		}
		report(processor.DisputeOpen)
		v := d.only(store.CaseOverpaid)
		d.refused(request(&v, store.ResolvedWriteOff), problem.InvalidState)
		report(processor.DisputeWon)
		d.agree(&v, store.ResolvedWriteOff)
		d.wantUnapplied(received, 0, 30_00)
	})
}

// Surplus of an order that other money has paid, and that was written off, comes back like any other.
func TestWrittenOffSurplusOfAnOrderPaidByForeignMoney(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		q := d.paidByForeignMoney(100_00)
		d.receive(q.ExternalID, 30_00)
		v := d.only(store.CaseOverpaid)
		d.agree(&v, store.ResolvedWriteOff)
		d.Bank.RefundAtPanel("panel", d.Bank.Incoming[1].ID, 30_00)
		d.ReadFeeds()
		d.wantUnapplied(received, 0, 0)
		d.WantPayin(q, payment.PayinPaid, 100_00, 1)
	})
}
