package review_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// parkedPayout is a payout that was parked because its row is damaged, and its case.
func (d *desk) parkedPayout(sent bool) (payment.Payout, store.Case) {
	d.T.Helper()
	p := d.Payout("r", 10_00)
	if sent {
		d.Bank.AnswerTransfer = coretest.Unknown
		d.Send()
	}
	d.Execute("UPDATE payouts SET beneficiary = substr(beneficiary, 2) WHERE external_id = '" + p.ExternalID + "'")
	d.Pass(10 * time.Second)
	d.LookUp()
	d.Send()
	d.Jump(time.Minute) // no byte is leaving
	return p, d.only(store.CaseDamaged)
}

// restoreBeneficiary makes the row readable again: it puts back the byte that was cut off, the version
// of a sealed value.
func (d *desk) restoreBeneficiary(p payment.Payout) {
	d.T.Helper()
	whole := map[string]string{"sqlite": "CAST(x'03' || beneficiary AS BLOB)", "postgres": `'\x03'::bytea || beneficiary`}[d.Engine]
	d.Execute("UPDATE payouts SET beneficiary = " + whole + " WHERE external_id = '" + p.ExternalID + "'")
}

// Two people end a payout whose row is damaged and cannot be restored, whether it was sent or not:
// its money does not stay held.
func TestDamagedPayoutIsEndedByTwoPersons(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, row := range []struct {
			name   string
			sent   bool
			how    store.Resolution
			status payment.PayoutStatus
			events []payment.EventType
		}{
			{"never sent", false, store.ResolvedRelease, payment.PayoutFailed, []payment.EventType{payment.EventPayoutFailed}},
			{"not paid", true, store.ResolvedRelease, payment.PayoutFailed, []payment.EventType{payment.EventPayoutProcessing, payment.EventPayoutFailed}},
			{"paid", true, store.ResolvedPaid, payment.PayoutCompleted, []payment.EventType{payment.EventPayoutProcessing, payment.EventPayoutCompleted}},
			{"never sent by this copy", false, store.ResolvedPaid, payment.PayoutCompleted, []payment.EventType{payment.EventPayoutProcessing, payment.EventPayoutCompleted}},
		} {
			t.Run(row.name, func(t *testing.T) {
				d := newDesk(g.For(t))
				p, v := d.parkedPayout(row.sent)
				if row.how == store.ResolvedPaid && !row.sent {
					d.refused(request(&v, row.how), problem.InvalidState)
					d.Execute("UPDATE installation SET restored_at = 1")
				}
				d.agree(&v, row.how)
				d.WantCases()
				d.WantEvents(row.events...)
				left := coretest.Opening
				if row.status == payment.PayoutCompleted {
					left -= 10_00
				}
				d.WantBalances(left, 0)
				d.restoreBeneficiary(p)
				d.WantPayout(p, row.status, payment.StepDone)
				d.WantProven()
			})
		}
	})
}

// A payout that the gateway is working on is not ended under a case about its row, nor one whose last send
// may be leaving.
func TestDamagedPayoutIsNotEndedWhileItMayBeSent(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p := d.Payout("r", 10_00)
		v := d.damagedCase(p)
		for _, how := range []store.Resolution{store.ResolvedRelease, store.ResolvedPaid} {
			d.refused(request(&v, how), problem.InvalidState)
		}
		d.Bank.AnswerTransfer = coretest.Unknown
		d.Send()
		d.refused(request(&v, store.ResolvedRelease), problem.InvalidState)
		d.Execute("UPDATE payouts SET step = 'manual_review', next_at = 0")
		d.refused(request(&v, store.ResolvedRelease), problem.InvalidState) // until the deadline
		d.Jump(time.Minute)
		d.agree(&v, store.ResolvedRelease)
		d.WantPayout(p, payment.PayoutFailed, payment.StepDone)
	})
}

// A payout whose row has another amount or fee than is held is not ended until it is set right: the money
// of others would move.
func TestPayoutOfAChangedAmountIsNotEnded(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for name, parked := range map[string]func(d *desk) (payment.Payout, store.Case){
			"before it is sent": func(d *desk) (payment.Payout, store.Case) {
				p := d.Payout("r", 10_00)
				d.Execute("UPDATE payouts SET amount = 2000 WHERE external_id = '" + p.ExternalID + "'")
				d.Send()
				return p, d.only(store.CaseDamaged)
			},
			"without an answer": (*desk).unknownPayout,
		} {
			for _, column := range []string{"amount", "fee"} {
				t.Run(name+" "+column, func(t *testing.T) {
					d := newDesk(g.For(t))
					p, v := parked(d)
					d.Execute("UPDATE payouts SET " + column + " = 2000 WHERE external_id = '" + p.ExternalID + "'")
					d.refused(request(&v, store.ResolvedRelease), problem.InvalidState)
					d.Execute("UPDATE payouts SET amount = 1000, fee = 0 WHERE external_id = '" + p.ExternalID + "'")
					d.agree(&v, store.ResolvedRelease)
					d.WantPayout(p, payment.PayoutFailed, payment.StepDone)
					d.WantBalances(coretest.Opening, 0)
					d.WantCases()
					d.WantProven()
				})
			}
		}
	})
}
