package store

import (
	"context"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/pricing"
)

// A row of receivableRows is one of these.
const (
	rowPayin      = iota // its method, details, and the fee that refunds gave back
	rowPayment           // number of its entry, applied amount, when it was paid, when it was booked
	rowReceivable        // instalment, gross, fee, when it settles, when it was created
)

// receivableRows are the rows of a page of pay-ins that have receivables, in one statement, because
// they change together. An operator may have paid an order from unapplied money. Payments are in the
// order of their entries: a clock that was set back may date a later one before it.
const receivableRows = `WITH page AS (SELECT DISTINCT payin_id AS id FROM receivables WHERE merchant_id = $1 AND payin_id > $2 ORDER BY payin_id LIMIT $3)
	SELECT t.id AS id, 0 AS kind, 0 AS number, (SELECT CAST(coalesce(SUM(f.fee_refunded), 0) AS BIGINT) FROM refund_parts f WHERE f.merchant_id = $1 AND f.payin_id = t.id) AS amount,
			0 AS fee, 0 AS due, 0 AS created, t.method AS method, t.details AS details
		FROM page JOIN payins t ON t.merchant_id = $1 AND t.id = page.id
	UNION ALL SELECT t.payin_id, 1, t.entry_number, t.applied, 0, t.paid_at, t.created_at, '', '{}' FROM page JOIN receipts t ON t.merchant_id = $1 AND t.payin_id = page.id WHERE t.applied > 0
	UNION ALL SELECT t.subject_id, 1, t.entry_number, -t.amount, 0, t.created_at, t.created_at, '', '{}' FROM postings t JOIN page ON page.id = t.subject_id
		WHERE t.merchant_id = $1 AND t.account = 'unapplied' AND t.kind = '` + string(ledger.UnappliedApplied) + `'
	UNION ALL SELECT t.payin_id, 2, t.installment, t.gross, t.fee, t.settles_at, t.created_at, '', '{}' FROM page JOIN receivables t ON t.merchant_id = $1 AND t.payin_id = page.id
	ORDER BY 1, 2, 3`

// scheduled is what terms decide about a receivable.
type scheduled struct {
	installment int
	gross, fee  cents
	at          time.Time
}

// schedule compares the receivables of one pay-in with its payments.
type schedule struct {
	payin    payment.Payin
	charged  cents
	payments int
	feesBack cents
	want     map[scheduled]int // less those that there are
}

// proveReceivables computes the receivables of each pay-in again, from its payments and prices.
func proveReceivables(ctx context.Context, q querier, _ *db.Keyring, merchant payment.ID) (Proof, error) {
	p := Proof{Check: "receivables", Proves: "receivables are what payments and prices say: amount, fee, and when they settle", Defects: []Defect{}}
	after := []byte{}
	for n := verifyPage; n == verifyPage; {
		n = 0
		var v schedule
		rows, err := q.Query(ctx, receivableRows, merchant[:], after, verifyPage)
		_, err = db.Collect(rows, err, func(r db.Scanner) (struct{}, error) {
			kind, err := v.scan(r, &after, &p)
			if kind == rowPayin {
				n++
			}
			return struct{}{}, err
		})
		if err != nil {
			return p, err
		}
		v.end(&p)
	}
	return p, nil
}

// scan reads a row. The first of a pay-in ends the one before.
func (v *schedule) scan(r db.Scanner, id *[]byte, p *Proof) (kind int, err error) {
	var number int
	var amount, fee cents
	var due, created time.Time
	var of payment.Payin
	err = r.Scan(id, intDest[int]{&kind}, intDest[int]{&number}, intDest[cents]{&amount}, intDest[cents]{&fee}, (*timeDest)(&due), (*timeDest)(&created),
		textDest[payment.Method]{&of.Method}, detailsDest{&of.Details})
	if err != nil {
		return kind, err
	}
	switch kind {
	case rowPayin:
		v.end(p)
		of.ID = idOf(*id)
		*v = schedule{payin: of, feesBack: amount, want: map[scheduled]int{}}
	case rowPayment:
		v.pay(amount, due, created)
	default:
		p.Count++
		v.want[scheduled{number, amount, fee, due}]--
	}
	return kind, nil
}

// pay schedules a payment as package receivable does.
func (v *schedule) pay(amount cents, paidAt, created time.Time) {
	terms := v.payin.Terms()
	fee := pricing.FeeOfPart(terms, v.payin.PaidAmount, v.charged, amount)
	v.payin.PaidAmount, v.charged, v.payments = v.payin.PaidAmount+amount, v.charged+fee, v.payments+1
	if paidAt.IsZero() || paidAt.After(created) {
		paidAt = created
	}
	for _, part := range pricing.Schedule(terms, amount, fee, paidAt, v.payin.Installments()) {
		if part.SettlesAt.After(created) && part.Net() > 0 {
			v.want[scheduled{part.Installment, part.Gross, part.Fee, part.SettlesAt}]++
		}
	}
}

// end reports the receivables that differ. If a refund gave a fee back before a later payment, that
// has another fee.
func (v *schedule) end(p *Proof) {
	if v.feesBack > 0 && v.payments > 1 {
		return
	}
	for of, n := range v.want {
		if n < 0 {
			p.defect(v.payin.ID, fmt.Sprintf("instalment %d of %d with the fee %d settles at %s, and by the payments and prices it does not", of.installment, of.gross, of.fee, of.at.Format(time.RFC3339)))
		} else if n > 0 {
			p.defect(v.payin.ID, fmt.Sprintf("no instalment %d of %d with the fee %d settles at %s", of.installment, of.gross, of.fee, of.at.Format(time.RFC3339)))
		}
	}
}
