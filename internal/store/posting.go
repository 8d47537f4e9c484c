package store

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// books are one merchant's balances, locked for the rest of the transaction,
// and the entries to be written with them.
type books struct {
	balances ledger.Balances
	versions map[ledger.Account]int64
	changed  map[ledger.Account]bool
	rows     [][]any
}

var postingTable = newTable("postings", "account",
	column{"merchant_id", "bytea"}, column{"entry_id", "bytea"}, column{"line", "bigint"}, column{"kind", "text"},
	column{"subject_id", "bytea"}, column{"account", "text"}, column{"amount", "bigint"},
	column{"balance_after", "bigint"}, column{"created_at", "bigint"})

// Balances locks a merchant's accounts and returns them as they stand within
// this transaction. The caller may read them, and changes them by Post.
func (tx *Tx) Balances(ctx context.Context, merchant payment.ID) (ledger.Balances, error) {
	b, err := tx.open(ctx, merchant)
	if err != nil {
		return nil, err
	}
	return b.balances, nil
}

// Post applies an entry about subject to the merchant's locked accounts, or
// returns an error of ledger.Balances.Apply and posts nothing.
func (tx *Tx) Post(ctx context.Context, merchant, subject payment.ID, e ledger.Entry) error {
	b, err := tx.open(ctx, merchant)
	if err != nil {
		return err
	}
	if err := b.balances.Apply(e); err != nil {
		return err
	}
	entry := tx.NewID()
	for i, p := range e.Postings {
		b.changed[p.Account] = true
		b.rows = append(b.rows, []any{
			merchant[:], entry[:], int64(i), string(e.Kind), subject[:], string(p.Account),
			int64(p.Amount), int64(b.balances[p.Account]), micros(tx.Now),
		})
	}
	return nil
}

// open locks the merchant's balances once per transaction.
func (tx *Tx) open(ctx context.Context, merchant payment.ID) (*books, error) {
	if b, ok := tx.books[merchant]; ok {
		return b, nil
	}
	b := &books{balances: ledger.Balances{}, versions: map[ledger.Account]int64{}, changed: map[ledger.Account]bool{}}
	rows, err := tx.query(ctx, `SELECT account, balance, version FROM balances
		WHERE merchant_id = $1 ORDER BY account`+tx.store.dialect.forUpdate(), merchant[:])
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var account string
		var balance, version int64
		if err := rows.Scan(&account, &balance, &version); err != nil {
			return nil, err
		}
		b.balances[ledger.Account(account)] = money.Cents(balance)
		b.versions[ledger.Account(account)] = version
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if tx.books == nil {
		tx.books = map[payment.ID]*books{}
	}
	tx.books[merchant] = b
	return b, nil
}

// saveBooks writes postings and balances, merchant by merchant in order.
func (tx *Tx) saveBooks(ctx context.Context) error {
	merchants := make([]payment.ID, 0, len(tx.books))
	for m, b := range tx.books {
		if len(b.rows) > 0 {
			merchants = append(merchants, m)
		}
	}
	sort.Slice(merchants, func(i, j int) bool { return bytes.Compare(merchants[i][:], merchants[j][:]) < 0 })
	for _, m := range merchants {
		b := tx.books[m]
		if _, err := tx.insert(ctx, postingTable, b.rows...); err != nil {
			return fmt.Errorf("postings: %w", err)
		}
		known := len(b.versions)
		for _, account := range b.balances.Accounts() {
			if !b.changed[account] {
				continue
			}
			if err := tx.saveBalance(ctx, m, account, b, known); err != nil {
				return fmt.Errorf("balance %s: %w", account, err)
			}
			if _, existed := b.versions[account]; !existed {
				known++
			}
		}
	}
	return nil
}

// saveBalance writes one account. The version is a guard that the lock should
// make idle; an account that two transactions open at once is run again. So is
// one where the merchant has other accounts than the known ones: PostgreSQL
// takes its snapshot before it waits for a lock, and so does not show what the
// transaction before opened, such as a debt.
func (tx *Tx) saveBalance(ctx context.Context, m payment.ID, account ledger.Account, b *books, known int) error {
	version, exists := b.versions[account]
	var n int64
	var err error
	if exists {
		n, err = tx.changed(ctx, `UPDATE balances SET balance = $1, version = version + 1
			WHERE merchant_id = $2 AND account = $3 AND version = $4
				AND (SELECT count(*) FROM balances all_of WHERE all_of.merchant_id = $2) = $5`,
			int64(b.balances[account]), m[:], string(account), version, known)
	} else {
		n, err = tx.changed(ctx, `INSERT INTO balances (merchant_id, account, balance, version)
			VALUES ($1, $2, $3, 1) ON CONFLICT DO NOTHING`, m[:], string(account), int64(b.balances[account]))
	}
	if err == nil && n != 1 {
		err = errRetry
	}
	return err
}

// Balances reads a merchant's accounts.
func (s *Store) Balances(ctx context.Context, merchant payment.ID) (ledger.Balances, error) {
	rows, err := s.query(ctx, "SELECT account, balance FROM balances WHERE merchant_id = $1", merchant[:])
	type row struct {
		account ledger.Account
		balance money.Cents
	}
	list, err := collect(rows, err, func(r scanner) (row, error) {
		var v row
		return v, r.Scan((*string)(&v.account), (*int64)(&v.balance))
	})
	if err != nil {
		return nil, s.readError("balances", err)
	}
	b := ledger.Balances{}
	for _, v := range list {
		b[v.account] = v.balance
	}
	return b, nil
}

// Posting is one stored line of an entry.
type Posting struct {
	Entry        payment.ID
	Line         int64
	Kind         ledger.Kind
	Subject      payment.ID
	Account      ledger.Account
	Amount       money.Cents
	BalanceAfter money.Cents
	CreatedAt    time.Time
}

// Postings reads up to limit lines of a merchant after the given line, in the
// order of their entries' ids.
func (s *Store) Postings(ctx context.Context, merchant payment.ID, after Posting, limit int) ([]Posting, error) {
	rows, err := s.query(ctx, `SELECT entry_id, line, kind, subject_id, account, amount, balance_after, created_at
		FROM postings WHERE merchant_id = $1 AND (entry_id > $2 OR (entry_id = $2 AND line > $3))
		ORDER BY entry_id, line LIMIT $4`, merchant[:], after.Entry[:], after.Line, limit)
	list, err := collect(rows, err, func(r scanner) (p Posting, err error) {
		var entry, subject []byte
		var at int64
		err = r.Scan(&entry, &p.Line, (*string)(&p.Kind), &subject, (*string)(&p.Account), (*int64)(&p.Amount), (*int64)(&p.BalanceAfter), &at)
		p.Entry, p.Subject, p.CreatedAt = idOf(entry), idOf(subject), atMicros(at)
		return p, err
	})
	return list, s.readError("postings", err)
}
