package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

var receiptTable = newTable("receipts", []string{"id"},
	idColumn("merchant_id", func(r *payment.Receipt) *payment.ID { return &r.Merchant }),
	idColumn("id", func(r *payment.Receipt) *payment.ID { return &r.ID }),
	optionalIDColumn("payin_id", func(r *payment.Receipt) *payment.ID { return &r.Payin }),
	textColumn("processor", func(r *payment.Receipt) *string { return &r.Processor }),
	textColumn("external_id", func(r *payment.Receipt) *string { return &r.ExternalID }),
	textColumn("order_id", func(r *payment.Receipt) *string { return &r.OrderID }),
	textColumn("end_to_end_id", func(r *payment.Receipt) *string { return &r.EndToEndID }),
	intColumn("amount", func(r *payment.Receipt) *cents { return &r.Amount }),
	intColumn("applied", func(r *payment.Receipt) *cents { return &r.Applied }),
	intColumn("cost", func(r *payment.Receipt) *cents { return &r.Cost }),
	intColumn("entry_number", func(r *payment.Receipt) *int64 { return &r.Entry }),
	timeColumn("paid_at", func(r *payment.Receipt) *time.Time { return &r.PaidAt }),
	timeColumn("created_at", func(r *payment.Receipt) *time.Time { return &r.CreatedAt }),
)

// CostClaim begins the id of a processor's cost among those of payments, whose ids have no spaces.
// So a cost is booked once, too.
const CostClaim = "cost "

// receiptKeyTable ensures that a payment is booked once, for any merchant.
var receiptKeyTable = newTable("receipt_claims", []string{"processor", "external_id"},
	textColumn("processor", func(r *payment.Receipt) *string { return &r.Processor }),
	textColumn("external_id", func(r *payment.Receipt) *string { return &r.ExternalID }),
	idColumn("merchant_id", func(r *payment.Receipt) *payment.ID { return &r.Merchant }),
	idColumn("receipt_id", func(r *payment.Receipt) *payment.ID { return &r.ID }),
)

var receiptsByPayin = receiptTable.selectBy("t.merchant_id, t.id", "merchant_id", "payin_id").ReadOnly() // the pay-in is locked

func scanReceipt(r db.Scanner) (payment.Receipt, error) {
	var v payment.Receipt
	return v, receiptTable.scan(r, &v)
}

// Receipts inserts the keys of payments: (processor, its id). See [Loaded.Inserted].
func (n *Needs) Receipts(list ...*payment.Receipt) { n.receipts = append(n.receipts, list...) }

func (l *Loaded) insertReceipts(ctx context.Context, tx *db.Tx, n *Needs) error {
	// In the order of their keys, as an insert waits for another transaction's.
	list := slices.Clone(n.receipts)
	slices.SortStableFunc(list, func(a, b *payment.Receipt) int {
		if order := strings.Compare(a.Processor, b.Processor); order != 0 {
			return order
		}
		return strings.Compare(a.ExternalID, b.ExternalID)
	})
	rows := make([][]any, len(list))
	for i, r := range list {
		rows[i] = receiptKeyTable.row(r)
	}
	added, err := tx.Insert(ctx, receiptKeyTable.insert, rows...)
	for i := range added {
		if added[i] {
			l.inserted[list[i].ID] = true
		}
	}
	return err
}

// AddReceipt stores a fresh receipt as it was applied. The caller then posts its entries.
func (c *Changes) AddReceipt(r payment.Receipt) {
	r.CreatedAt = c.l.now
	if b := c.l.balances[r.Merchant]; b != nil {
		r.Entry = b.last.number + 1
	}
	c.receipts = append(c.receipts, &r)
	if of := (Ref{r.Merchant, r.Payin}); c.l.received != nil {
		c.l.received[of] += r.Amount
	}
	if c.l.refunds.receipts == nil { // none were loaded, as the pay-ins had none: these are all
		c.l.refunds.receipts = map[Ref][]payment.Receipt{}
	}
	of := Ref{r.Merchant, r.Payin}
	c.l.refunds.receipts[of] = append(c.l.refunds.receipts[of], r)
	c.count++
}

func (c *Changes) saveReceipts(ctx context.Context, tx *db.Tx) error {
	rows := make([][]any, len(c.receipts))
	for i, r := range c.receipts {
		rows[i] = receiptTable.row(r)
	}
	if err := tx.InsertNew(ctx, receiptTable.insert, rows...); err != nil {
		return fmt.Errorf("receipts: %w", err)
	}
	return nil
}

// Receipts lists the payments of a pay-in, or with the zero id those that match
// no order of the merchant.
func (s *Store) Receipts(ctx context.Context, merchant, payin payment.ID) ([]payment.Receipt, error) {
	rows, err := s.db.Query(ctx, "SELECT "+receiptTable.selected+` FROM receipts t
		WHERE t.merchant_id = $1 AND t.payin_id = $2 ORDER BY t.id`, merchant[:], optionalID(payin))
	list, err := db.Collect(rows, err, scanReceipt)
	return list, s.db.ReadError("receipts", err)
}

// Receipt reads one payment; ErrNotFound if the merchant has none with that id.
func (s *Store) Receipt(ctx context.Context, merchant, id payment.ID) (payment.Receipt, error) {
	v, err := scanReceipt(s.db.QueryRow(ctx, "SELECT "+receiptTable.selected+` FROM receipts t
		WHERE t.merchant_id = $1 AND t.id = $2`, merchant[:], id[:]))
	return v, s.db.ReadError("receipt", err)
}

// HasReceipt reports whether a payment of a processor is booked.
func (s *Store) HasReceipt(ctx context.Context, processor, externalID string) (bool, error) {
	var n int
	err := s.db.QueryRow(ctx, "SELECT count(*) FROM receipt_claims WHERE processor = $1 AND external_id = $2", processor, externalID).Scan(&n)
	return n > 0, s.db.ReadError("receipt key", err)
}
