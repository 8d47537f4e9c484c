package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/payment"
)

// parkTexts stop the work on a row that is not parked. Its other columns stay as they are, so that it
// can be repaired.
var parkTexts = map[string]string{
	"payins":      "next_at = 0 WHERE merchant_id = $1 AND id = $2 AND next_at > 0",
	"receivables": "state = 'parked' WHERE merchant_id = $1 AND id = $2 AND state = 'pending'",
	"payouts": `step = CASE WHEN step = 'approval' THEN step ELSE 'manual_review' END, next_at = 0, claimed_by = substr(id, 1, 0)
		WHERE merchant_id = $1 AND id = $2 AND step <> 'manual_review' AND (step <> 'approval' OR next_at > 0)`,
	"refund_parts": `step = 'manual_review', next_at = 0, claimed_by = substr(refund_id, 1, 0)
		WHERE merchant_id = $1 AND refund_id = $2 AND number = $3 AND step <> 'manual_review'`,
}

// parkedRow is a row to be parked.
type parkedRow struct {
	table string
	key   []any
}

// DamagedCase is the case about a row of a table that cannot be processed.
func DamagedCase(merchant, subject payment.ID, table string) Case {
	return Case{Merchant: merchant, Kind: CaseDamaged, Subject: subject, Params: Params{"table": table}}
}

// Park stops the work on the row that a case about damage names, so that it delays no other, and opens
// the case. The row need not be loaded: that may be impossible. number is that of a part of a refund,
// else 0. The commit fails with ErrConflict if the row is parked, as after an earlier run whose commit
// was unknown.
func (c *Changes) Park(v Case, number int64) {
	row, ref := parkedRow{v.Params["table"], []any{v.Merchant[:], v.Subject[:]}}, Ref{v.Merchant, v.Subject}
	switch row.table {
	case "payouts":
		if p := c.l.payouts.rows[ref]; p != nil {
			parked := *p // the row may be an operation's, which may run again
			parked.NextAt, parked.ClaimedBy = time.Time{}, payment.ID{}
			if parked.Step != payment.StepApproval {
				parked.Step = payment.StepReview
			}
			c.l.payouts.rows[ref] = &parked
		}
	case "refund_parts":
		row.key = append(row.key, number)
		if p, ok := c.l.refunds.parts[partKey{ref, number}]; ok {
			p.State, p.NextAt, p.ClaimedBy = effect.Review, time.Time{}, payment.ID{}
			c.l.refunds.parts[partKey{ref, number}] = p
		}
	}
	c.parked = append(c.parked, row)
	c.OpenCase(v)
}

func (c *Changes) saveParked(ctx context.Context, tx *db.Tx) error {
	slices.SortStableFunc(c.parked, func(a, b parkedRow) int { return cmp.Compare(a.table, b.table) })
	for _, row := range c.parked {
		if err := tx.ExecOne(ctx, "UPDATE "+row.table+" SET "+parkTexts[row.table], row.key...); err != nil {
			return fmt.Errorf("to park a row of %s: %w", row.table, err)
		}
	}
	return nil
}
