package store

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// Redelivery is a range of a merchant's events that is to be sent again.
type Redelivery struct {
	Merchant   payment.ID
	ID         payment.ID
	Endpoint   payment.ID // zero: every URL that has them
	Types      []string   // filters of events, see [payment.IsEventFilter]; all if it is empty
	First, End payment.ID // bounds of the events' ids, which contain their times; End is exclusive
	// Next and Last are the numbers of the first event that is not done, and of the last one.
	Next, Last int64
	CreatedAt  time.Time
}

var redeliveryTable = newTable("redeliveries", []string{"id"},
	idColumn("merchant_id", func(v *Redelivery) *payment.ID { return &v.Merchant }),
	idColumn("id", func(v *Redelivery) *payment.ID { return &v.ID }),
	optionalIDColumn("endpoint_id", func(v *Redelivery) *payment.ID { return &v.Endpoint }),
	wordsColumn("types", func(v *Redelivery) *[]string { return &v.Types }),
	idColumn("first_id", func(v *Redelivery) *payment.ID { return &v.First }),
	idColumn("end_id", func(v *Redelivery) *payment.ID { return &v.End }),
	intColumn("next_number", func(v *Redelivery) *int64 { return &v.Next }),
	intColumn("last_number", func(v *Redelivery) *int64 { return &v.Last }),
	timeColumn("created_at", func(v *Redelivery) *time.Time { return &v.CreatedAt }),
)

// includes reports whether an event is to be sent again.
func (v *Redelivery) includes(t payment.EventType) bool {
	return len(v.Types) == 0 || t.MatchedBy(v.Types)
}

func scanRedelivery(r db.Scanner) (Redelivery, error) {
	var v Redelivery
	return v, redeliveryTable.scan(r, &v)
}

// EventRange is the events of a range of time.
type EventRange struct {
	First, End payment.ID // bounds of ids
	Total      int        // events, at most the limit
	Next, Last int64      // their lowest and highest numbers
	Types      map[payment.EventType]int
}

// EventRange reads how many events a merchant has from a time until before another one, up
// to a limit.
func (s *Store) EventRange(ctx context.Context, merchant payment.ID, from, to time.Time, limit int) (EventRange, error) {
	v := EventRange{First: payment.ID(minID(from)), End: payment.ID(minID(to)), Types: map[payment.EventType]int{}}
	type group struct {
		kind       payment.EventType
		n          int
		next, last int64
	}
	rows, err := s.db.Query(ctx, `SELECT type, count(*), MIN(number), MAX(number) FROM
		(SELECT e.type, e.number FROM events e WHERE e.merchant_id = $1 AND e.id >= $2 AND e.id < $3 ORDER BY e.id LIMIT $4) AS part GROUP BY type`,
		merchant[:], v.First[:], v.End[:], limit)
	list, err := db.Collect(rows, err, func(r db.Scanner) (g group, err error) {
		return g, r.Scan(textDest[payment.EventType]{&g.kind}, &g.n, &g.next, &g.last)
	})
	for _, g := range list {
		v.Total += g.n
		v.Types[g.kind] = g.n
		if v.Next == 0 || g.next < v.Next {
			v.Next = g.next
		}
		v.Last = max(v.Last, g.last)
	}
	return v, s.db.ReadError("events", err)
}

// AddRedelivery adds a range of the events between two times, unless an earlier run did. It returns
// how many others the merchant has.
func (tx *AdminTx) AddRedelivery(ctx context.Context, v Redelivery, from, to time.Time) (others int, err error) {
	if err = tx.lockMerchant(ctx, v.Merchant); err != nil { // else requests at once do not count each other
		return 0, err
	}
	err = tx.QueryRow(ctx, "SELECT count(*) FROM redeliveries WHERE merchant_id = $1 AND id <> $2", v.Merchant[:], v.ID[:]).Scan(&others)
	if err != nil {
		return 0, err
	}
	v.CreatedAt = tx.Now
	added, err := tx.Insert(ctx, redeliveryTable.insert, redeliveryTable.row(&v))
	if err == nil && added[0] {
		of := struct {
			From     time.Time  `json:"from"`
			To       time.Time  `json:"to"`
			Types    []string   `json:"types"`
			Endpoint payment.ID `json:"endpointId,omitzero"`
		}{from, to, v.Types, v.Endpoint}
		tx.record(NounEvents, "redeliver", v.Merchant, v.ID.String(), nil, fieldsOf(of))
	}
	return others, err
}

// Redeliveries lists up to limit ranges that must be sent again. It begins after a merchant, with
// the oldest range of each merchant, then their second ones, and so on.
func (s *Store) Redeliveries(ctx context.Context, after payment.ID, limit int) ([]Redelivery, error) {
	rows, err := s.db.Query(ctx, "SELECT "+redeliveryTable.selected+` FROM
		(SELECT r.*, ROW_NUMBER() OVER (PARTITION BY r.merchant_id ORDER BY r.id) AS turn FROM redeliveries r) AS t
		ORDER BY t.turn, CASE WHEN t.merchant_id > $1 THEN 0 ELSE 1 END, t.merchant_id LIMIT $2`, after[:], limit)
	list, err := db.Collect(rows, err, scanRedelivery)
	return list, s.db.ReadError("redeliveries", err)
}

// RedeliverPart makes the next events of a range due again, up to limit of them, and removes the
// range when it is done. It returns how many events it has looked at.
func (tx *Tx) RedeliverPart(ctx context.Context, of Redelivery, limit int) (n int, err error) {
	v, err := scanRedelivery(tx.QueryRow(ctx, "SELECT "+redeliveryTable.selected+" FROM redeliveries t WHERE t.merchant_id = $1 AND t.id = $2"+tx.ForUpdate(),
		of.Merchant[:], of.ID[:]))
	if err != nil {
		return 0, db.NotFound(err)
	}
	rows, err := tx.Query(ctx, "SELECT "+eventHead+" FROM events e WHERE e.merchant_id = $1 AND e.number >= $2 AND e.number <= $3 ORDER BY e.number LIMIT $4",
		v.Merchant[:], v.Next, v.Last, limit)
	list, err := db.Collect(rows, err, scanEventHead)
	if err != nil {
		return 0, err
	}
	for i := range list {
		e := &list[i]
		e.Merchant, v.Next = v.Merchant, e.Number+1
		if payment.CompareIDs(e.ID, v.First) < 0 || payment.CompareIDs(e.ID, v.End) >= 0 || !v.includes(e.Type) {
			continue
		}
		if err := tx.redeliverTo(ctx, e, v.Endpoint); err != nil {
			return 0, err
		}
	}
	if len(list) < limit {
		return len(list), tx.ExecOne(ctx, "DELETE FROM redeliveries WHERE merchant_id = $1 AND id = $2", v.Merchant[:], v.ID[:])
	}
	return len(list), tx.ExecOne(ctx, "UPDATE redeliveries SET next_number = $1 WHERE merchant_id = $2 AND id = $3", v.Next, v.Merchant[:], v.ID[:])
}

// redeliverTo sends an event again to each URL that has it, or to one endpoint, even if that never
// had it. If the endpoint was disabled meanwhile, the event is sent once it is enabled.
func (tx *Tx) redeliverTo(ctx context.Context, e *payment.Event, endpoint payment.ID) error {
	if endpoint.IsZero() {
		_, err := tx.Redeliver(ctx, e)
		return err
	}
	rows, err := tx.Query(ctx, "SELECT "+endpointTable.selected+" FROM webhook_endpoints t WHERE t.merchant_id = $1 AND t.id = $2"+tx.ForUpdate(), e.Merchant[:], endpoint[:])
	to, err := db.Collect(rows, err, scanEndpoint(tx.Keys()))
	if err != nil || len(to) == 0 {
		return err
	}
	state, at := DeliveryPending, tx.Now
	if !to[0].Enabled {
		state, at = DeliveryPaused, time.Time{}
	}
	n, err := tx.ExecCount(ctx, `UPDATE deliveries SET state = $1, next_at = $2, schedule_step = 0, restarts = 0, updated_at = $3
		WHERE merchant_id = $4 AND event_number = $5 AND endpoint_id = $6 AND length(claimed_by) = 0`,
		string(state), micros(at), micros(tx.Now), e.Merchant[:], e.Number, endpoint[:])
	if err != nil || n > 0 {
		return err
	}
	err = tx.QueryRow(ctx, "SELECT count(*) FROM deliveries WHERE merchant_id = $1 AND event_number = $2 AND endpoint_id = $3",
		e.Merchant[:], e.Number, endpoint[:]).Scan(&n)
	if err != nil || n > 0 {
		return err // claimed now
	}
	d := &Delivery{
		Merchant: e.Merchant, ID: tx.NewID(), EventNumber: e.Number, Subject: e.Subject, Endpoint: endpoint, URL: to[0].URL,
		State: state, NextAt: at, CreatedAt: tx.Now, UpdatedAt: tx.Now,
	}
	return tx.InsertNew(ctx, deliveryTable.insert, deliveryTable.row(d))
}
