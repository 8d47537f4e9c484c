package transition_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
)

// An event has the order as it is after the transition, in the version that the event
// names.
func TestEventShowsTheOrderAsItIsNow(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		in, out := g.Payin(g.Merchant, "in", ""), g.Payout("out", 10_00)
		canceledIn, err := g.Payins.Cancel(t.Context(), in.Merchant, in.ID)
		g.Must(err)
		canceledOut, err := g.Payouts.Cancel(t.Context(), out.Merchant, out.ID)
		g.Must(err)
		events, err := g.Store.Events(t.Context(), g.Merchant.ID, 0, 10)
		g.Must(err)
		if len(events) != 2 {
			t.Fatalf("%d events, want 2", len(events))
		}
		for i, want := range []struct {
			subject payment.ID
			version int64
		}{{in.ID, canceledIn.Version}, {out.ID, canceledOut.Version}} {
			var body struct {
				Version int64 `json:"version"`
				Data    struct {
					ID     string `json:"id"`
					Status string `json:"status"`
				} `json:"data"`
			}
			g.Must(json.Unmarshal(events[i].Body, &body))
			if body.Data.ID != want.subject.String() || body.Data.Status != "CANCELED" || body.Version != want.version {
				t.Errorf("event %s; want order %s, CANCELED, version %d", events[i].Body, want.subject, want.version)
			}
		}
	})
}
