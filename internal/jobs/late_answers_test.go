package jobs_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// begin records the intent to send the one payout that is due.
func (g *gateway) begin() flow.Sending {
	g.t.Helper()
	due, err := g.store.PayoutsDue(g.t.Context(), g.clock.Now(), store.ToSend)
	g.must(err)
	if len(due) != 1 {
		g.t.Fatalf("due: %v", due)
	}
	sends, _, err := g.flow.BeginSends(g.t.Context(), due[0], 10)
	g.must(err)
	if len(sends) != 1 {
		g.t.Fatalf("began %d sends", len(sends))
	}
	return sends[0]
}

// The end of a send may be recorded twice, where nobody knows whether the first
// time was committed. The second time must not end a later send of the same
// process, which is on its way.
func TestEndOfASendLeavesTheNextOneAlone(t *testing.T) {
	for _, answer := range []processor.TransferAnswer{
		{Outcome: processor.NotSent, Cause: errors.New("connection refused")},
		{Outcome: processor.Unknown, Cause: errors.New("reset")},
		{Outcome: processor.Refused, Evidence: "AC03"},
	} {
		t.Run(answer.Outcome.String(), func(t *testing.T) {
			each(t, func(t *testing.T, g *gateway) {
				p := g.payout("r", 10_00)
				first := g.begin()
				g.must(g.flow.EndSend(t.Context(), first, processor.TransferAnswer{Outcome: processor.NotSent}))
				g.pass(2 * time.Second)
				second := g.begin()
				g.must(g.flow.EndSend(t.Context(), first, answer))
				g.want(p, payment.PayoutProcessing, payment.StepIntent)
				g.wantSends(p, store.SendNotSent, store.SendIntent)
				g.wantBalances(opening-10_00, 10_00)
				g.must(g.flow.EndSend(t.Context(), second, processor.TransferAnswer{
					Outcome: processor.Done, Report: g.bank.pay(second.Request, processor.TransferPaid),
				}))
				g.want(p, payment.PayoutCompleted, payment.StepDone)
				g.wantSends(p, store.SendNotSent, store.SendPaid)
			})
		})
	}
}

// A process that was stopped may bring a refusal after others had taken its
// payout over, found nothing at the processor and sent it again. The refusal is
// of the first request: the money stays held for the second.
func TestLateRefusalDoesNotReleaseALaterSend(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.payout("r", 10_00)
		first := g.begin()
		heir := g.second()
		heir.pass(4 * time.Second) // g is stopped, and given up
		heir.pass(2 * time.Minute)
		heir.resolve() // not found, after the quiet period
		second := heir.begin()
		g.must(g.flow.EndSend(t.Context(), first, processor.TransferAnswer{Outcome: processor.Refused, Evidence: "AC03"}))
		heir.want(p, payment.PayoutProcessing, payment.StepIntent)
		heir.wantBalances(opening-10_00, 10_00)
		heir.must(heir.flow.EndSend(t.Context(), second, processor.TransferAnswer{
			Outcome: processor.Done, Report: g.bank.pay(second.Request, processor.TransferPaid),
		}))
		heir.want(p, payment.PayoutCompleted, payment.StepDone)
		heir.wantExceptions()
	})
}

// Where it was not sent again, a late refusal is proof, and the money goes back.
func TestLateRefusalIsProof(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.payout("r", 10_00)
		first := g.begin()
		heir := g.second()
		heir.pass(4 * time.Second)
		heir.want(p, payment.PayoutProcessing, payment.StepUnknown)
		g.must(g.flow.EndSend(t.Context(), first, processor.TransferAnswer{Outcome: processor.Refused, Evidence: "AC03"}))
		heir.want(p, payment.PayoutFailed, payment.StepDone)
		heir.wantSends(p, store.SendRefused)
		heir.wantBalances(opening, 0)
	})
}

// proven fails the test unless the merchant's books are proven.
func (g *gateway) proven() {
	g.t.Helper()
	proofs, err := g.store.Verify(g.t.Context(), g.merchant.ID)
	g.must(err)
	for _, p := range proofs {
		if len(p.Faults) > 0 {
			g.t.Errorf("%s: %+v", p.Check, p.Faults)
		}
	}
}

// A request that waited in a queue of the processor's longer than its quiet
// period is paid after all: the books then show the transfer that paid.
func TestPaidAfterNotFound(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.profile.IdempotentByOurID = false
		g.bank.transfer = unknown
		p := g.payout("r", 10_00)
		g.submit()
		for range 20 {
			g.pass(10 * time.Second)
			g.resolve()
		}
		g.want(p, payment.PayoutProcessing, payment.StepPerson)
		g.bank.pay(g.bank.calls[0], processor.TransferPaid)
		g.notify("n", p.ExternalID)
		g.apply()
		g.want(p, payment.PayoutCompleted, payment.StepDone)
		g.wantSends(p, store.SendPaid)
		g.proven()
	})
}

// A person is told of a payout whose processor stops to answer, also where it
// had answered for a while that the transfer is under way.
func TestSilenceAfterAnswersIsToldToAPerson(t *testing.T) {
	for _, answers := range []int{0, 7, 11} {
		t.Run(strconv.Itoa(answers), func(t *testing.T) {
			each(t, func(t *testing.T, g *gateway) {
				g.bank.transfer = func(b *bank, r processor.TransferRequest) processor.TransferAnswer {
					return processor.TransferAnswer{Outcome: processor.Done, Report: b.pay(r, processor.TransferProcessing)}
				}
				p := g.payout("r", 10_00)
				g.submit()
				for range answers {
					g.leap(30 * time.Hour)
					g.resolve()
				}
				g.bank.down = true
				for range 12 {
					g.leap(30 * time.Hour)
					g.resolve()
				}
				g.want(p, payment.PayoutProcessing, payment.StepAccepted)
				g.wantExceptions(store.ExceptionPayoutUnknown)
			})
		})
	}
}
