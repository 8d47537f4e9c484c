package delivery_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/delivery"
	"github.com/porteira/porteira/internal/store"
)

// ended is the end of a claimed delivery's attempt, and the next state.
func ended(d store.Delivery, state store.DeliveryState, status int) *delivery.End {
	return &delivery.End{
		Delivery: d, State: state,
		Attempt: store.Attempt{Merchant: d.Merchant, Delivery: d.ID, Number: d.Attempts, CreatedAt: d.UpdatedAt, Status: status},
	}
}

// claimOne claims the one delivery that is due.
func claimOne(g *coretest.Gateway) store.Delivery {
	g.T.Helper()
	list := claimDue(g, g.Merchant, 10)
	if len(list) != 1 {
		g.T.Fatalf("%d deliveries are due", len(list))
	}
	return list[0]
}

// The end of an attempt counts only for the process that has claimed its delivery,
// once.
func TestEndOfADeliveryCountsOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		record := func(g *coretest.Gateway, v *delivery.End) { t.Helper(); g.Must(g.Writer.Do(t.Context(), v)) }
		addEvents(g, g.Merchant, 1, hook)
		lost := claimOne(g)
		other := g.Second()
		other.DeclareDead(g)
		record(g, ended(lost, store.DeliveryExhausted, 500))
		g.WantCases() // the other process decides now

		again := ended(claimOne(other), store.DeliveryExhausted, 500)
		record(other, again)
		record(other, again) // recorded twice: it was unknown whether the first was committed
		g.WantCases(store.CaseWebhook)

		other.Must(other.Deliveries.Redeliver(t.Context(), other.Merchant.ID, eventOf(g, g.Merchant, 1).ID))
		next := claimOne(other)
		record(other, again) // once more, while the next attempt is under way
		record(other, ended(next, store.DeliveryDone, 200))
		other.WantCases()
	})
}
