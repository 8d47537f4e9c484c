package endpoint

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
)

// Limits of one dispatch.
const (
	// eventsAtOnce is how many events one commit reads.
	eventsAtOnce = 256
	// pendingMax is how many deliveries of an endpoint may be pending. The others wait in the
	// feed, where they cost nothing.
	pendingMax = 1000
	// inOrderAtOnce is how many events an endpoint that catches up gets at once. All of them
	// are attempted before the next ones.
	inOrderAtOnce = 64
)

// Dispatch is the step of the worker that reads the feed for each endpoint, and makes the
// deliveries of the events that it selects.
func (s *Service) Dispatch(ctx context.Context) (did int, err error) {
	if s.Registry.Empty() {
		return 0, nil
	}
	limit := eventsAtOnce
	if s.throttle.Begin(ctx) {
		limit = worker.ThrottledWork
	}
	behind, err := s.Store.EndpointsBehind(ctx)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, ref := range behind {
		op := &dispatch{Ref: ref, limit: limit}
		if err := s.Writer.Do(ctx, op); err != nil {
			errs = append(errs, err)
			continue
		}
		did += op.read
		if op.damaged && len(s.Registry.Secrets(ref.Merchant, ref.ID)) > 0 {
			errs = append(errs, s.Registry.reread(ctx, ref.Merchant))
		}
		if !op.oldest.IsZero() {
			s.throttle.Took(op.oldest, s.Env.Clock.Now())
		}
		if op.delivered > 0 {
			s.Dispatched.Wake()
		}
	}
	return did, errors.Join(errs...)
}

// Announced wakes the worker if a merchant with new events has endpoints.
func (s *Service) Announced(merchants []payment.ID) {
	if slices.ContainsFunc(merchants, s.Registry.Has) {
		s.Waker.Wake()
	}
}

// dispatch makes the deliveries of an endpoint's next events.
type dispatch struct {
	store.Ref

	limit int // of events to read

	damaged         bool // it gets nothing
	read, delivered int
	oldest          time.Time // event that was read; zero if there is none, or the endpoint catches up
}

// Merchant implements [write.Operation].
func (v *dispatch) Merchant() payment.ID { return v.Ref.Merchant }

// Class implements [write.Operation].
func (v *dispatch) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *dispatch) Needs(n *store.Needs) { n.Dispatch(v.Ref.Merchant, v.ID, v.limit, pendingMax) }

// Decide implements [write.Operation]. An endpoint that catches up gets nothing until all
// that it got before was attempted.
func (v *dispatch) Decide(l *store.Loaded, c *store.Changes) error {
	v.read, v.delivered, v.oldest = 0, 0, time.Time{}
	e, ok := l.Endpoint(v.Ref.Merchant, v.ID)
	if v.damaged = e.Damaged != nil; v.damaged || !ok || !e.Enabled || c.StopsDeliveries(&e) {
		return nil
	}
	next := l.Dispatch(&e)
	if len(next.Events) == 0 || next.Events[0].Number != e.Position+1 || next.Untried > 0 { // or an earlier decision of the commit moved it
		return nil
	}
	free, last := pendingMax-next.Pending, next.Events[len(next.Events)-1].Number
	if e.Position < e.CatchUpTo {
		free, last = min(free, inOrderAtOnce), min(last, e.CatchUpTo)
	}
	for i := range next.Events {
		event := &next.Events[i]
		if v.delivered >= free || event.Number > last {
			break
		}
		e.Position = event.Number
		v.read++
		if known, due := wants(l, &e, event, next.Known); due {
			markUnread(l, c, &e, known)
			c.Deliver(&e, event, known)
			v.delivered++
		} else if !event.Type.MatchedBy(e.Events) {
			dropUnselected(c, &e, event, next.Known)
		}
		e.ReadTo = max(e.ReadTo, e.Position)
	}
	if v.read == 0 {
		return nil
	}
	if e.Position > e.CatchUpTo {
		v.oldest = next.Events[0].ID.Time()
	}
	c.SetEndpoint(e)
	return nil
}

// wants reports whether an endpoint is to get an event, by its known delivery or, if that is nil,
// by a new delivery. A URL gets an event once: by an order's own delivery to the URL, unless that
// delivery was given up, or by the delivery of another endpoint, unless that delivery was stopped
// or has a new URL. An event that was read before without a delivery is not sent: see
// [store.Endpoint].ReadTo.
func wants(l *store.Loaded, e *store.Endpoint, event *payment.Event, known []store.Delivery) (*store.Delivery, bool) {
	if !event.Type.MatchedBy(e.Events) || event.Type == payment.EventEndpointDisabled && event.Subject == e.ID {
		return nil, false
	}
	had := event.Number <= e.ReadTo
	for i := range known {
		d := &known[i]
		givenUp := d.Endpoint.IsZero() && d.State == store.DeliveryExhausted
		if d.EventNumber != event.Number {
			continue
		}
		if givenUp || goesElsewhere(l, e, d) {
			had = false
			continue
		}
		switch d.State {
		case store.DeliveryPending, store.DeliveryDone:
			return nil, false
		case store.DeliveryPaused:
			return d, true
		default: // it was given up, or its endpoint was deleted; or the order's receiver answered 410
			return d, !d.Endpoint.IsZero() && !(d.State == store.DeliveryExhausted && d.Endpoint == e.ID && d.RefusedAlone())
		}
	}
	return nil, !had
}

// markUnread lets the endpoint that had a delivery read its event again, because another endpoint takes
// the delivery.
func markUnread(l *store.Loaded, c *store.Changes, e *store.Endpoint, known *store.Delivery) {
	if known == nil || known.Endpoint == e.ID {
		return
	}
	if of, exists := l.Endpoint(known.Merchant, known.Endpoint); exists {
		of.ReadTo = min(of.ReadTo, known.EventNumber-1)
		c.SetEndpoint(of)
	}
}

// dropUnselected ends the delivery of an event that waits for the endpoint to be enabled, and that it
// selects no more: it would count as missed forever.
func dropUnselected(c *store.Changes, e *store.Endpoint, event *payment.Event, known []store.Delivery) {
	for i := range known {
		if d := known[i]; d.EventNumber == event.Number && d.Endpoint == e.ID && d.State == store.DeliveryPaused {
			d.State, d.NextAt = store.DeliveryDisabled, time.Time{}
			c.SetDelivery(d)
		}
	}
}

// goesElsewhere reports whether a delivery without an acceptance belongs to another endpoint and
// will not be attempted again at e's URL: the other endpoint has a new URL, or was deleted or
// disabled while an attempt was in flight.
func goesElsewhere(l *store.Loaded, e *store.Endpoint, d *store.Delivery) bool {
	of, exists := l.Endpoint(d.Merchant, d.Endpoint)
	switch {
	case d.Endpoint.IsZero() || d.State == store.DeliveryDone:
		return false
	case !exists || !of.Enabled:
		return d.State == store.DeliveryPending
	default:
		return of.URL != e.URL
	}
}
