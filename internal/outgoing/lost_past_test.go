package outgoing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// goesBack makes the database an older copy of itself under the running process, from before the
// claim of anything that was to be sent, as after a fail-over to a replica that lags.
func goesBack(g *coretest.Gateway) {
	g.T.Helper()
	const unclaimed = "claimed_by = (SELECT substr(id, 1, 0) FROM installation)" // an empty id, on both engines
	g.Execute(
		"DELETE FROM payout_sends",
		"UPDATE payouts SET step = 'queued', status = 'PENDING', version = 1, "+unclaimed+", sent_at = 0, next_at = created_at",
		"UPDATE refund_parts SET step = 'queued', "+unclaimed+", sends = 0, flags = 0, first_at = 0, until_at = 0, history = 0, next_at = created_at",
		"UPDATE dispute_answers SET step = 'queued', "+unclaimed+", sends = 0, sent_at = 0, first_sent_at = 0, next_at = created_at",
		"UPDATE installation SET epoch = epoch - 3",
	)
}

// A call that waits while the database goes back does not leave: the database lacks its claim, and
// counts no quiet period for it.
func TestClaimOfALostPastDoesNotLeave(t *testing.T) {
	for kind, request := range map[string]func(g *coretest.Gateway){
		"payout": func(g *coretest.Gateway) { g.Payout("r", 10_00) },
		"refund": func(g *coretest.Gateway) { g.Refund(g.PaidPayin("p", 100_00), "r", 60_00) },
		"answer": func(g *coretest.Gateway) { g.Must(defend(g, disputed(g), "text")) },
	} {
		t.Run(kind, func(t *testing.T) {
			var before func()
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				bank := &defender{Bank: g.Bank, answer: processor.TransferAnswer{Outcome: processor.Done}}
				bank.Profiled.Defense = bank.Profiled.Refund
				g.Processor(coretest.BankName, bank)
				request(g)
				g.Pass(2 * time.Second) // else it lacks no heartbeat
				before = func() {
					before = nil
					goesBack(g)
					g.Heartbeat()
				}
				_, err := g.Outgoing.Send(t.Context())
				g.Must(err)
				_, err = g.Outgoing.SendAnswers(t.Context())
				g.Must(err)
				if before != nil || len(g.Bank.Calls)+len(g.Bank.Refunds.Made)+len(bank.calls) > 0 {
					t.Errorf("it was claimed: %v; it has left", before == nil)
				}
			}, func(e *env.Env) {
				e.OnFailpoint = func(f env.Failpoint) error {
					if f == env.BeforeTransfer && before != nil {
						before()
					}
					return nil
				}
			})
		})
	}
}

// The answer to a send that the database has lost does not count for the next send, which has the
// same number. A report of the transfer counts.
func TestAnswerOfALostPast(t *testing.T) {
	for _, row := range []struct {
		answer processor.TransferAnswer
		status payment.PayoutStatus
		step   payment.PayoutStep
	}{
		{processor.TransferAnswer{Outcome: processor.Refused, Failure: &payment.Failure{Code: "refused"}}, payment.PayoutProcessing, payment.StepIntent},
		{processor.TransferAnswer{Outcome: processor.NotSent}, payment.PayoutProcessing, payment.StepIntent},
		{processor.TransferAnswer{Outcome: processor.Later}, payment.PayoutProcessing, payment.StepIntent},
		{processor.TransferAnswer{Outcome: processor.Known}, payment.PayoutProcessing, payment.StepIntent},
		{processor.TransferAnswer{}, payment.PayoutProcessing, payment.StepIntent},
		{done(processor.TransferPaid), payment.PayoutCompleted, payment.StepDone},
		{done(processor.TransferFailed), payment.PayoutFailed, payment.StepDone},
	} {
		t.Run(row.answer.Outcome.String()+" "+string(row.answer.Report.State), func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				p := g.Payout("r", int64(amount))
				lost := claim(g)
				g.Pass(2 * time.Second)
				goesBack(g)
				g.Heartbeat()
				g.ClearAccount()
				g.Jump(time.Minute)
				g.Send()
				g.LookUp()
				if again := claim(g); again.Number != lost.Number {
					t.Fatalf("the send has number %d, want %d", again.Number, lost.Number)
				}
				record(g, lost, row.answer)
				g.WantPayout(p, row.status, row.step)
			})
		})
	}
}

// The same for a part of a refund, and for an answer to a dispute.
func TestAnswerOfALostPastToOthers(t *testing.T) {
	var before func()
	hook := func(e *env.Env) {
		e.OnFailpoint = func(f env.Failpoint) error {
			if f == env.AfterTransfer && before != nil {
				do := before
				before = nil
				do()
			}
			return nil
		}
	}
	for kind, request := range map[string]func(g *coretest.Gateway){
		"refund": func(g *coretest.Gateway) { g.Refund(g.PaidPayin("p", 100_00), "r", 60_00) },
		"answer": func(g *coretest.Gateway) { g.Must(defend(g, disputed(g), "text")) },
	} {
		t.Run(kind, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				bank := &defender{Bank: g.Bank, answer: processor.TransferAnswer{Outcome: processor.Refused}}
				bank.Profiled.Defense = bank.Profiled.Refund
				g.Processor(coretest.BankName, bank)
				answers(g, processor.Refused)
				request(g)
				before = func() { // the answer is on its way; the same work is claimed again
					sent := g.Clock.Now().Add(time.Minute).UnixMicro()
					g.Execute(fmt.Sprintf("UPDATE refund_parts SET until_at = %d", sent), fmt.Sprintf("UPDATE dispute_answers SET sent_at = %d", sent))
				}
				_, err := g.Outgoing.Send(t.Context())
				g.Must(err)
				_, err = g.Outgoing.SendAnswers(t.Context())
				g.Must(err)
				if n := g.Count("refund_parts", "step = 'sending'") + g.Count("dispute_answers", "step = 'intent'"); n != 1 || before != nil {
					t.Errorf("%d in flight, want 1", n)
				}
			}, hook)
		})
	}
}
