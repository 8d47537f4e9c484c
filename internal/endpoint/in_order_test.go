package endpoint_test

import (
	"testing"

	"github.com/porteira/porteira/internal/delivery"
	"github.com/porteira/porteira/internal/store"
)

// Events that waited because another process had an earlier one in flight are not overtaken by later
// events that did not.
func TestCatchUpPostponedEventsAreNotOvertaken(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		g.recovered()
		tried := len(g.received(url))
		g.Run(g.Endpoints.Dispatch)
		second := hooks{g.Second()}
		first, err := second.Deliveries.Claim(t.Context(), g.Merchant.ID, 1)
		g.Must(err)
		rest, err := g.Deliveries.Claim(t.Context(), g.Merchant.ID, 10)
		g.Must(err)
		if len(first) != 1 || len(rest) != 0 {
			t.Fatalf("the first process claims %d, the second one %d", len(first), len(rest))
		}
		g.Must(second.Writer.Do(t.Context(), &delivery.End{
			Delivery: first[0], Attempt: store.Attempt{Merchant: g.Merchant.ID, Delivery: first[0].ID, Number: first[0].Attempts, Status: 200}, State: store.DeliveryDone,
		}))
		g.work()
		g.wantInOrder(url, tried, 38)
	})
}
