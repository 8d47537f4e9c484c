package outgoing_test

import (
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

var (
	later = processor.TransferAnswer{Outcome: processor.Later, Evidence: "429"}
	known = processor.TransferAnswer{Outcome: processor.Known, Evidence: "409"}
)

// A payout that the processor does not take now keeps its hold, without harm to the
// breaker, and is sent again after the wait. It cannot be canceled: PROCESSING never
// goes back.
func TestLaterIsSentAgain(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		busy := later
		busy.Wait = 10 * time.Minute
		g.Bank.AnswerTransfer = always(busy)
		var list []payment.Payout
		for _, reference := range []string{"a", "b", "c", "d"} { // more than open the breaker
			list = append(list, g.Payout(reference, 10_00))
			g.Send()
		}
		for _, p := range list {
			g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
			g.WantSends(p, store.SendLater)
		}
		if _, err := g.Payouts.Cancel(t.Context(), g.Merchant.ID, list[3].ID); !problem.Is(err, problem.InvalidState) {
			t.Errorf("cancel: %v", err)
		}
		g.WantBalances(coretest.Opening-40_00, 40_00)

		g.Bank.AnswerTransfer = nil
		g.Jump(10*time.Minute - time.Second)
		g.Send()
		g.WantBank(4, 0)
		g.Pass(2 * time.Second)
		g.Send()
		for _, p := range list {
			g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
			g.WantSends(p, store.SendLater, store.SendPaid)
		}
		g.WantBank(8, 4)
		g.WantBalances(coretest.Opening-40_00, 0)
	})
}

// A payout that was sent without effect, and whose processor cannot be reached for an hour, has one
// case, which closes when the payout leaves.
func TestUnreachableForAnHourOpensACase(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		g.Bank.AnswerTransfer = always(notSent)
		for range 11 { // the breakers skip some
			g.Send()
			g.WantCases()
			g.Jump(5 * time.Minute)
		}
		for range 6 {
			g.Send()
			g.Jump(30 * time.Minute)
		}
		g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
		g.WantCases(store.CasePayoutWaiting)
		g.Bank.AnswerTransfer = nil
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantCases()
		g.WantBalances(coretest.Opening-10_00, 0)
		g.WantProven()
	})
}

// The hour begins with the first send in vain, not with one before that may have had an effect.
func TestUnreachableSinceALaterSend(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = coretest.Unknown
		p := g.Payout("r", 10_00)
		g.Send()
		g.Jump(2 * time.Hour)
		g.LookUp()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
		g.Bank.AnswerTransfer = always(notSent)
		g.Send()
		g.WantSends(p, store.SendNotFound, store.SendNotSent)
		g.WantCases()
		g.Jump(61 * time.Minute)
		g.Send()
		g.WantCases(store.CasePayoutWaiting)
		g.Bank.AnswerTransfer = nil
		g.Jump(10 * time.Minute)
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantCases()
	})
}

// The waits grow, and a case is opened once; it closes when the processor takes the
// payout.
func TestLaterForHoursOpensACase(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = always(later)
		p := g.Payout("r", 10_00)
		for i, wait := range []time.Duration{5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, 30 * time.Minute, 30 * time.Minute, 30 * time.Minute} {
			g.Send()
			g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
			got := g.ReadPayout(p).NextAt.Sub(g.Clock.Now())
			if got < wait*9/10 || got > wait*11/10 {
				t.Errorf("sent again after %v, want about %v", got, wait)
			}
			if i < 7 {
				g.WantCases()
			} else {
				g.WantCases(store.CasePayoutWaiting)
			}
			g.Jump(got)
		}
		g.Bank.AnswerTransfer = nil
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantCases()
	})
}

// A payout that a processor does not take until a person changes a setting has a case at once, and only
// one. It closes when the payout leaves.
func TestLaterForAPersonOpensACase(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		answer := later
		answer.Person = true
		g.Bank.AnswerTransfer = always(answer)
		p := g.Payout("r", 10_00)
		for range 12 {
			g.Send()
			g.WantCases(store.CasePayoutWaiting)
			g.WantReason(store.CasePayoutWaiting, store.ReasonPersonOnly)
			g.Jump(g.ReadPayout(p).NextAt.Sub(g.Clock.Now()))
		}
		g.Bank.AnswerTransfer = nil
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantCases()
	})
}

// The same at the second send: the case closes although no hour has passed.
func TestLaterForAPersonOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		answer := later
		answer.Person = true
		g.Bank.AnswerTransfer = always(answer)
		p := g.Payout("r", 10_00)
		g.Send()
		g.WantCases(store.CasePayoutWaiting)
		g.Bank.AnswerTransfer = nil
		g.Jump(g.ReadPayout(p).NextAt.Sub(g.Clock.Now()))
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantCases()
	})
}

// The eighth send that the processor does not take opens the case too: if the clock was ahead at
// the first one, its hour ends two weeks later.
func TestLaterAfterAClockRanAhead(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		defer g.Clock.SetOffset(0)
		g.Clock.SetOffset(14 * 24 * time.Hour)
		g.Heartbeat()
		p := g.Payout("r", 10_00)
		g.Bank.AnswerTransfer = always(later)
		g.Send()
		g.Clock.SetOffset(0)
		g.Heartbeat() // what was put off by the wrong clock is due
		for n := 1; n < 8; n++ {
			g.WantSends(p, slices.Repeat([]store.SendOutcome{store.SendLater}, n)...)
			g.WantCases()
			g.Jump(7 * time.Hour)
			g.Send()
		}
		g.WantCases(store.CasePayoutWaiting)
		g.Bank.AnswerTransfer = nil
		g.Jump(40 * time.Minute)
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantCases()
	})
}

// "Our id is used" is never a refusal: the order under the id is looked up at once.
func TestKnownIsLookedUp(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			b.Pay(r, processor.TransferPaid)
			return known
		}
		p := g.Payout("r", 10_00)
		g.Send()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		g.WantBalances(coretest.Opening-10_00, 10_00)
		g.LookUp() // at the same time
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantSends(p, store.SendPaid)
		g.WantBank(1, 1)
	})
}

// If the processor does not find a transfer that it says it has, a person decides.
func TestKnownButNotFound(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = always(known)
		p := g.Payout("r", 10_00)
		g.Send()
		for range 10 {
			g.LookUp()
			g.Pass(20 * time.Second)
		}
		g.Send()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
		g.WantReason(store.CasePayoutUnknown, store.ReasonIDInUse)
		g.WantBank(1, 0)
		g.WantBalances(coretest.Opening-10_00, 10_00)
	})
}

// Beyond the life of an id at its processor a payout is not repeated by rule, however it
// came to be due: another send might pay it twice.
func TestNoRepeatBeyondTheLifeOfTheID(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []processor.TransferAnswer
		sends   []store.SendOutcome
	}{
		{"not found", []processor.TransferAnswer{{}}, []store.SendOutcome{store.SendNotFound}},
		{"not found, then not sent", []processor.TransferAnswer{{}, notSent}, []store.SendOutcome{store.SendNotFound, store.SendNotSent}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				g.Bank.Profiled.Transfer.Life = 24 * time.Hour
				g.Bank.AnswerTransfer = func(b *coretest.Bank, _ processor.TransferRequest) processor.TransferAnswer {
					return tt.answers[len(b.Calls)-1]
				}
				p := g.Payout("r", 10_00)
				g.Send()
				if len(tt.answers) > 1 {
					g.Pass(2 * time.Minute)
					g.LookUp()
					g.Send()
				}
				g.Jump(25 * time.Hour)
				g.LookUp()
				g.Send()
				g.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
				g.WantSends(p, tt.sends...)
				g.WantReason(store.CasePayoutUnknown, store.ReasonTooOld)
				g.WantBank(len(tt.answers), 0)
			})
		})
	}
}

// At a processor that demands it, our id is looked up before the first send, even if a
// second send would not be safe.
func TestLookUpBeforeTheFirstSend(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Transfer.LookUpFirst = true
		g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe
		p, lost := g.Payout("r", 10_00), g.Payout("lost", 20_00)
		g.Bank.Pay(processor.TransferRequest{ExternalID: lost.ExternalID, Amount: lost.Amount}, processor.TransferPaid)
		g.Send()
		g.WantBank(0, 1)
		g.LookUp()
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantPayout(lost, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(1, 2)
		if slices.ContainsFunc(g.Bank.Calls, func(r processor.TransferRequest) bool { return r.ExternalID == lost.ExternalID }) {
			t.Error("a transfer that the processor has was sent again")
		}
	})
}

// A refund that a person has to confirm at the processor is not repeated. It has one case, at once,
// which closes when the refund ends.
func TestRefundThatAPersonConfirms(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		r := begun(g)
		g.Bank.Refunds.Answer = func(_ *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{
				Lookup: processor.Found, State: processor.TransferProcessing, Amount: r.Amount, Person: true,
			}}
		}
		g.Send()
		wantPart(g, r, payment.StepAccepted, payment.RefundPartOutcome(store.SendAccepted))
		g.WantCases(store.CaseRefundUnknown)
	})
}
