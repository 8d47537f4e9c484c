package review_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// found is a transfer of 900.00 that a restored backup lacks, and its case.
func (d *desk) found() (externalID string, v store.Case) {
	d.T.Helper()
	externalID = d.Store.ExternalID(&d.Merchant, payment.OperationPayout, "lost")
	d.Bank.Mu.Lock()
	d.Bank.Pay(processor.TransferRequest{ExternalID: externalID, Amount: 900_00}, processor.TransferPaid)
	d.Bank.Mu.Unlock()
	d.Execute("UPDATE installation SET epoch = epoch - 3")
	d.Heartbeat()
	d.Clear()
	d.wantBorne(100_00, 0, 0)
	return externalID, d.only(store.CasePayoutFound)
}

// Two people decide who bears a found transfer; what then comes back is that one's.
func TestFoundTransferIsResolvedByTwoPersons(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		t.Run("adopt", func(t *testing.T) {
			d := newDesk(g.For(t))
			id, v := d.found()
			d.refused(request(&v, store.ResolvedDismiss), problem.InvalidState)
			d.agree(&v, store.ResolvedAdopt)
			d.wantBorne(100_00, 0, 0)
			d.Bank.Return(id, 300_00)
			d.ReadFeeds()
			d.wantBorne(400_00, 0, 0)
			d.WantCases()
			d.WantProven()
		})
		t.Run("write-off", func(t *testing.T) {
			d := newDesk(g.For(t))
			id, v := d.found()
			d.agree(&v, store.ResolvedWriteOff)
			d.wantBorne(coretest.Opening, 0, -900_00)
			d.Bank.Return(id, 300_00)
			d.ReadFeeds()
			d.wantBorne(coretest.Opening, 0, -600_00)
			d.WantCases()
			d.WantProven()
		})
	})
}

// A transfer that the platform bears is the payout's of a later request, which the merchant
// pays.
func TestWrittenOffTransferIsAdoptedByItsRequest(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		_, v := d.found()
		d.agree(&v, store.ResolvedWriteOff)
		d.Payout("spent", 500_00)
		if _, _, err := d.Payouts.Request(t.Context(), d.Merchant, coretest.PayoutRequest("lost", 900_00)); !problem.Is(err, problem.InsufficientBalance) {
			t.Errorf("a request beyond the balance: %v", err)
		}
		d.Must(d.Merchants.Fund(t.Context(), d.Merchant, 500_00))
		d.Send()
		d.LookUp() // a first send after a restore
		d.Send()
		d.wantBorne(500_00+500_00, 0, -900_00)
		p := d.Payout("lost", 900_00)
		d.LookUp()
		d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		d.wantBorne(100_00, 0, 0)
		d.WantBank(1, 2)
		d.WantCases()
		d.WantProven()
	})
}

// The merchant may request the payout between the two people.
func TestAdoptedTransferIsNotWrittenOff(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		_, v := d.found()
		r := request(&v, store.ResolvedWriteOff)
		d.resolve(r)
		d.Payout("lost", 900_00)
		r.Actor = "operator:bia"
		d.refused(r, problem.InvalidState)
		d.LookUp()
		d.wantBorne(100_00, 0, 0)
		d.WantProven()
	})
}
