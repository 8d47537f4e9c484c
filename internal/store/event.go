package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// eventRow is an event as it is stored.
type eventRow struct {
	payment.Event

	sealed []byte // body
}

var eventTable = newTable("events", []string{"id"},
	idColumn("merchant_id", func(e *eventRow) *payment.ID { return &e.Merchant }),
	intColumn("number", func(e *eventRow) *int64 { return &e.Number }),
	idColumn("id", func(e *eventRow) *payment.ID { return &e.ID }),
	textColumn("type", func(e *eventRow) *payment.EventType { return &e.Type }),
	idColumn("subject_id", func(e *eventRow) *payment.ID { return &e.Subject }),
	intColumn("version", func(e *eventRow) *int64 { return &e.Version }),
	bytesColumn("body", func(e *eventRow) *[]byte { return &e.sealed }),
	timeColumn("created_at", func(e *eventRow) *time.Time { return &e.CreatedAt }),
)

var eventByNumber = eventTable.selectBy("t.merchant_id, t.number", "merchant_id", "number").ReadOnly()

func eventBody(e *payment.Event) db.AssociatedData {
	return db.AssociatedData{Table: "events", Merchant: e.Merchant, ID: e.ID, Column: "body"}
}

// scanEvent reads an event and opens its body.
func scanEvent(keys *db.Keyring) func(db.Scanner) (payment.Event, error) {
	return func(r db.Scanner) (payment.Event, error) {
		var e eventRow
		if err := eventTable.scan(r, &e); err != nil {
			return e.Event, err
		}
		var err error
		e.Body, err = keys.Open(eventBody(&e.Event), e.sealed)
		return e.Event, err
	}
}

// scanDueEvent is scanEvent, but also returns an event whose body cannot be decrypted, and records
// its number: one damaged row must not stop the others.
func scanDueEvent(keys *db.Keyring, damaged map[int64]bool) func(db.Scanner) (payment.Event, error) {
	scan := scanEvent(keys)
	return func(r db.Scanner) (payment.Event, error) {
		e, err := scan(r)
		if errors.Is(err, db.ErrSealed) {
			damaged[e.Number], err = true, nil
		}
		return e, err
	}
}

// pendingEvent is an event that gets its number when the commit is saved.
type pendingEvent struct {
	event payment.Event
	data  []byte
	url   string
}

// AddEvent adds an event about an order: data is the order as GET would answer
// now, url is the merchant's receiver ("" for none).
func (c *Changes) AddEvent(e payment.Event, data []byte, url string) {
	c.events = append(c.events, pendingEvent{e, data, url})
	c.count++
}

// DisableURL stops the deliveries of an order's events to a URL that this commit
// has added so far.
func (c *Changes) DisableURL(merchant, subject payment.ID, url string) {
	for i := range c.events {
		if e := &c.events[i]; e.event.Merchant == merchant && e.event.Subject == subject && e.url == url {
			e.url = ""
		}
	}
}

// saveEvents numbers the events of each merchant without gaps, and writes them
// with their deliveries.
func (c *Changes) saveEvents(ctx context.Context, tx *db.Tx) error {
	if len(c.events) == 0 {
		return nil
	}
	slices.SortStableFunc(c.events, func(a, b pendingEvent) int { return payment.CompareIDs(a.event.Merchant, b.event.Merchant) })
	numbers, err := c.numbers(ctx, tx)
	if err != nil {
		return fmt.Errorf("number events: %w", err)
	}
	events := make([][]any, len(c.events))
	var deliveries [][]any
	for i := range c.events {
		p := &c.events[i]
		e := eventRow{Event: p.event}
		e.ID, e.CreatedAt, e.Number = c.l.newID(), c.l.now, numbers[i]
		if e.Body, err = e.Envelope(p.data); err != nil {
			return fmt.Errorf("event: %w", err)
		}
		e.sealed = tx.Keys().Seal(eventBody(&e.Event), e.Body)
		events[i] = eventTable.row(&e)
		if p.url != "" {
			deliveries = append(deliveries, deliveryTable.row(c.newDelivery(&e.Event, p.url)))
		}
	}
	if err := tx.InsertNew(ctx, eventTable.insert, events...); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	if err := tx.InsertNew(ctx, deliveryTable.insert, deliveries...); err != nil {
		return fmt.Errorf("deliveries: %w", err)
	}
	return nil
}

var eventCounters = db.NewCounter("event_counters", db.Column{Name: "merchant_id", Kind: "bytea"}, db.Column{Name: "last_number", Kind: "bigint"})

// numbers takes numbers for the events, which are sorted by merchant, from the
// counters of their merchants.
func (c *Changes) numbers(ctx context.Context, tx *db.Tx) ([]int64, error) {
	var merchants []payment.ID
	var counts []int64
	for i := range c.events {
		if m := c.events[i].event.Merchant; i == 0 || m != merchants[len(merchants)-1] {
			merchants, counts = append(merchants, m), append(counts, 0)
		}
		counts[len(counts)-1]++
	}
	rows := make([][]any, len(merchants))
	for i := range merchants {
		rows[i] = []any{merchants[i][:], counts[i]}
	}
	last, err := tx.Add(ctx, eventCounters, rows...)
	if err != nil {
		return nil, err
	}
	numbers := make([]int64, 0, len(c.events))
	for i, m := range merchants {
		end := last[string(m[:])]
		for n := end - counts[i] + 1; n <= end; n++ {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// Events reads up to limit events of a merchant after a number, oldest first.
// Numbers have no gaps, so a reader that continues from the last one misses none: one whose body cannot
// be decrypted has the id of its order alone as data.
func (s *Store) Events(ctx context.Context, merchant payment.ID, after int64, limit int) ([]payment.Event, error) {
	rows, err := s.db.Query(ctx, "SELECT "+eventTable.selected+` FROM events t
		WHERE t.merchant_id = $1 AND t.number > $2 ORDER BY t.number LIMIT $3`, merchant[:], after, limit)
	damaged := map[int64]bool{}
	list, err := db.Collect(rows, err, scanDueEvent(s.Keys(), damaged))
	for i := range list {
		if e := &list[i]; err == nil && damaged[e.Number] {
			e.Body, err = e.Envelope([]byte(`{"id":"` + e.Subject.String() + `"}`))
		}
	}
	return list, s.db.ReadError("events", err)
}

// EventPosition is a reader's position among a merchant's events, or in its statement: the
// last number read, and the history of the database in which it was read.
type EventPosition struct{ History, Number int64 }

// Continue returns the position at which a reader continues in the present history. After a restore
// it is the last event that both histories have, so that the reader misses none.
func (s *Store) Continue(ctx context.Context, merchant payment.ID, at EventPosition) (EventPosition, error) {
	return s.continueAt(ctx, merchant, at, "last_number")
}

// ContinueStatement is Continue for a reader of the statement.
func (s *Store) ContinueStatement(ctx context.Context, merchant payment.ID, at EventPosition) (EventPosition, error) {
	return s.continueAt(ctx, merchant, at, "last_statement")
}

// continueAt is Continue by a column of the rows that a restore kept.
func (s *Store) continueAt(ctx context.Context, merchant payment.ID, at EventPosition, kept string) (EventPosition, error) {
	platform := payment.ID{}
	var now, last int64
	err := s.db.QueryRow(ctx, "SELECT i.history, coalesce((SELECT MIN(coalesce(k."+kept+`, 0)) FROM event_histories h
			LEFT JOIN event_histories k ON k.merchant_id = $1 AND k.history = h.history
			WHERE h.merchant_id = $2 AND h.history > $3), 0) FROM installation i`, merchant[:], platform[:], at.History).Scan(&now, &last)
	if err != nil {
		return at, s.db.ReadError("position", err)
	}
	if now != at.History {
		at.Number = min(at.Number, last)
	}
	return EventPosition{now, at.Number}, nil
}

// Event reads one event; ErrNotFound if the merchant has none with that id.
func (s *Store) Event(ctx context.Context, merchant, id payment.ID) (payment.Event, error) {
	e, err := scanEvent(s.Keys())(s.db.QueryRow(ctx, "SELECT "+eventTable.selected+` FROM events t
		WHERE t.merchant_id = $1 AND t.id = $2`, merchant[:], id[:]))
	return e, s.db.ReadError("event", err)
}

// LastEvent is the number of a merchant's latest event; 0 if it has none.
func (s *Store) LastEvent(ctx context.Context, merchant payment.ID) (number int64, err error) {
	err = s.db.QueryRow(ctx, "SELECT last_number FROM event_counters WHERE merchant_id = $1", merchant[:]).Scan(&number)
	if err = s.db.ReadError("last event", err); errors.Is(err, ErrNotFound) {
		err = nil
	}
	return number, err
}

// SubjectsAfter reads the subjects of up to limit events of a merchant after a
// number, and the number to continue from.
func (s *Store) SubjectsAfter(ctx context.Context, merchant payment.ID, after int64, limit int) (subjects []payment.ID, last int64, err error) {
	last = after
	rows, err := s.db.Query(ctx, "SELECT number, subject_id FROM events WHERE merchant_id = $1 AND number > $2 ORDER BY number LIMIT $3",
		merchant[:], after, limit)
	subjects, err = db.Collect(rows, err, func(r db.Scanner) (payment.ID, error) {
		var subject payment.ID
		err := r.Scan(&last, (*idDest)(&subject))
		return subject, err
	})
	return subjects, last, s.db.ReadError("events", err)
}
