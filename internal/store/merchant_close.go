package store

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// Unfinished is what a merchant has that is not final: money, orders, disputes and cases.
type Unfinished struct {
	Balances map[ledger.Account]money.Cents // of the merchant's own accounts, without those of 0
	Work     []UnfinishedWork               // without those of which there is none
}

// UnfinishedWork is the number of a merchant's orders, disputes or cases in a status.
type UnfinishedWork struct {
	Noun   string // payin, payout, refund, dispute or case
	Status string // "" for open cases
	Count  int64
}

// Nothing reports whether all is final.
func (u *Unfinished) Nothing() bool { return len(u.Balances) == 0 && len(u.Work) == 0 }

// unfinishedWork counts orders, disputes and cases by their status. The condition on COMPLETED is
// that of the partial indexes.
const unfinishedWork = `SELECT 'payin', t.status, count(*) FROM payins t WHERE t.merchant_id = $1 AND t.status IN ('PENDING', 'PROCESSING') GROUP BY t.status
	UNION ALL SELECT 'payout', t.status, count(*) FROM payouts t WHERE t.merchant_id = $1 AND t.status IN ('PENDING', 'PROCESSING') AND t.status <> 'COMPLETED' GROUP BY t.status
	UNION ALL SELECT 'refund', t.status, count(*) FROM refunds t WHERE t.merchant_id = $1 AND t.status IN ('PENDING', 'PROCESSING') AND t.status <> 'COMPLETED' GROUP BY t.status
	UNION ALL SELECT 'dispute', t.status, count(*) FROM disputes t WHERE t.merchant_id = $1 AND t.status IN ('OPEN', 'SUBMITTED') GROUP BY t.status
	UNION ALL SELECT 'case', '', count(*) FROM cases t WHERE t.merchant_id = $1 AND t.closed_at = 0`

// Unfinished locks a merchant's row and reads what the merchant has that is not final. Orders do not
// take that lock: one that is created meanwhile goes on. ErrNotFound if there is no such merchant.
func (tx *AdminTx) Unfinished(ctx context.Context, id payment.ID) (u Unfinished, err error) {
	if err := tx.lockMerchant(ctx, id); err != nil {
		return u, err
	}
	rows, err := tx.Query(ctx, "SELECT "+balanceTable.selected+" FROM balances t WHERE t.merchant_id = $1", id[:])
	balances, err := db.Collect(rows, err, func(r db.Scanner) (b balance, err error) { return b, balanceTable.scan(r, &b) })
	if err != nil {
		return u, err
	}
	u.Balances = map[ledger.Account]money.Cents{}
	for _, b := range balances {
		if b.account.InStatement() && b.amount != 0 {
			u.Balances[b.account] = b.amount
		}
	}
	rows, err = tx.Query(ctx, unfinishedWork, id[:])
	work, err := db.Collect(rows, err, func(r db.Scanner) (w UnfinishedWork, err error) {
		return w, r.Scan(textDest[string]{&w.Noun}, textDest[string]{&w.Status}, &w.Count)
	})
	for _, w := range work {
		if w.Count > 0 {
			u.Work = append(u.Work, w)
		}
	}
	return u, err
}

// CloseMerchant marks a merchant as closed: its credentials are rejected from then on, but its
// orders continue. A merchant that is closed already is ErrConflict.
func (tx *AdminTx) CloseMerchant(ctx context.Context, id payment.ID) error {
	return tx.setClosed(ctx, id, "close", tx.Now)
}

// ReopenMerchant undoes [AdminTx.CloseMerchant]. A merchant that is not closed is ErrConflict.
func (tx *AdminTx) ReopenMerchant(ctx context.Context, id payment.ID) error {
	return tx.setClosed(ctx, id, "reopen", time.Time{})
}

func (tx *AdminTx) setClosed(ctx context.Context, id payment.ID, action string, at time.Time) error {
	m, err := tx.soundMerchant(ctx, id)
	if err != nil {
		return err
	}
	if m.ClosedAt.IsZero() == at.IsZero() {
		return ErrConflict
	}
	before := m.auditFields()
	m.ClosedAt = at
	tx.record(NounMerchant, action, id, "", before, m.auditFields())
	if err := tx.ExecOne(ctx, "UPDATE merchants SET closed_at = $1 WHERE id = $2", micros(at), id[:]); err != nil {
		return err
	}
	return tx.signMerchant(ctx, id)
}
