package delivery

import (
	"time"

	"github.com/porteira/porteira/internal/endpoint"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// endAtEndpoint records an attempt at an endpoint, and its effect on the endpoint's health.
// An event that was given up has no case: the health shows it.
func (v *End) endAtEndpoint(l *store.Loaded, c *store.Changes) error {
	d, ok := l.Delivery(v.Delivery.Merchant, v.Delivery.ID)
	if !ok || d.Attempts < v.Attempt.Number {
		return nil // it was removed for its age, or returned without an attempt
	}
	c.AddAttempt(v.Attempt)
	if d.ClaimedBy != v.Delivery.ClaimedBy || d.Attempts != v.Delivery.Attempts {
		return nil
	}
	e, exists := l.Endpoint(d.Merchant, v.Delivery.Endpoint)
	d.ClaimedBy, d.UpdatedAt = payment.ID{}, l.Now()
	if v.Delivery.Planned.IsZero() { // else it was sent before its time
		d.ScheduleStep++
	}
	d.State, d.NextAt = v.State, v.NextAt
	moved := exists && e.URL != v.Delivery.URL
	switch {
	case d.State == store.DeliveryDone:
	case moved && e.Enabled: // the new receiver gets it at once
		d.State, d.ScheduleStep, d.NextAt = store.DeliveryPending, 0, l.Now()
	case d.State == store.DeliveryExhausted:
	case !exists:
		d.State, d.NextAt = store.DeliveryDisabled, time.Time{}
	case !e.Enabled, d.State == store.DeliveryDisabled:
		d.State, d.NextAt = store.DeliveryPaused, time.Time{}
	}
	c.SetDelivery(d)
	switch {
	case v.State != store.DeliveryDone && v.State != store.DeliveryDisabled && d.RefusedAlone(): // says nothing about the others
		return nil
	case !exists, moved: // the answer of the previous receiver says nothing about the new one
		return nil
	case v.State == store.DeliveryDone:
		endpoint.Succeeded(l, c, e)
		return nil
	case v.State == store.DeliveryDisabled:
		return endpoint.Gone(l, c, e)
	default:
		endpoint.Failed(l, c, e, v.RetryAfter)
		return nil
	}
}
