package payout_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
)

// answer sets the outcome of the bank's transfers.
func answer(g *coretest.Gateway, outcome processor.Outcome) {
	g.Bank.AnswerTransfer = func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer {
		return processor.TransferAnswer{Outcome: outcome}
	}
}

func TestCancelDecisions(t *testing.T) {
	const canceled = `
		payouts next_at:now→- status:PENDING→CANCELED step:queued→done version:1→2
		+postings payout_released held -1000
		+postings payout_released available 1000
		+events payout.canceled`
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, row := range []struct {
			name    string
			given   func(g *coretest.Gateway, p payment.Payout)
			changes string
			refused problem.Kind
		}{
			{"queued", func(*coretest.Gateway, payment.Payout) {}, canceled, ""},
			{"canceled already", func(g *coretest.Gateway, p payment.Payout) {
				_, err := g.Payouts.Cancel(g.T.Context(), p.Merchant, p.ID)
				g.Must(err)
			}, "", ""},
			{"being sent", func(g *coretest.Gateway, p payment.Payout) {
				g.Bank.OnSend = func() { g.WantRefusal(g.Payouts.NewCancel(p.Merchant, p.ID), problem.InvalidState) }
				g.Send()
			}, "", problem.InvalidState},
			{"not sent, queued again", func(g *coretest.Gateway, p payment.Payout) {
				answer(g, processor.NotSent)
				g.Send()
				g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
			}, "", problem.InvalidState},
			{"unknown", func(g *coretest.Gateway, p payment.Payout) {
				answer(g, processor.Unknown)
				g.Send()
				g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
			}, "", problem.InvalidState},
			{"completed", func(g *coretest.Gateway, p payment.Payout) { g.Send() }, "", problem.InvalidState},
			{"failed", func(g *coretest.Gateway, p payment.Payout) {
				answer(g, processor.Refused)
				g.Send()
				g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
			}, "", problem.InvalidState},
			{"returned", func(g *coretest.Gateway, p payment.Payout) {
				g.Send()
				g.Bank.Return(p.ExternalID, p.Amount)
				g.ReadFeeds()
				g.WantPayout(p, payment.PayoutReturned, payment.StepDone)
			}, "", problem.InvalidState},
		} {
			t.Run(row.name, func(t *testing.T) {
				g := g.For(t)
				g.Bank.AnswerTransfer, g.Bank.OnSend = nil, nil
				p := g.Payout("r", 10_00)
				row.given(g, p)
				op := g.Payouts.NewCancel(p.Merchant, p.ID)
				if row.refused != "" {
					g.WantRefusal(op, row.refused)
				} else {
					g.WantDecision(op, row.changes, "")
				}
				g.WantProven()
			})
		}
		g.WantRefusal(g.Payouts.NewCancel(g.Merchant.ID, payment.ID{1}), problem.NotFound)
		p := g.Payout("r", 10_00)
		g.WantRefusal(g.Payouts.NewCancel(payment.ID{}, p.ID), problem.NotFound)
	})
}

// A payout that a restored database shows as unsent may have been paid: until it
// has been looked up, canceling it would release the money without proof.
func TestCancelAfterARestoreNeedsProof(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("sent in the lost past", 10_00)
		g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: 10_00}, processor.TransferPaid)
		g.Execute("UPDATE installation SET epoch = epoch - 3")
		g.Heartbeat()
		g.WantRefusal(g.Payouts.NewCancel(p.Merchant, p.ID), problem.InvalidState)
		if got, err := g.Payouts.Cancel(t.Context(), p.Merchant, p.ID); !problem.Is(err, problem.InvalidState) || got.Status != payment.PayoutPending {
			t.Errorf("cancel: %s, %v, want invalid_state", got.Status, err)
		}
		g.WantBalances(coretest.Opening-10_00, 10_00)
		g.Send()
		g.LookUp()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantCases()
	})
}
