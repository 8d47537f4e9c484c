package delivery_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
)

// A delivery is claimed in the commit that creates it, and so needs no claim.
func TestFreshDeliveryNeedsNoClaim(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := g.Second()
		paid(g, g.Merchant, "r", hook)
		other.Deliver()
		g.WantRequests(0)
		if list := attempts(g, g.Merchant, 1); len(list) != 1 || list[0].Number != 1 || !list[0].EndedAt.IsZero() {
			t.Errorf("recorded: %+v", list)
		}
		g.Deliver()
		other.Deliver()
		g.WantRequests(1)
		if list := attempts(g, g.Merchant, 1); len(list) != 1 || list[0].Number != 1 || list[0].Status != 200 {
			t.Errorf("recorded: %+v", list)
		}
		wantTaken(g, 0)
	})
}

// At most so many of a merchant are claimed at once; the others are due.
func TestFreshDeliveriesAreBounded(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		const most, n = 128, 300
		other := g.Second()
		for i := range n {
			paid(g, g.Merchant, fmt.Sprint(i), hook)
		}
		if got := g.Deliveries.Claimed(g.Merchant.ID); got != most {
			t.Errorf("%d are claimed", got)
		}
		if got := len(claimDue(other, g.Merchant, n)); got != n-most {
			t.Errorf("%d are due", got)
		}
		g.Deliver()
		g.WantRequests(most)
		wantTaken(g, 0)
	})
}

// A new delivery does not overtake those that are due.
func TestFreshDeliveryWaitsBehindOlderOnes(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := g.Second()
		g.Concurrent()
		blocked := g.Receivers.Block(t, "https://alive.example/")
		addEvents(g, g.Merchant, 10, "https://alive.example/hook")
		g.Clock.Advance(time.Millisecond)
		addEvents(g, g.Merchant, 290, hook)
		step(g) // claims 128 of them, soon 118
		waitFor(g, func() bool { return g.Deliveries.Claimed(g.Merchant.ID) <= 118 })
		neighbour := addMerchant(g, "Vizinha", "")
		paid(g, g.Merchant, "r", hook)
		paid(g, neighbour, "r", hook)
		if n := len(claimDue(other, g.Merchant, 300)); n != 172+1 {
			t.Errorf("%d are due behind the claimed ones", n)
		}
		if n := len(claimDue(other, neighbour, 1)); n != 0 {
			t.Error("a merchant waits behind another's backlog")
		}
		blocked.Release()
		g.WaitIdle()
		step(g)
		g.WaitIdle()
		g.WantRequests(128 + 1)
		wantTaken(g, 0)
	})
}

// wantNoWait runs the worker's step once, and fails if it waits for an attempt to end.
func wantNoWait(g *coretest.Gateway) {
	g.T.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := g.Deliveries.Send(g.T.Context())
		done <- err
	}()
	select {
	case err := <-done:
		g.Must(err)
	case <-time.After(time.Minute):
		g.T.Fatal("the step waits for a slot")
	}
}

// If all slots are taken by blocked attempts, the step does not wait for one, and new
// deliveries wait with the due ones.
func TestFreshDeliveriesDoNotBlockTheStep(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other, neighbour := g.Second(), addMerchant(g, "Vizinha", "")
		g.Concurrent()
		blocked := g.Receivers.Block(t)
		for i := range 9 { // each takes half of the free slots, the last one the last slot
			m, n := g.Merchant, max(1, 128>>i)
			if i > 0 {
				m = addMerchant(g, fmt.Sprint("Loja ", i), "")
			}
			for j := 0; j < n; j += 8 { // receivers with eight slots each
				addEvents(g, m, min(8, n-j), fmt.Sprintf("https://%d.%d.example/hook", j, i))
			}
		}
		wantNoWait(g)
		for range 256 {
			<-blocked.Arrived
		}
		paid(g, neighbour, "first", hook) // while there seemed to be a slot
		wantNoWait(g)
		paid(g, neighbour, "second", hook)
		if n := len(claimDue(other, neighbour, 10)); n != 1 {
			t.Errorf("%d deliveries are due", n)
		}
		blocked.Release()
		g.WaitIdle()
		step(g)
		g.WaitIdle()
		g.WantRequests(256 + 1)
		wantTaken(g, 0)
		paid(g, neighbour, "third", hook) // and there are slots again
		if n := len(claimDue(other, neighbour, 10)); n != 0 {
			t.Errorf("%d deliveries are due", n)
		}
		step(g)
		g.WaitIdle()
		g.WantRequests(256 + 2)
	})
}

// If a process is declared dead, others send the deliveries that it had claimed,
// including those that it has not started.
func TestDeadNodeStartsNothingFresh(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		other := g.Second()
		paid(g, g.Merchant, "r", hook)
		other.DeclareDead(g)
		other.Deliver()
		g.WantRequests(1)
		g.Heartbeat() // under another id
		g.Deliver()
		g.WantRequests(1)
		wantTaken(g, 0)
	})
}

// A process that was declared dead, and has not noticed, claims nothing new.
func TestDeadNodeClaimsNoFreshDelivery(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		other := g.Second()
		p := g.Payin(g.Merchant, "r", hook)
		other.DeclareDead(g)
		receive(g, g.Merchant, p)
		wantTaken(g, 0)
		other.Deliver()
		g.WantRequests(1)
	})
}

// At a clean end fresh deliveries are returned without an attempt.
func TestLeavingReturnsFreshDeliveries(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := g.Second()
		paid(g, g.Merchant, "r", hook)
		g.Must(g.Leave(t.Context(), true))
		if list := attempts(g, g.Merchant, 1); len(list) != 0 {
			t.Errorf("recorded: %+v", list)
		}
		wantTaken(g, 0)
		other.Deliver()
		g.WantRequests(1)
		if list := attempts(g, g.Merchant, 1); len(list) != 1 || list[0].Number != 1 {
			t.Errorf("recorded: %+v", list)
		}
	})
}

// An unusable secret delays only its merchant.
func TestFreshDeliveryWithoutASecret(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		broken := addMerchant(g, "Quebrada", "whsec_not base64")
		paid(g, broken, "r", hook)
		paid(g, g.Merchant, "r", hook)
		g.Deliver()
		g.WantRequests(1)
		wantTaken(g, 0)
		if list := attempts(g, broken, 1); len(list) != 0 {
			t.Errorf("recorded: %+v", list)
		}
	})
}

// A fresh delivery whose secret could not be read is sent when it can be.
func TestFreshDeliveryWaitsForItsSecret(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		paid(g, g.Merchant, "r", hook)
		g.Deliveries.Store = g.ClosedStore()
		if _, err := g.Deliveries.Send(t.Context()); err == nil {
			t.Error("a closed database was read")
		}
		g.Deliveries.Store = g.Store
		g.WantRequests(0)
		g.Pass(6 * time.Second)
		g.Deliver()
		g.WantRequests(1)
		wantTaken(g, 0)
	})
}

// A commit that creates no delivery occupies nothing afterwards, and does not wake the
// worker that sends deliveries; one that does wakes it once.
func TestCommitWakesTheWorkerForADeliveryOnly(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		wakes := 0
		g.Restart(func(o *app.CoreOptions) {
			o.Wakers = app.NewWakers(func(worker string) {
				if worker == app.WorkerDeliver {
					wakes++
				}
			})
		})
		paid(g, g.Merchant, "no URL", "")
		if wakes != 0 {
			t.Errorf("woken %d times for nothing", wakes)
		}
		wantTaken(g, 0)
		paid(g, g.Merchant, "a URL", hook)
		if wakes != 1 {
			t.Errorf("woken %d times for a delivery", wakes)
		}
		wantTaken(g, 2) // it is claimed, and fresh
	})
}
