package endpoint_test

import (
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// An endpoint that is to read events again relied, for some of them, on another endpoint with its URL. If
// either gets another URL before that, each URL gets all events.
func TestURLChangesBeforeEventsAreReadAgain(t *testing.T) {
	all := []string{"payin.canceled a", "payin.created a"}
	set := func(g hooks, e store.Endpoint, r wire.EndpointRequest) {
		g.T.Helper()
		_, err := g.Endpoints.Change(g.T.Context(), actor.System, e.Merchant, e.ID, &r)
		g.Must(err)
	}
	for name, change := range map[string]func(g hooks, has, relies store.Endpoint) (at string){
		"the one that relies, disabled after the other": func(g hooks, has, relies store.Endpoint) string {
			g.enable(relies, false)
			g.enable(has, false)
			set(g, relies, wire.EndpointRequest{URL: wire.Some(elsewhere), Enabled: wire.Some(true)})
			return elsewhere
		},
		"the one that relies, disabled, and enabled later": func(g hooks, has, relies store.Endpoint) string {
			g.enable(relies, false)
			g.enable(has, false)
			g.move(relies, elsewhere)
			g.work()
			g.enable(relies, true)
			return elsewhere
		},
		"the other one, while this one is disabled": func(g hooks, has, relies store.Endpoint) string {
			g.enable(relies, false)
			g.move(has, elsewhere)
			g.work()
			g.enable(relies, true)
			return url
		},
		"the other one, before this one reads": func(g hooks, has, relies store.Endpoint) string {
			g.enable(relies, false)
			g.enable(relies, true)
			g.move(has, elsewhere)
			g.Run(g.Deliveries.Send)
			return url
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, g hooks) {
				has, relies := g.add(url, "payin.canceled"), g.add(url, "payin.*")
				g.Receivers.Always(500)
				g.cancel("a", "")
				g.work()
				tried := len(g.received(url))
				g.Receivers.Always(200)
				at := change(g, has, relies)
				g.work()
				g.Jump(time.Hour)
				g.work()
				got := g.received(at)
				if at == url {
					got = got[tried:]
				}
				if slices.Sort(got); !slices.Equal(got, all) {
					t.Errorf("%s got %q, want %q", at, got, all)
				}
				g.WantProven()
			})
		})
	}
}

// A failing endpoint relied on an order's own delivery to its URL, and the delivery was given up:
// the endpoint gets the event at its new URL.
func TestURLChangesAfterAnOrdersDeliveryWasGivenUp(t *testing.T) {
	each(t, func(_ *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		g.down(url)
		g.cancel("failing", "")
		g.work()
		g.cancel("own", url)
		g.fail(4*24, time.Hour)
		g.WantCases(store.CaseWebhook)
		g.move(e, elsewhere)
		g.work()
		g.wantReceived(elsewhere, "payin.canceled failing", "payin.canceled own")
	})
}
