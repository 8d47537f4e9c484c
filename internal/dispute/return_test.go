package dispute_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// A processor may show only the return of a dispute, as without a permission, and later the dispute
// that led to it: the money is taken once.
func TestDisputeThatWasFollowedByItsReturn(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		unknown := g.Store.ExternalID(&g.Merchant, payment.OperationPayin, "a copy lacks it")
		g.Bank.Receive(p.ExternalID, "A", 100_00)
		g.Bank.Receive(unknown, "stray", 100_00)
		g.ReadFeeds()
		for round, d := range []processor.Dispute{
			{ID: "return", Amount: 30_00, State: processor.DisputeLost},
			{ID: "infraction", ReturnID: "return", Amount: 90_00, Lost: 30_00, State: processor.DisputeLost},
		} {
			for id, of := range map[string]string{p.ExternalID: "A", unknown: "stray"} {
				d := d
				if d.PaymentID = of; of == "stray" { // ids are unique at the processor
					d.ID += "2"
					if d.ReturnID != "" {
						d.ReturnID += "2"
					}
				}
				g.Bank.Charges[id].Disputes = nil
				g.Bank.Disputes(id, d)
			}
			for range 30 {
				g.ReadFeeds()
				g.Apply()
				g.Jump(30 * time.Minute)
			}
			g.WantBalances(coretest.Opening+70_00, 0)
			if got := g.ReadPayin(p); got.DisputedAmount != 30_00 || got.Status != payment.PayinChargeback {
				t.Errorf("round %d: %s, disputed %d", round, got.Status, got.DisputedAmount)
			}
			if b, err := g.Store.Balances(t.Context(), payment.ID{}); err != nil || b[ledger.Unidentified] != 70_00 {
				t.Errorf("round %d: the platform has %v, %v", round, b, err)
			}
			list, err := g.Store.OpenCases(t.Context(), 10)
			if err != nil || len(list) != 1 {
				t.Errorf("round %d: cases %+v, %v", round, list, err)
			}
			g.WantProven()
		}
	})
}
