package delivery

import (
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// End is the end of an attempt, and its consequences.
type End struct {
	Delivery store.Delivery // as it was claimed
	Attempt  store.Attempt
	State    store.DeliveryState // after the attempt
	NextAt   time.Time           // of the next attempt, if there is one
	// RetryAfter is the wait that the receiver asked for; 0 if it named none.
	RetryAfter time.Duration
}

// Merchant implements [write.Operation].
func (v *End) Merchant() payment.ID { return v.Delivery.Merchant }

// Class implements [write.Operation].
func (v *End) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *End) Needs(n *store.Needs) {
	d := &v.Delivery
	n.Delivery(d.Merchant, d.ID)
	if !d.Endpoint.IsZero() {
		n.Endpoints(d.Merchant)
		if v.State == store.DeliveryDisabled {
			n.Undelivered(d.Merchant, d.Endpoint)
		}
		return
	}
	switch v.State {
	case store.DeliveryExhausted:
		n.DeliveryCase(d.Merchant, d.ID)
	case store.DeliveryDisabled:
		n.PendingDeliveries(d.Merchant, d.Subject, d.URL)
	}
}

// Decide records the attempt and updates its delivery. If another process has taken the delivery
// over, only the attempt is recorded. But any attempt may disable an order's events.
func (v *End) Decide(l *store.Loaded, c *store.Changes) error {
	if !v.Delivery.Endpoint.IsZero() {
		return v.endAtEndpoint(l, c)
	}
	v.end(l, c)
	if v.State == store.DeliveryDisabled {
		disable(l, c, v.Delivery)
	}
	return nil
}

func (v *End) end(l *store.Loaded, c *store.Changes) {
	d, ok := l.Delivery(v.Delivery.Merchant, v.Delivery.ID)
	if !ok || d.Attempts < v.Attempt.Number {
		return // it was removed for its age, or returned without an attempt
	}
	c.AddAttempt(v.Attempt)
	if d.ClaimedBy != v.Delivery.ClaimedBy || d.Attempts != v.Delivery.Attempts {
		return
	}
	d.ClaimedBy, d.ScheduleStep, d.UpdatedAt = payment.ID{}, d.ScheduleStep+1, l.Now()
	if d.State != store.DeliveryDisabled { // which is final
		d.State, d.NextAt = v.State, v.NextAt
	}
	switch {
	case d.State == store.DeliveryExhausted && !l.HasOpenCase(d):
		d.Case = c.OpenCase(store.Case{
			Merchant: d.Merchant, Kind: store.CaseWebhook, Subject: d.Subject,
			Params: store.Params{"event": payment.PublicEventID(v.Delivery.Event.ID)},
		})
	case d.Case.IsZero(): // it never had one
	case d.State == store.DeliveryDone:
		c.CloseCase(d.Merchant, d.Case, store.ResolvedByDelivery)
	case d.State == store.DeliveryDisabled:
		c.CloseCase(d.Merchant, d.Case, store.ResolvedByReceiver)
	}
	c.SetDelivery(d)
}

// disable ends all present and future deliveries of an order to a URL that disabled them.
func disable(l *store.Loaded, c *store.Changes, d store.Delivery) {
	if p, ok := l.Payin(d.Merchant, d.Subject); ok && p.WebhookURL == d.URL {
		p.WebhookDisabled = true
		c.SetPayin(p)
	}
	if p, ok := l.Payout(d.Merchant, d.Subject); ok && p.WebhookURL == d.URL {
		p.WebhookDisabled = true
		c.SetPayout(p)
	}
	if r, ok := l.Refund(d.Merchant, d.Subject); ok && r.WebhookURL == d.URL {
		r.WebhookDisabled = true
		c.SetRefund(r)
	}
	c.DisableURL(d.Merchant, d.Subject, d.URL)
	for _, other := range l.PendingDeliveries(d.Merchant, d.Subject, d.URL) {
		other.State, other.NextAt = store.DeliveryDisabled, time.Time{}
		c.SetDelivery(other)
	}
	c.CloseCases(d.Merchant, d.Subject, store.CaseWebhook, store.ResolvedByReceiver)
}
