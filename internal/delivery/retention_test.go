package delivery_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// retention is how long these tests keep deliveries.
const retention = 30 * 24 * time.Hour

// removalRest is longer than the worker rests between two passes.
const removalRest = 2 * time.Hour

// keep restarts the process so that it keeps deliveries for a time.
func keep(g *coretest.Gateway, d time.Duration) {
	g.T.Helper()
	g.Restart(func(o *app.CoreOptions) { o.Retention = d })
}

func remove(g *coretest.Gateway) { g.T.Helper(); g.Run(g.Deliveries.RemoveOld) }

// catchUp moves the limit of removal to the time that the clock allows; hourly passes
// reach it unless somebody advances the clock by weeks.
func catchUp(g *coretest.Gateway) {
	g.T.Helper()
	for range 3 * retention / (24 * time.Hour) {
		g.Must(g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
			_, err := tx.AllowRemoval(g.T.Context(), g.Clock.Now().Add(-g.Deliveries.Retention), g.Deliveries.Retention)
			return err
		}))
	}
}

// age lets deliveries become older than the retention, and removes them.
func age(g *coretest.Gateway) {
	g.T.Helper()
	g.Jump(retention + removalRest)
	catchUp(g)
	remove(g)
}

// wantAttempts compares how many attempts are recorded for the merchant's events, by
// number.
func wantAttempts(g *coretest.Gateway, want ...int) {
	g.T.Helper()
	for i, n := range want {
		if got := len(attempts(g, g.Merchant, int64(i+1))); got != n {
			g.T.Errorf("%d attempts of event %d are recorded, want %d", got, i+1, n)
		}
	}
}

// A delivery is removed when it is old enough; one that waits for its receiver or for
// manual review stays, and so do events, which are sent again on request.
func TestRemoveDeliveries(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		keep(g, retention)
		g.Canceled(g.Merchant, "delivered", hook)
		g.Deliver()
		g.Receivers.Always(500)
		g.Canceled(g.Merchant, "exhausted", hook)
		exhaust(g, 1)
		g.WantCases(store.CaseWebhook)
		g.Canceled(g.Merchant, "pending", hook)
		g.Jump(2 * time.Minute) // its receiver is unhealthy, and is not tried
		g.Deliver()

		g.Jump(removalRest)
		remove(g)
		wantAttempts(g, 1)
		age(g)
		wantAttempts(g, 0, 11, 1)
		g.WantCases(store.CaseWebhook)
		g.WantEvents(payment.EventPayinCanceled, payment.EventPayinCanceled, payment.EventPayinCanceled)
		g.WantProven()

		g.Receivers.Always(200)
		g.Deliver()
		before := len(g.Receivers.Requests())
		g.Must(g.Deliveries.Redeliver(t.Context(), g.Merchant.ID, eventOf(g, g.Merchant, 1).ID))
		g.Deliver()
		list := g.WantRequests(before + 1)
		if first, last := list[0], list[before]; first.ID != last.ID || first.Body != last.Body || first.URL != last.URL {
			t.Errorf("sent %+v, then %+v", first, last)
		}
		if list := attempts(g, g.Merchant, 1); len(list) != 1 || list[0].Number != 1 || list[0].Status != 200 {
			t.Errorf("recorded: %+v", list)
		}
		g.WantProven()
	})
}

// A delivery to an endpoint that was given up stays while the endpoint only fails, as it gets the
// event when it catches up.
func TestKeepDeliveriesThatAnEndpointMissed(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		keep(g, 24*time.Hour)
		_, _, err := g.Endpoints.Create(t.Context(), actor.System, g.Merchant.ID, &wire.EndpointRequest{
			URL: wire.Some("https://shop.example/events"), Events: wire.Some([]string{string(payment.EventPayinCanceled)}),
		})
		g.Must(err)
		g.Receivers.Always(500)
		g.Canceled(g.Merchant, "missed", "")
		g.Run(g.Endpoints.Dispatch)
		for range 14 { // more than the schedule has
			g.Deliver()
			g.Jump(30 * time.Hour)
			catchUp(g)
			remove(g)
		}
		tried := len(g.Receivers.Requests())
		g.Receivers.Always(200)
		g.Canceled(g.Merchant, "after", "")
		for range 4 {
			g.Run(g.Endpoints.Dispatch)
			g.Deliver()
			g.Jump(time.Minute)
		}
		g.WantRequests(tried + 2)
		age(g)
		wantAttempts(g, 0, 0)
		g.WantProven()
	})
}

// If more are due than one commit removes, ranges follow one after another, and the
// next run removes the rest.
func TestRemoveManyDeliveries(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		const n = 1100
		keep(g, retention)
		p := g.Canceled(g.Merchant, "many", hook)
		addEventsOf(g, g.Merchant, p.ID, n, hook)
		for range n / 64 * 2 {
			g.Deliver()
		}
		left := func() int {
			t.Helper()
			old, err := g.Store.OldDeliveries(t.Context(), g.Merchant.ID, payment.ID{}, g.Clock.Now(), 2*n)
			g.Must(err)
			return old.Finished
		}
		g.Clock.Advance(time.Second)
		if left() != n+1 {
			t.Fatalf("%d are finished", left())
		}
		age(g)
		if got := left(); got == 0 || got == n+1 {
			t.Errorf("%d left after one run", got)
		}
		if !g.Deliveries.Removing() {
			t.Error("the pass is not under way")
		}
		remove(g)
		if got := left(); got != 0 {
			t.Errorf("%d left after two", got)
		}
		if g.Deliveries.Removing() {
			t.Error("the pass is still under way")
		}
	})
}

// The merchants of a gateway are passed one after another, and the pass starts over
// after a rest.
func TestRemoveDeliveriesOfAllMerchants(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		keep(g, retention)
		other := addMerchant(g, "other", "")
		for i := range 2 {
			g.Canceled(g.Merchant, "r"+strconv.Itoa(i), hook)
			g.Canceled(other, "r"+strconv.Itoa(i), hook)
			g.Deliver()
			g.Jump(retention / 2)
			g.Jump(removalRest)
			catchUp(g)
			remove(g)
		}
		for _, m := range []store.Merchant{g.Merchant, other} {
			if first, second := len(attempts(g, m, 1)), len(attempts(g, m, 2)); first != 0 || second != 1 {
				t.Errorf("%s: %d and %d attempts are recorded", m.Name, first, second)
			}
		}
		g.Jump(retention)
		catchUp(g)
		remove(g)
		if n := len(attempts(g, other, 2)); n != 0 {
			t.Errorf("%d attempts left", n)
		}
	})
}

// An exhausted delivery no longer waits for manual review once the receiver disables the
// events of its order, and is removed when it is old enough.
func TestRemoveExhaustedDeliveries(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		keep(g, retention)
		g.Receivers.Always(500)
		p := g.Canceled(g.Merchant, "disabled", hook)
		g.Canceled(g.Merchant, "waits", hook)
		exhaust(g, 2)
		g.WantCases(store.CaseWebhook, store.CaseWebhook)
		g.Receivers.Always(410)
		addEventsOf(g, g.Merchant, p.ID, 1, hook)
		g.Jump(2 * time.Minute)
		g.Deliver()
		g.WantCases(store.CaseWebhook)

		g.Jump(retention / 10)
		catchUp(g)
		remove(g)
		wantAttempts(g, 11) // while it is young
		age(g)
		wantAttempts(g, 0, 11, 0)
		g.WantCases(store.CaseWebhook)
		if list, err := g.Store.Events(t.Context(), g.Merchant.ID, 0, 10); err != nil || len(list) != 3 {
			t.Errorf("%d events, %v", len(list), err)
		}
	})
}

// A clock that is ahead for a while removes little too early: a day with each pass,
// and nothing once it is right.
func TestRemoveByAClockThatWasAhead(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		defer g.Clock.SetOffset(0)
		keep(g, retention)
		for i := range 4 { // an event each ten days
			g.Canceled(g.Merchant, "r"+strconv.Itoa(i), hook)
			g.Deliver()
			if i < 3 {
				g.Jump(10*24*time.Hour - removalRest)
				catchUp(g)
				remove(g)
				g.Jump(removalRest)
			}
		}
		left := func(want ...int) {
			g.T.Helper()
			wantAttempts(g, want...)
			g.WantProven()
		}
		left(1, 1, 1, 1) // the first is as old as it may be
		g.Clock.SetOffset(365 * 24 * time.Hour)
		for range 3 {
			g.Jump(removalRest)
			remove(g)
		}
		left(0, 1, 1, 1)
		g.Clock.SetOffset(0)
		g.Jump(removalRest)
		catchUp(g)
		remove(g)
		left(0, 1, 1, 1)
		g.Jump(10 * 24 * time.Hour)
		catchUp(g)
		remove(g)
		left(0, 0, 1, 1)
	})
}

func TestKeepDeliveriesForever(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		keep(g, 0)
		g.Canceled(g.Merchant, "r", hook)
		g.Deliver()
		g.Jump(100 * 365 * 24 * time.Hour)
		remove(g)
		wantAttempts(g, 1)
	})
}

// An event of an order whose receiver disabled it is not sent again after its delivery
// was removed.
func TestRemovedAfterItWasDisabled(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		keep(g, retention)
		g.Receivers.Always(410)
		g.Canceled(g.Merchant, "r", hook)
		g.Deliver()
		age(g)
		g.Receivers.Always(200)
		if err := g.Deliveries.Redeliver(t.Context(), g.Merchant.ID, eventOf(g, g.Merchant, 1).ID); !problem.Is(err, problem.InvalidState) {
			t.Errorf("redelivered: %v", err)
		}
		g.Deliver()
		g.WantRequests(1)
		g.WantProven()
	})
}

// Conditions for removal: the delivery ended before the limit, and nobody works on it
// or waits for it.
func TestRemovableDeliveries(t *testing.T) {
	rows := []struct {
		name string
		set  string // of its row; it was created and ended an hour ago
		want int
	}{
		{"delivered", "state = 'delivered', next_at = 0", 1},
		{"disabled", "state = 'disabled', next_at = 0", 1},
		{"pending", "state = 'pending'", 0},
		{"exhausted, without a case", "state = 'exhausted', next_at = 0", 0},
		{"exhausted at an endpoint", "state = 'exhausted', next_at = 0, endpoint_id = id", 1},
		{"of a damaged event to an endpoint, with an open case", "state = 'exhausted', next_at = 0, endpoint_id = id, case_id = id", 0},
		{"requested again", "state = 'pending', next_at = 1", 0},
		{"ended at the limit", "state = 'delivered', next_at = 0, updated_at = updated_at + 3600001000", 0},
	}
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, tt := range rows {
			t.Run(tt.name, func(t *testing.T) {
				g := g.For(t)
				addEvents(g, g.Merchant, 1, hook)
				g.Execute("UPDATE deliveries SET " + tt.set + " WHERE event_number = 1 AND state = 'pending'")
				g.Jump(time.Hour)
				limit := g.Clock.Now().Add(time.Millisecond)
				old, err := g.Store.OldDeliveries(t.Context(), g.Merchant.ID, payment.ID{}, limit, 10)
				g.Must(err)
				if old.Finished != tt.want {
					t.Errorf("%d of %d are finished, want %d", old.Finished, old.Count, tt.want)
				}
				var removed int64
				g.Must(g.Store.Transact(t.Context(), func(tx *store.Tx) error {
					removed, err = tx.RemoveDeliveries(t.Context(), old, limit)
					return err
				}))
				if removed != int64(tt.want) {
					t.Errorf("%d removed, want %d", removed, tt.want)
				}
				g.Execute("DELETE FROM deliveries WHERE event_number = 1")
			})
		}
	})
}
