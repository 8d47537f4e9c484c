package review_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// damagedCase opens the case about a payout whose row could not be opened, as the index of
// personal data does, which parks nothing.
func (d *desk) damagedCase(p payment.Payout) store.Case {
	d.T.Helper()
	v := store.Case{Merchant: p.Merchant, ID: payment.ID{7}, Kind: store.CaseDamaged, Subject: p.ID, Params: store.Params{"table": "payouts"}}
	d.Must(d.Writer.Do(d.T.Context(), write.OpenCase{Case: v}))
	return v
}

// A payout that waits for a decision of two people is not sent again because one person says
// that its row was repaired.
func TestRetryDamagedPayoutInReview(t *testing.T) {
	for name, parked := range map[string]func(d *desk) (payment.Payout, store.Case){
		"not found": (*desk).unknownPayout,
		"another amount was paid": func(d *desk) (payment.Payout, store.Case) {
			d.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
				report := b.Pay(r, processor.TransferPaid)
				report.Amount--
				return processor.TransferAnswer{Outcome: processor.Done, Report: report}
			}
			p := d.Payout("r", 10_00)
			d.Send()
			d.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
			return p, d.only(store.CaseContradiction)
		},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				d := newDesk(g)
				p, about := parked(d)
				damaged := d.damagedCase(p)
				d.WantDecision(d.operation(request(&damaged, store.ResolvedRetry)), `
					cases closed_at:-→now resolution:→retry
					+decisions resolved retry operator:ana`, "")
				calls := len(d.Bank.Calls)
				d.LookUp()
				d.sendAgain()
				if len(d.Bank.Calls) != calls {
					t.Error("it is sent again")
				}
				d.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
				if got := d.only(about.Kind); got.ID != about.ID {
					t.Errorf("case %s, want %s", got.ID, about.ID)
				}
			})
		})
	}
}

// A payout without an answer, whose row was damaged later, is looked up again once the row is
// repaired: the case about its outcome does not park it.
func TestRetryDamagedPayoutWithoutAnswer(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.Bank.AnswerTransfer = coretest.Unknown
		p := d.Payout("r", 10_00)
		d.Send()
		d.Must(d.Writer.Do(d.T.Context(), write.OpenCase{Case: store.Case{
			Merchant: p.Merchant, ID: payment.ID{8}, Kind: store.CasePayoutUnknown, Subject: p.ID, Params: store.ReasonNoAnswer.With(nil),
		}}))
		damaged := d.damagedCase(p)
		d.Execute("UPDATE payouts SET step = '" + string(payment.StepReview) + "', next_at = 0") // as a worker parks it
		d.resolve(request(&damaged, store.ResolvedRetry))
		d.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		d.only(store.CasePayoutUnknown)
	})
}

// A payout that waits for approval, and whose expiry was stopped because its row was damaged, expires
// once the row is repaired.
func TestRetryDamagedPayoutThatWaitsForApproval(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		above, approvals := money.Cents(5_00), int64(1)
		g.SetLimits(limits.Limits{Payout: limits.Payout{ApprovalAbove: &above, Approvals: &approvals}})
		p := d.Payout("r", 10_00)
		d.WantPayout(p, payment.PayoutPending, payment.StepApproval)
		d.Execute("UPDATE payouts SET next_at = 0") // as its expiry does if it cannot be decrypted
		damaged := d.damagedCase(p)
		d.resolve(request(&damaged, store.ResolvedRetry))
		d.WantPayout(p, payment.PayoutPending, payment.StepApproval)
		g.Jump(72 * time.Hour)
		g.Run(g.Payouts.Expire)
		d.WantPayout(p, payment.PayoutCanceled, payment.StepDone)
		d.WantCases()
		d.WantProven()
	})
}
