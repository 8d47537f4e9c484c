package endpoint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/endpoint"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// position is how far an endpoint has read the feed, and up to which event it catches up.
type position struct{ read, catchUpTo int64 }

// The receivers of stored deliveries: the endpoint, a second endpoint at its URL, and the URL of
// the order.
const (
	mine   = "mine"
	others = "another endpoint"
	orders = "the order"
)

// stored is a delivery that exists before a dispatch.
type stored struct {
	number   int64 // of its event
	state    store.DeliveryState
	step     int
	to       string
	restarts int
}

// feed is one merchant with one endpoint and some events payin.paid.
type feed struct {
	position   position
	events     int
	deliveries []stored
	other      string // "true" and "false" are whether another endpoint at the URL is enabled; "" if there is none
}

func given(p position, events int, deliveries ...stored) feed { return feed{p, events, deliveries, ""} }

// beside adds another endpoint with the URL.
func (f feed) beside(enabled bool) feed {
	f.other = fmt.Sprint(enabled)
	return f
}

// store stores the feed, and returns the endpoint and the other one.
func (f feed) store(g hooks) (e, other store.Endpoint) {
	g.T.Helper()
	e = g.add(url, "payin.paid")
	if f.other != "" {
		if other = g.add(url, "payin.paid"); f.other == "false" {
			g.Execute(fmt.Sprintf("UPDATE webhook_endpoints SET enabled = 0 WHERE id = x'%x'", other.ID[:]))
		}
	} else {
		other.ID = payment.ID{3} // which was deleted
	}
	g.Must(g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
		return tx.Apply(g.T.Context(), &store.Needs{}, func(_ *store.Loaded, c *store.Changes) error {
			for i := range f.events {
				c.AddEvent(payment.Event{Merchant: g.Merchant.ID, Type: payment.EventPayinPaid, Subject: payment.ID{1}, Version: int64(i + 1)}, []byte("{}"), "")
			}
			return nil
		})
	}))
	texts := []string{fmt.Sprintf("UPDATE webhook_endpoints SET position = %d, catch_up_to = %d WHERE id = x'%x'", f.position.read, f.position.catchUpTo, e.ID[:])}
	to := map[string]string{mine: fmt.Sprintf("%x", e.ID[:]), others: fmt.Sprintf("%x", other.ID[:])}
	for i, d := range f.deliveries {
		due := 0
		if d.state == store.DeliveryPending {
			due = 1
		}
		texts = append(texts, fmt.Sprintf(`INSERT INTO deliveries (merchant_id, id, event_number, subject_id, endpoint_id, url, state, attempts, schedule_step, restarts,
			next_at, claimed_by, case_id, created_at, updated_at) VALUES (x'%x', x'0a%030x', %d, x'01000000000000000000000000000000', x'%s', '%s', '%s', %d, %d, %d, %d, x'', x'', 1, 1)`,
			g.Merchant.ID[:], i, d.number, to[d.to], url, d.state, d.step, d.step, d.restarts, due))
	}
	g.Execute(strings.Join(texts, ";"))
	return e, other
}

// The deliveries that one dispatch makes due, and the position of the endpoint after it.
func TestDispatchDecisions(t *testing.T) {
	of := func(number int64, state store.DeliveryState, step int, to string) stored {
		return stored{number, state, step, to, 0}
	}
	for name, v := range map[string]struct {
		given    feed
		due      int
		position int64
	}{
		"nothing new":            {given(position{2, 0}, 2), 0, 2},
		"new events":             {given(position{1, 0}, 3), 2, 3},
		"at most a batch":        {given(position{}, 300), 256, 256},
		"in order, fewer":        {given(position{0, 300}, 300), 64, 64},
		"in order, then the end": {given(position{0, 3}, 300), 3, 3},
		"waits":                  {given(position{1, 5}, 5, of(1, store.DeliveryPending, 0, mine)), 0, 1},
		"not for one that failed again": {
			given(position{1, 5}, 5, of(1, store.DeliveryPending, 1, mine)), 4, 5,
		},
		"what was accepted is skipped": {given(position{}, 3, of(2, store.DeliveryDone, 1, mine)), 2, 3},
		"a paused one becomes due":     {given(position{}, 1, of(1, store.DeliveryPaused, 3, mine)), 1, 1},
		"what was given up too":        {given(position{}, 1, of(1, store.DeliveryExhausted, 11, mine)), 1, 1},
		"what was given up is sent again after two recoveries": {
			given(position{}, 1, stored{1, store.DeliveryExhausted, 0, mine, 2}), 1, 1,
		},
		"not what is refused alone": {
			given(position{}, 1, stored{1, store.DeliveryExhausted, 0, mine, 3}), 0, 1,
		},
		"unless it was paused": {
			given(position{}, 1, stored{1, store.DeliveryPaused, 0, mine, 3}), 1, 1,
		},
		"the order's own delivery":  {given(position{}, 1, of(1, store.DeliveryPending, 0, orders)), 0, 1},
		"that was given up":         {given(position{}, 1, of(1, store.DeliveryExhausted, 11, orders)), 1, 1},
		"that the receiver refused": {given(position{}, 1, of(1, store.DeliveryDisabled, 1, orders)), 0, 1},
		"that was given up before": {
			given(position{}, 1, of(1, store.DeliveryExhausted, 11, orders), of(1, store.DeliveryDone, 1, mine)), 0, 1,
		},
		"another endpoint's":             {given(position{}, 1, of(1, store.DeliveryPending, 0, others)).beside(true), 0, 1},
		"in flight as that was disabled": {given(position{}, 1, of(1, store.DeliveryPending, 0, others)).beside(false), 1, 1},
		"in flight as that was deleted":  {given(position{}, 1, of(1, store.DeliveryPending, 0, others)), 1, 1},
		"that is disabled":               {given(position{}, 1, of(1, store.DeliveryPaused, 2, others)), 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := hooks{coretest.NewWith(t, 0)}
			e, _ := v.given.store(g)
			op := endpoint.NewDispatch(store.Ref{Merchant: e.Merchant, ID: e.ID})
			g.Must(g.Commit(op))
			if got := g.read(e).Position; op.Delivered() != v.due || got != v.position {
				t.Errorf("%d due, position %d, want %d, %d", op.Delivered(), got, v.due, v.position)
			}
			added := fmt.Sprintf("endpoint_id = x'%x' AND state = 'pending' AND next_at > 0 AND created_at > 1", e.ID[:])
			if all := g.Count("deliveries", "created_at > 1"); g.Count("deliveries", added) != all {
				t.Errorf("of %d new deliveries not all are due to the endpoint", all)
			}
		})
	}
}

// Of more events than one commit delivers to a changed URL, the endpoint reads the others from
// the feed. One that it does not select, or that is older than it, is not its own.
func TestSharedEventsOfChangedURL(t *testing.T) {
	const events = store.SharedMax + 100
	f := given(position{events, 0}, events).beside(true)
	for i := range events {
		f.deliveries = append(f.deliveries, stored{int64(i + 1), store.DeliveryPending, 0, others, 0})
	}
	g := hooks{coretest.NewWith(t, 0)}
	e, other := f.store(g)
	g.Execute("UPDATE events SET type = 'payin.expired' WHERE number = 1", "UPDATE events SET created_at = created_at - 1000000 WHERE number = 2")
	_, err := g.Endpoints.Change(t.Context(), actor.System, e.Merchant, e.ID, &wire.EndpointRequest{URL: wire.Some(elsewhere)})
	g.Must(err)
	// Of 1,000 shared events the first is of another type; the second does not count.
	if got := g.read(e); got.Position != store.SharedMax+1 || got.URL != elsewhere {
		t.Errorf("%+v", got)
	}
	if got := g.read(other); got.Position != other.Position || got.URL != url {
		t.Errorf("the other: %+v", got)
	}
	added := fmt.Sprintf("created_at > 1 AND endpoint_id = x'%x' AND url = '%s' AND state = 'pending' AND event_number BETWEEN 3 AND %d", e.ID[:], elsewhere, store.SharedMax+1)
	if n, all := g.Count("deliveries", added), g.Count("deliveries", "created_at > 1"); n != store.SharedMax-1 || all != n {
		t.Errorf("%d deliveries of %d are its own, want %d", n, all, store.SharedMax-1)
	}
}
