package store

import (
	"context"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
)

var partTable = newTable("refund_parts", []string{"refund_id", "number"}, append([]column[payment.RefundPart]{
	idColumn("merchant_id", func(p *payment.RefundPart) *payment.ID { return &p.Merchant }),
	idColumn("refund_id", func(p *payment.RefundPart) *payment.ID { return &p.Refund }),
	intColumn("number", func(p *payment.RefundPart) *int64 { return &p.Number }),
	idColumn("payin_id", func(p *payment.RefundPart) *payment.ID { return &p.Payin }),
	idColumn("receipt_id", func(p *payment.RefundPart) *payment.ID { return &p.Receipt }),
	textColumn("processor", func(p *payment.RefundPart) *string { return &p.Processor }),
	textColumn("payment_id", func(p *payment.RefundPart) *string { return &p.PaymentID }),
	textColumn("external_id", func(p *payment.RefundPart) *string { return &p.ExternalID }),
	intColumn("amount", func(p *payment.RefundPart) *cents { return &p.Amount }),
	intColumn("unapplied", func(p *payment.RefundPart) *cents { return &p.Unapplied }).as(mutable),
	flagColumn("surplus", func(p *payment.RefundPart) *bool { return &p.Surplus }).as(mutable),
	takesColumn("taken_from", func(p *payment.RefundPart) *payment.Takes { return &p.Took }).as(mutable),
	intColumn("fee_refunded", func(p *payment.RefundPart) *cents { return &p.FeeRefunded }).as(mutable),
	textColumn("processor_id", func(p *payment.RefundPart) *string { return &p.ProcessorID }).as(mutable),
	textColumn("end_to_end_id", func(p *payment.RefundPart) *string { return &p.EndToEndID }).as(mutable),
	textColumn("outcome", func(p *payment.RefundPart) *payment.RefundPartOutcome { return &p.Outcome }).as(mutable),
	textColumn("evidence", func(p *payment.RefundPart) *string { return &p.Evidence }).as(mutable),
	optionalIDColumn("claimed_by", func(p *payment.RefundPart) *payment.ID { return &p.ClaimedBy }).as(mutable),
	intColumn("history", func(p *payment.RefundPart) *int64 { return &p.History }).as(mutable),
	timeColumn("created_at", func(p *payment.RefundPart) *time.Time { return &p.CreatedAt }),
	timeColumn("updated_at", func(p *payment.RefundPart) *time.Time { return &p.UpdatedAt }).as(mutable),
}, effectColumns(func(p *payment.RefundPart) *effect.Effect { return &p.Effect })...)...)

var (
	partUpdate   = partTable.updateBy("", "merchant_id", "refund_id", "number")
	partsByPayin = partTable.selectBy("t.merchant_id, t.refund_id, t.number", "merchant_id", "payin_id")
	// The other parts of a refund are read, and not locked: other claims may have them.
	partsByRefund = partTable.selectBy("t.merchant_id, t.refund_id, t.number", "merchant_id", "refund_id").ReadOnly()
)

func scanRefundPart(r db.Scanner) (payment.RefundPart, error) {
	var p payment.RefundPart
	return p, partTable.scan(r, &p)
}

// duePart is a part that is due, or another one of its refund.
type duePart struct {
	payment.RefundPart

	damaged bool
}

func scanDuePart(r db.Scanner) (p duePart, err error) {
	p.damaged, err = partTable.scanDue(r, &p.RefundPart)
	return p, err
}

// partKey names a part of a refund.
type partKey struct {
	Ref

	number int64
}

func keyOfPart(p *payment.RefundPart) partKey { return partKey{Ref{p.Merchant, p.Refund}, p.Number} }

// DueRefundParts are parts of refunds at an account that are due in a queue.
type DueRefundParts struct {
	Account string
	Queue   PayoutQueue
	Limit   int
	Debts   bool // the debts of their merchants are read too, without a lock
}

// DueRefundParts reads due parts, oldest first, that no other process is claiming, and their
// refunds. It reads the other parts of those refunds without a lock.
func (n *Needs) DueRefundParts(d DueRefundParts) {
	if !slices.Contains(n.refunds.due, d) {
		n.refunds.due = append(n.refunds.due, d)
	}
}

// loadDueParts returns the refunds of due parts.
func (l *Loaded) loadDueParts(ctx context.Context, tx *db.Tx, n *Needs) (refunds []Ref, err error) {
	for _, d := range n.refunds.due {
		rows, err := tx.Query(ctx, "SELECT "+partTable.selected+` FROM refund_parts t WHERE t.processor = $1 AND t.next_at > 0 AND t.next_at <= $2
			AND t.`+d.Queue.sql()+" ORDER BY t.next_at LIMIT $3"+tx.SkipLocked(), d.Account, micros(tx.Now), d.Limit)
		list, err := db.Collect(rows, err, scanDuePart)
		if err != nil {
			return nil, err
		}
		for i := range list {
			key := keyOfPart(&list[i].RefundPart)
			l.refunds.parts[key] = list[i].RefundPart
			if list[i].damaged {
				l.refunds.damaged[key] = true
			}
			l.refunds.due[d] = append(l.refunds.due[d], key)
			if !slices.Contains(refunds, key.Ref) {
				refunds = append(refunds, key.Ref)
			}
		}
		if d.Debts {
			if err := l.loadDebts(ctx, tx, list); err != nil {
				return nil, err
			}
		}
	}
	return refunds, l.loadOtherParts(ctx, tx, refunds)
}

// loadDebts reads the debts of the merchants of parts.
func (l *Loaded) loadDebts(ctx context.Context, tx *db.Tx, parts []duePart) error {
	for i := range parts {
		m := parts[i].Merchant
		if _, known := l.refunds.owed[m]; known {
			continue
		}
		rows, err := tx.Query(ctx, "SELECT balance FROM balances WHERE merchant_id = $1 AND account = $2", m[:], string(ledger.Owed))
		list, err := db.Collect(rows, err, func(r db.Scanner) (balance cents, err error) { return balance, r.Scan(&balance) })
		if err != nil {
			return err
		}
		l.refunds.owed[m] = 0 // it has no such account if it never owed anything
		for _, balance := range list {
			l.refunds.owed[m] = -balance
		}
	}
	return nil
}

// OwedBy is what the merchant of a loaded due part owes, if that was asked for, in cents.
func (l *Loaded) OwedBy(merchant payment.ID) cents { return l.refunds.owed[merchant] }

// loadOtherParts reads the parts of refunds that are not loaded.
func (l *Loaded) loadOtherParts(ctx context.Context, tx *db.Tx, refunds []Ref) error {
	list, err := db.Select(ctx, tx, partsByRefund, keysOf(refunds), scanDuePart)
	for i := range list {
		if key := keyOfPart(&list[i].RefundPart); l.refunds.parts[key].Number == 0 {
			l.refunds.parts[key] = list[i].RefundPart
		}
	}
	return err
}

// RefundPartDamaged reports whether a loaded due part, or its refund, cannot be decoded, or the
// refund is missing.
func (l *Loaded) RefundPartDamaged(p *payment.RefundPart) bool {
	r, ok := l.refunds.rows[Ref{p.Merchant, p.Refund}]
	return !ok || r.damaged || l.refunds.damaged[keyOfPart(p)]
}

// RefundParts are the loaded parts of a refund, by number.
func (l *Loaded) RefundParts(merchant, refund payment.ID) []payment.RefundPart {
	return l.selectParts(func(p *payment.RefundPart) bool { return p.Merchant == merchant && p.Refund == refund })
}

// RefundPartsOf are the parts of all refunds of a pay-in whose refunds were loaded.
func (l *Loaded) RefundPartsOf(merchant, payin payment.ID) []payment.RefundPart {
	return l.selectParts(func(p *payment.RefundPart) bool { return p.Merchant == merchant && p.Payin == payin })
}

func (l *Loaded) selectParts(of func(*payment.RefundPart) bool) []payment.RefundPart {
	var list []payment.RefundPart
	for _, p := range l.refunds.parts {
		if of(&p) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b payment.RefundPart) int {
		if c := payment.CompareIDs(a.Refund, b.Refund); c != 0 {
			return c
		}
		return int(a.Number - b.Number)
	})
	return list
}

// DueRefundParts are the loaded due parts that no decision of this commit has claimed or
// changed, oldest first.
func (l *Loaded) DueRefundParts(d DueRefundParts) []payment.RefundPart {
	var list []payment.RefundPart
	for _, key := range l.refunds.due[d] {
		if p := l.refunds.parts[key]; l.due(p.ClaimedBy, p.NextAt) && d.Queue.includes(p.State) {
			list = append(list, p)
		}
	}
	return list
}

// SetRefundPart changes a loaded part, or one that this commit adds.
func (c *Changes) SetRefundPart(p payment.RefundPart) payment.RefundPart {
	p.UpdatedAt = c.l.now
	key := keyOfPart(&p)
	c.l.refunds.parts[key] = p
	if i := slices.IndexFunc(c.newParts, func(v payment.RefundPart) bool { return keyOfPart(&v) == key }); i >= 0 {
		c.newParts[i] = p
	} else {
		c.parts = append(c.parts, p)
	}
	c.count++
	return p
}

func (c *Changes) saveRefundParts(ctx context.Context, tx *db.Tx) error {
	return saveRows(ctx, tx, "parts of refunds", partUpdate, c.parts, keyOfPart, partTable, c.newParts)
}

// AccountsWithRefunds lists the accounts that have parts of refunds due in a queue.
func (s *Store) AccountsWithRefunds(ctx context.Context, now time.Time, queue PayoutQueue) ([]string, error) {
	return s.accountsDue(ctx, "due refunds", "refund_parts", "processor", " AND "+queue.sql(), now)
}

// RefundParts lists the parts of a refund, by number.
func (s *Store) RefundParts(ctx context.Context, merchant, refund payment.ID) ([]payment.RefundPart, error) {
	rows, err := s.db.Query(ctx, "SELECT "+partTable.selected+` FROM refund_parts t
		WHERE t.merchant_id = $1 AND t.refund_id = $2 ORDER BY t.number`, merchant[:], refund[:])
	list, err := db.Collect(rows, err, scanRefundPart)
	return list, s.db.ReadError("parts of a refund", err)
}

// RefundPart reads a part of a refund by its external id at an account; else ErrNotFound.
func (s *Store) RefundPart(ctx context.Context, merchant payment.ID, account, externalID string) (payment.RefundPart, error) {
	p, err := scanRefundPart(s.db.QueryRow(ctx, "SELECT "+partTable.selected+` FROM refund_parts t
		WHERE t.merchant_id = $1 AND t.processor = $2 AND t.external_id = $3`, merchant[:], account, externalID))
	return p, s.db.ReadError("part of a refund", err)
}

// ReceiptClaim reads the owner of a booked payment of an account; else ErrNotFound.
func (s *Store) ReceiptClaim(ctx context.Context, account, paymentID string) (merchant, receipt payment.ID, err error) {
	err = s.db.QueryRow(ctx, "SELECT merchant_id, receipt_id FROM receipt_claims WHERE processor = $1 AND external_id = $2",
		account, paymentID).Scan((*idDest)(&merchant), (*idDest)(&receipt))
	return merchant, receipt, s.db.ReadError("receipt key", err)
}
