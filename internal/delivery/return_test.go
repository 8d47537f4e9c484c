package delivery_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/delivery"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
)

// creates makes n deliveries of the merchant due.
func creates(g *coretest.Gateway, n int) {
	g.T.Helper()
	g.Node.Lease.Drop() // they are not claimed when they are created
	for i := range n {
		p := g.Payin(g.Merchant, fmt.Sprint("returned ", i), "https://shop.example/hook")
		_, err := g.Payins.Cancel(g.T.Context(), p.Merchant, p.ID)
		g.Must(err)
	}
}

func claims(g *coretest.Gateway, n int) []store.Delivery {
	g.T.Helper()
	list, err := g.Deliveries.Claim(g.T.Context(), g.Merchant.ID, n)
	g.Must(err)
	if len(list) != n {
		g.T.Fatalf("claimed %d deliveries, want %d", len(list), n)
	}
	return list
}

// Deliveries that have no slot at their receiver are returned in one commit, also while
// the writer stops. Nothing is claimed any more then.
func TestReturnedDeliveries(t *testing.T) {
	var commits atomic.Int64
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		creates(g, 3)
		list := claims(g, 3)
		for i := range list {
			list[i].NextAt = g.Clock.Now().Add(time.Duration(i) * time.Minute)
		}
		g.Writer.Start()
		g.Writer.Stop()
		before := commits.Load()
		v := g.Changes(func() { g.Must(g.Writer.DoWithoutCancel(t.Context(), delivery.NewReturned(list))) })
		want := coretest.Lines(`
			deliveries attempts:1→0 claimed_by:this→- next_at:-→now
			deliveries attempts:1→0 claimed_by:this→- next_at:-→in 1m0s
			deliveries attempts:1→0 claimed_by:this→- next_at:-→in 2m0s`)
		if v != want || commits.Load() != before+1 {
			t.Errorf("%d commits changed\n%s\nwant\n%s", commits.Load()-before, v, want)
		}
		if list, err := g.Deliveries.Claim(t.Context(), g.Merchant.ID, 10); err == nil {
			t.Errorf("%d deliveries were claimed when all was over", len(list))
		}
		g.WantDecision(delivery.NewReturned(list), "", "") // they are nobody's now
	}, func(e *env.Env) {
		e.OnFailpoint = func(f env.Failpoint) error {
			if f == env.AfterCommit {
				commits.Add(1)
			}
			return nil
		}
	})
}

// A return whose outcome was unknown is repeated. Meanwhile the process may have claimed the delivery
// again.
func TestRepeatedReturn(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		creates(g, 1)
		list := claims(g, 1)
		list[0].NextAt = g.Clock.Now().Add(time.Second)
		g.Must(g.Writer.Do(t.Context(), delivery.NewReturned(list)))
		g.Clock.Advance(time.Second)
		claims(g, 1)
		if v := g.Changes(func() { g.Must(g.Writer.Do(t.Context(), delivery.NewReturned(list))) }); v != "" {
			t.Errorf("it changed\n%s", v)
		}
	})
}

// On a server fifty returned deliveries cost as many round trips as five.
func TestRoundTripsOfReturnedDeliveries(t *testing.T) {
	g, count := coretest.NewCounting(t)
	creates(g, 60)
	coretest.WantRoundTrips(t, "returned", 3, func(n int) int64 {
		list := claims(g, n)
		for i := range list {
			list[i].NextAt = g.Clock.Now()
		}
		return count(func() { g.Must(g.Writer.Do(t.Context(), delivery.NewReturned(list))) })
	})
}

// Deliveries of an endpoint that catches up, which pauses, are returned in their order, and none
// is due before the pause ends: it would wait again, behind the others.
func TestReturnedInOrder(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		creates(g, 3)
		list := claims(g, 3)
		for i := range list {
			list[i].InOrder = true
		}
		g.Deliveries.Reschedule(t.Context(), list, time.Minute)
		g.Jump(time.Minute - time.Microsecond)
		claims(g, 0)
		g.Jump(time.Second)
		for i, d := range claims(g, 3) {
			if d.ID != list[i].ID {
				t.Errorf("delivery %d is %s, want %s", i, d.ID, list[i].ID)
			}
		}
	})
}
