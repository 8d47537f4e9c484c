package store

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// Dispute is a payer's contest of a pay-in, as its processor reports it.
type Dispute struct {
	Merchant   payment.ID
	ID         payment.ID
	Payin      payment.ID
	Processor  string
	ExternalID string
	Amount     money.Cents
	State      string // open, won, lost, reversed
	CreatedAt  time.Time
}

// Dispute reads and locks a dispute by its processor's id; else ErrNotFound.
func (tx *Tx) Dispute(ctx context.Context, merchant payment.ID, processor, externalID string) (Dispute, error) {
	d := Dispute{Merchant: merchant, Processor: processor, ExternalID: externalID}
	var id, payin []byte
	var created int64
	err := tx.queryRow(ctx, `SELECT id, payin_id, amount, state, created_at FROM disputes
		WHERE merchant_id = $1 AND processor = $2 AND external_id = $3`+tx.store.dialect.forUpdate(),
		merchant[:], processor, externalID).Scan(&id, &payin, (*int64)(&d.Amount), &d.State, &created)
	d.ID, d.Payin, d.CreatedAt = idOf(id), idOf(payin), atMicros(created)
	return d, notFound(err)
}

// DisputeState reads how a dispute stands by its processor's id; else ErrNotFound.
func (s *Store) DisputeState(ctx context.Context, merchant payment.ID, processor, externalID string) (state string, err error) {
	err = s.queryRow(ctx, "SELECT state FROM disputes WHERE merchant_id = $1 AND processor = $2 AND external_id = $3",
		merchant[:], processor, externalID).Scan(&state)
	return state, s.readError("dispute", err)
}

// InsertDispute adds a dispute; one that is there already is ErrConflict.
func (tx *Tx) InsertDispute(ctx context.Context, d Dispute) error {
	n, err := tx.changed(ctx, `INSERT INTO disputes (merchant_id, id, payin_id, processor, external_id, amount, state, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) ON CONFLICT DO NOTHING`,
		d.Merchant[:], d.ID[:], d.Payin[:], d.Processor, d.ExternalID, int64(d.Amount), d.State, micros(tx.Now))
	if err == nil && n != 1 {
		err = ErrConflict
	}
	return err
}

// UpdateDispute moves a dispute from one state to another; else ErrConflict.
func (tx *Tx) UpdateDispute(ctx context.Context, d Dispute, was string) error {
	return tx.guarded(ctx, `UPDATE disputes SET state = $1, updated_at = $2 WHERE merchant_id = $3 AND id = $4 AND state = $5`,
		d.State, micros(tx.Now), d.Merchant[:], d.ID[:], was)
}
