package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// States of a delivery.
const (
	DeliveryPending   = "pending"
	DeliveryDone      = "delivered"
	DeliveryExhausted = "exhausted" // every attempt of the schedule failed
	DeliveryEnded     = "ended"     // the receiver answered 410
)

// Delivery is one event on its way to one address.
type Delivery struct {
	Merchant    payment.ID
	ID          payment.ID
	EventNumber int64
	Subject     payment.ID
	URL         string
	State       string
	Attempts    int // made, the one in hand included
	// Ended counts those since the event was last asked for, or happened,
	// without those in which their process died: they may never have been
	// made, so they use none of the schedule up.
	Ended     int
	NextAt    time.Time
	ClaimedBy payment.ID    // the process that has it in hand
	TakenAt   time.Time     // in hand: when the attempt that is under way began
	Event     payment.Event // id and body, when claimed
}

// Attempt is one time that an event was sent to an address.
type Attempt struct {
	Delivery  payment.ID
	URL       string
	Number    int
	Status    int           // 0 where there was no answer
	Latency   time.Duration // to the end of the answer
	Error     string
	Response  string // the first 4 KiB
	CreatedAt time.Time
	EndedAt   time.Time // zero while it is under way, or where the process died in it
}

// DeliveriesDue lists merchants that have deliveries due.
func (s *Store) DeliveriesDue(ctx context.Context, now time.Time) ([]payment.ID, error) {
	rows, err := s.query(ctx, merchantsDue("deliveries", "")+" ORDER BY merchant_id", micros(now))
	list, err := collect(rows, err, scanID)
	return list, s.readError("due deliveries", err)
}

var attemptTable = newTable("delivery_attempts", "delivery_id",
	column{"merchant_id", "bytea"}, column{"delivery_id", "bytea"}, column{"number", "bigint"}, column{"status", "bigint"},
	column{"latency", "bigint"}, column{"error", "text"}, column{"response", "text"}, column{"created_at", "bigint"}, column{"ended_at", "bigint"})

// ClaimDeliveries takes up to limit due deliveries of a merchant in hand for
// node, before a byte leaves. A delivery in hand is the record of the attempt
// under way: attempts is its number, updated_at its time. Its row is written
// once, by who ends it: [Tx.FinishDelivery], or [Tx.ReleaseNode].
func (tx *Tx) ClaimDeliveries(ctx context.Context, merchant, node payment.ID, limit int) ([]Delivery, error) {
	rows, err := tx.query(ctx, `WITH picked AS MATERIALIZED (
		SELECT id FROM deliveries WHERE merchant_id = $2 AND next_at > 0 AND next_at <= $3 ORDER BY next_at LIMIT $4`+
		tx.store.dialect.skipLocked()+`)
		UPDATE deliveries SET claimed_by = $1, next_at = 0, attempts = attempts + 1, updated_at = $3
		WHERE merchant_id = $2 AND id IN (SELECT id FROM picked) RETURNING id, event_number, subject_id, url, attempts, tries`,
		node[:], merchant[:], micros(tx.Now), limit)
	list, err := collect(rows, err, func(r scanner) (Delivery, error) {
		d := Delivery{Merchant: merchant, State: DeliveryPending, TakenAt: tx.Now}
		var id, subject []byte
		var attempts, tries int64
		err := r.Scan(&id, &d.EventNumber, &subject, &d.URL, &attempts, &tries)
		d.ID, d.Subject, d.Attempts, d.Ended = idOf(id), idOf(subject), int(attempts), int(tries)+1
		return d, err
	})
	if err != nil {
		return nil, err
	}
	for i := range list {
		d := &list[i]
		d.Event, err = tx.store.scanEvent(merchant)(tx.queryRow(ctx, "SELECT "+eventColumns+` FROM events
			WHERE merchant_id = $1 AND number = $2`, merchant[:], d.EventNumber))
		if err != nil {
			return nil, fmt.Errorf("event of delivery: %w", err)
		}
	}
	return list, nil
}

// Finished is what became of a delivery at the end of an attempt.
type Finished struct {
	State string
	// Exception is the one that a person was last told of because the delivery
	// was given up, open or not; zero where there was none.
	Exception payment.ID
}

// End is how an attempt ended, and what follows: Delivery.State, and
// Delivery.NextAt where it is to be tried again.
type End struct {
	Delivery Delivery
	Attempt  Attempt
}

func (e *End) row(now time.Time) []any {
	d, a := &e.Delivery, &e.Attempt
	return []any{d.Merchant[:], d.ID[:], int64(d.Attempts), int64(a.Status), a.Latency.Microseconds(), a.Error, a.Response, micros(d.TakenAt), micros(now)}
}

// FinishDelivery writes how an attempt ended and what follows. What has ended
// stays so. Where node has lost the delivery to another, only the attempt is
// written, as it was made, and the zero value is returned.
func (tx *Tx) FinishDelivery(ctx context.Context, d Delivery, a Attempt, node payment.ID) (f Finished, err error) {
	var exception []byte
	err = tx.queryRow(ctx, `UPDATE deliveries SET state = CASE WHEN state = 'ended' THEN state ELSE $1 END,
		next_at = CASE WHEN state = 'ended' THEN next_at ELSE $2 END, claimed_by = $3, tries = tries + 1, updated_at = $4
		WHERE merchant_id = $5 AND id = $6 AND claimed_by = $7 AND attempts = $8 RETURNING state, exception_id`,
		d.State, micros(d.NextAt), []byte{}, micros(tx.Now), d.Merchant[:], d.ID[:], node[:], int64(d.Attempts)).Scan(&f.State, &exception)
	row := (&End{d, a}).row(tx.Now)
	if errors.Is(err, sql.ErrNoRows) {
		return f, tx.endAttempt(ctx, row)
	}
	tx.attempts = append(tx.attempts, row)
	f.Exception = idOf(exception)
	return f, err
}

// FinishDeliveries is FinishDelivery for deliveries of one merchant, each in
// hand of who claimed it, in one round trip where that counts.
func (tx *Tx) FinishDeliveries(ctx context.Context, ends []End) ([]Finished, error) {
	list := make([]Finished, len(ends))
	done, err := tx.finishTogether(ctx, ends, list)
	for i := range ends {
		if err == nil && !done[i] {
			list[i], err = tx.FinishDelivery(ctx, ends[i].Delivery, ends[i].Attempt, ends[i].Delivery.ClaimedBy)
		}
	}
	return list, err
}

// finishTogether finishes those that are in hand, and says which: one that is
// not, or comes twice, is another matter.
func (tx *Tx) finishTogether(ctx context.Context, ends []End, list []Finished) (done []bool, err error) {
	done = make([]bool, len(ends))
	if !tx.store.dialect.remote() || len(ends) < 2 {
		return done, nil
	}
	index := make(map[payment.ID]int, len(ends))
	var values [][]any
	for i := range ends {
		d := &ends[i].Delivery
		if _, twice := index[d.ID]; !twice {
			index[d.ID] = i
			values = append(values, []any{d.Merchant[:], d.ID[:], d.ClaimedBy[:], int64(d.Attempts), d.State, micros(d.NextAt)})
		}
	}
	rows, err := tx.query(ctx, `UPDATE deliveries AS t SET state = CASE WHEN t.state = 'ended' THEN t.state ELSE v.state END,
		next_at = CASE WHEN t.state = 'ended' THEN t.next_at ELSE v.next_at END, claimed_by = $2, tries = t.tries + 1, updated_at = $3
		FROM unnest($1::bytea[], $4::bytea[], $5::bytea[], $6::bigint[], $7::text[], $8::bigint[]) AS v (owner, id, node, attempts, state, next_at)
		WHERE t.merchant_id = v.owner AND t.id = v.id AND t.claimed_by = v.node AND t.attempts = v.attempts RETURNING t.id, t.state, t.exception_id`,
		columnOf("bytea", values, 0), []byte{}, micros(tx.Now), columnOf("bytea", values, 1), columnOf("bytea", values, 2),
		columnOf("bigint", values, 3), columnOf("text", values, 4), columnOf("bigint", values, 5))
	type finished struct {
		id payment.ID
		Finished
	}
	found, err := collect(rows, err, func(r scanner) (v finished, err error) {
		var id, exception []byte
		err = r.Scan(&id, &v.State, &exception)
		v.id, v.Exception = idOf(id), idOf(exception)
		return v, err
	})
	for _, v := range found {
		i := index[v.id]
		list[i], done[i] = v.Finished, true
		tx.attempts = append(tx.attempts, ends[i].row(tx.Now))
	}
	return done, err
}

// saveAttempts writes the attempts that were gathered, of each delivery one. A
// process of an earlier version may have written a row when the attempt began.
func (tx *Tx) saveAttempts(ctx context.Context) error {
	added, err := tx.insert(ctx, attemptTable, tx.attempts...)
	for i, row := range tx.attempts {
		if err == nil && !added[i] {
			err = tx.endAttempt(ctx, row)
		}
	}
	if err != nil {
		return fmt.Errorf("attempts: %w", err)
	}
	return nil
}

// endAttempt writes an attempt that may be on record: its delivery was lost, or
// its end is recorded again, and the first end stays. A delivery that has been
// removed since has no attempts any more.
func (tx *Tx) endAttempt(ctx context.Context, row []any) error {
	_, err := tx.exec(ctx, `INSERT INTO delivery_attempts (merchant_id, delivery_id, number, status, latency, error, response, created_at, ended_at)
		SELECT merchant_id, id, $3, $4, $5, $6, $7, $8, $9 FROM deliveries WHERE merchant_id = $1 AND id = $2 AND attempts >= $3
		ON CONFLICT (merchant_id, delivery_id, number) DO UPDATE SET status = $4, latency = $5, error = $6, response = $7, ended_at = $9
		WHERE delivery_attempts.ended_at = 0`, row...)
	return err
}

// recordCutOff writes the attempts that a process had under way when it died,
// without an end. It locks their deliveries first: what the process, if it lives
// after all, gives back meanwhile was not tried.
func (tx *Tx) recordCutOff(ctx context.Context, node payment.ID) error {
	_, err := tx.exec(ctx, `INSERT INTO delivery_attempts (merchant_id, delivery_id, number, status, latency, error, response, created_at, ended_at)
		SELECT merchant_id, id, attempts, 0, 0, '', '', updated_at, 0 FROM deliveries WHERE claimed_by = $1 AND length(claimed_by) > 0`+
		tx.store.dialect.forUpdate()+" ON CONFLICT DO NOTHING", node[:])
	return err
}

// GiveUpDelivery tells a person that a delivery was given up, if the exception
// that it was told by before is not open any more.
func (tx *Tx) GiveUpDelivery(ctx context.Context, d Delivery, before payment.ID, e Exception) error {
	var open int64
	err := tx.queryRow(ctx, "SELECT count(*) FROM exceptions WHERE merchant_id = $1 AND id = $2 AND closed_at = 0", e.Merchant[:], before[:]).Scan(&open)
	if err != nil || open > 0 {
		return err
	}
	if e.ID, err = tx.openException(ctx, e); err != nil {
		return err
	}
	_, err = tx.exec(ctx, "UPDATE deliveries SET exception_id = $1 WHERE merchant_id = $2 AND id = $3", e.ID[:], d.Merchant[:], d.ID[:])
	return err
}

// returnUpdate frees a delivery in hand as if it had not been claimed.
var returnUpdate = newRowUpdate(rowUpdate{
	table: "deliveries", owner: ofMerchant,
	keys:   []column{{"id", "bytea"}, {"claimed_by", "bytea"}, {"attempts", "bigint"}},
	set:    []column{{"claimed_by", "bytea"}, {"attempts", "bigint"}, {"next_at", "bigint"}},
	missed: returnEnded,
}, " AND t.state = 'pending'")

// ReturnDelivery gives a claimed delivery back untried, as if it had not been
// claimed, to be taken at a time. Where node has lost it, nothing happens: its
// attempt stays on record, and its number is not given out again.
func (tx *Tx) ReturnDelivery(ctx context.Context, d Delivery, at time.Time, node payment.ID) error {
	return tx.change(ctx, returnUpdate, d.Merchant[:], d.ID[:], node[:], int64(d.Attempts), []byte{}, int64(d.Attempts-1), micros(at))
}

// returnEnded frees one that has ended meanwhile: it is never due again.
func returnEnded(ctx context.Context, tx *Tx, row []any) error {
	_, err := tx.exec(ctx, `UPDATE deliveries SET claimed_by = $5, attempts = $6, next_at = 0
		WHERE merchant_id = $1 AND id = $2 AND claimed_by = $3 AND attempts = $4 AND state <> 'pending'`, row[:6]...)
	return err
}

// EndDeliveries ends all deliveries of an order to an address that wants no
// more of them, those to come too. The order comes first: who is changing it now
// is waited for, and its news ends with the rest.
func (tx *Tx) EndDeliveries(ctx context.Context, merchant, subject payment.ID, url string) error {
	for i := range tx.news {
		if a := &tx.news[i]; a.event.Merchant == merchant && a.event.Subject == subject && a.url == url {
			a.url = ""
		}
	}
	for _, text := range []string{
		"UPDATE payins SET webhook_ended = 1 WHERE merchant_id = $1 AND id = $2 AND webhook_url = $3",
		"UPDATE payouts SET webhook_ended = 1 WHERE merchant_id = $1 AND id = $2 AND webhook_url = $3",
		"UPDATE deliveries SET state = 'ended', next_at = 0 WHERE merchant_id = $1 AND subject_id = $2 AND url = $3 AND state = 'pending'",
	} {
		if _, err := tx.exec(ctx, text, merchant[:], subject[:], url); err != nil {
			return err
		}
	}
	return nil
}

// Redeliver makes an event's deliveries due again and begins their schedule
// anew. It says how many there are. Attempts go on being numbered. Where they
// were removed for their age, the event gets a new one, to the order's address;
// none where the receiver wants no more news of the order.
func (tx *Tx) Redeliver(ctx context.Context, e *payment.Event) (int64, error) {
	tx.redelivered = true
	n, err := tx.changed(ctx, `UPDATE deliveries SET state = 'pending', next_at = $1, tries = 0, updated_at = $1
		WHERE merchant_id = $2 AND event_number = $3 AND length(claimed_by) = 0`, micros(tx.Now), e.Merchant[:], e.Number)
	if err != nil || n > 0 {
		return n, err
	}
	url, err := tx.newsAddress(ctx, e.Merchant, e.Subject) // who asks for the same event at the same time waits for the order
	if err != nil || url == "" {
		return 0, err
	}
	err = tx.queryRow(ctx, "SELECT count(*) FROM deliveries WHERE merchant_id = $1 AND event_number = $2", e.Merchant[:], e.Number).Scan(&n)
	if err != nil || n > 0 {
		return 0, err // in hand right now
	}
	return 1, tx.insertNew(ctx, deliveryTable, tx.deliveryRow(&announcement{event: *e, url: url}))
}

// newsAddress is where news of an order goes, "" for nowhere; the order is locked.
func (tx *Tx) newsAddress(ctx context.Context, merchant, order payment.ID) (url string, err error) {
	for _, table := range []string{"payins", "payouts"} {
		var ended int64
		err := tx.queryRow(ctx, "SELECT webhook_url, webhook_ended FROM "+table+" WHERE merchant_id = $1 AND id = $2"+tx.store.dialect.forUpdate(),
			merchant[:], order[:]).Scan(&url, &ended)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if ended != 0 {
			url = ""
		}
		return url, err
	}
	return "", nil
}

// Attempts lists where and when an event was sent, with what answer. Those under
// way are the deliveries in hand.
func (s *Store) Attempts(ctx context.Context, merchant payment.ID, number int64) ([]Attempt, error) {
	rows, err := s.query(ctx, `SELECT a.delivery_id, d.url, a.number, a.status, a.latency, a.error, a.response, a.created_at, a.ended_at
		FROM deliveries d JOIN delivery_attempts a ON a.merchant_id = d.merchant_id AND a.delivery_id = d.id
		WHERE d.merchant_id = $1 AND d.event_number = $2
		UNION ALL SELECT d.id, d.url, d.attempts, 0, 0, '', '', d.updated_at, 0 FROM deliveries d
		WHERE d.merchant_id = $1 AND d.event_number = $2 AND length(d.claimed_by) > 0 AND NOT EXISTS (
			SELECT 1 FROM delivery_attempts a WHERE a.merchant_id = d.merchant_id AND a.delivery_id = d.id AND a.number = d.attempts)
		ORDER BY 8, 1, 3`, merchant[:], number)
	list, err := collect(rows, err, func(r scanner) (Attempt, error) {
		var a Attempt
		var id []byte
		var attempt, status, latency, created, ended int64
		err := r.Scan(&id, &a.URL, &attempt, &status, &latency, &a.Error, &a.Response, &created, &ended)
		a.Delivery, a.Number, a.Status = idOf(id), int(attempt), int(status)
		a.Latency, a.CreatedAt, a.EndedAt = time.Duration(latency)*time.Microsecond, atMicros(created), atMicros(ended)
		return a, err
	})
	return list, s.readError("attempts", err)
}
