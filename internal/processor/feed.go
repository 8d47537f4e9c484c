package processor

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// Feed names one list of what happened at an account of a processor.
type Feed string

// The feeds.
const (
	FeedPayments  Feed = "payments"  // money received
	FeedTransfers Feed = "transfers" // money sent, also on the request of others
	FeedChanges   Feed = "changes"   // disputes, and transfers that were returned
	FeedRefunds   Feed = "refunds"   // payments given back, also at the processor's own panel, and those that came back
	FeedCosts     Feed = "costs"     // what the processor charged that no report of a payment has
)

// Rewinds reports whether a feed is read again after the database was restored.
func (f Feed) Rewinds() bool {
	return f == FeedPayments || f == FeedRefunds || f == FeedTransfers
}

// FeedSpec is how a feed is read.
type FeedSpec struct {
	// Every is the wait between reads of a feed that was read to its end; 0 is 5 s.
	Every time.Duration
	// From returns the cursor from which everything since t, UTC, is listed. Without it a
	// feed can only be read from its beginning.
	From func(t time.Time) (cursor string)
}

// ListedTransfer is a transfer in the list of an account, under an id that may be ours.
type ListedTransfer struct {
	ExternalID  string
	ProcessorID string
	EndToEndID  string
	State       TransferState
	Amount      money.Cents
	Returned    money.Cents // sent back by the receiver's bank

	// What a person compares, as far as the list has it: it proves nothing.
	SentAt   time.Time
	PIXKey   string // personal data, as the receiver's name
	Receiver string
}

// ListedRefund is a refund in the list of an account, under our id or another one, when it was
// paid, or when it failed afterwards.
type ListedRefund struct {
	ExternalID string
	PaymentID  string // the processor's id of the payment that it gives back
	EndToEndID string // of the return, if it has one
	State      TransferState
	Amount     money.Cents
	Failure    *payment.Failure
}

// ListedCost is what a processor charged for itself, such as for a transfer or a refund, and what it
// gave back of that.
type ListedCost struct {
	ID     string      // the processor's; unique at the account
	Amount money.Cents // below zero: it was given back
}

// Change is a later movement of money at the processor without a request of ours:
// a transfer was returned, or a payer disputes a payment.
type Change struct {
	Subject    Subject // SubjectTransfer or SubjectCharge
	ExternalID string
	// Returned is the total returned amount of a transfer so far.
	Returned money.Cents
	// Dispute was opened or decided, in its state at that time.
	Dispute *Dispute
}

// Unreadable is an entry of a list that is invalid. The entries after it are booked; it gets a
// case.
type Unreadable struct {
	ID         string // the same whenever the entry is listed, and of no other entry
	ExternalID string // "" if it cannot be read either
	Cause      EntryFault
}

// EntryFault is why an entry of a list is invalid: a code, which its case has.
type EntryFault string

// The faults of entries.
const (
	InvalidValues EntryFault = "invalid_values"
	InvalidAmount EntryFault = "invalid_amount"
	DamagedOrder  EntryFault = "damaged_order" // it is valid, and the row of its order here is damaged
)

// Fact is an entry of a feed: exactly one of its fields is set.
type Fact struct {
	Payment    *Payment
	Transfer   *ListedTransfer
	Change     *Change
	Refund     *ListedRefund
	Cost       *ListedCost
	Unreadable *Unreadable
}

// Page is a page of a feed, oldest first.
type Page struct {
	Facts []Fact
	// Next is the cursor of the next page. It may be the cursor of this one, if that is a
	// time: then its entries are listed again.
	Next string
	// More reports that the next page has entries already.
	More bool
	// Through is the time, UTC, up to which the feed is complete with this page; zero if
	// there is more.
	Through time.Time
	// Missing is why the list lacks entries that depend on another one of the processor, which is
	// read again with the list; nil if it lacks none.
	Missing error
}

// Feeder lists what happened, including everything whose notice was lost. An entry may be
// listed more than once, so a driver whose list may gain earlier entries lets its pages
// overlap.
type Feeder interface {
	// Feeds returns the feeds that the processor has.
	Feeds() map[Feed]FeedSpec
	// Read reads the page at a cursor; "" is the beginning.
	Read(ctx context.Context, feed Feed, cursor string) (Page, error)
}

// Balance is the money of an account at its processor, in cents.
type Balance struct {
	Amount money.Cents
	// ToCome is what the processor owes the account for payments, such as by card, less its fees,
	// and LastDay the day on which it will have credited all of that; "" if it owes nothing.
	ToCome  money.Cents
	LastDay string // YYYY-MM-DD
}

// BalanceReader reads the balance of the account.
type BalanceReader interface {
	Balance(ctx context.Context) (Balance, error)
}
