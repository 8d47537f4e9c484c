package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/porteira/porteira/internal/payment"
)

// announcement is news to be numbered at the end of the transaction.
type announcement struct {
	event payment.Event
	data  []byte
	url   string
}

// Announce adds news of an order: data is the order as GET would answer now,
// url where the merchant wants it delivered ("" for nowhere). The event's
// number is known only when the transaction commits.
func (tx *Tx) Announce(e payment.Event, data []byte, url string) {
	e.ID, e.CreatedAt = tx.NewID(), tx.Now
	tx.news = append(tx.news, announcement{e, data, url})
}

// HasDeliveries says whether this transaction makes deliveries due.
func (tx *Tx) HasDeliveries() bool {
	for i := range tx.news {
		if tx.news[i].url != "" {
			return true
		}
	}
	return tx.redelivered
}

var (
	eventTable = newTable("events", "id",
		column{"merchant_id", "bytea"}, column{"number", "bigint"}, column{"id", "bytea"}, column{"type", "text"},
		column{"subject_id", "bytea"}, column{"version", "bigint"}, column{"body", "bytea"}, column{"created_at", "bigint"})
	deliveryTable = newTable("deliveries", "id",
		column{"merchant_id", "bytea"}, column{"id", "bytea"}, column{"event_number", "bigint"}, column{"subject_id", "bytea"},
		column{"url", "text"}, column{"state", "text"}, column{"attempts", "bigint"}, column{"next_at", "bigint"},
		column{"claimed_by", "bytea"}, column{"created_at", "bigint"}, column{"updated_at", "bigint"})
)

// publish numbers the news of each merchant and writes events and deliveries.
// The counters are the last rows that a transaction locks, in order.
func (tx *Tx) publish(ctx context.Context) error {
	if len(tx.news) == 0 {
		return nil
	}
	sort.SliceStable(tx.news, func(i, j int) bool {
		return bytes.Compare(tx.news[i].event.Merchant[:], tx.news[j].event.Merchant[:]) < 0
	})
	var events, deliveries [][]any
	for first := 0; first < len(tx.news); {
		merchant := tx.news[first].event.Merchant
		end := first
		for end < len(tx.news) && tx.news[end].event.Merchant == merchant {
			end++
		}
		var last int64
		err := tx.queryRow(ctx, `INSERT INTO event_counters (merchant_id, last_number) VALUES ($1, $2)
			ON CONFLICT (merchant_id) DO UPDATE SET last_number = event_counters.last_number + $2
			RETURNING last_number`, merchant[:], int64(end-first)).Scan(&last)
		if err != nil {
			return fmt.Errorf("number events: %w", err)
		}
		for i := first; i < end; i++ {
			a := &tx.news[i]
			a.event.Number = last - int64(end-1-i)
			row, err := tx.eventRow(a)
			if err != nil {
				return err
			}
			events = append(events, row)
			if a.url != "" {
				deliveries = append(deliveries, tx.deliveryRow(a))
			}
		}
		first = end
	}
	if err := tx.insertNew(ctx, eventTable, events...); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	if err := tx.insertNew(ctx, deliveryTable, deliveries...); err != nil {
		return fmt.Errorf("deliveries: %w", err)
	}
	return nil
}

func (tx *Tx) eventRow(a *announcement) ([]any, error) {
	e := &a.event
	body, err := e.Envelope(a.data)
	if err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	e.Body = body
	sealed := tx.store.keys.Seal(Place{"events", e.Merchant, e.ID, "body"}, body)
	return []any{e.Merchant[:], e.Number, e.ID[:], string(e.Type), e.Subject[:], e.Version, sealed, micros(e.CreatedAt)}, nil
}

// deliveryRow makes a delivery of an event that has its number and body; see Hold.
func (tx *Tx) deliveryRow(a *announcement) []any {
	e := &a.event
	d := Delivery{Merchant: e.Merchant, ID: tx.NewID(), EventNumber: e.Number, Subject: e.Subject, URL: a.url, State: DeliveryPending, Event: *e}
	tx.holdDelivery(&d)
	now, next, by := micros(tx.Now), micros(tx.Now), []byte{}
	if d.Attempts > 0 {
		next, by = 0, d.ClaimedBy[:]
	}
	return []any{e.Merchant[:], d.ID[:], e.Number, e.Subject[:], a.url, DeliveryPending, int64(d.Attempts), next, by, now, now}
}

const eventColumns = "number, id, type, subject_id, version, body, created_at"

func (s *Store) scanEvent(merchant payment.ID) func(scanner) (payment.Event, error) {
	return func(r scanner) (payment.Event, error) {
		e := payment.Event{Merchant: merchant}
		var id, subject, body []byte
		var at int64
		if err := r.Scan(&e.Number, &id, (*string)(&e.Type), &subject, &e.Version, &body, &at); err != nil {
			return e, err
		}
		e.ID, e.Subject, e.CreatedAt = idOf(id), idOf(subject), atMicros(at)
		var err error
		e.Body, err = s.keys.Open(Place{"events", merchant, e.ID, "body"}, body)
		return e, err
	}
}

// Events reads up to limit events of a merchant after a number, oldest first.
// Numbers have no gaps, so whoever goes on from the last one misses nothing.
func (s *Store) Events(ctx context.Context, merchant payment.ID, after int64, limit int) ([]payment.Event, error) {
	rows, err := s.query(ctx, "SELECT "+eventColumns+` FROM events
		WHERE merchant_id = $1 AND number > $2 ORDER BY number LIMIT $3`, merchant[:], after, limit)
	list, err := collect(rows, err, s.scanEvent(merchant))
	return list, s.readError("events", err)
}

// Event reads one event; ErrNotFound where the merchant has none of that id.
func (s *Store) Event(ctx context.Context, merchant, id payment.ID) (payment.Event, error) {
	e, err := s.scanEvent(merchant)(s.queryRow(ctx, "SELECT "+eventColumns+` FROM events
		WHERE merchant_id = $1 AND id = $2`, merchant[:], id[:]))
	return e, s.readError("event", err)
}

// LastEvent is the number of a merchant's latest event; 0 where it has none.
func (s *Store) LastEvent(ctx context.Context, merchant payment.ID) (number int64, err error) {
	err = s.queryRow(ctx, "SELECT last_number FROM event_counters WHERE merchant_id = $1", merchant[:]).Scan(&number)
	if err = s.readError("last event", err); errors.Is(err, ErrNotFound) {
		err = nil
	}
	return number, err
}

// SubjectsAfter reads what up to limit events of a merchant after a number are
// about, and the number to go on from.
func (s *Store) SubjectsAfter(ctx context.Context, merchant payment.ID, after int64, limit int) (subjects []payment.ID, last int64, err error) {
	last = after
	rows, err := s.query(ctx, "SELECT number, subject_id FROM events WHERE merchant_id = $1 AND number > $2 ORDER BY number LIMIT $3",
		merchant[:], after, limit)
	subjects, err = collect(rows, err, func(r scanner) (payment.ID, error) {
		var subject []byte
		err := r.Scan(&last, &subject)
		return idOf(subject), err
	})
	return subjects, last, s.readError("events", err)
}
