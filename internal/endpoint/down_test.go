package endpoint_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// recovered is an endpoint that was down for 40 events and has accepted the oldest one: the others wait in
// the feed.
func (g hooks) recovered() {
	g.T.Helper()
	g.add(url, "payin.canceled")
	g.down(url)
	g.trickle(80*time.Second, 2*time.Second, nil)
	g.Jump(2 * time.Minute)
	g.Receivers.Always(200)
	for range 20 {
		g.Run(g.Deliveries.Send)
		g.Jump(5 * time.Second)
	}
}

// While one process has an event of an endpoint that catches up in flight, no other one claims a
// later event of it.
func TestCatchUpOfTwoProcesses(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		g.recovered()
		g.Run(g.Endpoints.Dispatch)
		first, err := g.Deliveries.Claim(t.Context(), g.Merchant.ID, 10)
		g.Must(err)
		second := hooks{g.Second()}
		rest, err := second.Deliveries.Claim(t.Context(), g.Merchant.ID, 100)
		g.Must(err)
		if len(first) != 10 || len(rest) != 0 {
			t.Errorf("the first process claims %d, the second one %d", len(first), len(rest))
		}
	})
}

// An event that a narrower filter no longer selects must not make the endpoint get events again
// that it accepted long ago.
func TestEventsThatAreSelectedNoMore(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		const keep = 30 * 24 * time.Hour
		g.Restart(func(o *app.CoreOptions) { o.Retention = keep })
		e := g.add(url, "payin.created", "payin.canceled")
		g.down(url)
		g.cancel("x", "")
		g.work()
		g.enable(e, false)
		g.Receivers.Always(200)
		_, err := g.Endpoints.Change(t.Context(), actor.System, e.Merchant, e.ID, &wire.EndpointRequest{Events: wire.Some([]string{"payin.canceled"}), Enabled: wire.Some(true)})
		g.Must(err)
		g.work()
		for i := range 5 {
			g.cancel(fmt.Sprint("old-", i), "")
			g.work()
		}
		g.Jump(keep + 24*time.Hour)
		for range 90 {
			g.Must(g.Store.Transact(t.Context(), func(tx *store.Tx) error {
				_, err := tx.AllowRemoval(t.Context(), g.Clock.Now().Add(-keep), keep)
				return err
			}))
		}
		g.Run(g.Deliveries.RemoveOld)
		g.down(url)
		g.cancel("late", "")
		g.fail(8, 30*time.Minute)
		if v := g.read(e); !v.IsDown() {
			t.Fatalf("%+v", v)
		}
		tried := len(g.received(url))
		g.Receivers.Always(200)
		g.fail(8, time.Hour)
		if got := g.received(url)[tried:]; !slices.Equal(got, []string{"payin.canceled late"}) {
			t.Errorf("after a short outage it got %q", got)
		}
	})
}

// After a change of url, the events that the endpoint has not accepted go to the new one.
func TestChangedURLGetsWhatWasGivenUp(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		g.down(url)
		g.cancel("a", "")
		g.fail(105, time.Hour) // the schedule takes 76 hours; fewer than five days
		if v := g.read(e); !v.Enabled || !v.IsDown() {
			t.Fatalf("%+v", v)
		}
		g.move(e, elsewhere) // which answers
		g.cancel("b", "")
		g.work()
		g.fail(50, time.Hour)
		g.wantReceived(elsewhere, "payin.canceled a", "payin.canceled b")
	})
}

// A changed url is tried soon, not after the pause of the previous one.
func TestChangedURLIsTriedSoon(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		g.down(url)
		for i := range 60 {
			g.cancel(fmt.Sprintf("e%02d", i), "")
		}
		g.fail(100, time.Minute)
		g.fail(96, 15*time.Minute)
		g.fail(30, time.Minute)
		if v := g.read(e); !v.Enabled || !v.IsDown() {
			t.Fatalf("%+v", v)
		}
		// just after an attempt
		for n := len(g.received(url)); len(g.received(url)) == n; {
			g.Jump(time.Minute)
			g.work()
		}
		g.Jump(time.Minute)
		g.work()
		g.move(e, elsewhere)
		minutes := 0
		for ; minutes < 200 && len(g.received(elsewhere)) == 0; minutes++ {
			g.work()
			g.Jump(time.Minute)
		}
		if minutes > 3 {
			t.Errorf("the new url got its first event after %d minutes", minutes)
		}
	})
}

// Retry-After is honoured up to 24 h.
func TestRetryAfterWhileDown(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		g.add(url, "payin.canceled")
		g.Receivers.Answer(func(*http.Request, int) (*http.Response, error) {
			return coretest.Respond(http.StatusServiceUnavailable, "Retry-After", "3600")
		})
		for i := range 7 {
			g.cancel(fmt.Sprint("e", i), "")
		}
		g.work()
		for range 40 {
			g.Jump(time.Minute)
			g.work()
			if len(g.received(url)) < 12 {
				g.cancel(fmt.Sprint("n", len(g.received(url))), "")
			}
		}
		last := map[string]time.Time{}
		early := 0
		for _, r := range g.Receivers.Requests() {
			if at, ok := last[r.ID]; ok && r.At.Sub(at) < 3600*time.Second {
				if early++; early < 4 {
					t.Errorf("event %s was sent again after %v in spite of Retry-After: 3600", r.ID[:12], r.At.Sub(at))
				}
			}
			last[r.ID] = r.At
		}
	})
}

// Of attempts that are in flight together, those whose answers name no time do not shorten the wait that
// the answer of another one names.
func TestRetryAfterOfOneInFlight(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		g.add(url, "payin.canceled")
		g.Receivers.Answer(func(_ *http.Request, n int) (*http.Response, error) {
			if n == 1 {
				return coretest.Respond(http.StatusServiceUnavailable, "Retry-After", "3600")
			}
			return coretest.Respond(http.StatusServiceUnavailable)
		})
		for i := range 7 {
			g.cancel(fmt.Sprint("e", i), "")
		}
		g.work()
		for range 59 {
			g.Jump(time.Minute)
			g.work()
		}
		g.WantRequests(5) // the others were postponed
		g.Receivers.Always(200)
		for range 3 {
			g.Jump(time.Minute)
			g.work()
		}
		g.WantRequests(12)
	})
}

// Time in which the gateway did not run does not lengthen the pauses.
func TestPauseAfterAStop(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		g.down(url)
		for i := range 8 {
			g.cancel(fmt.Sprint("e", i), "")
		}
		g.fail(10, time.Minute)
		g.Jump(14 * 24 * time.Hour) // the gateway is stopped
		g.work()
		if v := g.read(e); !v.IsDown() || v.FailedHours > 1 {
			t.Fatalf("%+v", v)
		}
		g.Receivers.Always(200)
		tried := len(g.received(url))
		minutes := 0
		for ; minutes < 1000 && len(g.received(url)) == tried; minutes++ {
			g.Jump(time.Minute)
			g.work()
		}
		if minutes > 10 {
			t.Errorf("an endpoint that was down for 10 minutes of work and then answers was tried after %d minutes", minutes)
		}
	})
}

// An endpoint that is down costs few writes, however many deliveries are pending: here of a range that
// is sent again.
func TestManyPendingCostLittle(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		const n = 2000
		from := g.Clock.Now()
		for range n / 200 {
			g.Must(g.Store.Transact(t.Context(), func(tx *store.Tx) error {
				return tx.Apply(t.Context(), &store.Needs{}, func(_ *store.Loaded, c *store.Changes) error {
					for i := range 200 {
						e := payment.Event{Merchant: g.Merchant.ID, Type: payment.EventPayinUnderpaid, Subject: payment.ID(g.Env.IDs.NewID(g.Clock.Now())), Version: int64(i + 2)}
						c.AddEvent(e, []byte("{}"), "")
					}
					return nil
				})
			}))
		}
		g.Jump(time.Minute)
		e := g.add(url, "payin.underpaid")
		g.down(url)
		_, err := g.Deliveries.RedeliverRange(t.Context(), actor.System, g.Merchant.ID, &wire.RedeliverRequest{From: from, To: g.Clock.Now(), Endpoint: e.ID})
		g.Must(err)
		for range 100 {
			did, err := g.Deliveries.RedeliverRanges(t.Context())
			g.Must(err)
			if did == 0 {
				break
			}
		}
		rows := 0
		for minute := range 10 {
			for {
				did, err := g.Deliveries.Send(t.Context())
				g.Must(err)
				if did == 0 {
					break
				}
				rows += did
			}
			if minute == 1 { // all were postponed
				rows = 0
			}
			g.Jump(time.Minute)
		}
		if rows > 8*10 {
			t.Errorf("%d rows were written in 8 minutes", rows)
		}
	})
}
