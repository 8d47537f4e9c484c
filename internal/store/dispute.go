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

var disputeTable = newTable("disputes", []string{"id"},
	idColumn("merchant_id", func(d *payment.Dispute) *payment.ID { return &d.Merchant }),
	idColumn("id", func(d *payment.Dispute) *payment.ID { return &d.ID }),
	idColumn("payin_id", func(d *payment.Dispute) *payment.ID { return &d.Payin }),
	textColumn("processor", func(d *payment.Dispute) *string { return &d.Processor }),
	textColumn("external_id", func(d *payment.Dispute) *string { return &d.ExternalID }),
	textColumn("payment_id", func(d *payment.Dispute) *string { return &d.PaymentID }),
	textColumn("kind", func(d *payment.Dispute) *payment.DisputeKind { return &d.Kind }),
	textColumn("reason", func(d *payment.Dispute) *string { return &d.Reason }).as(mutable),
	intColumn("amount", func(d *payment.Dispute) *cents { return &d.Amount }),
	intColumn("taken", func(d *payment.Dispute) *cents { return &d.Taken }).as(mutable),
	takesColumn("taken_from", func(d *payment.Dispute) *payment.Takes { return &d.Took }).as(mutable),
	intColumn("returned", func(d *payment.Dispute) *cents { return &d.Returned }).as(mutable),
	intColumn("lost", func(d *payment.Dispute) *cents { return &d.Lost }).as(mutable),
	textColumn("status", func(d *payment.Dispute) *payment.DisputeStatus { return &d.Status }).as(mutable),
	intColumn("version", func(d *payment.Dispute) *int64 { return &d.Version }).as(mutable),
	flagColumn("blocked", func(d *payment.Dispute) *bool { return &d.Blocked }).as(mutable),
	flagColumn("accepted", func(d *payment.Dispute) *bool { return &d.Accepted }).as(mutable),
	timeColumn("respond_by", func(d *payment.Dispute) *time.Time { return &d.RespondBy }).as(mutable),
	timeColumn("submitted_at", func(d *payment.Dispute) *time.Time { return &d.SubmittedAt }).as(mutable),
	timeColumn("closed_at", func(d *payment.Dispute) *time.Time { return &d.ClosedAt }).as(mutable),
	timeColumn("remind_at", func(d *payment.Dispute) *time.Time { return &d.RemindAt }).as(mutable),
	timeColumn("created_at", func(d *payment.Dispute) *time.Time { return &d.CreatedAt }),
	timeColumn("updated_at", func(d *payment.Dispute) *time.Time { return &d.UpdatedAt }).as(mutable),
	textColumn("return_id", func(d *payment.Dispute) *string { return &d.ReturnID }).as(mutable),
)

var (
	disputeUpdate     = disputeTable.updateBy("", "merchant_id", "id")
	disputeByExternal = disputeTable.selectBy("t.merchant_id, t.processor, t.external_id", "merchant_id", "processor", "external_id")
	disputesByPayin   = disputeTable.selectBy("t.merchant_id, t.id", "merchant_id", "payin_id").ReadOnly() // the pay-in is locked
)

func scanDispute(r db.Scanner) (payment.Dispute, error) {
	var d payment.Dispute
	return d, disputeTable.scan(r, &d)
}

type disputeKey struct {
	merchant              payment.ID
	processor, externalID string
}

func (k disputeKey) key() []any { return []any{k.merchant[:], k.processor, k.externalID} }

func keyOfDispute(d *payment.Dispute) disputeKey {
	return disputeKey{d.Merchant, d.Processor, d.ExternalID}
}

// Dispute reads a dispute by its processor's id.
func (n *Needs) Dispute(merchant payment.ID, processor, externalID string) {
	n.disputes = append(n.disputes, disputeKey{merchant, processor, externalID})
}

// DisputesOf reads all disputes of a pay-in, which is read by its external id too, and the money
// that was received for it.
func (n *Needs) DisputesOf(merchant payment.ID, externalID string) {
	n.disputed = append(n.disputed, ExternalRef{merchant, externalID})
}

// DisputesOfPayin is DisputesOf of a pay-in by its id.
func (n *Needs) DisputesOfPayin(merchant, payin payment.ID) {
	n.Payin(merchant, payin)
	n.disputedPayins = append(n.disputedPayins, Ref{merchant, payin})
}

func (l *Loaded) loadDisputes(ctx context.Context, tx *db.Tx, n *Needs) error {
	payins := l.disputedPayins(n)
	if len(n.disputes)+len(n.disputed)+len(n.disputedPayins)+len(payins) == 0 {
		return nil
	}
	list, err := db.Select(ctx, tx, disputeByExternal, keysOf(n.disputes), scanDispute)
	if err != nil {
		return err
	}
	others, err := db.Select(ctx, tx, disputesByPayin, keysOf(payins), scanDispute)
	if err != nil {
		return err
	}
	l.disputes = make(map[disputeKey]payment.Dispute, len(list)+len(others))
	for _, d := range slices.Concat(list, others) {
		l.disputes[keyOfDispute(&d)] = d
	}
	receipts, err := db.Select(ctx, tx, receiptsByPayin, keysOf(payins), scanReceipt)
	l.addReceived(payins, receipts)
	return err
}

// disputedPayins are the loaded pay-ins of DisputesOf and DisputesOfPayin, and those of
// RefundsIfPaidAgain that have disputes.
func (l *Loaded) disputedPayins(n *Needs) []Ref {
	var payins []Ref
	for _, ref := range n.disputedPayins {
		if l.payins.rows[ref] != nil && !slices.Contains(payins, ref) {
			payins = append(payins, ref)
		}
	}
	for _, of := range n.disputed {
		if ref, ok := l.payins.byExternal[of]; ok && !slices.Contains(payins, ref) {
			payins = append(payins, ref)
		}
	}
	for _, v := range n.refunds.paidAgain {
		ref, ok := l.payins.byExternal[v.of]
		if ok && l.payins.rows[ref].DisputedAmount > 0 && !slices.Contains(payins, ref) && l.isPaidAgain(ref, v.receipts) {
			payins = append(payins, ref)
		}
	}
	return payins
}

// addReceived adds up the money that was received for pay-ins.
func (l *Loaded) addReceived(payins []Ref, receipts []payment.Receipt) {
	l.received, l.overpaid = make(map[Ref]cents, len(payins)), map[Ref]bool{}
	for _, ref := range payins {
		l.received[ref] = 0
	}
	for i := range receipts {
		r, of := &receipts[i], Ref{receipts[i].Merchant, receipts[i].Payin}
		l.received[of] += r.Amount
		l.overpaid[of] = l.overpaid[of] || r.Amount > r.Applied
	}
}

// DisputesOf are the disputes of a pay-in whose disputes were loaded, in the order of their
// ids.
func (l *Loaded) DisputesOf(merchant, payin payment.ID) []payment.Dispute {
	var list []payment.Dispute
	for _, d := range l.disputes {
		if d.Merchant == merchant && d.Payin == payin {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b payment.Dispute) int { return payment.CompareIDs(a.ID, b.ID) })
	return list
}

// Received is the money that was received for a pay-in whose disputes were loaded, applied or not,
// in cents.
func (l *Loaded) Received(merchant, payin payment.ID) money.Cents {
	return l.received[Ref{merchant, payin}]
}

// Dispute is a loaded dispute; false if there is none.
func (l *Loaded) Dispute(merchant payment.ID, processor, externalID string) (payment.Dispute, bool) {
	d, ok := l.disputes[disputeKey{merchant, processor, externalID}]
	return d, ok
}

// AddDispute adds a dispute that was looked for and did not exist.
func (c *Changes) AddDispute(d payment.Dispute) {
	d.CreatedAt, d.UpdatedAt = c.l.now, c.l.now
	c.l.disputes[keyOfDispute(&d)] = d
	c.newDispute = append(c.newDispute, d)
	c.count++
}

// SetDispute changes a loaded dispute.
func (c *Changes) SetDispute(d payment.Dispute) {
	d.UpdatedAt = c.l.now
	c.l.disputes[keyOfDispute(&d)] = d
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
	ref := func(d *payment.Dispute) Ref { return Ref{d.Merchant, d.ID} }
	return inWaves(c.disputes, ref, func(wave []payment.Dispute) error {
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

// DisputeByExternalID reads a dispute by its processor's id; else ErrNotFound.
func (s *Store) DisputeByExternalID(ctx context.Context, merchant payment.ID, processor, externalID string) (payment.Dispute, error) {
	d, err := scanDispute(s.db.QueryRow(ctx, "SELECT "+disputeTable.selected+` FROM disputes t
		WHERE t.merchant_id = $1 AND t.processor = $2 AND t.external_id = $3`, merchant[:], processor, externalID))
	return d, s.db.ReadError("dispute", err)
}

// DisputesOfPayin reads all disputes of a pay-in, in the order of their ids.
func (s *Store) DisputesOfPayin(ctx context.Context, merchant, payin payment.ID) ([]payment.Dispute, error) {
	rows, err := s.db.Query(ctx, "SELECT "+disputeTable.selected+` FROM disputes t
		WHERE t.merchant_id = $1 AND t.payin_id = $2 ORDER BY t.id`, merchant[:], payin[:])
	list, err := db.Collect(rows, err, scanDispute)
	return list, s.db.ReadError("disputes of a pay-in", err)
}

// Dispute reads a dispute, and its defense, which is nil if there is none or if it cannot be
// opened; ErrNotFound if the merchant has none with that id.
func (s *Store) Dispute(ctx context.Context, merchant, id payment.ID) (payment.Dispute, *payment.Defense, error) {
	d, err := scanDispute(s.db.QueryRow(ctx, "SELECT "+disputeTable.selected+" FROM disputes t WHERE t.merchant_id = $1 AND t.id = $2", merchant[:], id[:]))
	if err != nil {
		return d, nil, s.db.ReadError("dispute", err)
	}
	list, err := s.withDefenses(ctx, merchant, []payment.Dispute{d})
	if err != nil {
		return d, nil, err
	}
	return d, list[0].Defense, nil
}

// FindDispute reads a dispute by id alone, as FindPayin does.
func (s *Store) FindDispute(ctx context.Context, id payment.ID) (payment.Dispute, error) {
	d, err := scanDispute(s.db.QueryRow(ctx, "SELECT "+disputeTable.selected+` FROM merchants m
		JOIN disputes t ON t.merchant_id = m.id AND t.id = $1`, id[:]))
	return d, s.db.ReadError("dispute", err)
}

// DefendedDispute is a dispute with its defense, if it has one that can be opened.
type DefendedDispute struct {
	payment.Dispute

	Defense *payment.Defense
}

// Disputes lists a merchant's disputes, newest first.
func (s *Store) Disputes(ctx context.Context, merchant payment.ID, f DisputeFilter) ([]DefendedDispute, error) {
	text, args := f.where(disputeTable.selected, disputeTable.name, merchant)
	rows, err := s.db.Query(ctx, text, args...)
	list, err := db.Collect(rows, err, func(r db.Scanner) (d payment.Dispute, err error) {
		_, err = disputeTable.scanDue(r, &d)
		return d, err
	})
	if err != nil {
		return nil, s.db.ReadError("disputes", err)
	}
	return s.withDefenses(ctx, merchant, list)
}

// withDefenses reads the defenses of disputes.
func (s *Store) withDefenses(ctx context.Context, merchant payment.ID, list []payment.Dispute) ([]DefendedDispute, error) {
	out := make([]DefendedDispute, len(list))
	var submitted []Ref
	for i, d := range list {
		if out[i].Dispute = d; !d.SubmittedAt.IsZero() {
			submitted = append(submitted, Ref{merchant, d.ID})
		}
	}
	answers, err := db.Select(ctx, s.db, answersOfDispute, keysOf(submitted), scanAnswer)
	if err != nil {
		return nil, s.db.ReadError("defenses", err)
	}
	defenses := make(map[payment.ID]*payment.Defense, len(submitted))
	for i := range answers {
		if d, err := openDefense(s.Keys(), &answers[i]); err == nil {
			defenses[answers[i].Dispute] = d
		}
	}
	for i := range out {
		out[i].Defense = defenses[out[i].ID]
	}
	return out, nil
}

// DisputesToRemind lists disputes whose next case is due.
func (s *Store) DisputesToRemind(ctx context.Context, now time.Time, limit int) ([]payment.Dispute, error) {
	rows, err := s.db.Query(ctx, "SELECT "+disputeTable.selected+` FROM disputes t
		WHERE t.remind_at > 0 AND t.remind_at <= $1 ORDER BY t.remind_at LIMIT $2`, micros(now), limit)
	list, err := db.Collect(rows, err, scanDispute)
	return list, s.db.ReadError("disputes whose next case is due", err)
}
