// Package ledger is pure: accounts, postings, balanced entries, and the recipes
// that turn what happened to an order into postings.
//
// Every merchant has its own set of accounts, and every platform account is kept
// per merchant too, so that each merchant's ledger balances on its own. An amount
// is positive if it credits an account and negative if it debits it; the postings
// of an entry add up to zero.
package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/money"
)

// Account names one account of a merchant.
type Account string

// The accounts of a merchant.
const (
	Available Account = "available" // may be paid out or refunded now
	Pending   Account = "pending"   // received, settles later
	Held      Account = "held"      // set aside for payouts and refunds in flight
	Disputed  Account = "disputed"  // set aside for open disputes
	Unapplied Account = "unapplied" // money received for an order beyond its amount
	Owed      Account = "owed"      // debt to the platform: zero or below
	Fees      Account = "fees"      // the platform's revenue from this merchant
	Costs     Account = "costs"     // what processors charged: zero or below

	// Unidentified is the platform's: money received that names no order.
	Unidentified Account = "unidentified"
	// WrittenOff is what the operator wrote off: the platform's gain, or its loss if it
	// is negative.
	WrittenOff Account = "written_off"
)

// clearingPrefix begins the name of every account that stands for money at a
// processor. It is debited when money arrives there: its balance is usually
// negative, the platform's claim on the processor.
const clearingPrefix = "clearing:"

// Clearing is the account of the merchant's money at a processor.
func Clearing(processor string) Account { return Account(clearingPrefix + processor) }

// IsClearing reports whether a stands for money at a processor.
func (a Account) IsClearing() bool { return strings.HasPrefix(string(a), clearingPrefix) }

// Processor is the processor account whose clearing account a is; ok is false if it is none.
func (a Account) Processor() (id string, ok bool) {
	return strings.CutPrefix(string(a), clearingPrefix)
}

// Class is the account, without the name of the processor if it is one at a processor.
func (a Account) Class() Account {
	if a.IsClearing() {
		return clearingPrefix
	}
	return a
}

// InStatement reports whether a is one of the merchant's own accounts, which its statement
// and GET /balance have. The others are the platform's.
func (a Account) InStatement() bool { return slices.Contains(StatementAccounts, a) }

// StatementAccounts are the merchant's own accounts.
var StatementAccounts = []Account{Available, Pending, Held, Disputed, Unapplied, Owed}

// Known reports whether a is an account that a recipe can name.
func (a Account) Known() bool {
	switch a {
	case Available, Pending, Held, Disputed, Unapplied, Owed, Fees, Costs, Unidentified, WrittenOff:
		return true
	}
	return a.IsClearing() && len(a) > len(clearingPrefix)
}

// Permits reports whether balance is allowed for the account: a claim on a
// processor and what was written off may have any sign, debt and costs are zero or below, all others are
// zero or above.
func (a Account) Permits(balance money.Cents) bool {
	switch {
	case a.IsClearing(), a == WrittenOff:
		return true
	case a.negative():
		return balance <= 0
	default:
		return balance >= 0
	}
}

// negative reports whether balances of the account are zero or below.
func (a Account) negative() bool { return a == Owed || a == Costs }

// Posting moves Amount cents into (positive) or out of (negative) an account.
type Posting struct {
	Account Account
	Amount  money.Cents
}

// Entry is one balanced movement: what happened, its postings, and the part of the order that it is about, if
// it is a dispute or a receivable.
type Entry struct {
	Kind     Kind
	Postings []Posting
	Part     [16]byte
}

// Of is the entry about a part.
func (e Entry) Of(part [16]byte) Entry {
	e.Part = part
	return e
}

// Errors of entries and balances.
var (
	ErrUnbalanced   = errors.New("ledger: entry does not balance")
	ErrMalformed    = errors.New("ledger: malformed entry")
	ErrInsufficient = errors.New("ledger: insufficient balance")
)

// Check returns nil if the entry has at least two postings to distinct known
// accounts, none of them zero, that add up to zero; else ErrMalformed,
// ErrUnbalanced or money.ErrOverflow.
func (e Entry) Check() error {
	if !e.Kind.Known() || len(e.Postings) < 2 {
		return fmt.Errorf("%w: %q with %d postings", ErrMalformed, e.Kind, len(e.Postings))
	}
	var sum money.Cents
	for i, p := range e.Postings {
		if p.Amount == 0 || !p.Account.Known() {
			return fmt.Errorf("%w: %q posts %d to %q", ErrMalformed, e.Kind, p.Amount, p.Account)
		}
		for _, earlier := range e.Postings[:i] {
			if earlier.Account == p.Account {
				return fmt.Errorf("%w: %q posts twice to %q", ErrMalformed, e.Kind, p.Account)
			}
		}
		var err error
		if sum, err = sum.Add(p.Amount); err != nil {
			return fmt.Errorf("ledger: %q: %w", e.Kind, err)
		}
	}
	if sum != 0 {
		return fmt.Errorf("%w: %q is off by %d", ErrUnbalanced, e.Kind, sum)
	}
	return nil
}

// Balances are a merchant's balances by account; an absent account is at zero.
type Balances map[Account]money.Cents

// Apply posts e to b. It returns ErrInsufficient if an account's balance would
// not be permitted, or an error of Check; b is then unchanged.
func (b Balances) Apply(e Entry) error {
	if err := e.Check(); err != nil {
		return err
	}
	for _, p := range e.Postings {
		after, err := b[p.Account].Add(p.Amount)
		if err != nil {
			return fmt.Errorf("ledger: %s: %w", p.Account, err)
		}
		if !p.Account.Permits(after) && !improves(p, after) {
			return fmt.Errorf("%w: %s would stand at %d", ErrInsufficient, p.Account, after)
		}
	}
	for _, p := range e.Postings {
		b[p.Account] += p.Amount
	}
	return nil
}

// improves allows a posting that moves an account with a forbidden balance
// towards a permitted one: an inconsistent ledger must remain correctable.
func improves(p Posting, after money.Cents) bool {
	before := after - p.Amount
	if p.Account.Permits(before) {
		return false
	}
	return (p.Amount > 0) != p.Account.negative()
}

// Accounts lists the accounts of b in a fixed order: the order in which their
// rows are locked.
func (b Balances) Accounts() []Account {
	list := make([]Account, 0, len(b))
	for a := range b {
		list = append(list, a)
	}
	slices.Sort(list)
	return list
}
