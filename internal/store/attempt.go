package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// Attempt is one attempt to send an event to an address.
type Attempt struct {
	Merchant  payment.ID
	Delivery  payment.ID
	URL       string // of the delivery
	Number    int
	Status    int           // HTTP; 0 if there was no answer
	Latency   time.Duration // to the end of the answer
	Error     string
	Response  string // the first 4 KiB
	CreatedAt time.Time
	EndedAt   time.Time // zero while it is in flight, or if the process died in it
}

var attemptTable = newTable("delivery_attempts", []string{"delivery_id", "number"},
	idColumn("merchant_id", func(a *Attempt) *payment.ID { return &a.Merchant }),
	idColumn("delivery_id", func(a *Attempt) *payment.ID { return &a.Delivery }),
	intColumn("number", func(a *Attempt) *int { return &a.Number }),
	intColumn("status", func(a *Attempt) *int { return &a.Status }).as(mutable),
	latencyColumn("latency", func(a *Attempt) *time.Duration { return &a.Latency }).as(mutable),
	textColumn("error", func(a *Attempt) *string { return &a.Error }).as(mutable),
	textColumn("response", func(a *Attempt) *string { return &a.Response }).as(mutable),
	timeColumn("created_at", func(a *Attempt) *time.Time { return &a.CreatedAt }),
	timeColumn("ended_at", func(a *Attempt) *time.Time { return &a.EndedAt }).as(mutable),
)

// attemptUpdate ends an attempt that was recorded as cut off: its process was
// declared dead but lived. The first end stays.
var attemptUpdate = attemptTable.updateBy(" AND t.ended_at = 0", "merchant_id", "delivery_id", "number")

// latencyColumn keeps microseconds.
func latencyColumn[T any](name string, of func(*T) *time.Duration) column[T] {
	return column[T]{
		Column: db.Column{Name: name, Kind: "bigint"},
		value:  func(v *T) any { return of(v).Microseconds() },
		dest:   func(v *T) any { return (*latencyDest)(of(v)) },
	}
}

type latencyDest time.Duration

// Scan implements [sql.Scanner].
func (d *latencyDest) Scan(src any) error {
	v, ok := src.(int64)
	if !ok {
		return scanError(src, "a latency")
	}
	*d = latencyDest(time.Duration(v) * time.Microsecond)
	return nil
}

// AddAttempt records an attempt that has ended.
func (c *Changes) AddAttempt(a Attempt) {
	a.EndedAt = c.l.now
	c.attempts = append(c.attempts, a)
	c.count++
}

// saveAttempts writes the attempts, each once, when it has ended.
func (c *Changes) saveAttempts(ctx context.Context, tx *db.Tx) error {
	rows := make([][]any, len(c.attempts))
	for i := range c.attempts {
		rows[i] = attemptTable.row(&c.attempts[i])
	}
	added, err := tx.Insert(ctx, attemptTable.insert, rows...)
	if err != nil {
		return fmt.Errorf("attempts: %w", err)
	}
	type key struct {
		Ref

		number int
	}
	seen := map[key]bool{} // the first end stays, also of two in one commit
	var ended [][]any
	for i := range added {
		a := &c.attempts[i]
		if k := (key{Ref{a.Merchant, a.Delivery}, a.Number}); !added[i] && !seen[k] {
			seen[k] = true
			ended = append(ended, attemptUpdate.row(a))
		}
	}
	if _, err := tx.Update(ctx, attemptUpdate.RowUpdate, ended...); err != nil {
		return fmt.Errorf("attempts: %w", err)
	}
	return nil
}

// recordCutOff records, without an end, the attempts that a process had in flight when it died. It
// locks their deliveries first: if the process is alive after all and returns some meanwhile, those
// were not attempted.
func (tx *Tx) recordCutOff(ctx context.Context, node payment.ID) error {
	_, err := tx.Exec(ctx, "INSERT INTO delivery_attempts ("+attemptTable.names()+") SELECT "+attemptUnderWay+
		" FROM deliveries d WHERE d.claimed_by = $1 AND length(d.claimed_by) > 0"+tx.ForUpdate()+" ON CONFLICT DO NOTHING", node[:])
	return err
}

// attemptUnderWay is the attempt that a claimed delivery d records.
var attemptUnderWay = attemptTable.values(map[string]string{
	"merchant_id": "d.merchant_id", "delivery_id": "d.id", "number": "d.attempts", "status": "0", "latency": "0", "error": "''", "response": "''",
	"created_at": "d.updated_at", "ended_at": "0",
})

// AttemptsMax is how many attempts of an event are listed: the number of attempts of an event is
// not limited.
const AttemptsMax = 100

// Attempts lists the last AttemptsMax attempts to deliver an event, in order. Those in flight are
// the claimed deliveries.
func (s *Store) Attempts(ctx context.Context, merchant payment.ID, number int64) ([]Attempt, error) {
	rows, err := s.db.Query(ctx, "SELECT "+attemptTable.selected+`, d.url
		FROM deliveries d JOIN delivery_attempts t ON t.merchant_id = d.merchant_id AND t.delivery_id = d.id AND t.number > d.attempts - $3
		WHERE d.merchant_id = $1 AND d.event_number = $2
		UNION ALL SELECT `+attemptUnderWay+`, d.url FROM deliveries d
		WHERE d.merchant_id = $1 AND d.event_number = $2 AND length(d.claimed_by) > 0 AND NOT EXISTS (
			SELECT 1 FROM delivery_attempts a WHERE a.merchant_id = d.merchant_id AND a.delivery_id = d.id AND a.number = d.attempts)
		ORDER BY `+attemptTable.descending("created_at", "delivery_id", "number")+" LIMIT $3", merchant[:], number, AttemptsMax)
	list, err := db.Collect(rows, err, func(r db.Scanner) (Attempt, error) {
		var a Attempt
		err := attemptTable.scan(r, &a, &a.URL)
		return a, err
	})
	slices.Reverse(list)
	return list, s.db.ReadError("attempts", err)
}
