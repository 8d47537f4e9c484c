package endpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// disableAfterHours is how many hours an endpoint may fail, without a success, before it is
// disabled: five days.
const disableAfterHours = 5 * 24

// successEvery is how old LastSuccessAt may be, so that an endpoint with many events is not written
// for each.
const successEvery = time.Second

// Succeeded records that an endpoint accepted an event. If it had been down, it catches up.
func Succeeded(l *store.Loaded, c *store.Changes, e store.Endpoint) {
	if e.Failures == 0 && l.Now().Sub(e.LastSuccessAt).Abs() < successEvery {
		return
	}
	if e.IsDown() && e.Enabled {
		catchUp(l, c, &e)
	}
	e.LastSuccessAt = l.Now()
	clearFailures(&e)
	c.SetEndpoint(e)
}

// Failed records that an attempt failed, and the wait that the receiver asked for, if any. An
// attempt that was in flight at that time does not shorten the wait.
func Failed(l *store.Loaded, c *store.Changes, e store.Endpoint, retryAfter time.Duration) {
	if l.Now().Before(e.LastFailure) { // the clock was set back
		e.RetryAt = time.Time{}
	}
	countFailure(l, &e)
	if until := l.Now().Add(retryAfter); retryAfter > 0 && until.After(e.RetryAt) {
		e.RetryAt = until
	}
	c.SetEndpoint(e)
}

func countFailure(l *store.Loaded, e *store.Endpoint) {
	e.Failures, e.LastFailure = e.Failures+1, l.Now()
	if e.FailingSince.IsZero() || l.Now().Before(e.FailingSince) { // the clock was set back
		restartFailedHours(l, e)
	}
}

// restartFailedHours restarts the count of failed hours.
func restartFailedHours(l *store.Loaded, e *store.Endpoint) {
	e.FailingSince, e.FailedHours, e.CountedAt, e.RetryAt = l.Now(), 0, l.Now(), time.Time{}
}

func clearFailures(e *store.Endpoint) {
	e.Failures, e.FailingSince, e.FailedHours, e.CountedAt, e.RetryAt = 0, time.Time{}, 0, time.Time{}, time.Time{}
}

// hasFailedHour reports whether an enabled endpoint has failed for another whole hour. Hours before
// a change of the URL do not count.
func hasFailedHour(e *store.Endpoint, now time.Time) bool {
	return e.Enabled && e.IsDown() && !e.LastFailure.Before(e.FailingSince) && now.Sub(e.CountedAt) >= time.Hour
}

// DisableFailed is the step of the worker that disables endpoints after five days of failures
// alone. It counts hour by hour, so that a clock that was ahead, or a stop of the gateway, counts
// for at most one hour.
func (s *Service) DisableFailed(ctx context.Context) (did int, err error) {
	if s.Registry.Empty() {
		return 0, nil
	}
	list, err := s.Store.EndpointsFailing(ctx, s.Env.Clock.Now().Add(-time.Hour))
	if err != nil {
		return 0, err
	}
	var errs []error
	for i := range list {
		if !hasFailedHour(&list[i], s.Env.Clock.Now()) {
			continue
		}
		err := s.Writer.Do(ctx, &countHour{list[i].Ref()})
		if errs = append(errs, err); err == nil {
			did++
		}
	}
	return did, errors.Join(errs...)
}

// countHour counts an hour of failures alone. After five days of such hours the endpoint is
// disabled, with a case, and an event for the other endpoints.
type countHour struct{ store.Ref }

// Merchant implements [write.Operation].
func (v *countHour) Merchant() payment.ID { return v.Ref.Merchant }

// Class implements [write.Operation].
func (v *countHour) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *countHour) Needs(n *store.Needs) { n.Undelivered(v.Ref.Merchant, v.ID) }

// Decide implements [write.Operation].
func (v *countHour) Decide(l *store.Loaded, c *store.Changes) error {
	e, ok := l.Endpoint(v.Ref.Merchant, v.ID)
	if !ok || !hasFailedHour(&e, l.Now()) {
		return nil
	}
	e.FailedHours, e.CountedAt = e.FailedHours+1, l.Now()
	if e.FailedHours < disableAfterHours {
		c.SetEndpoint(e)
		return nil
	}
	c.OpenCase(store.Case{Merchant: e.Merchant, Kind: store.CaseEndpoint, Subject: e.ID, Params: store.Params{"since": e.FailingSince.Format(time.RFC3339)}})
	return disable(l, c, e)
}

// Gone records that the receiver answered 410: the endpoint is disabled, with an event for
// the others.
func Gone(l *store.Loaded, c *store.Changes, e store.Endpoint) error {
	countFailure(l, &e)
	if !e.Enabled {
		c.SetEndpoint(e)
		return nil
	}
	return disable(l, c, e)
}

// disable disables an endpoint, and announces it.
func disable(l *store.Loaded, c *store.Changes, e store.Endpoint) error {
	was := e
	e.Enabled, e.Version, e.UpdatedAt = false, e.Version+1, l.Now()
	inheritDeliveries(l, c, &e)
	pauseDeliveries(l, c, &e)
	c.SetEndpoint(e)
	c.AuditEndpoint(actor.Author{Actor: actor.System}, "change", &was, &e)
	data, err := View(&e, "")
	if err != nil {
		return fmt.Errorf("endpoint event: %w", err)
	}
	c.AddEvent(payment.Event{Merchant: e.Merchant, Type: payment.EventEndpointDisabled, Subject: e.ID, Version: e.Version}, data, "")
	return nil
}

// enable makes an endpoint read the feed again from the event at which it was disabled.
func enable(l *store.Loaded, c *store.Changes, e *store.Endpoint) {
	clearFailures(e)
	catchUp(l, c, e)
	c.CloseCases(e.Merchant, e.ID, store.CaseEndpoint, store.ResolvedByRequest)
}

// catchUp makes an endpoint get in order the events until now that it has not accepted.
func catchUp(l *store.Loaded, c *store.Changes, e *store.Endpoint) {
	_, last, loaded := l.Undelivered(e)
	if !loaded {
		return
	}
	rewind(l, e)
	e.CatchUpTo = last
	c.PauseForCatchUp(e)
}

// pauseDeliveries stops the deliveries of an endpoint that is disabled.
func pauseDeliveries(l *store.Loaded, c *store.Changes, e *store.Endpoint) {
	rewind(l, e)
	c.StopDeliveries(e, store.DeliveryPaused)
}

// rewind makes an endpoint read the feed again from the oldest event that it has not accepted.
// Events that it has accepted are skipped.
func rewind(l *store.Loaded, e *store.Endpoint) {
	if oldest, _, _ := l.Undelivered(e); oldest > 0 {
		e.Position = min(e.Position, oldest-1)
	}
}

// inheritDeliveries moves the other endpoints with e's URL back to the oldest event that e has not
// accepted: they relied on e's deliveries, which may go to a new URL now. Disabled endpoints must
// get these events too.
func inheritDeliveries(l *store.Loaded, c *store.Changes, e *store.Endpoint) {
	oldest, _, _ := l.Undelivered(e)
	if oldest == 0 {
		return
	}
	for _, other := range l.Endpoints(e.Merchant) {
		if other.ID != e.ID && other.URL == e.URL && other.ReadTo >= oldest {
			other.Position, other.ReadTo = min(other.Position, oldest-1), oldest-1
			c.SetEndpoint(other)
		}
	}
}

// deliverShared delivers events to the new URL of an endpoint that relied on the deliveries of
// others to its previous URL: the events that these others have not accepted.
func deliverShared(l *store.Loaded, c *store.Changes, e, was *store.Endpoint) {
	shared := l.Shared(was)
	if n := len(shared); n == store.SharedMax {
		e.Position = min(e.Position, shared[n-1].Number) // the dispatcher reads the rest from the feed
	}
	for i := range shared {
		event := &shared[i]
		switch {
		case !event.Type.MatchedBy(was.Events):
		case was.Enabled && e.Enabled && e.Failures == 0: // else it catches up
			c.Deliver(e, event, nil)
		default: // it reads them when it is enabled
			e.Position = min(e.Position, event.Number-1)
		}
	}
}
