package review_test

import (
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// second records a report of a second transfer of p, of which total came back.
func (d *desk) second(p payment.Payout, total money.Cents) {
	d.T.Helper()
	r := processor.TransferReport{
		Lookup: processor.Found, State: processor.TransferPaid, EndToEndID: "E" + strings.Repeat("2", 31), Amount: p.Amount, Returned: total,
	}
	_, err := d.Outgoing.RecordNotice(d.T.Context(), coretest.BankName, p.ExternalID, r, nil)
	d.Must(err)
}

// paidTwice is a payout that the processor paid twice, and its case.
func (d *desk) paidTwice() (payment.Payout, store.Case) {
	d.T.Helper()
	p := d.Payout("r", 60_00)
	d.Send()
	p = d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
	d.second(p, 0)
	d.WantBalances(coretest.Opening-60_00, 0)
	v := d.only(store.CaseContradiction)
	d.WantReason(store.CaseContradiction, store.ReasonPaidTwice)
	return p, v
}

// The second transfer of a payout stops its merchant's payouts until it is booked; then what comes
// back of it belongs to the one that bore it, and a repeated report changes nothing.
func TestPaidTwice(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		t.Run("the merchant's", func(t *testing.T) {
			d := newDesk(g.For(t))
			p, v := d.paidTwice()
			if _, _, err := d.Payouts.Request(t.Context(), d.Merchant, coretest.PayoutRequest("new", 1)); !problem.Is(err, problem.Unavailable) {
				t.Errorf("a new payout: %v", err)
			}
			d.WantDecision(d.operation(request(&v, store.ResolvedPaid)), `
				cases closed_at:-→now resolution:→paid
				+decisions resolved paid ana
				+found_transfers 6000
				+postings payout_paid_late available -6000
				+postings payout_paid_late clearing:bank 6000`, "")
			d.wantBorne(coretest.Opening-120_00, 0, 0)
			d.second(p, 0)
			d.WantCases()
			d.second(p, 25_00)
			d.second(p, 25_00)
			d.wantBorne(coretest.Opening-95_00, 0, 0)
			d.second(p, 60_00)
			d.wantBorne(coretest.Opening-60_00, 0, 0)
			d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
			d.WantCases()
			q := d.Payout("new", 1_00)
			d.Send()
			d.WantPayout(q, payment.PayoutCompleted, payment.StepDone)
			d.WantProven()
		})
		t.Run("the platform's", func(t *testing.T) {
			d := newDesk(g.For(t))
			p, v := d.paidTwice()
			d.agree(&v, store.ResolvedWriteOff)
			d.wantBorne(coretest.Opening-60_00, 0, -60_00)
			d.second(p, 60_00)
			d.wantBorne(coretest.Opening-60_00, 0, 0)
			d.WantCases()
			d.WantProven()
		})
		t.Run("not so", func(t *testing.T) {
			d := newDesk(g.For(t))
			_, v := d.paidTwice()
			d.agree(&v, store.ResolvedDismiss)
			d.wantBorne(coretest.Opening-60_00, 0, 0)
			d.Payout("new", 1_00)
			d.WantProven()
		})
	})
}

// The list of transfers shows the second transfer too, and opens one case about it.
func TestListShowsASecondTransfer(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.ReadFeeds()
		p := d.Payout("r", 60_00)
		d.Send()
		d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		d.Execute("UPDATE payouts SET end_to_end_id = 'E1111'")
		for range 3 {
			d.Pass(time.Minute)
			d.ReadFeeds()
		}
		v := d.only(store.CaseContradiction)
		d.WantReason(store.CaseContradiction, store.ReasonPaidTwice)
		d.resolve(request(&v, store.ResolvedPaid))
		d.Pass(time.Minute)
		d.ReadFeeds()
		d.WantCases()
		d.wantBorne(coretest.Opening-120_00, 0, 0)
		d.WantProven()
	})
}
