package review_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Money of a payout that left after its release and then came back is booked once, however
// it is reported: to the merchant that bore it, or to the platform.
func TestReturnOfAPayoutPaidLate(t *testing.T) {
	for name, report := range map[string]func(d *desk, p payment.Payout){
		"notice": func(d *desk, p payment.Payout) {
			d.Notify(fmt.Sprint("returned ", p.ID, " ", len(d.Bank.Changed)), p.ExternalID)
			d.Apply()
		},
		"feed": func(d *desk, _ payment.Payout) { d.ReadFeeds() },
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				t.Run("the merchant's", func(t *testing.T) {
					d := newDesk(g.For(t))
					p, v := d.paidAfterRelease(60_00)
					d.resolve(request(&v, store.ResolvedPaid))
					returned(d, p, 25_00, report)
					d.wantBorne(coretest.Opening-35_00, 0, 0)
					returned(d, p, 60_00, report)
					d.wantBorne(coretest.Opening, 0, 0)
					d.WantEvents(payment.EventPayoutProcessing, payment.EventPayoutFailed)
				})
				t.Run("the merchant's debt", func(t *testing.T) {
					d := newDesk(g.For(t))
					p, v := d.paidAfterRelease(60_00)
					d.Execute("UPDATE cases SET stops_payouts = 0")
					d.Payout("spent", 990_00)
					d.Send()
					d.resolve(request(&v, store.ResolvedPaid))
					d.wantBorne(0, -50_00, 0)
					returned(d, p, 60_00, report)
					d.wantBorne(10_00, 0, 0)
				})
				t.Run("the platform's", func(t *testing.T) {
					d := newDesk(g.For(t))
					p, v := d.paidAfterRelease(60_00)
					d.agree(&v, store.ResolvedWriteOff)
					d.wantBorne(coretest.Opening, 0, -60_00)
					returned(d, p, 60_00, report)
					d.wantBorne(coretest.Opening, 0, 0)
				})
			})
		})
	}
}

// The transfer may have come back before the operator decided: that is looked up then.
func TestReturnBeforeTheDecisionAboutALatePayout(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p, _ := d.paidAfterRelease(60_00)
		d.Bank.Return(p.ExternalID, 60_00)
		d.ReadFeeds()
		d.Notify("returned", p.ExternalID)
		d.Apply()
		for range 12 { // no notice of the change is given up
			d.Jump(3 * time.Hour)
			d.Apply()
		}
		v := d.only(store.CaseContradiction)
		d.resolve(request(&v, store.ResolvedPaid))
		d.wantBorne(coretest.Opening-60_00, 0, 0)
		d.LookUp()
		d.wantBorne(coretest.Opening, 0, 0)
		d.WantCases()
		d.WantProven()
	})
}

// A payout that was booked as paid after its release, and failed after all, has a case, however the
// failure is reported. By two people the money goes back to the merchant or platform that bore it.
func TestPayoutPaidLateFails(t *testing.T) {
	for name, report := range map[string]func(d *desk, p payment.Payout){
		"look-up": func(d *desk, _ payment.Payout) { d.LookUp() },
		"notice": func(d *desk, p payment.Payout) {
			d.Notify("failed "+p.ID.String(), p.ExternalID)
			d.Apply()
		},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				for _, how := range []store.Resolution{store.ResolvedPaid, store.ResolvedWriteOff} {
					d := newDesk(g.For(t))
					p, v := d.paidAfterRelease(60_00)
					available, writtenOff := coretest.Opening-60_00, money.Cents(0)
					if how == store.ResolvedPaid {
						d.resolve(request(&v, how))
					} else {
						d.agree(&v, how)
						available, writtenOff = coretest.Opening, -60_00
					}
					d.Bank.Mu.Lock()
					d.Bank.Transfers[p.ExternalID].State = processor.TransferFailed
					d.Bank.Mu.Unlock()
					for range 2 {
						d.Pass(10 * time.Second)
						report(d, p)
					}
					d.wantBorne(available, 0, writtenOff)
					v = d.only(store.CaseContradiction)
					if v.Params.Reason() != store.ReasonFailedAfterPaid || v.Amount != 60_00 || v.StopsPayouts {
						t.Errorf("the case is %+v", v)
					}
					d.agree(&v, store.ResolvedRelease)
					d.wantBorne(coretest.Opening, 0, 0)
					d.WantPayout(p, payment.PayoutFailed, payment.StepPaidLate)
					d.Notify("again "+p.ID.String(), p.ExternalID)
					d.Apply()
					d.WantCases()
					d.wantBorne(coretest.Opening, 0, 0)
					d.WantProven()
				}
			})
		})
	}
}

// Another amount of a payout that left after its release stops the merchant's payouts too, is booked
// as it was reported, and comes back.
func TestOtherAmountLeftAfterTheRelease(t *testing.T) {
	for _, amount := range []money.Cents{59_00, 61_00} {
		t.Run(fmt.Sprint(amount), func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				for _, how := range []store.Resolution{store.ResolvedPaid, store.ResolvedWriteOff} {
					d := newDesk(g.For(t))
					p, v := d.releasedAndPaid(amount)
					if v.Params.Reason() != store.ReasonPaidAfterRelease || v.Params["reported"] != amount.String() || v.Amount != amount || !v.StopsPayouts {
						t.Errorf("the case is %+v", v)
					}
					if how == store.ResolvedPaid {
						d.resolve(request(&v, how))
						d.wantBorne(coretest.Opening-amount, 0, 0)
					} else {
						d.agree(&v, how)
						d.wantBorne(coretest.Opening, 0, -amount)
					}
					notice := func(d *desk, p payment.Payout) {
						d.Notify(fmt.Sprint("returned ", p.ID, len(d.Bank.Changed)), p.ExternalID)
						d.Apply()
					}
					d.LookUp()
					d.WantCases()
					returned(d, p, 20_00, notice)
					returned(d, p, amount, notice)
					d.wantBorne(coretest.Opening, 0, 0)
				}
			})
		})
	}
}

// releasedAndPaid is a payout of 60.00 that the processor refused, and lists as paid with another
// amount, and its case.
func (d *desk) releasedAndPaid(amount money.Cents) (payment.Payout, store.Case) {
	d.T.Helper()
	d.Bank.AnswerTransfer = func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer {
		return processor.TransferAnswer{Outcome: processor.Refused}
	}
	p := d.Payout("r", 60_00)
	d.Send()
	d.WantPayout(p, payment.PayoutFailed, payment.StepDone)
	d.Bank.AnswerTransfer = nil
	d.Bank.Mu.Lock()
	d.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: amount}, processor.TransferPaid)
	d.Bank.Mu.Unlock()
	d.list()
	return p, d.only(store.CaseContradiction)
}

// returned lets the receiver's bank return cents in all, and reports that twice.
func returned(d *desk, p payment.Payout, total money.Cents, report func(*desk, payment.Payout)) {
	d.T.Helper()
	d.Bank.Return(p.ExternalID, total)
	for range 2 {
		d.Pass(10 * time.Second)
		report(d, p)
	}
	d.WantPayout(p, payment.PayoutFailed, payment.StepPaidLate)
	d.WantCases()
	d.WantProven()
}

// wantBorne compares what the merchant has and owes, and what the platform wrote off.
func (d *desk) wantBorne(available, owed, writtenOff money.Cents) {
	d.T.Helper()
	b, err := d.Store.Balances(d.T.Context(), d.Merchant.ID)
	d.Must(err)
	if b[ledger.Available] != available || b[ledger.Owed] != owed || b[ledger.WrittenOff] != writtenOff {
		d.T.Errorf("available %d, owed %d, written off %d; want %d, %d, %d",
			b[ledger.Available], b[ledger.Owed], b[ledger.WrittenOff], available, owed, writtenOff)
	}
	d.WantBalances(available, 0)
}
