// Package checker checks every commit of a gateway against rules of its own, and its
// database against the records of the clients, the bank and the receivers.
//
// It shares no logic with the gateway: triggers log each change of a row, and what may
// happen is written a second time in rules.go. The columns that it reads are declared
// once per table, in a method of columns.
package checker

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// Options open a Checker.
type Options struct {
	// DB is the database, in which [Install] was called, from its beginning.
	DB *sql.DB
	// MasterKey is the master key of the gateway.
	MasterKey []byte
	// Retention is how long finished deliveries are kept; 0 keeps them forever.
	Retention time.Duration
	// LookUpFirst are the accounts whose payouts are looked up before their first send, and
	// may be found without one.
	LookUpFirst []string
	// AsksConsent are the accounts whose bank pays a transfer only with our consent.
	AsksConsent []string
	// Limits, if not nil, are the limits of a merchant.
	Limits func(merchant string) Limits
	// Mistaken, if not nil, reports whether people decided wrongly that the payout of an external id
	// was not paid.
	Mistaken func(externalID string) bool
	// Receivable, if not nil, is called with what happened to a receivable: added, settled,
	// taken or restored.
	Receivable func(what string)
	// Outcome, if not nil, is called with each outcome of a send of a payout, of a charge of a
	// pay-in, or of a part of a refund, and what it was before.
	Outcome func(kind, account, before, outcome string)
	// Now is the latest clock by which the gateway removes deliveries.
	Now func() time.Time
}

// Checker follows the gateway's database commit by commit. It is not safe for
// concurrent use.
type Checker struct {
	Options

	log     *sql.Stmt
	seq     int64 // of the last line that was read
	lines   []line
	commits []int // how many lines there were after each commit
	columns *columns
	seal    *seal
	// Rewound means that the database is an older copy: it lacks orders and sends that the
	// other parties have.
	Rewound bool
	// ColdStart means that a process started after a crash: what was queued before is looked up
	// first.
	ColdStart bool
	// Unmarked means that no epoch outside proves this: a charge may have been made before its
	// request here.
	Unmarked bool
	// Damaged are the tables of which a fault damaged a row.
	Damaged    map[string]bool
	violations []Violation

	orders      map[rowKey]*order
	orderList   []*order // in the order of their creation
	references  map[orderName]*order
	batches     map[rowKey]*batch
	externalIDs map[string]*order
	merchants   map[rowID]*merchant
	entries     map[rowKey]*entry
	events      map[rowKey]*event
	eventIDs    map[string]*event // by public id
	deliveries  map[rowKey]*delivery
	receipts    map[rowKey]*receipt
	receiptList []*receipt          // in the order of their creation
	payments    map[string]*receipt // by processor and its id of the payment
	disputes    map[rowKey]*dispute
	receivables map[rowKey]*receivableRow
	cases       map[rowKey]*reviewCase
	notices     map[string]*notice // by processor and its id of the notice
	found       map[rowKey]*foundTransfer
	foundByID   map[string]*foundTransfer // by external id
	toEndpoints map[rowKey]deliveryRow    // deliveries to endpoints
	eventList   []*event                  // in the order of their commits
	parts       map[string]*refundPart    // by account and external id
	partIDs     map[string]*refundPart    // by external id
	foundCases  map[rowKey]int64          // cents that open cases about a found transfer report
	compared    int                       // how many received deliveries were compared

	touched touched
}

// touched is the changes of the current commit.
type touched struct {
	orders     []*order
	merchants  []*merchant
	entries    []*entry
	deliveries []*delivery
	receipts   []*receipt
	notices    []*notice
	events     []*event
	cases      []*reviewCase
	found      []*foundTransfer
	consents   []*order
	batches    []*batch
}

// New follows a database from its beginning.
func New(ctx context.Context, o Options) (*Checker, error) {
	seal, err := newSeal(o.MasterKey)
	if err != nil {
		return nil, err
	}
	log, err := o.DB.PrepareContext(ctx, readLog)
	if err != nil {
		return nil, fmt.Errorf("checker: read the log: %w", err)
	}
	return &Checker{
		Options: o, log: log, seal: seal, columns: newColumns(),
		orders: map[rowKey]*order{}, batches: map[rowKey]*batch{}, references: map[orderName]*order{}, externalIDs: map[string]*order{},
		merchants: map[rowID]*merchant{}, entries: map[rowKey]*entry{}, events: map[rowKey]*event{}, eventIDs: map[string]*event{},
		deliveries: map[rowKey]*delivery{}, receipts: map[rowKey]*receipt{}, payments: map[string]*receipt{},
		disputes: map[rowKey]*dispute{}, receivables: map[rowKey]*receivableRow{}, cases: map[rowKey]*reviewCase{}, notices: map[string]*notice{},
		Damaged: map[string]bool{}, toEndpoints: map[rowKey]deliveryRow{}, parts: map[string]*refundPart{}, partIDs: map[string]*refundPart{}, found: map[rowKey]*foundTransfer{}, foundByID: map[string]*foundTransfer{}, foundCases: map[rowKey]int64{},
	}, nil
}

// Close releases the checker's statement.
func (c *Checker) Close() error { return c.log.Close() }

// Changes is the number of changed rows so far.
func (c *Checker) Changes() int { return len(c.lines) }

// Commit reads the changes since the last call as one commit, and returns the
// rules that it breaks. The error is of the checker itself.
func (c *Checker) Commit(ctx context.Context) ([]Violation, error) {
	first := len(c.lines)
	if err := c.readLines(ctx); err != nil {
		return nil, err
	}
	c.dropReleased(first)
	if len(c.lines) == first {
		return nil, nil
	}
	c.commits = append(c.commits, len(c.lines))
	for i := first; i < len(c.lines); i++ {
		c.apply(&c.lines[i])
	}
	c.checkCommit()
	c.columns.checkEnd()
	return c.takeViolations(), c.columns.err
}

// dropReleased drops the lines of payouts that this commit, which begins at a line, adds and
// deletes: a refused request does not use its reference.
func (c *Checker) dropReleased(first int) {
	released := map[rowKey]bool{}
	for i := first; i < len(c.lines); i++ {
		if l := &c.lines[i]; l.table == payoutTable && l.op == rowDeleted {
			released[l.key] = slices.ContainsFunc(c.lines[first:i], func(a line) bool {
				return a.table == payoutTable && a.op == rowAdded && a.key == l.key
			})
		}
	}
	if len(released) == 0 {
		return
	}
	c.lines = append(c.lines[:first], slices.DeleteFunc(slices.Clone(c.lines[first:]), func(l line) bool {
		return l.table == payoutTable && released[l.key]
	})...)
}

// apply follows one change of a row.
func (c *Checker) apply(l *line) {
	removable := l.table == attemptTable || l.table == deliveryTable
	if l.op == rowRewritten || l.op == rowDeleted && !removable {
		c.forbid(l)
		return
	}
	switch l.table {
	case payinTable, payoutTable, refundTable:
		c.applyOrder(l)
	case partTable:
		c.applyPart(l)
	case approvalTable:
		c.applyApproval(l)
	case sendTable:
		c.applySend(l)
	case postingTable:
		c.applyPosting(l)
	case balanceTable:
		c.applyBalance(l)
	case eventTable:
		c.applyEvent(l)
	case deliveryTable:
		c.applyDelivery(l)
	case attemptTable:
		c.applyAttempt(l)
	case receiptTable:
		c.applyReceipt(l)
	case claimTable:
		c.applyClaim(l)
	case disputeTable:
		c.applyDispute(l)
	case receivableTable:
		c.applyReceivable(l)
	case noticeTable:
		c.applyNotice(l)
	case caseTable:
		c.applyCase(l)
	case foundTable:
		c.applyFound(l)
	case chargeTable:
		c.applyCharge(l)
	case consentTable:
		c.applyConsent(l)
	}
}

// forbid reports a row that was deleted, or whose fixed columns were written again.
func (c *Checker) forbid(l *line) {
	did := "was deleted"
	if l.op == rowRewritten {
		did = "was rewritten"
	}
	t := &tables[l.table]
	v := Violation{Invariant: t.invariant, Merchant: l.key.merchant.String(), Text: fmt.Sprintf("%s %s %s", t.thing, l.key.id, did)}
	if o := c.orderOf(l); o != nil {
		v.Order = o.key.id.String()
	}
	c.violations = append(c.violations, v)
}

// orderOf is the order that a changed row belongs to, or nil.
func (c *Checker) orderOf(l *line) *order {
	switch l.table {
	case payinTable, payoutTable, refundTable, partTable, approvalTable, sendTable, chargeTable:
		return c.orders[l.key]
	case postingTable:
		if e := c.entries[l.key]; e != nil {
			return e.order
		}
	case eventTable:
		if e := c.events[l.key]; e != nil {
			return e.order
		}
	case deliveryTable, attemptTable:
		if d := c.deliveries[l.key]; d != nil {
			return d.event.order
		}
	case receiptTable, claimTable:
		if r := c.receipts[l.key]; r != nil {
			return r.order
		}
	case disputeTable:
		if d := c.disputes[l.key]; d != nil {
			return d.order
		}
	case receivableTable:
		if r := c.receivables[l.key]; r != nil {
			return c.orders[rowKey{l.key.merchant, r.payin}]
		}
	case caseTable:
		if v := c.cases[l.key]; v != nil {
			return v.order
		}
	}
	return nil
}

// checkCommit checks the rules that are true after each commit for all rows that this
// one has changed.
func (c *Checker) checkCommit() {
	t := &c.touched
	for _, e := range t.entries {
		c.checkEntry(e)
	}
	for _, m := range t.merchants {
		c.checkMerchant(m)
	}
	for _, r := range t.receipts {
		c.checkReceipt(r)
	}
	for _, v := range t.cases {
		c.checkCase(v)
	}
	for _, e := range t.events {
		c.checkEvent(e)
	}
	for _, o := range t.orders {
		c.checkOrder(o)
	}
	for _, d := range t.deliveries {
		c.checkDelivery(d)
	}
	for _, n := range t.notices {
		c.checkNotice(n)
	}
	for _, f := range t.found {
		c.checkFound(f)
	}
	for _, o := range t.consents {
		c.checkConsent(o)
	}
	for _, b := range t.batches {
		b.complete = true
	}
	c.clearTouched()
}

func (c *Checker) clearTouched() {
	t := &c.touched
	for _, m := range t.merchants {
		m.touched = false
	}
	for _, o := range t.orders {
		o.touched, o.restored = false, false
	}
	for _, d := range t.deliveries {
		d.touched = false
	}
	for _, n := range t.notices {
		n.touched = false
	}
	for _, v := range t.cases {
		v.touched = false
	}
	for _, r := range t.receipts {
		r.touched = false
	}
	*t = touched{
		orders: t.orders[:0], merchants: t.merchants[:0], entries: t.entries[:0], deliveries: t.deliveries[:0],
		receipts: t.receipts[:0], notices: t.notices[:0], events: t.events[:0], cases: t.cases[:0],
		found: t.found[:0], consents: t.consents[:0],
	}
}
