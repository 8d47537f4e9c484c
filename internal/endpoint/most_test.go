package endpoint_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/wire"
)

// A merchant has at most ten ranges that are sent again, and at most twenty endpoints, also if it asks
// for many at once, of two nodes.
func TestMostAtOnce(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		from := g.Clock.Now()
		g.cancel("a", coretest.Hook)
		nodes := []*coretest.Gateway{g.Gateway, g.Second()}
		for _, v := range nodes {
			v.Writer.Start()
			t.Cleanup(v.Writer.Stop)
		}
		var all sync.WaitGroup
		var ranges atomic.Int64
		for i := range 40 {
			v := nodes[i%2]
			all.Go(func() {
				_, err := v.Deliveries.RedeliverRange(t.Context(), actor.System, g.Merchant.ID, &wire.RedeliverRequest{From: from, To: from.Add(time.Hour)})
				if err == nil {
					ranges.Add(1)
				} else if !problem.Is(err, problem.RateLimited) {
					t.Error(err)
				}
			})
			all.Go(func() {
				_, _, err := v.Endpoints.Create(t.Context(), actor.System, g.Merchant.ID, &wire.EndpointRequest{URL: wire.Some(fmt.Sprint(url, i)), Events: wire.Some([]string{"payin.paid"})})
				if err != nil && !problem.Is(err, problem.LimitExceeded) {
					t.Error(err)
				}
			})
		}
		g.Until(all.Wait)
		list, err := g.Store.EndpointsOf(t.Context(), g.Merchant.ID)
		g.Must(err)
		if len(list) != 20 || ranges.Load() != 10 {
			t.Errorf("%d endpoints and %d ranges", len(list), ranges.Load())
		}
	})
}
