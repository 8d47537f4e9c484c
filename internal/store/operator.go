package store

import (
	"context"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// CasesOf lists the cases about a subject, open and closed, newest first.
func (s *Store) CasesOf(ctx context.Context, merchant, subject payment.ID) ([]Case, error) {
	rows, err := s.db.Query(ctx, "SELECT "+caseTable.selected+` FROM cases t
		WHERE t.merchant_id = $1 AND t.subject_id = $2 ORDER BY t.created_at DESC, t.id DESC`, merchant[:], subject[:])
	list, err := db.Collect(rows, err, scanCase)
	return list, s.db.ReadError("cases", err)
}

// CaseFilter narrows a list of a merchant's cases, or of the platform's. Zero values do not.
type CaseFilter struct {
	Kind   CaseKind
	Closed bool // those that are closed; else those that are open
}

// Cases lists a merchant's cases, or the platform's, newest first: of closed ones, by when they were
// closed. The index has the open ones; closed ones are read, so their cost is that of all cases of
// the merchant.
func (s *Store) Cases(ctx context.Context, merchant payment.ID, f CaseFilter, limit int) ([]Case, error) {
	condition, order := "t.closed_at = 0", "t.created_at DESC, t.id DESC"
	if f.Closed {
		condition, order = "t.closed_at > 0", "t.closed_at DESC, t.id DESC"
	}
	rows, err := s.db.Query(ctx, "SELECT "+caseTable.selected+" FROM cases t WHERE t.merchant_id = $1 AND "+condition+
		" AND ($2 = '' OR t.kind = $2) ORDER BY "+order+" LIMIT $3", merchant[:], string(f.Kind), limit)
	list, err := db.Collect(rows, err, scanCase)
	return list, s.db.ReadError("cases", err)
}

// CaseCount is how many cases of a kind are open, and how many of them stop payouts of a merchant or of
// an account: see [Store.StoppingCases].
type CaseCount struct {
	Kind     CaseKind
	Open     int64
	Stopping int64
}

// CountCases counts the open cases of all merchants by kind.
func (s *Store) CountCases(ctx context.Context) ([]CaseCount, error) {
	rows, err := s.db.Query(ctx, `SELECT t.kind, count(*), SUM(CASE WHEN `+stopping+` THEN 1 ELSE 0 END) FROM cases t
		WHERE t.closed_at = 0 GROUP BY t.kind ORDER BY t.kind`)
	list, err := db.Collect(rows, err, func(r db.Scanner) (v CaseCount, err error) {
		err = r.Scan(textDest[CaseKind]{&v.Kind}, &v.Open, &v.Stopping)
		return v, err
	})
	return list, s.db.ReadError("cases", err)
}

// stopping is a condition in SQL: an open case t stops payouts, or is about an account that the gateway
// has suspended.
const stopping = "(t.stops_payouts = 1 OR t.stops_account <> '' OR t.kind = '" + string(CaseAccountRefused) + "')"

// FoundTransferOf reads a found transfer by its id, for the operator's commands; else ErrNotFound.
func (s *Store) FoundTransferOf(ctx context.Context, merchant, id payment.ID) (FoundTransfer, error) {
	f, err := scanFound(s.db.QueryRow(ctx, "SELECT "+foundTable.selected+" FROM found_transfers t WHERE t.merchant_id = $1 AND t.id = $2", merchant[:], id[:]))
	return f, s.db.ReadError("found transfer", err)
}

// usesOfAccount are the rows that name an account once it was used, or one of its lists was read.
var usesOfAccount = []string{
	"feeds WHERE account = $1 AND through > 0", "charges WHERE account = $1", "payins WHERE processor = $1", "payouts WHERE processor = $1",
	"receipt_claims WHERE processor = $1", "receipts WHERE processor = $1", "notices WHERE processor = $1", "refund_parts WHERE processor = $1",
	"found_transfers WHERE processor = $1", "consents WHERE account = $1", "disputes WHERE processor = $1",
}

// AccountUsed reports whether an account has an order, a notice or a booking, or one of its lists was
// read. It may read all orders, so it is for an account that takes no new ones.
func (s *Store) AccountUsed(ctx context.Context, id string) (bool, error) {
	for _, rows := range usesOfAccount {
		var n int
		if err := s.db.QueryRow(ctx, "SELECT count(*) FROM (SELECT 1 FROM "+rows+" LIMIT 1) u", id).Scan(&n); err != nil {
			return false, s.db.ReadError("account", err)
		}
		if n > 0 {
			return true, nil
		}
	}
	return false, nil
}
