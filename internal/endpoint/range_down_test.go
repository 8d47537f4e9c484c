package endpoint_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// request requests a range for an endpoint, and makes it due.
func (g hooks) request(e store.Endpoint, from, to time.Time) {
	g.T.Helper()
	_, err := g.Deliveries.RedeliverRange(g.T.Context(), actor.System, g.Merchant.ID, &wire.RedeliverRequest{From: from, To: to, Endpoint: e.ID})
	g.Must(err)
	g.Run(g.Deliveries.RedeliverRanges)
}

// If an endpoint goes down during a requested range of old events, it gets the rest of the range
// and the new events once it answers; no other old event.
func TestDownWhileOldEventsAreSentAgain(t *testing.T) {
	const keep = 30 * 24 * time.Hour
	for name, late := range map[string]bool{"removed for their age": false, "older than the endpoint": true} {
		for _, disabled := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", disabled: ", disabled), func(t *testing.T) {
				each(t, func(t *testing.T, g hooks) {
					g.Restart(func(o *app.CoreOptions) { o.Retention = keep })
					var e store.Endpoint
					if !late {
						e = g.add(url, "payin.canceled")
					}
					from := g.Clock.Now()
					g.cancel("old-0", "")
					g.cancel("old-1", "")
					g.work()
					g.Jump(time.Hour)
					to := g.Clock.Now()
					g.cancel("old-2", "")
					g.work()
					g.Jump(keep + 24*time.Hour)
					for range 90 {
						g.Must(g.Store.Transact(t.Context(), func(tx *store.Tx) error {
							_, err := tx.AllowRemoval(t.Context(), g.Clock.Now().Add(-keep), keep)
							return err
						}))
					}
					g.Run(g.Deliveries.RemoveOld)
					if n := g.Count("deliveries", "1 = 1"); n != 0 {
						t.Fatalf("%d deliveries were not removed", n)
					}
					if late {
						e = g.add(url, "payin.canceled")
					}
					g.down(url)
					g.request(e, from, to)
					g.fail(8, 30*time.Minute)
					g.cancel("new", "")
					g.fail(8, 30*time.Minute)
					if v := g.read(e); !v.IsDown() {
						t.Fatalf("%+v", v)
					}
					if disabled {
						g.enable(e, false)
					}
					tried := len(g.received(url))
					g.Receivers.Always(200)
					if disabled {
						g.enable(e, true)
					}
					g.fail(8, 30*time.Minute)
					got := g.received(url)[tried:]
					if want := []string{"payin.canceled old-0", "payin.canceled old-1", "payin.canceled new"}; !slices.Equal(got, want) {
						t.Errorf("it got %q, want %q", got, want)
					}
					g.WantProven()
				})
			})
		}
	}
}

// A range of events that an endpoint is to get again is not cut short if the endpoint is disabled
// meanwhile: enabled again, it gets all of them.
func TestDisabledWhileARangeIsSentAgain(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		from := g.Clock.Now()
		for i := range 70 {
			g.cancel(fmt.Sprint("r", i), "")
		}
		g.Jump(time.Hour)
		e := g.add(url, "payin.canceled")
		_, err := g.Deliveries.RedeliverRange(t.Context(), actor.System, g.Merchant.ID, &wire.RedeliverRequest{From: from, To: g.Clock.Now(), Endpoint: e.ID})
		g.Must(err)
		_, err = g.Deliveries.RedeliverRanges(t.Context()) // the first 64
		g.Must(err)
		g.enable(e, false)
		g.Run(g.Deliveries.RedeliverRanges)
		g.enable(e, true)
		g.work()
		if got := len(g.received(url)); got != 70 {
			t.Errorf("it got %d of 70", got)
		}
		g.WantProven()
	})
}
