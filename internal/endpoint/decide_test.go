package endpoint

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// given is one merchant with one endpoint and some events payin.paid.
func given(e store.Endpoint, events int, deliveries ...store.Delivery) *store.Given {
	e.Merchant, e.ID, e.URL, e.Enabled = payment.ID{1}, payment.ID{2}, "https://a.example", true
	e.Events = []string{"payin.paid"}
	serial := byte(100)
	g := &store.Given{Now: now, Endpoints: []store.Endpoint{e}, NewID: func() payment.ID { serial++; return payment.ID{serial} }}
	for i := range events {
		g.Events = append(g.Events, store.GivenEvent{Event: payment.Event{Merchant: e.Merchant, Number: int64(i + 1), Type: payment.EventPayinPaid}})
	}
	for i, d := range deliveries {
		d.Merchant, d.ID, d.URL = e.Merchant, payment.ID{10, byte(i)}, "https://a.example"
		g.Deliveries = append(g.Deliveries, d)
	}
	return g
}

// withOther adds another endpoint with the URL.
func withOther(g *store.Given, enabled bool) *store.Given {
	other := g.Endpoints[0]
	other.ID, other.Enabled = payment.ID{3}, enabled
	g.Endpoints = append(g.Endpoints, other)
	return g
}

// The deliveries that one dispatch makes due, and the position of the endpoint after it.
func TestDispatchDecisions(t *testing.T) {
	t.Parallel()
	mine := payment.ID{2}
	of := func(number int64, state store.DeliveryState, step int, endpoint payment.ID) store.Delivery {
		return store.Delivery{EventNumber: number, State: state, ScheduleStep: step, Endpoint: endpoint}
	}
	for name, v := range map[string]struct {
		given    *store.Given
		due      int
		position int64
	}{
		"nothing new":            {given(store.Endpoint{Position: 2}, 2), 0, 2},
		"new events":             {given(store.Endpoint{Position: 1}, 3), 2, 3},
		"at most a batch":        {given(store.Endpoint{}, 300), 256, 256},
		"in order, fewer":        {given(store.Endpoint{CatchUpTo: 300}, 300), 64, 64},
		"in order, then the end": {given(store.Endpoint{CatchUpTo: 3}, 300), 3, 3},
		"waits":                  {given(store.Endpoint{Position: 1, CatchUpTo: 5}, 5, of(1, store.DeliveryPending, 0, mine)), 0, 1},
		"not for one that failed again": {
			given(store.Endpoint{Position: 1, CatchUpTo: 5}, 5, of(1, store.DeliveryPending, 1, mine)), 4, 5,
		},
		"what was accepted is skipped": {given(store.Endpoint{}, 3, of(2, store.DeliveryDone, 1, mine)), 2, 3},
		"a paused one becomes due":     {given(store.Endpoint{}, 1, of(1, store.DeliveryPaused, 3, mine)), 1, 1},
		"what was given up too":        {given(store.Endpoint{}, 1, of(1, store.DeliveryExhausted, 11, mine)), 1, 1},
		"what was given up is sent again after two recoveries": {
			given(store.Endpoint{}, 1, store.Delivery{EventNumber: 1, State: store.DeliveryExhausted, Endpoint: mine, Restarts: 2}), 1, 1,
		},
		"not what is refused alone": {
			given(store.Endpoint{}, 1, store.Delivery{EventNumber: 1, State: store.DeliveryExhausted, Endpoint: mine, Restarts: 3}), 0, 1,
		},
		"unless it was paused": {
			given(store.Endpoint{}, 1, store.Delivery{EventNumber: 1, State: store.DeliveryPaused, Endpoint: mine, Restarts: 3}), 1, 1,
		},
		"the order's own delivery":  {given(store.Endpoint{}, 1, of(1, store.DeliveryPending, 0, payment.ID{})), 0, 1},
		"that was given up":         {given(store.Endpoint{}, 1, of(1, store.DeliveryExhausted, 11, payment.ID{})), 1, 1},
		"that the receiver refused": {given(store.Endpoint{}, 1, of(1, store.DeliveryDisabled, 1, payment.ID{})), 0, 1},
		"that was given up before": {
			given(store.Endpoint{}, 1, of(1, store.DeliveryExhausted, 11, payment.ID{}), of(1, store.DeliveryDone, 1, mine)), 0, 1,
		},
		"another endpoint's":             {withOther(given(store.Endpoint{}, 1, of(1, store.DeliveryPending, 0, payment.ID{3})), true), 0, 1},
		"in flight as that was disabled": {withOther(given(store.Endpoint{}, 1, of(1, store.DeliveryPending, 0, payment.ID{3})), false), 1, 1},
		"in flight as that was deleted":  {given(store.Endpoint{}, 1, of(1, store.DeliveryPending, 0, payment.ID{3})), 1, 1},
		"that is disabled":               {given(store.Endpoint{}, 1, of(1, store.DeliveryPaused, 2, payment.ID{3})), 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			op := &dispatch{Ref: store.Ref{Merchant: payment.ID{1}, ID: mine}, limit: eventsAtOnce}
			var n store.Needs
			op.Needs(&n)
			before := len(v.given.Deliveries)
			after, err := v.given.Decide(&n, op.Decide)
			if err != nil {
				t.Fatal(err)
			}
			if got := after.Endpoints[0].Position; op.delivered != v.due || got != v.position {
				t.Errorf("%d due, position %d, want %d, %d", op.delivered, got, v.due, v.position)
			}
			for _, d := range after.Deliveries[before:] {
				if d.State != store.DeliveryPending || d.NextAt.After(now) || d.Endpoint != mine {
					t.Errorf("new delivery %+v", d)
				}
			}
		})
	}
}

// Of more events than one commit delivers to a changed URL, the endpoint reads the others from
// the feed. One that it does not select, or that is older than it, is not its own.
func TestSharedEventsOfChangedURL(t *testing.T) {
	t.Parallel()
	const events = store.SharedMax + 100
	var pending []store.Delivery
	for i := range events {
		pending = append(pending, store.Delivery{EventNumber: int64(i + 1), State: store.DeliveryPending, Endpoint: payment.ID{3}})
	}
	g := given(store.Endpoint{Position: events, CreatedAt: now}, events, pending...)
	other := g.Endpoints[0]
	other.ID = payment.ID{3}
	g.Endpoints = append(g.Endpoints, other)
	for i := range g.Events {
		g.Events[i].CreatedAt = now
	}
	g.Events[0].Type, g.Events[1].CreatedAt = payment.EventPayinExpired, now.Add(-time.Second)
	op := &change{merchant: payment.ID{1}, id: payment.ID{2}, request: &wire.EndpointRequest{URL: wire.Some("https://b.example")}}
	var n store.Needs
	op.Needs(&n)
	after, err := g.Decide(&n, op.Decide)
	if err != nil {
		t.Fatal(err)
	}
	// Of 1,000 shared events the first is of another type; the second does not count.
	if got := after.Endpoints[0]; got.Position != store.SharedMax+1 || got.URL != "https://b.example" {
		t.Errorf("%+v", got)
	}
	if got := after.Endpoints[1]; got.Position != events || got.URL != other.URL {
		t.Errorf("the other: %+v", got)
	}
	added := after.Deliveries[events:]
	if len(added) != store.SharedMax-1 {
		t.Fatalf("%d deliveries, want %d", len(added), store.SharedMax-1)
	}
	for i, d := range added {
		if d.EventNumber != int64(i+3) || d.Endpoint != op.id || d.URL != "https://b.example" || d.State != store.DeliveryPending {
			t.Errorf("delivery %d: %+v", i, d)
		}
	}
}
