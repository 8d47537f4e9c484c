package delivery

import (
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// returned is claimed deliveries of one merchant that are returned without an attempt, each due at
// its NextAt. They share an operation, so that a receiver that does not answer does not cost one
// for each.
type returned struct{ list []store.Delivery }

// Merchant implements [write.Operation].
func (v *returned) Merchant() payment.ID { return v.list[0].Merchant }

// Class implements [write.Operation].
func (v *returned) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *returned) Needs(n *store.Needs) {
	for i := range v.list {
		n.Delivery(v.list[i].Merchant, v.list[i].ID)
	}
}

// Decide undoes the claims. If another process has taken a delivery over, the
// attempt stays on record, and its number is not used again. A claim that is newer than the returned
// one is not undone: this operation is repeated if its outcome was unknown, and if it had succeeded,
// this process may have claimed the delivery again, under the same number.
func (v *returned) Decide(l *store.Loaded, c *store.Changes) error {
	for i := range v.list {
		mine := &v.list[i]
		d, ok := l.Delivery(mine.Merchant, mine.ID)
		if !ok || d.ClaimedBy != mine.ClaimedBy || d.Attempts != mine.Attempts || d.NextAt.IsZero() && d.UpdatedAt.After(mine.UpdatedAt) {
			continue
		}
		d.ClaimedBy, d.Attempts, d.NextAt = payment.ID{}, d.Attempts-1, time.Time{}
		d.UpdatedAt = l.Now()
		if d.State == store.DeliveryPending {
			d.NextAt = mine.NextAt
		}
		c.SetDelivery(d)
	}
	return nil
}
