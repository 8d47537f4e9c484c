package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
)

// Posting is one line of an entry.
type Posting struct {
	Entry        payment.ID
	Line         int64
	Kind         ledger.Kind
	Subject      payment.ID
	Account      ledger.Account
	Amount       cents
	BalanceAfter cents
	CreatedAt    time.Time

	// Part is the dispute or the receivable of the subject that the entry is about; zero if it is about none.
	Part payment.ID

	// Number is its position, from 1, without gaps: in the merchant's statement, or within
	// an account that the statement does not have.
	Number int64
}

type posting struct {
	merchant payment.ID
	Posting

	entryNumber int64
	entryHash   []byte // of the first line; nil of the others
}

var postingTable = newTable("postings", []string{"entry_id", "line"},
	idColumn("merchant_id", func(p *posting) *payment.ID { return &p.merchant }),
	idColumn("entry_id", func(p *posting) *payment.ID { return &p.Entry }),
	intColumn("line", func(p *posting) *int64 { return &p.Line }),
	textColumn("kind", func(p *posting) *ledger.Kind { return &p.Kind }),
	idColumn("subject_id", func(p *posting) *payment.ID { return &p.Subject }),
	textColumn("account", func(p *posting) *ledger.Account { return &p.Account }),
	intColumn("amount", func(p *posting) *cents { return &p.Amount }),
	intColumn("balance_after", func(p *posting) *cents { return &p.BalanceAfter }),
	timeColumn("created_at", func(p *posting) *time.Time { return &p.CreatedAt }),
	intColumn("number", func(p *posting) *int64 { return &p.Number }),
	intColumn("entry_number", func(p *posting) *int64 { return &p.entryNumber }),
	bytesColumn("entry_hash", func(p *posting) *[]byte { return &p.entryHash }),
	optionalIDColumn("part_id", func(p *posting) *payment.ID { return &p.Part }),
)

// balance is one account of a merchant.
type balance struct {
	merchant payment.ID
	account  ledger.Account
	amount   cents
	postings int64
	last     entryHead // of available; zero of the others

	// Read with the account.
	payoutsStopped bool
	history        History
}

var balanceTable = newTable("balances", []string{"merchant_id", "account"},
	idColumn("merchant_id", func(b *balance) *payment.ID { return &b.merchant }),
	textColumn("account", func(b *balance) *ledger.Account { return &b.account }),
	intColumn("balance", func(b *balance) *cents { return &b.amount }).as(mutable),
	intColumn("postings", func(b *balance) *int64 { return &b.postings }).as(mutable),
	intColumn("entry_number", func(b *balance) *int64 { return &b.last.number }).as(mutable),
	bytesColumn("entry_hash", func(b *balance) *[]byte { return &b.last.hash }).as(mutable),
	timeColumn("entry_at", func(b *balance) *time.Time { return &b.last.at }).as(mutable),
)

// balancesOfMerchant also reads, with each account, whether the merchant's payouts are stopped, and
// the database's history: that saves a query.
var balancesOfMerchant = db.NewKeySelect(balanceTable.selected+", CASE WHEN "+payoutsStopped("t.merchant_id")+` THEN 1 ELSE 0 END,
	(SELECT i.epoch FROM installation i), (SELECT i.history FROM installation i), (SELECT i.restored_at FROM installation i)`,
	"balances", balanceTable.named("merchant_id"), "", "t.merchant_id, t.account")

// balanceUpdate guards how many postings an account has and how many entries its merchant, which the
// lock should make unnecessary, and the number of the merchant's accounts. PostgreSQL takes its snapshot before it waits for a
// lock, so it does not show an account, such as a debt, that the previous transaction opened.
var balanceUpdate = balanceTable.updateIf(" AND (SELECT count(*) FROM balances b WHERE b.merchant_id = t.merchant_id) = {accounts}",
	[]db.Column{{Name: "accounts", Kind: "bigint"}}, "merchant_id", "account", "postings", "entry_number")

// balances are a merchant's locked accounts, with the entries of this commit.
type balances struct {
	amounts  ledger.Balances
	postings map[ledger.Account]int64 // of the accounts that exist
	added    map[ledger.Account]int64 // postings of this commit
	number   int64                    // the last one of the statement: the postings of its accounts
	stored   entryHead                // the last entry before this commit
	last     entryHead                // the last entry; its hash is that of stored until the commit is saved

	payoutsStopped bool
	history        History
}

// Balances reads a merchant's accounts.
func (n *Needs) Balances(merchant payment.ID) { n.balances = append(n.balances, merchant) }

func (l *Loaded) loadBalances(ctx context.Context, tx *db.Tx, n *Needs) error {
	if len(n.balances) == 0 {
		return nil
	}
	l.balances = make(map[payment.ID]*balances, 1)
	var keys [][]any
	for i := range n.balances {
		if m := n.balances[i]; l.balances[m] == nil {
			l.balances[m] = &balances{amounts: ledger.Balances{}, postings: map[ledger.Account]int64{}, added: map[ledger.Account]int64{}}
			keys = append(keys, []any{m[:]})
		}
	}
	list, err := db.Select(ctx, tx, balancesOfMerchant, keys, func(r db.Scanner) (b balance, err error) {
		return b, balanceTable.scan(r, &b, (*flagDest)(&b.payoutsStopped), &b.history.Epoch, &b.history.Number, (*timeDest)(&b.history.RestoredAt))
	})
	for _, b := range list {
		of := l.balances[b.merchant]
		of.payoutsStopped, of.history = b.payoutsStopped, b.history
		of.amounts[b.account], of.postings[b.account] = b.amount, b.postings
		if b.account.InStatement() {
			of.number += b.postings
		}
		if b.account == ledger.Available {
			of.stored, of.last = b.last, b.last
		}
	}
	return err
}

// Balances are a merchant's loaded accounts. The caller must not change them: see
// [Changes.Post].
func (l *Loaded) Balances(merchant payment.ID) ledger.Balances {
	if b := l.balances[merchant]; b != nil {
		return b.amounts
	}
	return nil
}

// PayoutsStopped reports whether a case stops the payouts of a merchant, whose accounts
// are loaded.
func (l *Loaded) PayoutsStopped(merchant payment.ID) bool {
	b := l.balances[merchant]
	return b != nil && b.payoutsStopped || l.cases.stoppedMerchants[merchant]
}

// HistoryOf is the history of the database without RestoredFrom, read with the accounts of a
// merchant; zero if it has none.
func (l *Loaded) HistoryOf(merchant payment.ID) History {
	if b := l.balances[merchant]; b != nil {
		return b.history
	}
	return History{}
}

// Post applies an entry about a subject to a merchant's loaded accounts, or
// returns an error of [ledger.Balances.Apply] and posts nothing.
func (c *Changes) Post(merchant, subject payment.ID, e ledger.Entry) error {
	b := c.l.balances[merchant]
	if b == nil {
		return fmt.Errorf("store: balances of %s were not loaded", merchant)
	}
	if err := b.amounts.Apply(e); err != nil {
		return err
	}
	entry := c.l.newID()
	b.last.number, b.last.at = b.last.number+1, b.last.next(c.l.now)
	for i, p := range e.Postings {
		b.added[p.Account]++
		number := b.postings[p.Account] + b.added[p.Account]
		if p.Account.InStatement() {
			b.number++
			number = b.number
		}
		c.postings = append(c.postings, posting{merchant: merchant, entryNumber: b.last.number, Posting: Posting{
			Entry: entry, Line: int64(i), Kind: e.Kind, Subject: subject, Account: p.Account,
			Amount: p.Amount, BalanceAfter: b.amounts[p.Account], CreatedAt: b.last.at, Number: number, Part: e.Part,
		}})
	}
	c.count++
	return nil
}

// savePostings writes the balances of all merchants, in their order, and then the postings.
func (c *Changes) savePostings(ctx context.Context, tx *db.Tx) error {
	if len(c.postings) == 0 {
		return nil
	}
	c.chainEntries(tx.Keys())
	var opened, updated [][]any
	for _, m := range slices.SortedFunc(maps.Keys(c.l.balances), payment.CompareIDs) {
		b := c.l.balances[m]
		if len(b.added) > 0 {
			// Each commit writes available, with the last entry. So two commits of a merchant always write a
			// common row, and one that did not see an account opened by the other fails.
			b.added[ledger.Available] += 0
			b.amounts[ledger.Available] += 0
		}
		accounts := int64(len(b.postings))
		for account := range b.added {
			if _, exists := b.postings[account]; !exists {
				accounts++
			}
		}
		for _, account := range b.amounts.Accounts() {
			before, exists := b.postings[account]
			added, written := b.added[account]
			row := &balance{merchant: m, account: account, amount: b.amounts[account], postings: before + added}
			var entries int64 // before
			if account == ledger.Available {
				row.last, entries = b.last, b.stored.number
			}
			switch {
			case !written:
			case exists:
				updated = append(updated, append(balanceUpdate.row(row, before, entries), accounts))
			default:
				opened = append(opened, balanceTable.row(row))
			}
		}
	}
	err := insertOrRetry(ctx, tx, balanceTable.insert, opened...) // two transactions may open an account at once
	if err == nil {
		err = updateOrRetry(ctx, tx, balanceUpdate.RowUpdate, updated...)
	}
	if err != nil {
		return fmt.Errorf("balances: %w", err)
	}
	rows := make([][]any, len(c.postings))
	for i := range c.postings {
		rows[i] = postingTable.row(&c.postings[i])
	}
	if err := tx.InsertNew(ctx, postingTable.insert, rows...); err != nil {
		return fmt.Errorf("postings: %w", err)
	}
	return nil
}

// Balances reads a merchant's accounts.
func (s *Store) Balances(ctx context.Context, merchant payment.ID) (ledger.Balances, error) {
	rows, err := s.db.Query(ctx, "SELECT "+balanceTable.selected+" FROM balances t WHERE t.merchant_id = $1", merchant[:])
	list, err := db.Collect(rows, err, func(r db.Scanner) (v balance, err error) { return v, balanceTable.scan(r, &v) })
	if err != nil {
		return nil, s.db.ReadError("balances", err)
	}
	b := ledger.Balances{}
	for _, v := range list {
		b[v.account] = v.amount
	}
	return b, nil
}

// Postings reads up to limit postings of a merchant after the given one, by account and
// number.
func (s *Store) Postings(ctx context.Context, merchant payment.ID, after Posting, limit int) ([]Posting, error) {
	return s.postings(ctx, "(t.account > $2 OR (t.account = $2 AND t.number > $3)) ORDER BY t.account, t.number LIMIT $4",
		merchant[:], string(after.Account), after.Number, limit)
}

// PostingsAbout reads up to limit postings of entries about a subject, oldest first. They are not
// older than the subject, whose id has its time: each account is read from there.
func (s *Store) PostingsAbout(ctx context.Context, merchant, subject payment.ID, limit int) ([]Posting, error) {
	balances, err := s.Balances(ctx, merchant)
	if err != nil {
		return nil, err
	}
	var all []Posting
	for _, account := range balances.Accounts() {
		first, err := s.postingBefore(ctx, merchant, account, subject.Time().Add(-clocksDiffer))
		if err != nil {
			return nil, err
		}
		list, err := s.postings(ctx, "t.account = $2 AND t.number > $3 AND t.subject_id = $4 ORDER BY t.number LIMIT $5",
			merchant[:], string(account), first, subject[:], limit)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b Posting) int {
		return cmp.Or(payment.CompareIDs(a.Entry, b.Entry), cmp.Compare(a.Line, b.Line))
	})
	return all[:min(limit, len(all))], nil
}

// clocksDiffer is how much earlier the time of a commit may be than that of a commit before it:
// nodes have clocks of their own, and one may be set back. The value is far more than that.
const clocksDiffer = 24 * time.Hour

// postingBefore is the number of the last posting of an account such that all postings up to it are
// older than t; 0 if there is none. It is found by bisection: times follow the numbers.
func (s *Store) postingBefore(ctx context.Context, merchant payment.ID, account ledger.Account, t time.Time) (int64, error) {
	const after = "SELECT t.number, t.created_at FROM postings t WHERE t.merchant_id = $1 AND t.account = $2 AND t.number > $3 ORDER BY t.number LIMIT 1"
	low, high := int64(0), int64(0)
	err := s.db.QueryRow(ctx, "SELECT coalesce(MAX(t.number), 0) FROM postings t WHERE t.merchant_id = $1 AND t.account = $2",
		merchant[:], string(account)).Scan(&high)
	for err == nil && low < high {
		middle := low + (high-low)/2
		var number, created int64 // of the first posting beyond the middle
		if err = s.db.QueryRow(ctx, after, merchant[:], string(account), middle).Scan(&number, &created); err == nil {
			if created < micros(t) {
				low = number
			} else {
				high = middle
			}
		}
	}
	return low, s.db.ReadError("postings", err)
}

func (s *Store) postings(ctx context.Context, condition string, args ...any) ([]Posting, error) {
	rows, err := s.db.Query(ctx, "SELECT "+postingTable.selected+" FROM postings t WHERE t.merchant_id = $1 AND "+condition, args...)
	list, err := db.Collect(rows, err, func(r db.Scanner) (Posting, error) {
		var p posting
		err := postingTable.scan(r, &p)
		return p.Posting, err
	})
	return list, s.db.ReadError("postings", err)
}
