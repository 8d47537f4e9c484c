package simulate

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// gatewayBook follows the gateway's database commit by commit, and holds what
// each commit did against the rules. It takes nothing from the gateway but its
// rows: what may happen stands in invariants_rules.go.
type gatewayBook struct {
	log     *sql.Stmt
	seq     int64 // of the last line that was read
	history []rowChange
	commits []int // length of the history after each commit
	seal    cipher.AEAD
	found   []violation

	orders     map[rowKey]*orderRow
	inOrder    []*orderRow // as they were created
	references map[orderName]*orderRow
	externals  map[string]*orderRow
	merchants  map[rowID]*merchantRow
	entries    map[rowKey]*entryRow
	events     map[rowKey]*eventRow
	deliveries map[rowKey]*deliveryRow
	receipts   map[rowKey]*receiptRow
	cameIn     []*receiptRow          // receipts as they were booked
	payments   map[string]*receiptRow // by processor and its id of the payment
	disputes   map[rowKey]*disputeRow
	exceptions map[rowKey]*exceptionRow
	notices    map[string]*noticeRow
	eventIDs   map[string]*eventRow // by their public ids
	retention  time.Duration        // of finished deliveries; 0 keeps them for ever
	now        func() time.Time
	heard      int // how many of the receivers' lines compare has read

	touched touchedRows
}

// touchedRows are what the commit under way has changed.
type touchedRows struct {
	orders     []*orderRow
	merchants  []*merchantRow
	entries    []*entryRow
	deliveries []*deliveryRow
	receipts   []*receiptRow
	notices    []*noticeRow
	events     []*eventRow
}

type orderName struct {
	merchant        rowID
	kind, reference string
}

// orderRow is a pay-in or a payout as the last commit left it.
type orderRow struct {
	key                            rowKey
	kind                           string
	external, reference            string
	method, processor, url         string
	amount, fee                    int64
	status, step                   string
	version                        int64
	paid, refunded, returned       int64
	ended, late, claimed, canceled bool
	nextAt, expiresAt              int64
	details                        string // how long they are
	node                           rowID  // that has it in hand

	sends      []*sendRow
	booked     map[string]int64 // by kind of entry, what it took from somewhere
	applied    int64            // of receipts
	surplus    int64            // of receipts
	told       int64            // of the surplus, to a person
	endToEnd   string
	disputes   []*disputeRow
	exceptions []*exceptionRow
	events     []*eventRow
	awaited    []awaitedEvent
	gone       bool // its receiver answered 410
	touched    bool
}

func (o *orderRow) inFlight() bool {
	return o.kind == payout && (o.status == "PENDING" || o.status == "PROCESSING")
}

// hasOpen says whether a person has been asked about the order, in one of these ways.
func (o *orderRow) hasOpen(kinds ...string) bool {
	for _, e := range o.exceptions {
		for _, kind := range kinds {
			if e.kind == kind && !e.closed {
				return true
			}
		}
	}
	return false
}

// awaitedEvent is news that a change of an order calls for.
type awaitedEvent struct {
	version                  int64
	kind, status             string
	paid, refunded, returned int64
	delivered                bool // somewhere
}

type sendRow struct {
	number    int64
	deadline  int64
	outcome   string
	processor string
	hash      string
	node      rowID
}

// merchantRow is a merchant's books; the zero id's are the platform's.
type merchantRow struct {
	id       rowID
	accounts []*accountRow
	lastNews int64 // number of the last event
	inFlight int64 // cents of payouts in flight, with their fees
	disputed int64 // cents of open disputes
	surplus  int64 // cents of receipts that no order took
	received int64 // cents of receipts
	booked   map[string]int64
	touched  bool
}

type accountRow struct {
	name    string
	sum     int64 // of its postings
	last    int64 // balance after the last posting
	balance int64 // as stored
	version int64
	touched bool
}

func (m *merchantRow) account(name string) *accountRow {
	for _, a := range m.accounts {
		if a.name == name {
			return a
		}
	}
	a := &accountRow{name: name}
	m.accounts = append(m.accounts, a)
	return a
}

type entryRow struct {
	key     rowKey
	kind    string
	subject rowID
	order   *orderRow // its subject, where that is an order
	lines   []entryLine
	closed  bool // its commit is over
}

type entryLine struct {
	account string
	amount  int64
}

type eventRow struct {
	key      rowKey
	number   int64
	kind     string
	order    *orderRow
	version  int64
	body     []byte // what is delivered
	taken    bool   // a receiver answered 2xx
	came     int64  // how often it came to a receiver
	formerly int64  // attempts of its deliveries that were removed
	awaited  awaitedEvent
	delivery *deliveryRow
	removed  bool // its delivery was, for its age
	remade   bool // a person asked for it after that
}

type deliveryRow struct {
	key         rowKey
	event       *eventRow
	url, state  string
	tries       int64
	nextAt      int64
	claimed     bool
	hand        int64        // the attempt that it was last taken in hand for
	since       int64        // when that was
	attempts    []attemptRow // that are over
	redelivered bool         // a person asked for it again
	updatedAt   int64
	lost        int  // attempts that were removed
	removed     bool // with its attempts
	moved       bool // in the commit under way
	touched     bool
}

type attemptRow struct{ status, endedAt int64 }

type receiptRow struct {
	key             rowKey
	order           *orderRow
	processor       string
	external        string // the processor's id of the payment
	orderID         string // the external id that the payment names
	endToEnd        string
	amount, applied int64
	stored, claimed bool
	booked          int64 // posted about the receipt itself
	told            int64 // cents of one that fits no order, to a person
}

type disputeRow struct {
	order  *orderRow
	amount int64
	state  string
}

type exceptionRow struct {
	key     rowKey
	kind    string
	subject rowID
	amount  int64
	closed  bool
}

type noticeRow struct {
	name    string
	state   string
	nextAt  int64
	claimed bool
	touched bool
	stuck   bool // in the commit under way
}

// newGatewayBook follows a database from its beginning, in which installBook
// has run. master is the key by which the gateway seals what it stores.
func newGatewayBook(ctx context.Context, db *sql.DB, engine string, master []byte) (*gatewayBook, error) {
	if engine != "sqlite" && engine != "postgres" {
		return nil, fmt.Errorf("simulate: no engine %q", engine)
	}
	key, err := hkdf.Key(sha256.New, master, nil, "porteira/seal", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	log, err := db.PrepareContext(ctx, readLog)
	if err != nil {
		return nil, fmt.Errorf("simulate: log of changes: %w", err)
	}
	return &gatewayBook{
		log: log, seal: seal,
		orders: map[rowKey]*orderRow{}, references: map[orderName]*orderRow{}, externals: map[string]*orderRow{},
		merchants: map[rowID]*merchantRow{}, entries: map[rowKey]*entryRow{}, events: map[rowKey]*eventRow{},
		deliveries: map[rowKey]*deliveryRow{}, receipts: map[rowKey]*receiptRow{}, payments: map[string]*receiptRow{},
		disputes: map[rowKey]*disputeRow{}, exceptions: map[rowKey]*exceptionRow{}, notices: map[string]*noticeRow{},
		eventIDs: map[string]*eventRow{},
	}, nil
}

// close frees what the book has in hand of the database.
func (g *gatewayBook) close() error { return g.log.Close() }

// errSealed says that a stored value was not sealed as it should be.
var errSealed = errors.New("simulate: not sealed for this place")

// sealHead is what stands before the nonce of a sealed value: a version and
// four bytes that name the key.
const sealHead = 5

// opened is the body of an event, which is stored sealed for its place.
func (g *gatewayBook) opened(event rowKey, sealed []byte) ([]byte, error) {
	if len(sealed) < sealHead+g.seal.NonceSize() {
		return nil, errSealed
	}
	place := append([]byte("events\x00"), event.merchant[:]...)
	place = append(append(place, event.id[:]...), "body"...)
	nonce, text := sealed[sealHead:sealHead+g.seal.NonceSize()], sealed[sealHead+g.seal.NonceSize():]
	body, err := g.seal.Open(nil, nonce, text, place)
	if err != nil {
		return nil, errSealed
	}
	return body, nil
}

// read takes what was committed since the last call as one commit, and says
// which rules it breaks.
func (g *gatewayBook) read(ctx context.Context) ([]violation, error) {
	first := len(g.history)
	if err := g.changes(ctx); err != nil {
		return nil, err
	}
	if len(g.history) == first {
		return nil, nil
	}
	g.commits = append(g.commits, len(g.history))
	for i := first; i < len(g.history); i++ {
		g.apply(&g.history[i])
	}
	g.checkCommit()
	found := g.found
	g.found = nil
	return found, nil
}

// apply follows one change of a row.
func (g *gatewayBook) apply(c *rowChange) {
	if c.op == rowFrozen || c.op == rowDeleted && c.kind != rowAttempt && c.kind != rowDelivery {
		g.applyForbidden(c)
		return
	}
	switch c.kind {
	case rowPayin, rowPayout:
		g.applyOrder(c)
	case rowSend:
		g.applySend(c)
	case rowPosting:
		g.applyPosting(c)
	case rowBalance:
		g.applyBalance(c)
	case rowEvent:
		g.applyEvent(c)
	case rowDelivery:
		g.applyDelivery(c)
	case rowAttempt:
		g.applyAttempt(c)
	case rowReceipt:
		g.applyReceipt(c)
	case rowClaim:
		g.applyClaim(c)
	case rowDispute:
		g.applyDispute(c)
	case rowNotice:
		g.applyNotice(c)
	case rowException:
		g.applyException(c)
	}
}

// frozenRules is what is broken where a row is deleted, or a column written
// that stays as it was first written.
var frozenRules = map[rowKind]struct{ invariant, what string }{
	rowPayin: {"I5", "pay-in"}, rowPayout: {"I5", "payout"}, rowSend: {"I3", "send"}, rowPosting: {"I1", "posting"},
	rowBalance: {"I1", "balance"}, rowEvent: {"I7", "event"}, rowDelivery: {"I7", "delivery"}, rowAttempt: {"I7", "delivery attempt"},
	rowReceipt: {"I9", "receipt"}, rowClaim: {"I9", "claim of a receipt"}, rowDispute: {"I6", "dispute"},
	rowNotice: {"I10", "notice"}, rowException: {"I11", "exception"},
}

func (g *gatewayBook) applyForbidden(c *rowChange) {
	rule := frozenRules[c.kind]
	did := "was deleted"
	if c.op == rowFrozen {
		did = "was rewritten"
	}
	g.found = append(g.found, violation{rule.invariant, c.key.merchant.String(), g.orderOf(c), fmt.Sprintf("%s %s %s", rule.what, c.key.id, did)})
}

// orderOf names the order that a changed row belongs to, or "".
func (g *gatewayBook) orderOf(c *rowChange) string {
	o := g.orders[c.key]
	switch c.kind {
	case rowPosting:
		if e := g.entries[c.key]; e != nil {
			o = e.order
		}
	case rowEvent:
		if e := g.events[c.key]; e != nil {
			o = e.order
		}
	case rowDelivery, rowAttempt:
		if d := g.deliveries[c.key]; d != nil {
			o = d.event.order
		}
	case rowReceipt, rowClaim:
		if r := g.receipts[c.key]; r != nil {
			o = r.order
		}
	case rowDispute:
		if d := g.disputes[c.key]; d != nil {
			o = d.order
		}
	case rowException:
		if e := g.exceptions[c.key]; e != nil {
			o = g.orders[rowKey{e.key.merchant, e.subject}]
		}
	}
	if o == nil {
		return ""
	}
	return o.key.id.String()
}

// badf reports a broken rule about an order.
func (g *gatewayBook) badf(invariant string, o *orderRow, format string, args ...any) {
	v := violation{invariant: invariant, text: fmt.Sprintf(format, args...)}
	if o != nil {
		v.merchant, v.order = o.key.merchant.String(), o.key.id.String()
		v.text = o.kind + " " + o.status + ": " + v.text
	}
	g.found = append(g.found, v)
}

// badBooksf reports a broken rule about a merchant's books.
func (g *gatewayBook) badBooksf(invariant string, merchant rowID, format string, args ...any) {
	g.found = append(g.found, violation{invariant: invariant, merchant: merchant.String(), text: fmt.Sprintf(format, args...)})
}

func (g *gatewayBook) merchant(id rowID) *merchantRow {
	m := g.merchants[id]
	if m == nil {
		m = &merchantRow{id: id, booked: map[string]int64{}}
		g.merchants[id] = m
	}
	if !m.touched {
		m.touched = true
		g.touched.merchants = append(g.touched.merchants, m)
	}
	return m
}

func (g *gatewayBook) touch(o *orderRow) {
	if !o.touched {
		o.touched = true
		g.touched.orders = append(g.touched.orders, o)
	}
}

// checkCommit holds the rules that are true after each commit against all that
// this one touched.
func (g *gatewayBook) checkCommit() {
	t := &g.touched
	for _, e := range t.entries {
		g.checkEntry(e)
	}
	for _, m := range t.merchants {
		g.checkMerchant(m)
	}
	for _, r := range t.receipts {
		g.checkReceipt(r)
	}
	for _, e := range t.events {
		g.checkEvent(e)
	}
	for _, o := range t.orders {
		g.checkOrder(o)
	}
	for _, d := range t.deliveries {
		g.checkDelivery(d)
	}
	for _, n := range t.notices {
		g.checkNotice(n)
	}
	g.untouch()
}

func (g *gatewayBook) untouch() {
	t := &g.touched
	for _, m := range t.merchants {
		m.touched = false
	}
	for _, o := range t.orders {
		o.touched = false
	}
	for _, d := range t.deliveries {
		d.touched = false
	}
	for _, n := range t.notices {
		n.touched = false
	}
	*t = touchedRows{
		orders: t.orders[:0], merchants: t.merchants[:0], entries: t.entries[:0], deliveries: t.deliveries[:0],
		receipts: t.receipts[:0], notices: t.notices[:0], events: t.events[:0],
	}
}
