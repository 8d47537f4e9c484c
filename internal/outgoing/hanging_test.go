package outgoing_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// slow is a bank that answers everything but requests of refunds, and defenses of disputes.
type slow struct {
	*coretest.Bank

	hangs *coretest.Hanging
}

func (b slow) Refund(ctx context.Context, _ processor.RefundRequest, guard func() error) processor.TransferAnswer {
	return b.hangs.Transfer(ctx, processor.TransferRequest{}, guard)
}

func (b slow) Defend(ctx context.Context, _ processor.DefenseRequest, guard func() error) processor.TransferAnswer {
	return b.hangs.Transfer(ctx, processor.TransferRequest{}, guard)
}

func (b slow) QueryDefense(ctx context.Context, _ processor.DefenseRequest) processor.TransferReport {
	return b.hangs.QueryTransfer(ctx, "")
}

// withSlow returns a gateway with concurrent calls and one more account, which is slow.
func withSlow(g *coretest.Gateway) slow {
	g.T.Helper()
	b := slow{coretest.NewBank(), coretest.NewHanging(g.T)}
	b.Profiled.Defense = b.Profiled.Refund
	g.Bank.Profiled.Defense = b.Profiled.Refund
	g.Processor("slow", b)
	g.Concurrent()
	g.T.Cleanup(b.hangs.Release) // before the calls are awaited
	return b
}

// paidAt is a pay-in of 100.00 at the slow account that is paid, with a dispute or without one.
func (b slow) paidAt(g *coretest.Gateway, reference string, disputes ...processor.Dispute) payment.Payin {
	g.T.Helper()
	m := g.Merchant
	m.Routes = payment.AllRoutes("slow")
	p, _, err := g.Payins.Create(g.T.Context(), m, coretest.PayinRequest(reference, ""))
	g.Must(err)
	g.Must(g.Payins.Receive(g.T.Context(), "slow", p.ExternalID, processor.ChargeReport{
		Lookup: processor.Found, Payments: []processor.Payment{{ID: reference, Amount: 100_00, PaidAt: g.Clock.Now()}}, Disputes: disputes,
	}, nil))
	return p
}

// Refunds that hang at one account delay none at another.
func TestHangingRefundsDelayNoOther(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		b := withSlow(g)
		of := b.paidAt(g, "slow")
		for i := range 40 {
			g.Refund(of, fmt.Sprint("slow ", i), 1_00)
		}
		step(g, g.Outgoing.Send)
		reach(g, "all slots of the hanging account are taken", func() bool { return b.hangs.Waiting() == 32 })
		p := g.Payin(g.Merchant, "healthy", "")
		g.Must(g.Payins.Receive(t.Context(), coretest.BankName, p.ExternalID, paidInFull(g), nil))
		r := g.Refund(p, "healthy", 100_00)
		step(g, g.Outgoing.Send)
		reach(g, "the other refund is completed", func() bool {
			got, err := g.Store.Refund(t.Context(), r.Merchant, r.ID)
			g.Must(err)
			return got.Status == payment.RefundCompleted
		})
		if b.hangs.Waiting() != 32 {
			t.Errorf("%d calls hang", b.hangs.Waiting())
		}
	})
}

func paidInFull(g *coretest.Gateway) processor.ChargeReport {
	return processor.ChargeReport{Lookup: processor.Found, Payments: []processor.Payment{{ID: "healthy", Amount: 100_00, PaidAt: g.Clock.Now()}}}
}

// Defenses that hang at one account delay none at another.
func TestHangingDefensesDelayNoOther(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		healthy := &defender{Bank: g.Bank, answer: processor.TransferAnswer{Outcome: processor.Done}}
		g.Processor(coretest.BankName, healthy)
		b := withSlow(g)
		for i := range 6 {
			id := fmt.Sprint("S", i)
			b.paidAt(g, id, processor.Dispute{ID: id, PaymentID: id, Amount: 100_00, State: processor.DisputeOpen, RespondBy: g.Clock.Now().AddDate(0, 0, 10)})
			d, err := g.Store.DisputeByExternalID(t.Context(), g.Merchant.ID, "slow", id)
			g.Must(err)
			g.Must(defend(g, d, "text"))
		}
		step(g, g.Outgoing.SendAnswers)
		reach(g, "all slots of the hanging account are taken", func() bool { return b.hangs.Waiting() == 4 })
		p := g.Payin(g.Merchant, "healthy", "")
		report := paidInFull(g)
		report.Disputes = []processor.Dispute{{ID: "D", PaymentID: "healthy", Amount: 100_00, State: processor.DisputeOpen, RespondBy: g.Clock.Now().AddDate(0, 0, 10)}}
		g.Must(g.Payins.Receive(t.Context(), coretest.BankName, p.ExternalID, report, nil))
		g.Must(defend(g, stored(g), "text"))
		step(g, g.Outgoing.SendAnswers)
		reach(g, "the other defense is taken", func() bool {
			answers, err := g.Store.DisputeAnswers(t.Context(), g.Merchant.ID, stored(g).ID)
			g.Must(err)
			return answers[0].Step == payment.StepDone
		})
		if b.hangs.Waiting() != 4 {
			t.Errorf("%d calls hang", b.hangs.Waiting())
		}
	})
}

// A defense that cannot be opened has a case, and delays no other.
func TestDamagedDefenseStopsNobody(t *testing.T) {
	for _, column := range []string{"content", "summary"} {
		t.Run(column, func(t *testing.T) {
			onDefender(t, processor.Done, func(t *testing.T, g *coretest.Gateway, bank *defender) {
				for i := range 2 {
					id := fmt.Sprint("D", i)
					p := g.PaidPayin(id, 100_00)
					g.Bank.Disputes(p.ExternalID, processor.Dispute{ID: id, Amount: 100_00, State: processor.DisputeOpen, RespondBy: g.Clock.Now().AddDate(0, 0, 10)})
					g.Notify("disputed "+id, "charge "+p.ExternalID)
					g.Apply()
					d, err := g.Store.DisputeByExternalID(t.Context(), g.Merchant.ID, coretest.BankName, id)
					g.Must(err)
					g.Must(defend(g, d, "text"))
					if i == 0 {
						g.Damage("dispute_answers", column, "number = 1")
					}
				}
				g.Run(g.Outgoing.SendAnswers)
				g.WantCases(store.CaseDisputeAnswer)
				if len(bank.calls) != 1 || bank.calls[0].DisputeID != "D1" {
					t.Errorf("calls %+v", bank.calls)
				}
			})
		})
	}
}
