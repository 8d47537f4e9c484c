package review_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

// Two people declare that a payout of unknown outcome was paid, that it was not paid, or
// that it is sent again.
func TestUnknownPayoutIsResolvedByTwoPersons(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		t.Run("paid", func(t *testing.T) {
			d := newDesk(g.For(t))
			p, v := d.unknownPayout()
			d.agree(&v, store.ResolvedPaid)
			got := d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
			if got.EndToEndID != endToEndID {
				t.Errorf("endToEndId %q", got.EndToEndID)
			}
			d.WantSends(p, store.SendPaid)
			d.WantBalances(coretest.Opening-10_00, 0)
			d.WantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted)
			d.WantCases()
			d.WantProven()
		})
		t.Run("release", func(t *testing.T) {
			d := newDesk(g.For(t))
			p, v := d.unknownPayout()
			d.agree(&v, store.ResolvedRelease)
			d.WantPayout(p, payment.PayoutFailed, payment.StepDone)
			d.WantSends(p, store.SendFailed)
			d.WantBalances(coretest.Opening, 0)
			d.WantEvents(payment.EventPayoutProcessing, payment.EventPayoutFailed)
			d.WantCases()
			d.WantProven()
		})
		t.Run("resend", func(t *testing.T) {
			d := newDesk(g.For(t))
			p, v := d.unknownPayout()
			calls := len(d.Bank.Calls)
			d.agree(&v, store.ResolvedResend)
			d.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
			d.WantCases()
			d.Bank.AnswerTransfer = nil
			d.sendAgain()
			d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
			d.WantSends(p, store.SendNotFound, store.SendPaid)
			if len(d.Bank.Calls) != calls+1 || d.Bank.Calls[calls].ExternalID != p.ExternalID {
				t.Errorf("calls %+v", d.Bank.Calls[calls:])
			}
			d.WantProven()
		})
	})
}

// A proposal is confirmed by another person, with the same resolution and inputs, or
// withdrawn; until then nothing changes.
func TestProposal(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p, v := d.unknownPayout()
		paid := request(&v, store.ResolvedPaid)
		d.refused(withdraw(&v), problem.InvalidState)
		d.WantDecision(d.operation(paid), "+decisions proposed paid operator:ana endToEndId:"+endToEndID+" sends:not_found", "")
		d.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
		d.refused(paid, problem.InvalidState) // the same person
		for _, by := range []actor.Actor{"operator:ANA", "operator: ana ", "operator:\uff41na", "operator:\u00a0ana", "operator:\u0430na"} {
			again := paid
			again.Actor = by
			d.refused(again, problem.InvalidState)
		}
		other := paid
		other.Actor, other.EndToEndID = "operator:bia", "E1234567820261120120000000000002"
		d.refused(other, problem.InvalidState)
		release := request(&v, store.ResolvedRelease)
		release.Actor = "operator:bia"
		d.refused(release, problem.InvalidState)
		d.WantDecision(d.operation(withdraw(&v)), "+decisions withdrawn paid operator:ana endToEndId:"+endToEndID+" sends:not_found", "")
		d.refused(withdraw(&v), problem.InvalidState)
		release.Actor = "operator:ana"
		d.resolve(release)
		release.Actor = "operator:bia"
		d.WantDecision(d.operation(release), `
			payouts failure:→{"code":"not_paid","message":"The processor did not pay it."} status:PROCESSING→FAILED step:manual_review→done version:2→3
			payout_sends evidence:not_found_after_quiet_period→statement of 20/11, line 7 outcome:not_found→failed
			cases closed_at:-→now resolution:→release
			+decisions confirmed release operator:bia sends:not_found
			limit_counters amount:1000→0 payouts:1→0
			+postings payout_released held -1000
			+postings payout_released available 1000
			+events payout.failed`, "")
		d.refused(release, problem.InvalidState) // it is closed
		d.WantProven()
	})
}

// A payout whose outcome is known, or that is being sent, cannot be declared.
func TestKnownPayoutIsNotDeclared(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p, v := d.unknownPayout()
		release := request(&v, store.ResolvedRelease)
		d.resolve(release)
		// The processor's proof comes between the two people.
		d.Bank.Mu.Lock()
		d.Bank.Transfers[p.ExternalID] = &coretest.Transfer{Request: d.Bank.Calls[0], State: processor.TransferPaid}
		d.Bank.Mu.Unlock()
		d.Notify("n", p.ExternalID)
		d.Apply()
		d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		d.WantCases()
		release.Actor = "operator:bia"
		d.refused(release, problem.InvalidState)
		d.WantProven()
	})
}

// A payout that was paid after its release costs the merchant its fee too, which stays with
// the platform if the money comes back, as of any payout. The platform pays itself none.
func TestPaidAfterReleaseHasItsFee(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.SetPrice(payment.PayoutPrice, payment.Terms{Fixed: 50})
		p, v := d.paidAfterRelease(60_00)
		d.WantBalances(coretest.Opening, 0)
		d.WantDecision(d.operation(request(&v, store.ResolvedPaid)), `
			payouts step:done→paid_late
			cases closed_at:-→now resolution:→paid
			+decisions resolved paid operator:ana
			+found_transfers 6000
			+postings payout_paid_late available -6050
			+postings payout_paid_late clearing:bank 6000
			+postings payout_paid_late fees 50`, "")
		d.WantBalances(coretest.Opening-60_50, 0)
		d.Bank.Return(p.ExternalID, 60_00)
		d.Pass(10 * time.Second)
		d.Notify("returned", p.ExternalID)
		d.Apply()
		d.wantBorne(coretest.Opening-50, 0, 0)

		other := newDesk(d.For(t))
		other.SetPrice(payment.PayoutPrice, payment.Terms{Fixed: 50})
		_, v = other.paidAfterRelease(60_00)
		other.agree(&v, store.ResolvedWriteOff)
		other.wantBorne(coretest.Opening, 0, -60_00)
		d.WantProven()
	})
}

// A payout that was paid after its release stops its merchant's payouts until the money
// is booked: from available, then as debt.
func TestPaidAfterReleaseStopsPayouts(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p, v := d.paidAfterRelease(60_00)
		other := d.For(t)
		d.WantBalances(coretest.Opening, 0)
		changes := d.Changes(func() {
			if _, _, err := d.Payouts.Request(t.Context(), d.Merchant, coretest.PayoutRequest("new", 1)); !problem.Is(err, problem.Unavailable) {
				t.Errorf("a new payout: %v", err)
			}
		})
		if changes != "" {
			t.Errorf("the refused request changed %s", changes)
		}
		if _, replayed, err := d.Payouts.Request(t.Context(), d.Merchant, coretest.PayoutRequest("r", 60_00)); err != nil || !replayed {
			t.Errorf("the same request again: %v", err)
		}
		other.Payout("of another merchant", 1)

		d.WantDecision(d.operation(request(&v, store.ResolvedPaid)), `
			payouts step:done→paid_late
			cases closed_at:-→now resolution:→paid
			+decisions resolved paid operator:ana
			+found_transfers 6000
			+postings payout_paid_late available -6000
			+postings payout_paid_late clearing:bank 6000`, "")
		d.WantBalances(coretest.Opening-60_00, 0)
		d.WantPayout(p, payment.PayoutFailed, payment.StepPaidLate)
		d.Notify("again", p.ExternalID) // the same report is known now
		d.Apply()
		d.WantCases()
		q := d.Payout("new", 1_00)
		d.Send()
		d.WantPayout(q, payment.PayoutCompleted, payment.StepDone)
		d.WantProven()
	})
}

// Payouts that were accepted before the contradiction are not sent while it is open.
func TestQueuedPayoutsWait(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p, v := d.paidAfterRelease(60_00)
		// It was accepted just before the case.
		d.Execute("UPDATE cases SET stops_payouts = 0")
		q := d.Payout("queued", 1_00)
		d.Execute("UPDATE cases SET stops_payouts = 1")
		d.Send()
		d.WantPayout(q, payment.PayoutPending, payment.StepQueued)
		sends, claimed, err := d.Outgoing.Claim(t.Context(), store.Due{Merchant: d.Merchant.ID, Processor: coretest.BankName}, 10)
		d.Must(err)
		if claimed > 0 || len(sends) > 0 {
			t.Errorf("claimed %d", claimed)
		}
		d.agree(&v, store.ResolvedWriteOff)
		d.WantBalances(coretest.Opening-1_00, 1_00)
		b, err := d.Store.Balances(t.Context(), d.Merchant.ID)
		d.Must(err)
		if b[ledger.WrittenOff] != -60_00 {
			t.Errorf("written off %d", b[ledger.WrittenOff])
		}
		d.Send()
		d.WantPayout(q, payment.PayoutCompleted, payment.StepDone)
		d.WantPayout(p, payment.PayoutFailed, payment.StepPaidLate)
		d.WantProven()
	})
}

// The shortfall becomes debt.
func TestPaidAfterReleaseBecomesDebt(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		_, v := d.paidAfterRelease(60_00)
		d.Execute("UPDATE cases SET stops_payouts = 0")
		d.Payout("spent", 990_00)
		d.Send()
		d.Execute("UPDATE cases SET stops_payouts = 1")
		d.resolve(request(&v, store.ResolvedPaid))
		b, err := d.Store.Balances(t.Context(), d.Merchant.ID)
		d.Must(err)
		if b[ledger.Available] != 0 || b[ledger.Owed] != -50_00 {
			t.Errorf("available %d, owed %d", b[ledger.Available], b[ledger.Owed])
		}
		d.WantProven()
	})
}

func withdraw(v *store.Case) review.Request {
	return review.Request{Case: v.ID, How: review.Withdraw, Actor: "operator:ana", Reason: "an error"}
}

// A payout that a backup shows as waiting may have been paid in the lost past: it is looked
// up first.
func TestWaitingPayoutOfABackupIsNotReleased(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.Bank.AnswerTransfer = func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Later}
		}
		p := d.Payout("r", 900_00)
		for range 8 {
			d.Send()
			d.Jump(time.Hour)
		}
		v := d.only(store.CasePayoutWaiting)
		d.Bank.AnswerTransfer = nil
		d.Bank.Mu.Lock()
		d.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: p.Amount}, processor.TransferPaid)
		d.Bank.Mu.Unlock()
		d.Execute("UPDATE installation SET epoch = epoch - 3")
		d.Heartbeat()
		d.refused(request(&v, store.ResolvedRelease), problem.InvalidState)
		d.Clear()
		d.Send()
		d.LookUp()
		d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		d.WantBalances(coretest.Opening-900_00, 0)
		d.WantProven()
	})
}
