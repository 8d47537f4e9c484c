package store

import (
	"cmp"
	"context"
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

var receivables = &rows[Ref, Receivable]{
	table:  receivableTable,
	key:    func(r *Receivable) Ref { return Ref{r.Merchant, r.ID} },
	byKey:  receivableTable.selectBy("t.merchant_id, t.id", "merchant_id", "id"),
	update: receivableTable.updateBy("", "merchant_id", "id"),
	compare: func(a, b *Receivable) int {
		return cmp.Or(a.SettlesAt.Compare(b.SettlesAt), payment.CompareIDs(a.ID, b.ID))
	},
}

var receivablesOfPayin = indexBy(receivables, func(r *Receivable) Ref { return Ref{r.Merchant, r.Payin} },
	receivableTable.selectBy("t.merchant_id, t.id", "merchant_id", "payin_id"),
	func(n *Needs, l *Loaded) (payins []Ref) {
		for _, of := range n.receivables {
			if ref, ok := l.payins.byExternal[of]; ok {
				payins = append(payins, ref)
			}
		}
		return payins
	})

// Receivable reads a receivable.
func (n *Needs) Receivable(merchant, id payment.ID) {
	receivables.need(n, Ref{merchant, id})
}

// ReceivablesOf reads all receivables of a pay-in.
func (n *Needs) ReceivablesOf(merchant, payin payment.ID) {
	receivablesOfPayin.need(n, Ref{merchant, payin})
}

// ReceivablesByExternalID reads all receivables of a pay-in, which is read by its external id
// too.
func (n *Needs) ReceivablesByExternalID(merchant payment.ID, externalID string) {
	n.receivables = append(n.receivables, ExternalRef{merchant, externalID})
}

// Receivable is a loaded receivable; false if there is none.
func (l *Loaded) Receivable(merchant, id payment.ID) (Receivable, bool) {
	return receivables.get(l, Ref{merchant, id})
}

// ReceivablesOf are the receivables of a pay-in whose receivables were loaded, in the order
// in which they settle.
func (l *Loaded) ReceivablesOf(merchant, payin payment.ID) []Receivable {
	return receivablesOfPayin.list(l, Ref{merchant, payin})
}

// AddReceivable adds a receivable with a new id.
func (c *Changes) AddReceivable(r Receivable) {
	r.ID, r.CreatedAt, r.State = c.l.newID(), c.l.now, ReceivablePending
	receivables.add(c, r)
}

// SetReceivable changes a loaded receivable.
func (c *Changes) SetReceivable(r Receivable) { receivables.set(c, r) }

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
