package store

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// The kinds of exceptions.
const (
	ExceptionOverpaid      = "overpaid"           // more came than the order asked for
	ExceptionUnmatched     = "unmatched_receipt"  // money that names no order
	ExceptionPayoutUnknown = "payout_unknown"     // nobody knows whether it was paid
	ExceptionContradiction = "contradiction"      // a processor says two things
	ExceptionNotice        = "notice"             // a notice that cannot be applied
	ExceptionDispute       = "dispute_unexpected" // a dispute of an order that cannot have one
	ExceptionWebhook       = "webhook_exhausted"  // news that nobody took
)

// Exception is something that needs a person, and why. Its merchant is zero
// where none could be found.
type Exception struct {
	Merchant  payment.ID
	ID        payment.ID
	Kind      string
	Subject   payment.ID
	Amount    money.Cents
	Detail    string // what happened, and what to do
	CreatedAt time.Time
	ClosedAt  time.Time
}

// OpenException records something for a person, in the same commit as its cause.
func (tx *Tx) OpenException(ctx context.Context, e Exception) error {
	_, err := tx.openException(ctx, e)
	return err
}

func (tx *Tx) openException(ctx context.Context, e Exception) (payment.ID, error) {
	id := tx.NewID()
	_, err := tx.exec(ctx, `INSERT INTO exceptions (merchant_id, id, kind, subject_id, amount, detail, created_at, closed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0)`,
		e.Merchant[:], id[:], e.Kind, e.Subject[:], int64(e.Amount), e.Detail, micros(tx.Now))
	return id, err
}

// CloseException closes one, if it is open, with a note on what became of it.
func (tx *Tx) CloseException(ctx context.Context, merchant, id payment.ID, note string) error {
	_, err := tx.exec(ctx, "UPDATE exceptions SET closed_at = $1, note = $2 WHERE merchant_id = $3 AND id = $4 AND closed_at = 0",
		micros(tx.Now), note, merchant[:], id[:])
	return err
}

// exceptionUpdate closes what is open of a kind about a subject.
var exceptionUpdate = newRowUpdate(rowUpdate{
	table: "exceptions",
	owner: ofMerchant,
	keys:  []column{{"subject_id", "bytea"}, {"kind", "text"}},
	set:   []column{{"closed_at", "bigint"}},
}, " AND t.closed_at = 0")

// CloseExceptions closes what is open of a kind about a subject: it resolved itself.
func (tx *Tx) CloseExceptions(ctx context.Context, merchant, subject payment.ID, kind string) error {
	return tx.change(ctx, exceptionUpdate, merchant[:], subject[:], kind, micros(tx.Now))
}

// OpenExceptions lists what waits for a person, oldest first.
func (s *Store) OpenExceptions(ctx context.Context, limit int) ([]Exception, error) {
	rows, err := s.query(ctx, `SELECT merchant_id, id, kind, subject_id, amount, detail, created_at
		FROM exceptions WHERE closed_at = 0 ORDER BY created_at, id LIMIT $1`, limit)
	list, err := collect(rows, err, func(r scanner) (Exception, error) {
		var e Exception
		var merchant, id, subject []byte
		var created int64
		err := r.Scan(&merchant, &id, &e.Kind, &subject, (*int64)(&e.Amount), &e.Detail, &created)
		e.Merchant, e.ID, e.Subject, e.CreatedAt = idOf(merchant), idOf(id), idOf(subject), atMicros(created)
		return e, err
	})
	return list, s.readError("exceptions", err)
}

// HasException says whether an open exception of a kind concerns an order.
func (s *Store) HasException(ctx context.Context, merchant, subject payment.ID, kind string) (bool, error) {
	var n int
	err := s.queryRow(ctx, "SELECT count(*) FROM exceptions WHERE merchant_id = $1 AND closed_at = 0 AND subject_id = $2 AND kind = $3",
		merchant[:], subject[:], kind).Scan(&n)
	return n > 0, s.readError("exception", err)
}
