package store

import (
	"context"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// Deliveries lists a page of a merchant's deliveries, newest first, by the limit, the creation time and
// the last id of the page before of a filter.
func (s *Store) Deliveries(ctx context.Context, merchant payment.ID, f Filter) ([]*Delivery, error) {
	text, args := Filter{CreatedFrom: f.CreatedFrom, Before: f.Before, Limit: f.Limit}.where(deliveryTable.selected, "deliveries", merchant, false)
	rows, err := s.db.Query(ctx, text, args...)
	list, err := db.Collect(rows, err, scanDelivery)
	return list, s.db.ReadError("deliveries", err)
}

// DeliveryOf reads a delivery; else ErrNotFound.
func (s *Store) DeliveryOf(ctx context.Context, merchant, id payment.ID) (*Delivery, error) {
	d, err := scanDelivery(s.db.QueryRow(ctx, "SELECT "+deliveryTable.selected+" FROM deliveries t WHERE t.merchant_id = $1 AND t.id = $2", merchant[:], id[:]))
	return d, s.db.ReadError("delivery", err)
}

// DeliveriesOf lists the deliveries of an event, oldest first.
func (s *Store) DeliveriesOf(ctx context.Context, merchant payment.ID, number int64) ([]*Delivery, error) {
	rows, err := s.db.Query(ctx, "SELECT "+deliveryTable.selected+" FROM deliveries t WHERE t.merchant_id = $1 AND t.event_number = $2 ORDER BY t.id", merchant[:], number)
	list, err := db.Collect(rows, err, scanDelivery)
	return list, s.db.ReadError("deliveries", err)
}

// EventNumbered reads one event by its number; else ErrNotFound.
func (s *Store) EventNumbered(ctx context.Context, merchant payment.ID, number int64) (payment.Event, error) {
	e, err := scanEvent(s.Keys())(s.db.QueryRow(ctx, "SELECT "+eventTable.selected+" FROM events t WHERE t.merchant_id = $1 AND t.number = $2", merchant[:], number))
	return e, s.db.ReadError("event", err)
}
