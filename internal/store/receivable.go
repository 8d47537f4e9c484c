package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// ReceivableState is the state of a receivable.
type ReceivableState string

// The states of a receivable.
const (
	ReceivablePending ReceivableState = "pending" // it will settle
	ReceivableSettled ReceivableState = "settled" // it has become available
	ReceivableParked  ReceivableState = "parked"  // it could not be settled; a case is open
)

// Receivable is a part of a pay-in's money that settles at one time. Amounts are cents.
type Receivable struct {
	Merchant    payment.ID
	ID          payment.ID
	Payin       payment.ID
	Installment int // from 1
	Gross       cents
	Fee         cents // at most Gross
	Taken       cents // taken by disputes and refunds before it settled
	State       ReceivableState
	SettlesAt   time.Time
	SettledAt   time.Time // zero before
	CreatedAt   time.Time
}

// Net is the part that becomes available, in cents.
func (r *Receivable) Net() cents { return r.Gross - r.Fee - r.Taken }

// Open reports whether the net amount is still pending.
func (r *Receivable) Open() bool { return r.State != ReceivableSettled }

var receivableTable = newTable("receivables", []string{"id"},
	idColumn("merchant_id", func(r *Receivable) *payment.ID { return &r.Merchant }),
	idColumn("id", func(r *Receivable) *payment.ID { return &r.ID }),
	idColumn("payin_id", func(r *Receivable) *payment.ID { return &r.Payin }),
	intColumn("installment", func(r *Receivable) *int { return &r.Installment }),
	intColumn("gross", func(r *Receivable) *cents { return &r.Gross }),
	intColumn("fee", func(r *Receivable) *cents { return &r.Fee }),
	intColumn("taken", func(r *Receivable) *cents { return &r.Taken }).as(mutable),
	textColumn("state", func(r *Receivable) *ReceivableState { return &r.State }).as(mutable),
	timeColumn("settles_at", func(r *Receivable) *time.Time { return &r.SettlesAt }),
	timeColumn("settled_at", func(r *Receivable) *time.Time { return &r.SettledAt }).as(mutable),
	timeColumn("created_at", func(r *Receivable) *time.Time { return &r.CreatedAt }),
)

var (
	receivableUpdate   = receivableTable.updateBy("", "merchant_id", "id")
	receivableByID     = receivableTable.selectBy("t.merchant_id, t.id", "merchant_id", "id")
	receivablesByPayin = receivableTable.selectBy("t.merchant_id, t.id", "merchant_id", "payin_id")
)

func scanReceivable(r db.Scanner) (Receivable, error) {
	var v Receivable
	return v, receivableTable.scan(r, &v)
}

type receivableNeeds struct {
	ids        []Ref
	payins     []Ref
	byExternal []ExternalRef // of pay-ins
}

// Receivable reads a receivable.
func (n *Needs) Receivable(merchant, id payment.ID) {
	n.receivables.ids = append(n.receivables.ids, Ref{merchant, id})
}

// ReceivablesOf reads all receivables of a pay-in.
func (n *Needs) ReceivablesOf(merchant, payin payment.ID) {
	n.receivables.payins = append(n.receivables.payins, Ref{merchant, payin})
}

// ReceivablesByExternalID reads all receivables of a pay-in, which is read by its external id
// too.
func (n *Needs) ReceivablesByExternalID(merchant payment.ID, externalID string) {
	n.receivables.byExternal = append(n.receivables.byExternal, ExternalRef{merchant, externalID})
}

// receivablePayins are the pay-ins whose receivables are read.
func (l *Loaded) receivablePayins(n *Needs) []Ref {
	payins := slices.Clone(n.receivables.payins)
	for _, of := range n.receivables.byExternal {
		if ref, ok := l.payins.byExternal[of]; ok {
			payins = append(payins, ref)
		}
	}
	slices.SortFunc(payins, func(a, b Ref) int {
		return cmp.Or(payment.CompareIDs(a.Merchant, b.Merchant), payment.CompareIDs(a.ID, b.ID))
	})
	return slices.Compact(payins)
}

func (l *Loaded) loadReceivables(ctx context.Context, tx *db.Tx, n *Needs) error {
	payins := l.receivablePayins(n)
	if len(n.receivables.ids)+len(payins) == 0 {
		return nil
	}
	list, err := db.Select(ctx, tx, receivableByID, keysOf(n.receivables.ids), scanReceivable)
	if err != nil {
		return err
	}
	others, err := db.Select(ctx, tx, receivablesByPayin, keysOf(payins), scanReceivable)
	if err != nil {
		return err
	}
	for _, r := range slices.Concat(list, others) {
		l.addReceivable(r)
	}
	return nil
}

func (l *Loaded) addReceivable(r Receivable) {
	if l.receivables == nil {
		l.receivables = map[Ref]Receivable{}
	}
	l.receivables[Ref{r.Merchant, r.ID}] = r
}

// Receivable is a loaded receivable; false if there is none.
func (l *Loaded) Receivable(merchant, id payment.ID) (Receivable, bool) {
	r, ok := l.receivables[Ref{merchant, id}]
	return r, ok
}

// ReceivablesOf are the receivables of a pay-in whose receivables were loaded, in the order
// in which they settle.
func (l *Loaded) ReceivablesOf(merchant, payin payment.ID) []Receivable {
	var list []Receivable
	for r := range maps.Values(l.receivables) {
		if r.Merchant == merchant && r.Payin == payin {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Receivable) int {
		if order := a.SettlesAt.Compare(b.SettlesAt); order != 0 {
			return order
		}
		return payment.CompareIDs(a.ID, b.ID)
	})
	return list
}

// AddReceivable adds a receivable with a new id.
func (c *Changes) AddReceivable(r Receivable) {
	r.ID, r.CreatedAt, r.State = c.l.newID(), c.l.now, ReceivablePending
	c.l.addReceivable(r)
	c.newReceivables = append(c.newReceivables, r)
	c.count++
}

// SetReceivable changes a loaded receivable.
func (c *Changes) SetReceivable(r Receivable) {
	c.l.addReceivable(r)
	c.receivables = append(c.receivables, r)
	c.count++
}

func (c *Changes) saveReceivables(ctx context.Context, tx *db.Tx) error {
	rows := make([][]any, len(c.newReceivables))
	for i := range c.newReceivables {
		rows[i] = receivableTable.row(&c.newReceivables[i])
	}
	if err := tx.InsertNew(ctx, receivableTable.insert, rows...); err != nil {
		return fmt.Errorf("receivables: %w", err)
	}
	ref := func(r *Receivable) Ref { return Ref{r.Merchant, r.ID} }
	return inWaves(c.receivables, ref, func(wave []Receivable) error {
		rows := make([][]any, len(wave))
		for i := range wave {
			rows[i] = receivableUpdate.row(&wave[i])
		}
		missed, err := tx.Update(ctx, receivableUpdate.RowUpdate, rows...)
		if err == nil && len(missed) > 0 {
			err = fmt.Errorf("%w: receivable", ErrConflict)
		}
		return err
	})
}

// ReceivablesDue lists receivables that are due to settle, in the order of their times.
func (s *Store) ReceivablesDue(ctx context.Context, now time.Time, limit int) ([]Ref, error) {
	rows, err := s.db.Query(ctx, `SELECT merchant_id, id FROM receivables
		WHERE state = 'pending' AND settles_at <= $1 ORDER BY settles_at, merchant_id LIMIT $2`, micros(now), limit)
	list, err := db.Collect(rows, err, scanRef)
	return list, s.db.ReadError("due receivables", err)
}

// ReceivableDay is the money that will become available at a time. Count is of the parts that have some:
// refunds and disputes may have taken all of others.
type ReceivableDay struct {
	SettlesAt time.Time
	Amount    cents
	Count     int64
}

// ReceivableDays adds up a merchant's open receivables by the time at which they settle, from
// inclusive and to exclusive, soonest first. All of them together are its pending balance.
func (s *Store) ReceivableDays(ctx context.Context, merchant payment.ID, from, to time.Time) ([]ReceivableDay, error) {
	rows, err := s.db.Query(ctx, `SELECT settles_at, CAST(SUM(gross - fee - taken) AS BIGINT), count(CASE WHEN gross - fee - taken > 0 THEN 1 END) FROM receivables
		WHERE merchant_id = $1 AND state <> 'settled' AND settles_at >= $2 AND settles_at < $3
		GROUP BY settles_at HAVING SUM(gross - fee - taken) > 0 ORDER BY settles_at`, merchant[:], micros(from), micros(to))
	list, err := db.Collect(rows, err, func(r db.Scanner) (v ReceivableDay, err error) {
		return v, r.Scan((*timeDest)(&v.SettlesAt), intDest[cents]{&v.Amount}, intDest[int64]{&v.Count})
	})
	return list, s.db.ReadError("receivables", err)
}

// ReceivableOf is a receivable with the reference of its pay-in.
type ReceivableOf struct {
	Receivable

	ReferenceID string
}

// ReceivablesAt lists a merchant's receivables of one time, also settled ones, up to limit after
// the one with an id.
func (s *Store) ReceivablesAt(ctx context.Context, merchant payment.ID, at time.Time, after payment.ID, limit int) ([]ReceivableOf, error) {
	rows, err := s.db.Query(ctx, "SELECT "+receivableTable.selected+`, p.reference_id FROM receivables t
		JOIN payins p ON p.merchant_id = t.merchant_id AND p.id = t.payin_id
		WHERE t.merchant_id = $1 AND t.settles_at = $2 AND t.id > $3 ORDER BY t.id LIMIT $4`, merchant[:], micros(at), after[:], limit)
	list, err := db.Collect(rows, err, func(r db.Scanner) (v ReceivableOf, err error) {
		return v, receivableTable.scan(r, &v.Receivable, textDest[string]{&v.ReferenceID})
	})
	return list, s.db.ReadError("receivables", err)
}
