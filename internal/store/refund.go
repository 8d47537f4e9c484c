package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// refundRow is a refund with its other stored value.
type refundRow struct {
	payment.Refund

	fingerprint []byte
	damaged     bool // see scanDueRefund
}

var refundTable = newTable("refunds", []string{"id"},
	idColumn("merchant_id", func(r *refundRow) *payment.ID { return &r.Merchant }),
	idColumn("id", func(r *refundRow) *payment.ID { return &r.ID }),
	idColumn("payin_id", func(r *refundRow) *payment.ID { return &r.Payin }),
	textColumn("external_id", func(r *refundRow) *string { return &r.ExternalID }),
	textColumn("reference_id", func(r *refundRow) *string { return &r.ReferenceID }).as(mutable),
	textColumn("origin", func(r *refundRow) *payment.RefundOrigin { return &r.Origin }).as(mutable),
	intColumn("amount", func(r *refundRow) *cents { return &r.Amount }),
	textColumn("status", func(r *refundRow) *payment.RefundStatus { return &r.Status }).as(mutable),
	intColumn("version", func(r *refundRow) *int64 { return &r.Version }).as(mutable),
	textColumn("reason", func(r *refundRow) *string { return &r.Reason }).as(mutable),
	textColumn("webhook_url", func(r *refundRow) *string { return &r.WebhookURL }),
	flagColumn("webhook_disabled", func(r *refundRow) *bool { return &r.WebhookDisabled }).as(mutable),
	bytesColumn("fingerprint", func(r *refundRow) *[]byte { return &r.fingerprint }).as(mutable),
	intColumn("refunded_amount", func(r *refundRow) *cents { return &r.RefundedAmount }).as(mutable),
	textColumn("end_to_end_id", func(r *refundRow) *string { return &r.EndToEndID }).as(mutable),
	failureColumn("failure", func(r *refundRow) **payment.Failure { return &r.Failure }).as(mutable),
	timeColumn("completed_at", func(r *refundRow) *time.Time { return &r.CompletedAt }).as(mutable),
	timeColumn("created_at", func(r *refundRow) *time.Time { return &r.CreatedAt }),
	timeColumn("updated_at", func(r *refundRow) *time.Time { return &r.UpdatedAt }).as(mutable),
)

var (
	refundUpdate     = refundTable.updateBy("", "merchant_id", "id", "version")
	refundByID       = refundTable.selectBy("t.merchant_id, t.id", "merchant_id", "id")
	refundByExternal = refundTable.selectBy("t.merchant_id, t.external_id", "merchant_id", "external_id")
	refundsByPayin   = refundTable.selectBy("t.merchant_id, t.id", "merchant_id", "payin_id")
)

func scanRefund(r db.Scanner) (refundRow, error) {
	var v refundRow
	return v, refundTable.scan(r, &v)
}

// scanDueRefund reads the refund of a due part.
func scanDueRefund(r db.Scanner) (v refundRow, err error) {
	v.damaged, err = refundTable.scanDue(r, &v)
	return v, err
}

type refundNeeds struct {
	ids        []Ref
	byExternal []ExternalRef
	payins     []Ref
	paidAgain  []paidAgain
	due        []DueRefundParts
}

// paidAgain is a pay-in and receipts for it.
type paidAgain struct {
	of       ExternalRef
	receipts []*payment.Receipt
}

// Refund reads a refund by its id.
func (n *Needs) Refund(merchant, id payment.ID) {
	n.refunds.ids = append(n.refunds.ids, Ref{merchant, id})
}

// RefundByExternalID reads a refund by its external id.
func (n *Needs) RefundByExternalID(merchant payment.ID, externalID string) {
	n.refunds.byExternal = append(n.refunds.byExternal, ExternalRef{merchant, externalID})
}

// RefundsOf reads a pay-in, which is locked first, with its refunds, their parts, and its
// receipts.
func (n *Needs) RefundsOf(merchant, payin payment.ID) {
	n.Payin(merchant, payin)
	n.refunds.payins = append(n.refunds.payins, Ref{merchant, payin})
}

// RefundsIfPaidAgain is RefundsOf of a pay-in that [Needs.PayinByExternalID] reads, if one of the
// receipts is new and is not the first one.
func (n *Needs) RefundsIfPaidAgain(merchant payment.ID, externalID string, receipts ...*payment.Receipt) {
	n.refunds.paidAgain = append(n.refunds.paidAgain, paidAgain{ExternalRef{merchant, externalID}, receipts})
}

type loadedRefunds struct {
	rows       map[Ref]refundRow
	byExternal map[ExternalRef]Ref
	parts      map[partKey]payment.RefundPart
	receipts   map[Ref][]payment.Receipt // of pay-ins
	due        map[DueRefundParts][]partKey
	damaged    map[partKey]bool     // due parts that cannot be decoded
	owed       map[payment.ID]cents // by merchants of due parts
}

func (l *loadedRefunds) begin() {
	if l.rows == nil {
		l.rows, l.byExternal, l.parts = map[Ref]refundRow{}, map[ExternalRef]Ref{}, map[partKey]payment.RefundPart{}
		l.receipts, l.due = map[Ref][]payment.Receipt{}, map[DueRefundParts][]partKey{}
		l.damaged, l.owed = map[partKey]bool{}, map[payment.ID]cents{}
	}
}

func (l *loadedRefunds) add(list ...refundRow) {
	l.begin()
	for i := range list {
		ref := Ref{list[i].Merchant, list[i].ID}
		l.rows[ref] = list[i]
		l.byExternal[ExternalRef{list[i].Merchant, list[i].ExternalID}] = ref
	}
}

// loadRefunds runs after the balances were locked: no other transaction adds a refund of the
// merchant then. Parts are locked before refunds: a claim names the parts that are due.
func (l *Loaded) loadRefunds(ctx context.Context, tx *db.Tx, n *Needs) error {
	v, payins := &n.refunds, l.refundedPayins(n)
	if len(v.ids)+len(v.byExternal)+len(payins)+len(v.due) == 0 {
		return nil
	}
	l.refunds.begin()
	due, err := l.loadDueParts(ctx, tx, n)
	if err != nil {
		return err
	}
	parts, err := db.Select(ctx, tx, partsByPayin, keysOf(payins), scanRefundPart)
	if err != nil {
		return err
	}
	for i := range parts {
		l.refunds.parts[keyOfPart(&parts[i])] = parts[i]
	}
	for _, q := range []struct {
		text *db.KeySelect
		keys [][]any
		scan func(db.Scanner) (refundRow, error)
	}{
		{refundByID, keysOf(due), scanDueRefund}, {refundByID, keysOf(v.ids), scanRefund},
		{refundByExternal, keysOf(v.byExternal), scanRefund}, {refundsByPayin, keysOf(payins), scanRefund},
	} {
		list, err := db.Select(ctx, tx, q.text, q.keys, q.scan)
		if err != nil {
			return err
		}
		l.refunds.add(list...)
	}
	receipts, err := db.Select(ctx, tx, receiptsByPayin, keysOf(payins), scanReceipt)
	for i := range receipts {
		ref := Ref{receipts[i].Merchant, receipts[i].Payin}
		l.refunds.receipts[ref] = append(l.refunds.receipts[ref], receipts[i])
	}
	return err
}

// refundedPayins are the pay-ins whose refunds are needed, also those whose disputes are.
func (l *Loaded) refundedPayins(n *Needs) []Ref {
	payins := slices.Clone(n.refunds.payins)
	for _, ref := range l.disputedPayins(n) {
		if !slices.Contains(payins, ref) {
			payins = append(payins, ref)
		}
	}
	for _, v := range n.refunds.paidAgain {
		ref, ok := l.payins.byExternal[v.of]
		if ok && !slices.Contains(payins, ref) && l.isPaidAgain(ref, v.receipts) {
			payins = append(payins, ref)
		}
	}
	return payins
}

func (l *Loaded) isPaidAgain(ref Ref, receipts []*payment.Receipt) bool {
	p := l.payins.rows[ref]
	paid := p.PaidAmount > 0 || p.Status == payment.PayinFailed // whose payments are unapplied
	return paid && slices.ContainsFunc(receipts, func(r *payment.Receipt) bool { return l.inserted[r.ID] })
}

// Refunding is the amount of refunds in flight of a pay-in whose refunds were loaded, in cents.
func (l *Loaded) Refunding(merchant, payin payment.ID) (sum cents) {
	for _, p := range l.RefundPartsOf(merchant, payin) {
		if !p.Ended() {
			sum += p.Amount
		}
	}
	return sum
}

// Refund is a loaded refund; false if there is none.
func (l *Loaded) Refund(merchant, id payment.ID) (payment.Refund, bool) {
	r, ok := l.refunds.rows[Ref{merchant, id}]
	return r.Refund, ok
}

// RefundByExternalID is a loaded refund, with the fingerprint of its request, which is empty
// if it was not requested by the API; false if there is none.
func (l *Loaded) RefundByExternalID(merchant payment.ID, externalID string) (payment.Refund, []byte, bool) {
	ref, ok := l.refunds.byExternal[ExternalRef{merchant, externalID}]
	return l.refunds.rows[ref].Refund, l.refunds.rows[ref].fingerprint, ok
}

// RefundsOf are the refunds of a pay-in whose refunds were loaded, in the order of their ids.
func (l *Loaded) RefundsOf(merchant, payin payment.ID) []payment.Refund {
	var list []payment.Refund
	for _, r := range l.refunds.rows {
		if r.Merchant == merchant && r.Payin == payin {
			list = append(list, r.Refund)
		}
	}
	slices.SortFunc(list, func(a, b payment.Refund) int { return payment.CompareIDs(a.ID, b.ID) })
	return list
}

// ReceiptsOf are the receipts of a pay-in whose refunds were loaded, with those of this commit.
func (l *Loaded) ReceiptsOf(merchant, payin payment.ID) []payment.Receipt {
	return l.refunds.receipts[Ref{merchant, payin}]
}

type refundChange struct {
	row refundRow
	was int64 // the version that it replaces
}

// AddRefund adds a refund, which was looked for and did not exist, with its parts.
func (c *Changes) AddRefund(r payment.Refund, fingerprint []byte, parts ...payment.RefundPart) {
	row := refundRow{Refund: r, fingerprint: fingerprint}
	c.l.refunds.add(row)
	c.newRefunds = append(c.newRefunds, row)
	for i := range parts {
		parts[i].CreatedAt, parts[i].UpdatedAt = c.l.now, c.l.now
		c.l.refunds.parts[keyOfPart(&parts[i])] = parts[i]
		c.newParts = append(c.newParts, parts[i])
	}
	c.count++
}

// SetRefund changes a loaded refund, or one that this commit adds, and returns it as it will
// be stored. r has its new version, as in [Changes.SetPayout].
func (c *Changes) SetRefund(r payment.Refund) payment.Refund {
	row := c.l.refunds.rows[Ref{r.Merchant, r.ID}]
	was := row.Version
	r.UpdatedAt = c.l.now
	row.Refund = r
	c.l.refunds.rows[Ref{r.Merchant, r.ID}] = row
	c.refunds = append(c.refunds, refundChange{row, was})
	c.count++
	return r
}

// AdoptRefund makes a loaded refund that the processor listed the refund of a request.
func (c *Changes) AdoptRefund(r payment.Refund, fingerprint []byte) payment.Refund {
	row := c.l.refunds.rows[Ref{r.Merchant, r.ID}]
	row.fingerprint = fingerprint
	c.l.refunds.rows[Ref{r.Merchant, r.ID}] = row
	return c.SetRefund(r)
}

func (c *Changes) saveRefunds(ctx context.Context, tx *db.Tx) error {
	rows := make([][]any, len(c.newRefunds))
	for i := range c.newRefunds {
		rows[i] = refundTable.row(&c.newRefunds[i])
	}
	if err := tx.InsertNew(ctx, refundTable.insert, rows...); err != nil {
		return err
	}
	ref := func(v *refundChange) Ref { return Ref{v.row.Merchant, v.row.ID} }
	err := inWaves(c.refunds, ref, func(wave []refundChange) error {
		rows := make([][]any, len(wave))
		for i := range wave {
			rows[i] = refundUpdate.row(&wave[i].row, wave[i].was)
		}
		missed, err := tx.Update(ctx, refundUpdate.RowUpdate, rows...)
		if err == nil && len(missed) > 0 {
			err = fmt.Errorf("%w: refund", ErrConflict)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.saveRefundParts(ctx, tx)
}

// Refund reads a refund; ErrNotFound if the merchant has none with that id.
func (s *Store) Refund(ctx context.Context, merchant, id payment.ID) (payment.Refund, error) {
	r, err := scanRefund(s.db.QueryRow(ctx, "SELECT "+refundTable.selected+" FROM refunds t WHERE t.merchant_id = $1 AND t.id = $2", merchant[:], id[:]))
	return r.Refund, s.db.ReadError("refund", err)
}

// FindRefund reads a refund by id alone, as FindPayin does.
func (s *Store) FindRefund(ctx context.Context, id payment.ID) (payment.Refund, error) {
	r, err := scanRefund(s.db.QueryRow(ctx, "SELECT "+refundTable.selected+` FROM merchants m
		JOIN refunds t ON t.merchant_id = m.id AND t.id = $1`, id[:]))
	return r.Refund, s.db.ReadError("refund", err)
}

// RefundByExternalID reads a refund and its fingerprint; else ErrNotFound.
func (s *Store) RefundByExternalID(ctx context.Context, merchant payment.ID, externalID string) (payment.Refund, []byte, error) {
	r, err := scanRefund(s.db.QueryRow(ctx, "SELECT "+refundTable.selected+` FROM refunds t
		WHERE t.merchant_id = $1 AND t.external_id = $2`, merchant[:], externalID))
	return r.Refund, r.fingerprint, s.db.ReadError("refund", err)
}

// Refunds lists a merchant's refunds, newest first.
func (s *Store) Refunds(ctx context.Context, merchant payment.ID, f Filter) ([]payment.Refund, error) {
	text, args := f.where(refundTable.selected, "refunds", merchant, true)
	rows, err := s.db.Query(ctx, text, args...)
	list, err := db.Collect(rows, err, func(r db.Scanner) (payment.Refund, error) {
		v, err := scanDueRefund(r)
		return v.Refund, err
	})
	return list, s.db.ReadError("refunds", err)
}
