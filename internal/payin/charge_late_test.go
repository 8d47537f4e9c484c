package payin_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/store"
)

// The late answer of an earlier call about the charge of a paid order begins no work again. Found
// by a simulated seed.
func TestLateChargeOfAPaidOrder(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		op, err := g.Payins.NewCreateOp(g.Merchant, coretest.PayinRequest("order", ""))
		g.Must(err)
		g.Must(g.Writer.Do(t.Context(), op))
		p := op.Payin
		g.Execute("UPDATE charges SET claimed_by = (SELECT id FROM nodes ORDER BY id DESC LIMIT 1), next_at = 0, may_exist = 1") // its call is under way
		g.Bank.Receive(p.ExternalID, "payment", p.Amount)
		g.Notify("n", "charge "+p.ExternalID)
		g.Apply()
		g.WantPayin(p, payment.PayinPaid, p.Amount, 1)
		record := func(node payment.ID, answer processor.ChargeAnswer, want store.ChargeState) {
			t.Helper()
			g.Must(g.Writer.Do(t.Context(), g.Payins.NewRecordCharge(p, node, answer, false)))
			list, err := g.Store.Charges(t.Context(), p.Merchant, p.ID)
			g.Must(err)
			if len(list) != 1 || list[0].State != want {
				t.Errorf("the charge is %+v, want %s", list, want)
			}
		}
		record(g.Node.ID(), processor.ChargeAnswer{Outcome: processor.Unknown}, store.ChargeEnded)
		late := processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{PIX: processortest.PIX(processor.ChargeRequest{ExternalID: p.ExternalID, Amount: p.Amount})}}
		record(payment.ID{9}, late, store.ChargeEnded)
		g.WantPayin(p, payment.PayinPaid, p.Amount, 1)
		g.WantProven()
	})
}
