package review_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A transfer that appears while two people decide about its payout completes it, from the list of
// transfers or, if they have it sent again, from the look-up before that.
func TestTransferAppearsBeforeItsPayoutIsSentAgain(t *testing.T) {
	for name, row := range map[string]struct {
		resend, list bool
		repeat       processor.Repeat
	}{
		"listed in review":            {false, true, processor.RepeatUnsafe},
		"listed, and idempotent":      {false, true, processor.RepeatReturnsFirst},
		"listed before it is sent":    {true, true, processor.RepeatUnsafe},
		"looked up before it is sent": {true, false, processor.RepeatUnsafe},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				d := newDesk(g)
				d.ReadFeeds()
				p, v := d.unknownPayout()
				calls := len(d.Bank.Calls)
				if row.resend {
					d.agree(&v, store.ResolvedResend)
				}
				d.Bank.AnswerQuery, d.Bank.AnswerTransfer = nil, nil
				d.Bank.Profiled.Transfer.Repeat = row.repeat
				d.arrive(&p, processor.TransferProcessing)
				if row.list {
					d.list()
					d.WantBalances(coretest.Opening-10_00, 10_00)
				}
				d.Bank.Transfers[p.ExternalID].State = processor.TransferPaid
				if row.list {
					d.list()
				} else {
					d.sendAgain()
				}
				got := d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				if got.ReturnedAmount != 0 || len(d.Bank.Calls) != calls {
					d.T.Errorf("%d calls, the payout is %+v", len(d.Bank.Calls)-calls, got)
				}
				d.sendAgain()
				d.list()
				if len(d.Bank.Calls) != calls {
					d.T.Errorf("%d calls", len(d.Bank.Calls)-calls)
				}
				d.WantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted)
				d.WantBalances(coretest.Opening-10_00, 0)
				d.WantCases()
				d.WantProven()
			})
		})
	}
}

// A payout that was sent once was paid twice if the processor names two transfers, as after a copy
// of the gateway's machine had sent it too. Another id of the same transfer changes nothing.
func TestPaidTwiceBySendsOfTwoGateways(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p, _ := d.unknownPayout()
		paid := func(transfer, endToEndID string) {
			d.report(p, processor.TransferReport{State: processor.TransferPaid, ProcessorID: transfer, EndToEndID: endToEndID, Amount: p.Amount})
		}
		paid("first", endToEndID)
		d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		another := endToEndID[:31] + "x"
		paid("first", another)
		d.WantCases()
		paid("second", another)
		paid("second", another)
		if v := d.only(store.CasePayoutFound); v.Params.Reason() != store.ReasonPaidTwice || v.Amount != p.Amount {
			t.Errorf("the case is %+v", v)
		}
		d.WantBalances(coretest.Opening-20_00, 0)
		d.WantProven()
	})
}

// A transfer of a payout that two people released, after a report of another amount, is listed as
// paid: that stops the merchant's payouts.
func TestPaidAfterAnotherAmountWasReleased(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.ReadFeeds()
		p, _ := d.unknownPayout()
		d.report(p, processor.TransferReport{State: processor.TransferPaid, EndToEndID: endToEndID, Amount: p.Amount + 1})
		list, err := d.Store.OpenCases(t.Context(), 10)
		d.Must(err)
		for i := range list {
			if list[i].Kind == store.CaseContradiction {
				d.agree(&list[i], store.ResolvedRelease)
			}
		}
		d.WantPayout(p, payment.PayoutFailed, payment.StepDone)
		d.arrive(&p, processor.TransferPaid)
		d.list()
		if v := d.only(store.CaseContradiction); v.Params.Reason() != store.ReasonPaidAfterRelease || !v.StopsPayouts {
			t.Errorf("the case is %+v", v)
		}
		d.WantProven()
	})
}

// A listed transfer of another amount, of a payout that waits for a person, has one case, however
// often it is listed.
func TestAnotherAmountIsListedInReview(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.ReadFeeds()
		p, _ := d.unknownPayout()
		d.Bank.Mu.Lock()
		d.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: p.Amount + 1}, processor.TransferPaid)
		d.Bank.Mu.Unlock()
		d.list()
		d.WantCases(store.CasePayoutUnknown, store.CaseContradiction)
		d.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
		d.WantBalances(coretest.Opening-10_00, 10_00)
		known, unbooked, err := d.Store.HasTransfer(t.Context(), p.Merchant, p.ExternalID, true, "", p.Amount+1)
		if d.Must(err); !known || unbooked {
			t.Errorf("known %t, to be recorded again %t", known, unbooked)
		}
		d.WantProven()
	})
}
