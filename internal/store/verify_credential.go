package store

import (
	"context"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// proveCredentials checks the keyed hash of each of a merchant's credentials. SQL has no key.
func proveCredentials(ctx context.Context, q querier, keys *db.Keyring, merchant payment.ID) (Proof, error) {
	p := Proof{Check: "credentials", Proves: "each credential is as the gateway wrote it", Defects: []Defect{}}
	rows, err := q.Query(ctx, "SELECT "+credentialTable.selected+" FROM credentials t WHERE t.merchant_id = $1 ORDER BY t.created_at, t.key_id", merchant[:])
	_, err = db.Collect(rows, err, func(r db.Scanner) (struct{}, error) {
		c, err := scanCredential(keys)(r)
		if err != nil {
			return struct{}{}, err
		}
		p.Count++
		switch {
		case c.Damaged == nil:
		case len(p.Defects) < DefectsMax:
			p.Defects = append(p.Defects, Defect{ID: c.KeyID, Detail: "the row was changed outside the gateway: its secrets are refused. Revoke it, and create another one"})
		default:
			p.More = true
		}
		return struct{}{}, nil
	})
	return p, err
}
