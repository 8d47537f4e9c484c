package store

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/payment"
)

// Needs is the input of operations, collected before a transaction begins: unique keys to insert,
// rows to read and lock, due rows to claim, and capacity to claim rows that the commit itself makes
// due. The file of each noun has its methods.
type Needs struct {
	payins   payinNeeds
	payouts  payoutNeeds
	sends    []Ref    // payouts
	sending  []string // accounts
	charges  chargeNeeds
	receipts []*payment.Receipt
	disputes []disputeKey
	disputed []ExternalRef // pay-ins

	disputedPayins []Ref
	answers        []DueAnswers
	receivables    receivableNeeds
	notices        noticeNeeds
	feeds          feedNeeds
	endpoints      endpointNeeds
	deliveries     deliveryNeeds
	nodes          nodeNeeds
	balances       []payment.ID // merchants
	cases          []Ref
	casesAbout     []caseSubject
	found          []ExternalRef
	consents       []consentKey
	counters       []CounterKey
	approvals      []Ref // payouts
	refunds        refundNeeds
	batches        batchNeeds
	capacity       Capacity
}

// Loaded is the rows that a transaction has read and locked, overlaid with the changes
// of earlier decisions of the same commit, as if they were committed. A decision
// changes rows only through [Changes], never the values that a method returns.
type Loaded struct {
	now      time.Time
	newID    func() payment.ID
	keys     *db.Keyring
	inserted map[payment.ID]bool // new rows whose unique key was unused
	orders   []NewOrder          // those of them that are orders

	payins      loadedPayins
	payouts     loadedPayouts
	sends       map[Ref][]Send
	sending     map[string]bool
	charges     loadedCharges
	disputes    map[disputeKey]payment.Dispute
	received    map[Ref]cents // of pay-ins whose disputes were loaded
	overpaid    map[Ref]bool  // those of them that got a payment of more than was applied of it
	answers     loadedAnswers
	endpoints   loadedEndpoints
	receivables map[Ref]Receivable
	deliveries  loadedDeliveries
	notices     []*Notice
	feeds       map[FeedKey]Feed
	nodes       loadedNodes
	balances    map[payment.ID]*balances
	cases       loadedCases
	found       loadedFound
	consents    loadedConsents
	counters    Counters
	approvals   map[Ref][]Approval
	refunds     loadedRefunds
	batches     loadedBatches
	capacity    Capacity
}

// Now is the time of the transaction, UTC.
func (l *Loaded) Now() time.Time { return l.now }

// Inserted reports whether this transaction inserted the unique key of a new row. It
// is false if the key was taken, including by an earlier run of the same
// operation whose commit was unknown.
func (l *Loaded) Inserted(id payment.ID) bool { return l.inserted[id] }

// due reports whether a row may be claimed now, after the changes of earlier
// decisions.
func (l *Loaded) due(claimedBy payment.ID, at time.Time) bool {
	return claimedBy.IsZero() && !at.IsZero() && !at.After(l.now)
}

// Changes are all writes of one commit, as plain values, in the order of the decisions. The file of
// each noun has its methods.
type Changes struct {
	l *Loaded

	payins         []payinChange
	payouts        []payoutChange
	released       []Ref                 // payouts whose reference is unused again
	refusals       map[ExternalRef]error // of their requests
	sends          []Send
	newSends       []Send
	charges        []Charge
	newCharges     []Charge
	receipts       []*payment.Receipt
	disputes       []payment.Dispute
	newDispute     []payment.Dispute
	answers        []answerRow
	newAnswers     []answerRow
	receivables    []Receivable
	newReceivables []Receivable
	parked         []parkedRow
	cases          caseChanges
	decisions      []Decision
	retries        retries
	notices        []Notice
	feeds          []Feed
	newFound       []FoundTransfer
	found          []FoundTransfer
	newConsents    []Consent
	refunds        []refundChange
	newRefunds     []refundRow
	parts          []payment.RefundPart
	newParts       []payment.RefundPart
	terms          []termRow        // of the search index
	searched       []searchPosition // of the search index
	batches        []batchChange
	newBatches     []batchRow
	endpoints      endpointChanges
	deliveries     []Delivery
	newDeliveries  []Delivery // of events that exist
	moved          []Delivery // to another endpoint or URL
	due            int        // deliveries that were made due in order
	attempts       []Attempt
	nodes          nodeChanges
	settings       []setting
	newApprovals   []Approval
	uncounted      map[CounterKey]limits.Count // no longer counted by limits
	postings       []posting
	events         []pendingEvent
	audit          []AuditEntry
	count          int
}

// retries are rows that were given up, and are processed again.
type retries struct {
	notices    []Notice
	deliveries []Delivery
}

// Len counts the changes so far.
func (c *Changes) Len() int { return c.count }

// UndoKeys makes the refusal of an operation undo the unique keys that were inserted for it. It
// counts as a change, and a refusal that has changed something fails its batch. Then the others of
// the batch are committed one by one (package write).
func (c *Changes) UndoKeys() { c.count++ }

// NewID returns a new id with the transaction's time.
func (c *Changes) NewID() payment.ID { return c.l.newID() }

// Outcome is the effect of a commit, for the process that committed.
type Outcome struct {
	Claimed Claimed
	// Payins are those that changed.
	Payins []Ref
	// Events are the merchants that have new events.
	Events []payment.ID
	// Orders are the new ones.
	Orders []NewOrder
}

// Commit makes a group of operations durable in one transaction: it inserts their
// unique keys, loads their rows, lets decide choose the changes, and saves them.
// An error of decide undoes everything. The outcome is complete even if the error is
// ErrCommitUnknown.
//
// The tables are locked in one fixed order, and the rows of a table in the order of their
// keys: first those named by id, then those named by external id. Two commits that name
// the same two rows in different ways may deadlock; the database ends one of them, and
// it runs again.
func (s *Store) Commit(ctx context.Context, n *Needs, capacity Capacity, decide func(*Loaded, *Changes) error) (out Outcome, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		out, err = s.apply(ctx, tx, n, capacity, decide)
		return err
	})
	return out, err
}

// Apply is Commit within a plain transaction, such as the one that creates a merchant and posts the
// entry of its opening balance. It claims nothing.
func (tx *Tx) Apply(ctx context.Context, n *Needs, decide func(*Loaded, *Changes) error) error {
	_, err := tx.s.apply(ctx, tx.Tx, n, Capacity{}, decide)
	return err
}

func (s *Store) apply(ctx context.Context, tx *db.Tx, n *Needs, capacity Capacity, decide func(*Loaded, *Changes) error) (Outcome, error) {
	l, err := load(ctx, tx, n, capacity)
	if err != nil {
		return Outcome{}, err
	}
	c := &Changes{l: l, postings: make([]posting, 0, 2*len(n.payouts.fresh))} // a payout holds its amount: two lines
	if err := decide(l, c); err != nil {
		return Outcome{}, err
	}
	return c.save(ctx, tx)
}

// load inserts unique keys and then reads and locks rows.
func load(ctx context.Context, tx *db.Tx, n *Needs, capacity Capacity) (*Loaded, error) {
	l := &Loaded{now: tx.Now, newID: tx.NewID, keys: tx.Keys(), inserted: make(map[payment.ID]bool, len(n.payins.fresh)), capacity: capacity.clone()}
	for _, step := range []func(context.Context, *db.Tx, *Needs) error{
		l.loadNodes, // a node that was declared dead claims nothing
		l.loadFeeds,
		l.insertPayins, l.insertPayouts, l.insertReceipts, l.insertNotices,
		l.loadPayins, l.loadPayouts, l.loadSends, l.loadSending, l.loadCharges, l.loadDisputes, l.loadAnswers, l.loadReceivables, l.loadEndpoints, l.loadDeliveries, l.loadDispatches, l.loadShared, l.loadNotices,
		l.loadBalances, l.loadCounters, l.loadApprovals, l.loadCases, l.loadFound, l.loadConsents, l.loadRefunds, l.loadBatches,
	} {
		if err := step(ctx, tx, n); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// save writes all changes. The counters of events are locked late, and the chain of the audit last.
func (c *Changes) save(ctx context.Context, tx *db.Tx) (out Outcome, err error) {
	for _, step := range []func(context.Context, *db.Tx) error{
		c.saveNodes, c.saveSettings, c.saveFeeds,
		c.saveParked, c.savePayins, c.savePayouts, c.saveSends, c.saveCharges, c.saveReceipts, c.saveDisputes, c.saveAnswers, c.saveReceivables, c.saveCases, c.saveNotices,
		c.saveEndpoints, c.saveDeliveries, c.saveMoved, c.saveNewDeliveries, c.saveStopped, c.saveAttempts, c.savePostings, c.saveCounters, c.saveApprovals, c.saveFound, c.saveConsents, c.saveRefunds, c.saveBatches, c.saveSearch,
		c.saveDecisions, c.saveEvents, c.saveAudit,
	} {
		if err := step(ctx, tx); err != nil {
			return Outcome{}, err
		}
	}
	return c.outcome(), nil
}

func (c *Changes) outcome() Outcome {
	out := Outcome{Claimed: c.l.capacity.claimed}
	for _, o := range c.l.orders {
		if c.l.inserted[o.ID] { // else its operation refused it
			out.Orders = append(out.Orders, o)
		}
	}
	for i := range c.payins {
		out.Payins = append(out.Payins, Ref{c.payins[i].row.Merchant, c.payins[i].row.ID})
	}
	for i := range c.events { // sorted by merchant
		if m := c.events[i].event.Merchant; len(out.Events) == 0 || out.Events[len(out.Events)-1] != m {
			out.Events = append(out.Events, m)
		}
	}
	return out
}

// inWaves saves changes of rows, each row at most once per call. Every version of a row
// is written, even if it changes twice in one commit: an UPDATE is guarded by the version
// that it replaces, so a decision on a stale row fails the commit.
func inWaves[C any](list []C, ref func(*C) Ref, save func([]C) error) error {
	for len(list) > 0 {
		wave, rest := make([]C, 0, len(list)), []C(nil)
		seen := make(map[Ref]bool, len(list))
		for i := range list {
			if r := ref(&list[i]); seen[r] {
				rest = append(rest, list[i])
			} else {
				seen[r] = true
				wave = append(wave, list[i])
			}
		}
		if err := save(wave); err != nil {
			return err
		}
		list = rest
	}
	return nil
}
