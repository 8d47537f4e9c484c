package store

import (
	"context"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// batchRow is a batch of payouts with its other stored value.
type batchRow struct {
	payment.PayoutBatch

	fingerprint []byte
}

var batchTable = newTable("payout_batches", []string{"id"},
	idColumn("merchant_id", func(b *batchRow) *payment.ID { return &b.Merchant }),
	idColumn("id", func(b *batchRow) *payment.ID { return &b.ID }),
	textColumn("external_id", func(b *batchRow) *string { return &b.ExternalID }),
	textColumn("reference_id", func(b *batchRow) *string { return &b.ReferenceID }),
	intColumn("items", func(b *batchRow) *int64 { return &b.Count }),
	intColumn("amount", func(b *batchRow) *cents { return &b.Amount }),
	idColumn("first_id", func(b *batchRow) *payment.ID { return &b.First }),
	idColumn("last_id", func(b *batchRow) *payment.ID { return &b.Last }),
	bytesColumn("fingerprint", func(b *batchRow) *[]byte { return &b.fingerprint }),
	intColumn("version", func(b *batchRow) *int64 { return &b.Version }).as(mutable),
	timeColumn("completed_at", func(b *batchRow) *time.Time { return &b.CompletedAt }).as(mutable),
	timeColumn("created_at", func(b *batchRow) *time.Time { return &b.CreatedAt }),
	timeColumn("updated_at", func(b *batchRow) *time.Time { return &b.UpdatedAt }).as(mutable),
)

var (
	batchUpdate     = batchTable.updateBy("", "merchant_id", "id", "version")
	batchByID       = batchTable.selectBy("t.merchant_id, t.id", "merchant_id", "id")
	batchByExternal = batchTable.selectBy("t.merchant_id, t.external_id", "merchant_id", "external_id")
)

func scanBatch(r db.Scanner) (batchRow, error) {
	var b batchRow
	return b, batchTable.scan(r, &b)
}

// Counts of the payouts of a batch by status, each with the last change among them. The index
// payouts_batch has all columns that they read. batchItems counts all payouts of the batch, at most
// 5,000; batchNotCompleted counts only those that are not COMPLETED.
const (
	batchItems        = "SELECT t.status, count(*), max(t.updated_at)" + ofBatch + " GROUP BY t.status"
	batchNotCompleted = "SELECT t.status, count(*), max(t.updated_at)" + ofBatch + " AND t.status IN ('PENDING', 'PROCESSING', 'FAILED', 'CANCELED', 'RETURNED') GROUP BY t.status"
	ofBatch           = " FROM payouts t WHERE t.merchant_id = $1 AND t.batch_id = $2 AND length(t.batch_id) > 0"
)

// readCounts reads the counts of a batch, and derives UpdatedAt from its row and its payouts,
// because no commit of a payout writes the row. In a completed batch only returns change a payout:
// the COMPLETED ones are the rest, and are not read.
func readCounts(ctx context.Context, q querier, b *payment.PayoutBatch) error {
	text := batchItems
	if !b.CompletedAt.IsZero() {
		text = batchNotCompleted
	}
	rows, err := q.Query(ctx, text, b.Merchant[:], b.ID[:])
	b.Counts = map[payment.PayoutStatus]int64{}
	rest := b.Count
	_, err = db.Collect(rows, err, func(r db.Scanner) (none struct{}, err error) {
		var status payment.PayoutStatus
		var n int64
		var last time.Time
		err = r.Scan(textDest[payment.PayoutStatus]{&status}, &n, (*timeDest)(&last))
		b.Counts[status] = n
		rest -= n
		b.Touch(last)
		return none, err
	})
	b.Counts[payment.PayoutCompleted] += rest
	return err
}

type batchNeeds struct {
	ids        []Ref
	byExternal []ExternalRef
}

// PayoutBatch reads a batch by its id, with its counts.
func (n *Needs) PayoutBatch(merchant, id payment.ID) {
	n.batches.ids = append(n.batches.ids, Ref{merchant, id})
}

// PayoutBatchByExternalID reads a batch by its external id, without its counts. The
// operation loads the balances of the merchant, whose lock lets no other transaction add a
// batch.
func (n *Needs) PayoutBatchByExternalID(merchant payment.ID, externalID string) {
	n.batches.byExternal = append(n.batches.byExternal, ExternalRef{merchant, externalID})
}

type loadedBatches struct {
	rows       map[Ref]batchRow
	byExternal map[ExternalRef]Ref
}

func (l *loadedBatches) add(row batchRow) {
	if l.rows == nil {
		l.rows, l.byExternal = map[Ref]batchRow{}, map[ExternalRef]Ref{}
	}
	ref := Ref{row.Merchant, row.ID}
	l.rows[ref], l.byExternal[ExternalRef{row.Merchant, row.ExternalID}] = row, ref
}

func (l *Loaded) loadBatches(ctx context.Context, tx *db.Tx, n *Needs) error {
	list, err := db.Select(ctx, tx, batchByID, keysOf(n.batches.ids), scanBatch)
	if err != nil {
		return fmt.Errorf("batches: %w", err)
	}
	for i := range list {
		if err := readCounts(ctx, tx, &list[i].PayoutBatch); err != nil {
			return fmt.Errorf("batches: %w", err)
		}
		l.batches.add(list[i])
	}
	more, err := db.Select(ctx, tx, batchByExternal, keysOf(n.batches.byExternal), scanBatch)
	for i := range more {
		l.batches.add(more[i])
	}
	return err
}

// PayoutBatch is a loaded batch; false if there is none.
func (l *Loaded) PayoutBatch(merchant, id payment.ID) (payment.PayoutBatch, bool) {
	row, ok := l.batches.rows[Ref{merchant, id}]
	return row.PayoutBatch, ok
}

// PayoutBatchByExternalID is a loaded batch, with the fingerprint of its request; false if
// there is none.
func (l *Loaded) PayoutBatchByExternalID(merchant payment.ID, externalID string) (payment.PayoutBatch, []byte, bool) {
	ref, ok := l.batches.byExternal[ExternalRef{merchant, externalID}]
	row := l.batches.rows[ref]
	return row.PayoutBatch, row.fingerprint, ok
}

// AddPayoutBatch adds a batch, which was looked for and did not exist.
func (c *Changes) AddPayoutBatch(b payment.PayoutBatch, fingerprint []byte) {
	row := batchRow{b, fingerprint}
	c.l.batches.add(row)
	c.newBatches = append(c.newBatches, row)
	c.count++
}

// SetPayoutBatch changes a loaded batch, and returns it as it will be stored. b has its new
// version.
func (c *Changes) SetPayoutBatch(b payment.PayoutBatch) payment.PayoutBatch {
	row := c.l.batches.rows[Ref{b.Merchant, b.ID}]
	was := row.Version
	b.Touch(c.l.now)
	row.PayoutBatch = b
	c.l.batches.add(row)
	c.batches = append(c.batches, batchChange{row, was})
	c.count++
	return b
}

type batchChange struct {
	row batchRow
	was int64 // the version that it replaces
}

func (c *Changes) saveBatches(ctx context.Context, tx *db.Tx) error {
	rows := make([][]any, len(c.newBatches))
	for i := range c.newBatches {
		rows[i] = batchTable.row(&c.newBatches[i])
	}
	if err := tx.InsertNew(ctx, batchTable.insert, rows...); err != nil {
		return fmt.Errorf("batches: %w", err)
	}
	ref := func(v *batchChange) Ref { return Ref{v.row.Merchant, v.row.ID} }
	return inWaves(c.batches, ref, func(wave []batchChange) error {
		rows := make([][]any, len(wave))
		for i := range wave {
			rows[i] = batchUpdate.row(&wave[i].row, wave[i].was)
		}
		missed, err := tx.Update(ctx, batchUpdate.RowUpdate, rows...)
		if err == nil && len(missed) > 0 {
			err = fmt.Errorf("%w: batch", ErrConflict)
		}
		return err
	})
}

// PayoutBatch reads a batch with its counts; ErrNotFound if the merchant has none with that
// id.
func (s *Store) PayoutBatch(ctx context.Context, merchant, id payment.ID) (payment.PayoutBatch, error) {
	b, err := scanBatch(s.db.QueryRow(ctx, "SELECT "+batchTable.selected+" FROM payout_batches t WHERE t.merchant_id = $1 AND t.id = $2", merchant[:], id[:]))
	if err == nil {
		err = readCounts(ctx, s.db, &b.PayoutBatch)
	}
	return b.PayoutBatch, s.db.ReadError("batch", err)
}

// PayoutBatchByExternalID reads a batch with its counts, and its fingerprint; else
// ErrNotFound.
func (s *Store) PayoutBatchByExternalID(ctx context.Context, merchant payment.ID, externalID string) (payment.PayoutBatch, []byte, error) {
	b, err := scanBatch(s.db.QueryRow(ctx, "SELECT "+batchTable.selected+" FROM payout_batches t WHERE t.merchant_id = $1 AND t.external_id = $2",
		merchant[:], externalID))
	if err == nil {
		err = readCounts(ctx, s.db, &b.PayoutBatch)
	}
	return b.PayoutBatch, b.fingerprint, s.db.ReadError("batch", err)
}

// PayoutBatches lists a merchant's batches with their counts, newest first.
func (s *Store) PayoutBatches(ctx context.Context, merchant payment.ID, f Filter) ([]payment.PayoutBatch, error) {
	text, args := f.where(batchTable.selected, "payout_batches", merchant, false)
	rows, err := s.db.Query(ctx, text, args...)
	list, err := db.Collect(rows, err, func(r db.Scanner) (payment.PayoutBatch, error) {
		b, err := scanBatch(r)
		return b.PayoutBatch, err
	})
	for i := range list {
		if err == nil {
			err = readCounts(ctx, s.db, &list[i])
		}
	}
	return list, s.db.ReadError("batches", err)
}

// OpenBatch is a batch whose end is not recorded.
type OpenBatch struct {
	Ref

	Ended bool // all its payouts are final
}

// OpenPayoutBatches lists up to limit batches of all merchants whose end is not recorded, after an
// id, in the order of ids. For each it looks for one payout in flight. A final payout stays final,
// so an ended batch stays ended.
func (s *Store) OpenPayoutBatches(ctx context.Context, after payment.ID, limit int) ([]OpenBatch, error) {
	rows, err := s.db.Query(ctx, `SELECT b.merchant_id, b.id, coalesce((SELECT 0 FROM payouts t WHERE t.merchant_id = b.merchant_id AND t.status IN `+payoutsInFlight+`
			AND t.status <> 'COMPLETED' AND t.id >= b.first_id AND t.id <= b.last_id AND t.batch_id = b.id LIMIT 1), 1)
		FROM payout_batches b WHERE b.completed_at = 0 AND b.id > $1 ORDER BY b.id LIMIT $2`, after[:], limit)
	list, err := db.Collect(rows, err, func(r db.Scanner) (v OpenBatch, err error) {
		return v, r.Scan((*idDest)(&v.Merchant), (*idDest)(&v.ID), (*flagDest)(&v.Ended))
	})
	return list, s.db.ReadError("open batches", err)
}
