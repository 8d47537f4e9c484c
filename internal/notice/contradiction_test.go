package notice_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// report delivers a notice about a payout, and sets the state that the processor
// reports to a query.
func report(g *coretest.Gateway, p payment.Payout, id string, state processor.TransferState, returned money.Cents) {
	g.T.Helper()
	g.Bank.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport {
		return processor.TransferReport{EndToEndID: "E1", Lookup: processor.Found, State: state, Amount: p.Amount, Returned: returned, Evidence: "statement"}
	}
	g.Notify(id, p.ExternalID)
	g.Apply()
}

func refuseTransfers(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer {
	return processor.TransferAnswer{Outcome: processor.Refused, Evidence: "AC03"}
}

// The reason that a notice names reaches the merchant.
func TestReasonOfAFailedTransfer(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Unknown}
		}
		p := g.Payout("r", 10_00)
		g.Send()
		g.Bank.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport {
			return processor.TransferReport{Lookup: processor.Found, State: processor.TransferFailed, Amount: p.Amount, Failure: &payment.Failure{Code: "not_settled", Message: "It failed."}}
		}
		g.Notify("n", "failed "+p.ExternalID+" conta encerrada")
		g.Apply()
		g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
		got, err := g.Store.Payout(t.Context(), p.Merchant, p.ID)
		g.Must(err)
		if want := (payment.Failure{Code: "not_settled", Message: "It failed: conta encerrada"}); got.Failure == nil || *got.Failure != want {
			t.Errorf("the failure is %+v", got.Failure)
		}
	})
}

// A report that contradicts the processor's earlier proof moves no money: it gets a
// case.
func TestContradictionsMoveNothing(t *testing.T) {
	for name, run := range map[string]func(g *coretest.Gateway){
		"failed after paid": func(g *coretest.Gateway) {
			p := completed(g, "r", 10_00)
			g.Payout("other", 20_00) // whose hold could be released in its place
			report(g, p, "n", processor.TransferFailed, 0)
			g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
			g.WantBalances(coretest.Opening-30_00, 20_00)
		},
		"paid after failed": func(g *coretest.Gateway) {
			g.Bank.AnswerTransfer = refuseTransfers
			p := g.Payout("r", 10_00)
			g.Send()
			g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
			report(g, p, "n", processor.TransferPaid, 0)
			g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
			g.WantBalances(coretest.Opening, 0)
		},
		"another amount": func(g *coretest.Gateway) {
			g.Bank.AnswerTransfer = func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer {
				return processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{State: processor.TransferPaid, EndToEndID: "E1", Amount: 10_01}}
			}
			p := g.Payout("r", 10_00)
			g.Send()
			g.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
			g.WantBalances(coretest.Opening-10_00, 10_00)
		},
		"more was returned than was sent": func(g *coretest.Gateway) {
			p := completed(g, "r", 10_00)
			report(g, p, "n", processor.TransferPaid, 10_01)
			g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
			g.WantBalances(coretest.Opening-10_00, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				run(g)
				g.WantCases(store.CaseContradiction)
				g.WantProven()
			})
		})
	}
}

// A failure that is reported again, by the answer and by notices, releases the money
// once; what is held for another payout stays held.
func TestFailureIsReleasedOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = refuseTransfers
		p := g.Payout("r", 10_00)
		g.Send()
		g.Payout("other", 20_00)
		report(g, p, "1", processor.TransferFailed, 0)
		report(g, p, "2", processor.TransferFailed, 0)
		g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
		g.WantBalances(coretest.Opening-20_00, 20_00)
		g.WantEvents(payment.EventPayoutProcessing, payment.EventPayoutFailed)
		g.WantCases()
	})
}

// A payout that was sent once is never sent with other contents, even if its row was
// changed: the processor may have its id with the first ones.
func TestChangedPayoutIsNotSentAgain(t *testing.T) {
	for sql, kind := range map[string]store.CaseKind{
		"UPDATE payouts SET amount = 999 WHERE amount = 1000": store.CaseDamaged,
		"UPDATE payout_sends SET body_hash = merchant_id":     store.CasePayoutUnknown,
	} {
		t.Run(string(kind), func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.Bank.AnswerTransfer = func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer {
					return processor.TransferAnswer{Outcome: processor.NotSent, Cause: coretest.ErrDown}
				}
				p := g.Payout("r", 10_00)
				g.Send()
				g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
				g.Execute(sql)
				g.Bank.AnswerTransfer = nil
				g.Pass(10 * time.Second)
				g.Send()
				g.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
				g.WantBank(1, 0)
				g.WantCases(kind)
			})
		})
	}
}

// Money that a payout's receiver returned becomes available once, however often and in
// however many parts it is reported.
func TestReturnedMoneyIsBookedOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := completed(g, "r", 10_00)
		report(g, p, "1", processor.TransferPaid, 3_00)
		report(g, p, "2", processor.TransferPaid, 3_00)
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBalances(coretest.Opening-7_00, 0)
		g.Pass(time.Second)
		report(g, p, "3", processor.TransferPaid, 10_00)
		report(g, p, "4", processor.TransferPaid, 10_00)
		g.WantPayout(p, payment.PayoutReturned, payment.StepDone)
		g.WantBalances(coretest.Opening, 0)
		g.WantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted, payment.EventPayoutReturned, payment.EventPayoutReturned)
	})
}

// The processor's proof that a payout was paid counts, even if the gateway's database
// does not show it as sent: then it is not sent.
func TestNoticeOfAQueuedPayout(t *testing.T) {
	for _, row := range []struct {
		state  processor.TransferState
		status payment.PayoutStatus
		step   payment.PayoutStep
	}{
		{processor.TransferPaid, payment.PayoutCompleted, payment.StepDone},
		{processor.TransferProcessing, payment.PayoutProcessing, payment.StepAccepted},
	} {
		t.Run(string(row.state), func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				p := g.Payout("r", 10_00)
				g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: 10_00}, row.state)
				g.Notify("n", p.ExternalID)
				g.Apply()
				g.WantPayout(p, row.status, row.step)
				g.Send()
				g.WantBank(0, 1)
				g.WantCases()
			})
		})
	}
}
