package store

import (
	"context"
	"fmt"

	"github.com/porteira/porteira/internal/payment"
)

var (
	receiptTable = newTable("receipts", "id",
		column{"merchant_id", "bytea"}, column{"id", "bytea"}, column{"payin_id", "bytea"}, column{"processor", "text"},
		column{"external_id", "text"}, column{"order_id", "text"}, column{"end_to_end_id", "text"}, column{"amount", "bigint"},
		column{"applied", "bigint"}, column{"paid_at", "bigint"}, column{"created_at", "bigint"})
	receiptClaimTable = newTable("receipt_claims", "external_id",
		column{"processor", "text"}, column{"external_id", "text"}, column{"merchant_id", "bytea"}, column{"receipt_id", "bytea"})
)

// ClaimReceipts reserves receipts by (processor, external id) and says which
// are new: the others are booked already, for whichever merchant. All of one
// call are of one processor.
func (tx *Tx) ClaimReceipts(ctx context.Context, list []*payment.Receipt) ([]bool, error) {
	rows := make([][]any, len(list))
	for i, r := range list {
		rows[i] = []any{r.Processor, r.ExternalID, r.Merchant[:], r.ID[:]}
	}
	return tx.insert(ctx, receiptClaimTable, rows...)
}

// InsertReceipts stores claimed receipts as they were applied.
func (tx *Tx) InsertReceipts(ctx context.Context, list []*payment.Receipt) error {
	rows := make([][]any, len(list))
	for i, r := range list {
		rows[i] = []any{r.Merchant[:], r.ID[:], claim(r.Payin), r.Processor, r.ExternalID, r.OrderID, r.EndToEndID,
			int64(r.Amount), int64(r.Applied), micros(r.PaidAt), micros(tx.Now)}
	}
	if err := tx.insertNew(ctx, receiptTable, rows...); err != nil {
		return fmt.Errorf("receipts: %w", err)
	}
	return nil
}

const receiptColumns = "merchant_id, id, payin_id, processor, external_id, order_id, end_to_end_id, amount, applied, paid_at, created_at"

func scanReceipt(r scanner) (payment.Receipt, error) {
	var v payment.Receipt
	var merchant, id, payin []byte
	var paid, created int64
	err := r.Scan(&merchant, &id, &payin, &v.Processor, &v.ExternalID, &v.OrderID, &v.EndToEndID,
		(*int64)(&v.Amount), (*int64)(&v.Applied), &paid, &created)
	v.Merchant, v.ID, v.Payin, v.PaidAt, v.CreatedAt = idOf(merchant), idOf(id), idOf(payin), atMicros(paid), atMicros(created)
	return v, err
}

// Receipts lists what came in for a pay-in, or with the zero id what came in
// for no order of the merchant.
func (s *Store) Receipts(ctx context.Context, merchant, payin payment.ID) ([]payment.Receipt, error) {
	rows, err := s.query(ctx, "SELECT "+receiptColumns+` FROM receipts
		WHERE merchant_id = $1 AND payin_id = $2 ORDER BY id`, merchant[:], claim(payin))
	list, err := collect(rows, err, scanReceipt)
	return list, s.readError("receipts", err)
}

// HasReceipt says whether a payment of a processor is booked already.
func (s *Store) HasReceipt(ctx context.Context, processor, externalID string) (bool, error) {
	var n int
	err := s.queryRow(ctx, "SELECT count(*) FROM receipt_claims WHERE processor = $1 AND external_id = $2", processor, externalID).Scan(&n)
	return n > 0, s.readError("receipt claim", err)
}
