package outgoing_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// A refund, or an answer to a dispute, is not sent without a committed claim: its intent is not
// durable, and the next run claims it again while the first call is in flight.
func TestNothingIsSentWithoutACommittedClaim(t *testing.T) {
	failing := false
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		bank := &defender{Bank: g.Bank, answer: processor.TransferAnswer{Outcome: processor.Done, Evidence: "answer"}}
		bank.Profiled.Defense = processor.Effect{Repeat: processor.RepeatReturnsFirst, QuietPeriod: time.Minute, Timeout: 5 * time.Second}
		g.Processor(coretest.BankName, bank)
		g.Must(defend(g, disputed(g), "delivered"))
		refund := g.Refund(g.PaidPayin("other", 100_00), "r", 100_00)
		failing = true
		_, err := g.Outgoing.Send(t.Context())
		_, answerErr := g.Outgoing.SendAnswers(t.Context())
		failing = false
		if err == nil || answerErr == nil {
			t.Fatal("a claim was committed")
		}
		wantCalls(g, 0, 0)
		if len(bank.calls) > 0 {
			t.Errorf("the answer was sent %d times", len(bank.calls))
		}
		g.Heartbeat()
		g.Send()
		g.Run(g.Outgoing.SendAnswers)
		wantPart(g, refund, payment.StepDone, payment.PartPaid)
		wantAnswer(g, bank, payment.StepDone, "taken", 1)
		g.WantProven()
	}, func(e *env.Env) {
		e.OnFailpoint = func(f env.Failpoint) error {
			if failing && f == env.BeforeCommit {
				panic("the commit fails")
			}
			return nil
		}
	})
}
