package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/pricing"
)

// pricesSeen is how long a gateway may have used the prices of a merchant before a change, or the
// clock of one may differ.
const pricesSeen = 10 * time.Minute

// orders proves the columns of orders that were derived from other values.
type orders struct {
	q        querier
	keys     *db.Keyring
	merchant payment.ID
	number   int64 // of the merchant
	external payment.ExternalIDs
	prices   []priceRow
	p        *Proof
}

// proveOrders derives the external ids of a merchant's orders again, and compares what was copied
// into pay-ins when they were created. The keyed hash of a pay-in's amount is in its fingerprint.
func proveOrders(ctx context.Context, q querier, keys *db.Keyring, merchant payment.ID) (Proof, error) {
	p := Proof{Check: "orders", Proves: "external ids are those of their references, pay-ins have the amount that was requested, the prices of that time, and the fee by them", Defects: []Defect{}}
	v := orders{q: q, keys: keys, merchant: merchant, p: &p}
	var id, key []byte
	err := q.QueryRow(ctx, "SELECT i.id, i.external_id_key, m.number FROM installation i, merchants m WHERE m.id = $1", merchant[:]).Scan(&id, &key, &v.number)
	if err != nil {
		return p, err
	}
	copy(v.external.Installation[:], id)
	copy(v.external.Key[:], key)
	rows, err := q.Query(ctx, "SELECT "+priceTable.selected+" FROM prices t WHERE t.merchant_id = $1", merchant[:])
	if v.prices, err = db.Collect(rows, err, scanPrice); err != nil {
		return p, err
	}
	for table, op := range map[string]payment.Operation{
		"payouts": payment.OperationPayout, "refunds": payment.OperationRefund, "payout_batches": payment.OperationPayoutBatch,
	} {
		if err := v.references(ctx, table, op); err != nil {
			return p, err
		}
	}
	return p, v.payins(ctx)
}

func (v *orders) references(ctx context.Context, table string, op payment.Operation) error {
	text := "SELECT t.id, t.external_id, t.reference_id FROM " + table + ` t
		WHERE t.merchant_id = $1 AND t.id > $2 ORDER BY t.id LIMIT $3`
	return pages(ctx, v.q, text, v.merchant, func(r db.Scanner, after *[]byte) error {
		var external, reference string
		if err := r.Scan(after, &external, &reference); err != nil {
			return err
		}
		if reference != "" { // else it was made at the processor
			v.p.Count++
			v.derived(idOf(*after), op, external, reference)
		}
		return nil
	})
}

func (v *orders) derived(id payment.ID, op payment.Operation, external, reference string) {
	if v.external.New(v.number, v.merchant, op, reference) != external {
		v.p.defect(id, "the external id is not that of the referenceId")
	}
}

func (v *orders) payins(ctx context.Context) error {
	text := "SELECT " + payinTable.selected + `, (SELECT CAST(coalesce(SUM(p.fee_refunded), 0) AS BIGINT) FROM refund_parts p
			WHERE p.merchant_id = t.merchant_id AND p.payin_id = t.id), t.id FROM payins t
		WHERE t.merchant_id = $1 AND t.id > $2 ORDER BY t.id LIMIT $3`
	return pages(ctx, v.q, text, v.merchant, func(r db.Scanner, after *[]byte) error {
		var p payinRow
		var back cents
		damaged, err := payinTable.scanDue(r, &p, intDest[cents]{&back}, after)
		if err != nil || damaged { // the check of rows lists it
			return err
		}
		v.p.Count++
		v.payin(&p, back)
		return nil
	})
}

func (v *orders) payin(p *payinRow, back cents) {
	op := payment.OperationPayin
	if p.Details.Origin == payment.OriginPublic {
		op = payment.OperationPublicPayin
	}
	v.derived(p.ID, op, p.ExternalID, p.ReferenceID)
	if !amountIs(v.keys, v.merchant, p.Fingerprint, p.Amount) {
		v.p.defect(p.ID, fmt.Sprintf("the amount of the request was not %d", p.Amount))
	}
	if !v.priced(p) {
		v.p.defect(p.ID, "its prices are not those of its creation")
	}
	// A part that is paid after a refund is charged with what the refund gave back.
	if fee := pricing.Fee(p.Terms(), p.PaidAmount); p.Fee > fee || p.Fee+back < fee {
		v.p.defect(p.ID, fmt.Sprintf("the fee is %d, refunds gave %d back, and by its prices it is %d of %d", p.Fee, back, fee, p.PaidAmount))
	}
}

// priced reports whether each price of a pay-in was valid when it was created, and none is missing.
func (v *orders) priced(p *payinRow) bool {
	from, to := p.CreatedAt.Add(-pricesSeen), p.CreatedAt.Add(pricesSeen)
	ended := func(r *priceRow, at time.Time) bool { return !r.until.IsZero() && r.until.Before(at) }
	for _, of := range p.Details.Prices {
		if !slices.ContainsFunc(v.prices, func(r priceRow) bool {
			return r.Method == p.Method && r.Range == of && !r.Since.After(to) && !ended(&r, from)
		}) {
			return false
		}
	}
	for i := range v.prices {
		r := &v.prices[i]
		if r.Method == p.Method && !r.Since.After(from) && !ended(r, to) && !slices.Contains(p.Details.Prices, r.Range) {
			return false
		}
	}
	return true
}

// amountIs reports whether the fingerprint of a request has the keyed hash of an amount, or none of
// an amount. The form of the hash is that of package wire.
func amountIs(keys *db.Keyring, merchant payment.ID, fingerprint []byte, amount cents) bool {
	const name = "amount"
	for f := fingerprint; len(f) > 0; {
		n := int(f[0])
		if len(f) < 1+n+16 {
			break
		}
		if string(f[1:1+n]) == name {
			digits := strconv.FormatInt(int64(amount), 10)
			message := append(append(append([]byte{}, merchant[:]...), byte(len(name))), name...)
			message = append(append(message, '0'), binary.AppendUvarint(nil, uint64(len(digits)))...)
			return keys.AuthenticHalf(db.PurposeFingerprint, append(message, digits...), [16]byte(f[1+n:1+n+16]))
		}
		f = f[1+n+16:]
	}
	return true
}

// defect adds a defect, if there are not too many.
func (p *Proof) defect(id payment.ID, detail string) {
	if p.More = len(p.Defects) >= DefectsMax; !p.More {
		p.Defects = append(p.Defects, Defect{ID: id.String(), Detail: detail})
	}
}

// pages reads rows in pages by their id, so that no read keeps its snapshot for long. text has the
// merchant, the id after which a page begins, and its length.
func pages(ctx context.Context, q querier, text string, merchant payment.ID, scan func(r db.Scanner, after *[]byte) error) error {
	after := []byte{}
	for n := verifyPage; n == verifyPage; {
		n = 0
		rows, err := q.Query(ctx, text, merchant[:], after, verifyPage)
		_, err = db.Collect(rows, err, func(r db.Scanner) (struct{}, error) {
			n++
			return struct{}{}, scan(r, &after)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
