package delivery_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/wire"
)

// An endpoint that is down gets one event at a time, the oldest first: if two were in flight when
// it answers again, the later one could be accepted before the earlier ones.
func TestDownGetsOneAtATime(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		const url = "https://shop.example/events"
		_, _, err := g.Endpoints.Create(t.Context(), actor.System, g.Merchant.ID, &wire.EndpointRequest{URL: wire.Some(url), Events: wire.Some([]string{string(payment.EventPayinCanceled)})})
		g.Must(err)
		g.Receivers.Always(http.StatusServiceUnavailable)
		for i := range 8 {
			g.Canceled(g.Merchant, fmt.Sprint("missed ", i), "")
			g.Run(g.Endpoints.Dispatch)
			step(g)
			g.Jump(2 * time.Minute)
		}
		g.Concurrent() // another process, which does not know yet that the endpoint fails
		_, err = g.Endpoints.Follow(t.Context())
		g.Must(err)
		arrived, answer := make(chan string, 8), make(chan struct{})
		g.Receivers.Answer(func(r *http.Request, _ int) (*http.Response, error) {
			arrived <- r.Header.Get("Webhook-Id")
			<-answer
			return coretest.Respond(http.StatusOK)
		})
		for range 24 { // until all are due
			g.Jump(time.Hour)
		}
		step(g)
		<-arrived
		if n := g.Deliveries.Sending(); n != 1 {
			t.Errorf("%d events in flight to an endpoint that is down", n)
		}
		close(answer)
		g.WaitIdle()
	})
}
