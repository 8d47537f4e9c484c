package store

import (
	"context"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
)

// StatementRow is one row of a merchant's statement: a posting to one of its own accounts.
type StatementRow struct {
	Posting

	// OrderType is the type of the order that the entry is about, with its reference; "" if it is
	// no order.
	OrderType   payment.Operation
	ReferenceID string
	// EndToEndID is the id in Pix of that order; "" if it is not known, or the order has several payments.
	EndToEndID string
	// Dispute and Installment are the part of the order that the entry is about; zero if it is about none.
	Dispute     payment.ID
	Installment int
}

// StatementFilter selects rows of a statement, oldest first.
type StatementFilter struct {
	After, To int64          // numbers: from the one after After to To, inclusive
	Account   ledger.Account // "": all of the merchant's own
	Kind      ledger.Kind    // "": all
	Limit     int
}

// statementAccounts are the merchant's own accounts in SQL, as a list of texts.
var statementAccounts = func() string {
	list := make([]string, len(ledger.StatementAccounts))
	for i, account := range ledger.StatementAccounts {
		list[i] = "'" + string(account) + "'"
	}
	return "(" + strings.Join(list, ", ") + ")"
}()

// ofEachAccount combines one query of postings for each of the accounts into one table: the key has
// the numbers of one account in order.
func ofEachAccount(accounts []ledger.Account, columns, condition string) string {
	list := make([]string, len(accounts))
	for i, account := range accounts {
		list[i] = "SELECT * FROM (SELECT " + columns + " FROM postings WHERE merchant_id = $1 AND account = '" + string(account) +
			"' AND " + condition + ") AS " + string(account)
	}
	return strings.Join(list, " UNION ALL ")
}

// Statement reads rows of a merchant's statement.
func (s *Store) Statement(ctx context.Context, merchant payment.ID, f StatementFilter) ([]StatementRow, error) {
	accounts := ledger.StatementAccounts
	if f.Account != "" {
		accounts = []ledger.Account{f.Account}
	}
	args := []any{merchant[:], f.After, f.To, f.Limit}
	kind := ""
	if f.Kind != "" {
		args = append(args, string(f.Kind))
		kind = " AND kind = $" + strconv.Itoa(len(args))
	}
	rows, err := s.db.Query(ctx, "SELECT "+postingTable.selected+`, CASE WHEN i.id IS NOT NULL THEN '`+string(payment.OperationPayin)+
		`' WHEN o.id IS NOT NULL THEN '`+string(payment.OperationPayout)+`' WHEN r.id IS NOT NULL THEN '`+string(payment.OperationRefund)+`' ELSE '' END, coalesce(i.reference_id, o.reference_id, r.reference_id, ''),
			CASE WHEN i.end_to_end_id <> '' AND (SELECT count(*) FROM receipts p WHERE p.merchant_id = t.merchant_id AND p.payin_id = i.id) > 1 THEN ''
			ELSE coalesce(i.end_to_end_id, o.end_to_end_id, r.end_to_end_id, '') END, CASE WHEN d.id IS NULL THEN 0 ELSE 1 END, coalesce(n.installment, 0)
		FROM (`+ofEachAccount(accounts, "*", "number > $2 AND number <= $3"+kind+" ORDER BY number LIMIT $4")+`) AS t
		LEFT JOIN payins i ON i.merchant_id = t.merchant_id AND i.id = t.subject_id
		LEFT JOIN payouts o ON o.merchant_id = t.merchant_id AND o.id = t.subject_id
		LEFT JOIN refunds r ON r.merchant_id = t.merchant_id AND r.id = t.subject_id
		LEFT JOIN disputes d ON d.merchant_id = t.merchant_id AND d.id = t.part_id
		LEFT JOIN receivables n ON n.merchant_id = t.merchant_id AND n.id = t.part_id
		ORDER BY t.number LIMIT $4`, args...)
	list, err := db.Collect(rows, err, func(r db.Scanner) (StatementRow, error) {
		var p posting
		var row StatementRow
		var disputed bool
		err := postingTable.scan(r, &p, (*string)(&row.OrderType), &row.ReferenceID, &row.EndToEndID, (*flagDest)(&disputed), intDest[int]{&row.Installment})
		if row.Posting = p.Posting; disputed {
			row.Dispute = p.Part
		}
		return row, err
	})
	return list, s.db.ReadError("statement", err)
}

// StatementEnd is the last number of a merchant's statement; 0 if it is empty.
func (s *Store) StatementEnd(ctx context.Context, merchant payment.ID) (number int64, err error) {
	err = s.db.QueryRow(ctx, "SELECT coalesce(SUM(postings), 0) FROM balances WHERE merchant_id = $1 AND account IN "+statementAccounts, merchant[:]).Scan(&number)
	return number, s.db.ReadError("statement", err)
}

// StatementNumber reads the posting with a number of a merchant's statement; else
// ErrNotFound.
func (s *Store) StatementNumber(ctx context.Context, merchant payment.ID, number int64) (Posting, error) {
	var p posting
	err := postingTable.scan(s.db.QueryRow(ctx, "SELECT "+postingTable.selected+` FROM postings t
		WHERE t.merchant_id = $1 AND t.account IN `+statementAccounts+" AND t.number = $2", merchant[:], number), &p)
	return p.Posting, s.db.ReadError("statement", db.NotFound(err))
}

// StatementBefore is the last number of a merchant's statement before a time; 0 if there is
// none. It is found by bisection, because times follow the numbers unless a clock was set
// back. The bisection is by powers of two, so that later postings never change its result.
func (s *Store) StatementBefore(ctx context.Context, merchant payment.ID, t time.Time) (int64, error) {
	end, err := s.StatementEnd(ctx, merchant)
	if err != nil {
		return 0, err
	}
	number := int64(0)
	for step := int64(1) << bits.Len64(uint64(end)); step > 0; step /= 2 {
		if number+step > end {
			continue
		}
		p, err := s.StatementNumber(ctx, merchant, number+step)
		if err != nil {
			return 0, err
		}
		if p.CreatedAt.Before(t) {
			number += step
		}
	}
	return number, nil
}

// BalancesBefore reads the balances of a merchant's own accounts before a time.
func (s *Store) BalancesBefore(ctx context.Context, merchant payment.ID, t time.Time) (ledger.Balances, error) {
	number, err := s.StatementBefore(ctx, merchant, t)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, ofEachAccount(ledger.StatementAccounts, "account, balance_after", "number <= $2 ORDER BY number DESC LIMIT 1"), merchant[:], number)
	b := ledger.Balances{}
	_, err = db.Collect(rows, err, func(r db.Scanner) (none struct{}, err error) {
		var account ledger.Account
		var amount cents
		if err = r.Scan((*string)(&account), (*int64)(&amount)); err == nil {
			b[account] = amount
		}
		return none, err
	})
	if err != nil {
		return nil, s.db.ReadError("statement", err)
	}
	return b, nil
}
