package outgoing_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// The answer to a send may be recorded twice, if the first commit has an unknown outcome. The
// second record must not end a later send of the same process, which is under way.
func TestAnswerEndsItsOwnSendOnly(t *testing.T) {
	for _, answer := range []processor.TransferAnswer{notSent, {Outcome: processor.Unknown, Cause: errRefused}, refused} {
		t.Run(answer.Outcome.String(), func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				p := g.Payout("r", 10_00)
				first := claim(g)
				record(g, first, notSent)
				g.Pass(2 * time.Second)
				second := claim(g)
				record(g, first, answer)
				g.WantPayout(p, payment.PayoutProcessing, payment.StepIntent)
				g.WantSends(p, store.SendNotSent, store.SendIntent)
				g.WantBalances(coretest.Opening-10_00, 10_00)
				record(g, second, paid(g, second.Request))
				g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				g.WantSends(p, store.SendNotSent, store.SendPaid)
			})
		})
	}
}

// A suspended process may record a refusal after another process took its payout over, found
// nothing at the processor and sent it again. The refusal is about the first request: the money
// stays held for the second.
func TestLateRefusalDoesNotReleaseALaterSend(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		first := claim(g)
		other := g.Second()
		other.Pass(4 * time.Second) // g is stopped, and declared dead
		other.Pass(2 * time.Minute)
		other.LookUp() // not found, after the quiet period
		second := claim(other)
		record(g, first, refused)
		other.WantPayout(p, payment.PayoutProcessing, payment.StepIntent)
		other.WantBalances(coretest.Opening-10_00, 10_00)
		record(other, second, paid(g, second.Request))
		other.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		other.WantCases()
	})
}

// If it was not sent again, a late refusal is proof, and the money is released.
func TestLateRefusalIsProof(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		first := claim(g)
		other := g.Second()
		other.Pass(4 * time.Second)
		other.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		record(g, first, refused)
		other.WantPayout(p, payment.PayoutFailed, payment.StepDone)
		other.WantSends(p, store.SendRefused)
		other.WantBalances(coretest.Opening, 0)
	})
}

// A case is opened for a payout whose processor stops answering, even if it had
// answered for a while that the transfer is being processed.
func TestCaseAfterLookUpsWithoutAnAnswer(t *testing.T) {
	for _, answers := range []int{0, 6, 7, 11} {
		t.Run(strconv.Itoa(answers), func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
					return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferProcessing)}
				}
				p := g.Payout("r", 10_00)
				g.Send()
				for range answers {
					g.Jump(30 * time.Hour)
					g.LookUp()
				}
				if answers < 7 { // accepted, and undecided for hours
					g.WantCases()
				} else {
					g.WantCases(store.CasePayoutUnknown)
				}
				g.Bank.Down = true
				for range 12 {
					g.Jump(30 * time.Hour)
					g.LookUp()
				}
				g.WantPayout(p, payment.PayoutProcessing, payment.StepAccepted)
				g.WantCases(store.CasePayoutUnknown)
			})
		})
	}
}
