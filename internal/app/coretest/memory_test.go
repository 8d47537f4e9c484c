package coretest_test

import (
	"os"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/db/dbtest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/write"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// Operations change the same columns of the same rows in memory as on each engine.
func TestMemoryAgreesWithTheEngines(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		m := coretest.NewMemory(t, 0)
		m.Clock, m.Merchant, m.Node = g.Clock, g.Merchant, g.Node.ID()
		m.Rows.Balances = map[payment.ID]ledger.Balances{m.Merchant.ID: {ledger.Available: coretest.Opening}}
		both := func(op write.Operation, err error) {
			t.Helper()
			g.Must(err)
			inMemory, stored := m.Decide(op), g.Decide(op)
			if inMemory.Changes != stored.Changes || inMemory.Again != stored.Again || (inMemory.Refusal == nil) != (stored.Refusal == nil) {
				t.Errorf("%T: in memory\n%+v\nstored\n%+v", op, inMemory, stored)
			}
		}
		receive := func(externalID string, r processor.ChargeReport) {
			t.Helper()
			op, err := g.Payins.NewReceive(t.Context(), coretest.BankName, externalID, r, nil)
			both(op, err)
		}
		pay := func(id string, amount money.Cents) processor.ChargeReport {
			return processor.ChargeReport{Payments: []processor.Payment{{ID: id, EndToEndID: "E" + id, Amount: amount, PaidAt: g.Clock.Now()}}}
		}
		create := func(reference string) payment.Payin {
			t.Helper()
			op, err := g.Payins.NewCreateOp(g.Merchant, coretest.PayinRequest(reference, ""))
			both(op, err)
			return op.Payin
		}
		request := func(reference string, amount int64) {
			t.Helper()
			op, err := g.Payouts.NewRequestOp(g.Merchant, coretest.PayoutRequest(reference, amount))
			both(op, err)
		}
		p, other := create("order"), create("other")
		create("order")
		both(g.Payins.NewCancel(other.Merchant, other.ID), nil)
		receive(other.ExternalID, processor.ChargeReport{State: processor.ChargeFailed})
		receive(p.ExternalID, processor.ChargeReport{State: processor.ChargeOpen, Attempt: 1, Failure: &payment.Failure{Code: "x", Message: "y"}})
		receive(p.ExternalID, pay("A", 60_00))
		receive(p.ExternalID, pay("B", 60_00))
		receive(p.ExternalID, pay("A", 60_00))
		for _, state := range []processor.DisputeState{processor.DisputeOpen, processor.DisputeReversed} {
			receive(p.ExternalID, processor.ChargeReport{Disputes: []processor.Dispute{{ID: "D", Amount: 100_00, State: state}, {ID: "E", Amount: 1, State: state}}})
		}
		receive(m.ExternalID(payment.OperationPayin, "never requested"), pay("C", 1))
		both(g.Payins.NewCancel(p.Merchant, p.ID), nil)
		request("payout", 10_00)
		request("payout", 10_00)
		request("more", int64(2*coretest.Opening))
		b, err := g.Store.Balances(t.Context(), g.Merchant.ID)
		g.Must(err)
		for account, want := range b {
			if got := m.Balances()[account]; got != want && account != ledger.Clearing(coretest.BankName) {
				t.Errorf("%s is %d in memory, and %d stored", account, got, want)
			}
		}
	})
}
