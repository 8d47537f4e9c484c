package delivery_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/wire"
)

// An endpoint that has not accepted an event gets it when it is enabled again, and none of the later
// events that it has accepted, however old they are.
func TestAcceptedEventsAreNotSentAgainAfterTheirRemoval(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		keep(g, 24*time.Hour)
		e, _, err := g.Endpoints.Create(t.Context(), actor.System, g.Merchant.ID, &wire.EndpointRequest{
			URL: wire.Some("https://shop.example/events"), Events: wire.Some([]string{string(payment.EventPayinCanceled)}),
		})
		g.Must(err)
		g.Receivers.Answer(func(_ *http.Request, n int) (*http.Response, error) {
			if strings.Contains(g.Receivers.Requests()[n-1].Body, `"refused"`) {
				return coretest.Respond(500)
			}
			return coretest.Respond(200)
		})
		g.Canceled(g.Merchant, "refused", "")
		g.Canceled(g.Merchant, "accepted", "")
		g.Run(g.Endpoints.Dispatch)
		for range 6 {
			g.Deliver()
			g.Jump(10 * time.Hour)
			catchUp(g)
			remove(g)
		}
		for _, enabled := range []bool{false, true} {
			_, err := g.Endpoints.Change(t.Context(), actor.System, e.Merchant, e.ID, &wire.EndpointRequest{Enabled: wire.Some(enabled)})
			g.Must(err)
		}
		for range 4 {
			g.Run(g.Endpoints.Dispatch)
			g.Deliver()
			g.Jump(time.Minute)
		}
		n := 0
		for _, r := range g.Receivers.Requests() {
			if strings.Contains(r.Body, `"accepted"`) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("the accepted event was sent %d times", n)
		}
		g.WantProven()
	})
}
