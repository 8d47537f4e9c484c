package jobs_test

import (
	"testing"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/store"
)

// claimed is the one delivery that is due, in the process's hands.
func (g *gateway) claimed() store.Delivery {
	g.t.Helper()
	list, err := g.flow.ClaimDeliveries(g.t.Context(), g.merchant.ID, 10)
	g.must(err)
	if len(list) != 1 {
		g.t.Fatalf("%d deliveries are due", len(list))
	}
	return list[0]
}

func exhausted(d store.Delivery) *flow.EndedDelivery {
	d.State = store.DeliveryExhausted
	return &flow.EndedDelivery{End: store.End{Delivery: d, Attempt: store.Attempt{Delivery: d.ID, Status: 500}}}
}

// The end of a delivery counts for who has it in hand, and once.
func TestEndOfADeliveryCountsOnce(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.order(g.merchant, "o", "https://shop.example/hook")
		_, err := g.flow.CancelPayin(t.Context(), p.Merchant, p.ID)
		g.must(err)
		lost := g.claimed()
		heir := g.second()
		_, err = heir.flow.Release(t.Context(), g.nodeOf())
		g.must(err)
		g.must(g.flow.EndDelivery(t.Context(), exhausted(lost)))
		g.wantExceptions() // another process has it now

		again := heir.claimed()
		heir.must(heir.flow.EndDelivery(t.Context(), exhausted(again)))
		heir.must(heir.flow.EndDelivery(t.Context(), exhausted(again))) // recorded twice: nobody knew whether the first was committed
		g.wantExceptions(store.ExceptionWebhook)

		heir.must(heir.flow.Redeliver(t.Context(), heir.merchant.ID, again.Event.ID))
		anew := exhausted(heir.claimed())
		heir.must(heir.flow.EndDelivery(t.Context(), exhausted(again))) // once more, while the next attempt is on its way
		anew.Delivery.State, anew.Attempt.Status = store.DeliveryDone, 200
		heir.must(heir.flow.EndDelivery(t.Context(), anew))
		heir.wantExceptions()
	})
}
