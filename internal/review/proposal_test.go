package review_test

import (
	"errors"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

// silent does not answer look-ups.
func silent(*coretest.Bank, string) processor.TransferReport {
	return processor.TransferReport{Cause: errors.New("timeout")}
}

// What the first of two people checked says nothing about a send that follows, nor about a later
// report of the processor: the money would be released while it leaves.
func TestProposalIsAboutTheSendsThatWereChecked(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for name, follows := range map[string]func(d *desk, p *payment.Payout){
			"a send": func(d *desk, p *payment.Payout) {
				d.Bank.AnswerTransfer, d.Bank.AnswerQuery = accepts, nil
				d.Jump(max(0, d.ReadPayout(*p).NextAt.Sub(d.Clock.Now())))
				d.LookUp()
				d.Send()
				d.WantSends(*p, store.SendNotFound, store.SendAccepted)
			},
			"a report": func(d *desk, p *payment.Payout) {
				d.arrive(p, processor.TransferProcessing)
				d.Notify("n "+p.ID.String(), p.ExternalID)
				d.Bank.AnswerQuery = nil
				d.Apply()
				d.WantSends(*p, store.SendAccepted)
			},
		} {
			t.Run(name, func(t *testing.T) {
				d := newDesk(g.For(t))
				d.Bank.AnswerTransfer, d.Bank.AnswerQuery = coretest.Unknown, silent
				p := d.Payout("r", 10_00)
				d.Send()
				for d.ReadPayout(p).Lookups < 9 {
					d.Jump(max(0, d.ReadPayout(p).NextAt.Sub(d.Clock.Now())))
					d.LookUp()
				}
				v := d.only(store.CasePayoutUnknown)
				release := request(&v, store.ResolvedRelease)
				d.resolve(release)
				d.wantOutdated(&v, false)
				follows(d, &p)
				d.WantPayout(p, payment.PayoutProcessing, payment.StepAccepted)
				d.Jump(time.Minute)
				d.wantOutdated(&v, true)
				release.Actor = "operator:bia"
				d.refused(release, problem.InvalidState)
				d.WantBalances(coretest.Opening-10_00, 10_00)

				d.resolve(withdraw(&v))
				d.agree(&v, store.ResolvedRelease) // the processor's support says that it will not pay it
				d.WantPayout(p, payment.PayoutFailed, payment.StepDone)
				d.WantCases()
				d.WantProven()
			})
		}
	})
}

// wantOutdated compares whether the proposal that waits can only be withdrawn.
func (d *desk) wantOutdated(v *store.Case, want bool) {
	d.T.Helper()
	decisions, err := d.Store.Decisions(d.T.Context(), v.Merchant, v.ID)
	d.Must(err)
	if got, err := d.reviews.Outdated(d.T.Context(), v, review.Proposal(decisions)); err != nil || got != want {
		d.T.Errorf("outdated: %v, %v, want %v", got, err, want)
	}
}

// accepts takes a transfer, and does not say yet whether it is paid.
func accepts(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
	return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferProcessing)}
}

// A refund that was sent again after a proposal is not given up by it.
func TestProposalIsAboutTheSendsOfARefund(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		r := g.Refund(g.PaidPayin("p", 100_00), "r", 100_00)
		g.Bank.Refunds.AnswerQuery = silent
		g.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Cause: errors.New("timeout")}
		}
		g.Send()
		for list := []store.Case{}; len(list) == 0; {
			g.Jump(time.Hour)
			g.LookUp()
			var err error
			list, err = g.Store.OpenCases(g.T.Context(), 10)
			g.Must(err)
		}
		v := d.only(store.CaseRefundUnknown)
		release := request(&v, store.ResolvedRelease)
		d.resolve(release)
		d.wantOutdated(&v, false)
		g.Bank.Refunds.AnswerQuery = nil
		g.Bank.Refunds.Answer = func(b *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.GiveBack(r, processor.TransferProcessing)}
		}
		g.Jump(24 * time.Hour)
		g.LookUp()
		g.Send()
		if calls := len(g.Bank.Refunds.Calls); calls != 2 {
			g.T.Fatalf("%d calls", calls)
		}
		g.Jump(time.Hour)
		d.wantOutdated(&v, true)
		release.Actor = "operator:bia"
		d.refused(release, problem.InvalidState)
		g.WantRefund(r, payment.RefundProcessing, 0, payment.PayinPaid, 0)
		d.resolve(withdraw(&v))
		d.agree(&v, store.ResolvedRelease)
		g.WantRefund(r, payment.RefundFailed, 0, payment.PayinPaid, 0)
		g.WantProven()
	})
}

// A payout that two people have sent again, and that provably did not leave, is sent again without
// another decision.
func TestResendThatDidNotLeave(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p, v := d.unknownPayout()
		d.agree(&v, store.ResolvedResend)
		d.Bank.AnswerTransfer = func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.NotSent, Cause: errors.New("connection refused")}
		}
		d.sendAgain()
		d.WantSends(p, store.SendNotFound, store.SendNotSent)
		d.Jump(time.Minute)
		d.Bank.AnswerTransfer = nil
		d.sendAgain()
		d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		d.WantSends(p, store.SendNotFound, store.SendNotSent, store.SendPaid)
		d.WantCases()
		d.WantProven()
	})
}
