package store

import (
	"context"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// scanDuePayout is scanPayout without an error for a row that cannot be decoded or decrypted:
// one damaged row must not stop the others.
func scanDuePayout(keys *db.Keyring) func(db.Scanner) (*payoutRow, error) {
	return func(r db.Scanner) (*payoutRow, error) { return scanDamagedPayout(r, keys) }
}

func scanDamagedPayout(r db.Scanner, keys *db.Keyring, more ...any) (*payoutRow, error) {
	p := &payoutRow{}
	damaged, err := payoutTable.scanDue(r, p, more...)
	p.damaged = damaged || err == nil && p.open(keys) != nil
	return p, err
}

// DamagedPayout reads a payout without the columns that cannot be decoded or decrypted, to end it.
func (n *Needs) DamagedPayout(merchant, id payment.ID) {
	n.payouts.damaged = append(n.payouts.damaged, Ref{merchant, id})
}

// PayoutDamaged reports whether the row of a loaded due payout cannot be decoded or decrypted.
func (l *Loaded) PayoutDamaged(merchant, id payment.ID) bool {
	p := l.payouts.rows[Ref{merchant, id}]
	return p != nil && p.damaged
}

// PayoutForged reports whether the approval of a loaded payout, or what it pays, was changed outside
// the gateway.
func (l *Loaded) PayoutForged(merchant, id payment.ID) bool {
	p := l.payouts.rows[Ref{merchant, id}]
	return p != nil && p.isForged(l.keys)
}

// isForged compares the row with its keyed hash, once. A claim to send, a report of the processor
// and a decision about the approval need it: what else loads the row does not pay for it.
func (p *payoutRow) isForged(keys *db.Keyring) bool {
	if !p.compared {
		p.forged, p.compared = !payoutHash.authentic(keys, p, p.mac), true
	}
	return p.forged
}

// DamagedOrder is the readable part of a pay-in, a payout or a refund whose row has a damaged
// column.
type DamagedOrder struct {
	Type, ReferenceID, ExternalID, Processor, ProcessorID, Status, Step string

	Amount cents
}

// DamagedOrder reads the columns of an order that are neither encoded nor encrypted; else
// ErrNotFound.
func (s *Store) DamagedOrder(ctx context.Context, merchant, id payment.ID) (v DamagedOrder, err error) {
	const of = " WHERE merchant_id = $1 AND id = $2"
	err = s.db.QueryRow(ctx, `SELECT 'payin', reference_id, external_id, processor, processor_id, status, '', amount FROM payins`+of+`
		UNION ALL SELECT 'payout', reference_id, external_id, processor, processor_id, status, step, amount FROM payouts`+of+`
		UNION ALL SELECT 'refund', reference_id, external_id, '', '', status, '', amount FROM refunds`+of, merchant[:], id[:]).
		Scan(&v.Type, &v.ReferenceID, &v.ExternalID, &v.Processor, &v.ProcessorID, &v.Status, &v.Step, &v.Amount)
	return v, s.db.ReadError("order", err)
}
