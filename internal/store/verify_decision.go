package store

import (
	"bytes"
	"context"
	"crypto/hmac"
	"fmt"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// proveDecisions checks the hash chain of a merchant's decisions. The hashes are keyed,
// so SQL cannot check them. A chain that was cut at its end is found only by comparison
// with a copy of its head ([Store.LastDecision]) that is kept outside the database.
func proveDecisions(ctx context.Context, q querier, keys *db.Keyring, merchant payment.ID) (Proof, error) {
	p := Proof{Check: "decisions", Proves: "decisions are numbered from 1 without a gap, and each hash covers its row and the row before", Defects: []Defect{}}
	rows, err := q.Query(ctx, "SELECT "+decisionTable.selected+" FROM decisions t WHERE t.merchant_id = $1 ORDER BY t.number", merchant[:])
	var before Decision
	_, err = db.Collect(rows, err, func(r db.Scanner) (struct{}, error) {
		d, err := scanDecision(r)
		if err != nil {
			return struct{}{}, err
		}
		p.Count++
		if wrong := d.defect(&before, keys); wrong != "" {
			if len(p.Defects) < DefectsMax {
				p.Defects = append(p.Defects, Defect{ID: d.ID.String(), Detail: fmt.Sprintf("decision %d: %s", d.Number, wrong)})
			} else {
				p.More = true
			}
		}
		before = d
		return struct{}{}, nil
	})
	return p, err
}

// defect describes the defect of a decision, given the one before it; "" if there is none.
func (d *Decision) defect(before *Decision, keys *db.Keyring) string {
	sum := d.hash(keys)
	switch {
	case d.Number != before.Number+1:
		return fmt.Sprintf("the row after decision %d is missing", before.Number)
	case !hmac.Equal(sum[:], d.Hash):
		return "the row was changed"
	case !bytes.Equal(d.PreviousHash, before.Hash):
		return fmt.Sprintf("decision %d, which it continues, was replaced", before.Number)
	default:
		return ""
	}
}
