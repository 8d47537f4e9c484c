package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// Dispute is a payer's dispute of a pay-in, as its processor reports it.
type Dispute struct {
	Merchant   payment.ID
	ID         payment.ID
	Payin      payment.ID
	Processor  string
	ExternalID string // the processor's id
	Amount     cents
	State      string // open, won, lost, reversed
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

var disputeTable = newTable("disputes", []string{"id"},
	idColumn("merchant_id", func(d *Dispute) *payment.ID { return &d.Merchant }),
	idColumn("id", func(d *Dispute) *payment.ID { return &d.ID }),
	idColumn("payin_id", func(d *Dispute) *payment.ID { return &d.Payin }),
	textColumn("processor", func(d *Dispute) *string { return &d.Processor }),
	textColumn("external_id", func(d *Dispute) *string { return &d.ExternalID }),
	intColumn("amount", func(d *Dispute) *cents { return &d.Amount }),
	textColumn("state", func(d *Dispute) *string { return &d.State }).as(mutable),
	timeColumn("created_at", func(d *Dispute) *time.Time { return &d.CreatedAt }),
	timeColumn("updated_at", func(d *Dispute) *time.Time { return &d.UpdatedAt }).as(mutable),
)

var (
	disputeUpdate     = disputeTable.updateBy("", "merchant_id", "id")
	disputeByExternal = disputeTable.selectBy("t.merchant_id, t.processor, t.external_id", "merchant_id", "processor", "external_id")
	disputesByPayin   = disputeTable.selectBy("t.merchant_id, t.id", "merchant_id", "payin_id").ReadOnly() // the pay-in is locked
)

func scanDispute(r db.Scanner) (Dispute, error) {
	var d Dispute
	return d, disputeTable.scan(r, &d)
}

type disputeKey struct {
	merchant              payment.ID
	processor, externalID string
}

func (k disputeKey) key() []any { return []any{k.merchant[:], k.processor, k.externalID} }

func (d *Dispute) key() disputeKey { return disputeKey{d.Merchant, d.Processor, d.ExternalID} }

// Dispute reads a dispute by its processor's id.
func (n *Needs) Dispute(merchant payment.ID, processor, externalID string) {
	n.disputes = append(n.disputes, disputeKey{merchant, processor, externalID})
}

// DisputesOf reads all disputes of a pay-in, which is read by its external id too, and what
// was received for it.
func (n *Needs) DisputesOf(merchant payment.ID, externalID string) {
	n.disputed = append(n.disputed, ExternalRef{merchant, externalID})
}

func (l *Loaded) loadDisputes(ctx context.Context, tx *db.Tx, n *Needs) error {
	if len(n.disputes)+len(n.disputed) == 0 {
		return nil
	}
	payins := l.disputedPayins(n)
	list, err := db.Select(ctx, tx, disputeByExternal, keysOf(n.disputes), scanDispute)
	if err != nil {
		return err
	}
	others, err := db.Select(ctx, tx, disputesByPayin, keysOf(payins), scanDispute)
	if err != nil {
		return err
	}
	l.disputes = make(map[disputeKey]Dispute, len(list)+len(others))
	for _, d := range slices.Concat(list, others) {
		l.disputes[d.key()] = d
	}
	receipts, err := db.Select(ctx, tx, receiptsByPayin, keysOf(payins), scanReceipt)
	l.addReceived(payins, receipts)
	return err
}

// disputedPayins are the loaded pay-ins of DisputesOf.
func (l *Loaded) disputedPayins(n *Needs) []Ref {
	var payins []Ref
	for _, of := range n.disputed {
		if ref, ok := l.payins.byExternal[of]; ok && !slices.Contains(payins, ref) {
			payins = append(payins, ref)
		}
	}
	return payins
}

// addReceived adds up what was received for pay-ins.
func (l *Loaded) addReceived(payins []Ref, receipts []payment.Receipt) {
	l.received = make(map[Ref]cents, len(payins))
	for _, ref := range payins {
		l.received[ref] = 0
	}
	for i := range receipts {
		l.received[Ref{receipts[i].Merchant, receipts[i].Payin}] += receipts[i].Amount
	}
}

// DisputesOf are the disputes of a pay-in whose disputes were loaded, in the order of their
// ids.
func (l *Loaded) DisputesOf(merchant, payin payment.ID) []Dispute {
	var list []Dispute
	for _, d := range l.disputes {
		if d.Merchant == merchant && d.Payin == payin {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b Dispute) int { return payment.CompareIDs(a.ID, b.ID) })
	return list
}

// Received is what was received for a pay-in whose disputes were loaded, applied or not, in
// cents.
func (l *Loaded) Received(merchant, payin payment.ID) money.Cents {
	return l.received[Ref{merchant, payin}]
}

// Dispute is a loaded dispute; false if there is none.
func (l *Loaded) Dispute(merchant payment.ID, processor, externalID string) (Dispute, bool) {
	d, ok := l.disputes[disputeKey{merchant, processor, externalID}]
	return d, ok
}

// AddDispute adds a dispute that was looked for and did not exist.
func (c *Changes) AddDispute(d Dispute) {
	d.CreatedAt, d.UpdatedAt = c.l.now, c.l.now
	c.l.disputes[d.key()] = d
	c.newDispute = append(c.newDispute, d)
	c.count++
}

// SetDispute changes a loaded dispute.
func (c *Changes) SetDispute(d Dispute) {
	d.UpdatedAt = c.l.now
	c.l.disputes[d.key()] = d
	c.disputes = append(c.disputes, d)
	c.count++
}

func (c *Changes) saveDisputes(ctx context.Context, tx *db.Tx) error {
	rows := make([][]any, len(c.newDispute))
	for i := range c.newDispute {
		rows[i] = disputeTable.row(&c.newDispute[i])
	}
	if err := tx.InsertNew(ctx, disputeTable.insert, rows...); err != nil {
		return err
	}
	ref := func(d *Dispute) Ref { return Ref{d.Merchant, d.ID} }
	return inWaves(c.disputes, ref, func(wave []Dispute) error {
		rows := make([][]any, len(wave))
		for i := range wave {
			rows[i] = disputeUpdate.row(&wave[i])
		}
		missed, err := tx.Update(ctx, disputeUpdate.RowUpdate, rows...)
		if err == nil && len(missed) > 0 {
			err = fmt.Errorf("%w: dispute", ErrConflict)
		}
		return err
	})
}

// DisputeState reads the state of a dispute by its processor's id; else ErrNotFound.
func (s *Store) DisputeState(ctx context.Context, merchant payment.ID, processor, externalID string) (state string, err error) {
	err = s.db.QueryRow(ctx, "SELECT state FROM disputes WHERE merchant_id = $1 AND processor = $2 AND external_id = $3",
		merchant[:], processor, externalID).Scan(&state)
	return state, s.db.ReadError("dispute", err)
}
