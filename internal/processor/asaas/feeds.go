package asaas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/processor"
)

// Notices report nearly everything sooner, and requests are limited: lists are read seldom.
const (
	soon   = 5 * time.Minute
	seldom = 30 * time.Minute
)

// How far back lists reach, in days: a card is confirmed at once, and listed by the day on
// which its charge was made; the order of a card lives for a day, of a Pix for 30 at most. A card can be
// given back for 180 days, a Pix for 90.
const (
	confirmedDays = 35
	refundedDays  = 182
	overlapDays   = 1
)

// listing is one list that a feed reads.
type listing struct {
	status string // "": all
	since  string // name of the filter by day; "": none
	days   int    // before the day of the cursor
}

// listings are the lists of each feed, read one after the other: a charge goes from one status to a later
// one, so what leaves a list meanwhile is in a later one. Payments are the exception: most are received
// at once, and must not wait for the long list; what is received meanwhile is in the next pass, which
// lists it by the day of its credit.
var listings = map[processor.Feed][]listing{
	processor.FeedPayments: {{statusReceived, "paymentDate[ge]", 0}, {statusDeposit, "dateCreated[ge]", confirmedDays}},
	processor.FeedRefunds: {
		{statusDeposit, "dateCreated[ge]", refundedDays}, {statusReceived, "dateCreated[ge]", refundedDays},
		{"CHARGEBACK_REQUESTED", "", 0}, {"CHARGEBACK_DISPUTE", "", 0}, {"AWAITING_CHARGEBACK_REVERSAL", "", 0},
		{statusRefunded, "dateCreated[ge]", refundedDays},
	},
	processor.FeedChanges:   {{"CHARGEBACK_REQUESTED", "", 0}, {"CHARGEBACK_DISPUTE", "", 0}, {"AWAITING_CHARGEBACK_REVERSAL", "", 0}},
	processor.FeedTransfers: {{"", "dateCreated[ge]", 0}},
	processor.FeedCosts:     {{}},
}

// partLists are the first lists of refunds: of the charges of which a part may have been given back.
// They are long, and notices report such refunds, so they are read only from a cursor of the
// beginning or of a day, as after a restore, and until partTime after that.
const (
	partLists = 5
	partTime  = 2 * refundQuiet // a refund that was being sent at the restore is listed then
)

// isLong reports whether a list has all charges of weeks. Its pages may take more requests than a large
// account has, so it leaves half of them: else no charge could be made, and nothing paid out.
func isLong(feed processor.Feed, list int) bool {
	return feed == processor.FeedRefunds && list < partLists || feed == processor.FeedPayments && listings[feed][list].status == statusDeposit
}

// Feeds implements [processor.Feeder].
func (p *Processor) Feeds() map[processor.Feed]processor.FeedSpec {
	from := func(t time.Time) string { return cursor{day: dayOf(t)}.String() }
	return map[processor.Feed]processor.FeedSpec{
		processor.FeedPayments:  {Every: soon, From: from},
		processor.FeedTransfers: {Every: seldom, From: from},
		processor.FeedRefunds:   {Every: seldom, From: from},
		processor.FeedChanges:   {Every: seldom, From: from},
		processor.FeedCosts:     {Every: soon, From: from},
	}
}

// cursor is a position in the lists of a feed. A pass over them begins at its day, and covers
// everything until the time at which it began.
type cursor struct {
	day    string // "" is the beginning
	list   int
	offset int
	began  time.Time // zero: with the next page
	first  time.Time // when the first pass over the partLists began; zero: with the next page, or they are not read
}

// String is the cursor as it is stored.
func (c cursor) String() string {
	text := c.day + "|" + strconv.Itoa(c.list) + "|" + strconv.Itoa(c.offset) + "|"
	if !c.began.IsZero() {
		text += c.began.UTC().Format(time.RFC3339Nano)
	}
	if !c.first.IsZero() {
		text += "|" + c.first.UTC().Format(time.RFC3339Nano)
	}
	return text
}

var errCursor = errors.New("asaas: not a cursor")

// parseCursor reads a cursor; "" is the beginning of all lists.
func parseCursor(text string, lists int) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	parts := strings.Split(text, "|")
	if len(parts) != 4 && len(parts) != 5 {
		return c, errCursor
	}
	c.day = parts[0]
	var errs [5]error
	if c.day != "" {
		_, errs[0] = time.Parse(time.DateOnly, c.day)
	}
	c.list, errs[1] = strconv.Atoi(parts[1])
	c.offset, errs[2] = strconv.Atoi(parts[2])
	if parts[3] != "" {
		c.began, errs[3] = time.Parse(time.RFC3339Nano, parts[3])
	}
	if len(parts) == 5 {
		c.first, errs[4] = time.Parse(time.RFC3339Nano, parts[4])
	}
	if errors.Join(errs[:]...) != nil || c.list < 0 || c.list >= lists || c.offset < 0 {
		return c, errCursor
	}
	return c, nil
}

// Read implements [processor.Feeder]. Lists are by day, and rows are listed again: pages
// overlap, and so do passes.
func (p *Processor) Read(ctx context.Context, feed processor.Feed, text string) (processor.Page, error) {
	lists, ok := listings[feed]
	if !ok {
		return processor.Page{}, fmt.Errorf("asaas: no feed %q", feed)
	}
	c, err := parseCursor(text, len(lists))
	if err != nil {
		return processor.Page{}, err
	}
	if isLong(feed, c.list) && p.BudgetLow() { // it goes on from here once there are more requests
		return processor.Page{Next: text, More: true}, nil
	}
	if c.began.IsZero() {
		c.began = p.clock.Now()
	}
	if feed == processor.FeedRefunds && c.list < partLists && c.first.IsZero() {
		c.first = c.began
	}
	if feed == processor.FeedCosts {
		return p.readCosts(ctx, c)
	}
	since := before(c.day, lists[c.list].days)
	var facts []processor.Fact
	var count int
	var more bool
	if feed == processor.FeedTransfers {
		page, err := transfersAt(ctx, p.client, since, c.offset)
		if err != nil {
			return processor.Page{}, err
		}
		count, more = len(page.rows), !page.last(since)
		facts = factsOf(page.rows, transferFacts)
	} else {
		rows, further, _, err := readPage[wirePayment](ctx, p.client, "/payments?"+p.paymentsQuery(lists[c.list], since, c.offset))
		if err != nil {
			return processor.Page{}, err
		}
		count, more = len(rows), further
		now := p.clock.Now()
		facts = factsOf(rows, func(v *wirePayment) []processor.Fact { return paymentFacts(feed, now, v) })
	}
	page := nextPage(c, len(lists), count, more, facts)
	if feed == processor.FeedRefunds && !page.More {
		page.Next = c.afterRefunds().String()
	}
	return page, nil
}

func (p *Processor) paymentsQuery(l listing, since string, offset int) string {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(offset)}, "status": {l.status}}
	if l.since != "" && since != "" {
		query.Set(l.since, since)
	}
	return query.Encode()
}

// nextPage is a page with the cursor of the next one: of this list, of the next list, or of
// the next pass.
func nextPage(c cursor, lists, rows int, more bool, facts []processor.Fact) processor.Page {
	v := processor.Page{Facts: facts, More: true}
	switch {
	case more:
		c.offset += advance(rows)
	case c.list+1 < lists:
		c.list, c.offset = c.list+1, 0
	default:
		v.More, v.Through = false, c.began
		c = cursor{day: before(dayOf(c.began), overlapDays)}
	}
	v.Next = c.String()
	return v
}

// afterRefunds is the cursor after a pass over the lists of refunds.
func (c cursor) afterRefunds() cursor {
	if !c.first.IsZero() && c.began.Sub(c.first) < partTime {
		return cursor{day: c.day, first: c.first}
	}
	return cursor{day: before(dayOf(c.began), overlapDays), list: partLists}
}

// before is a number of days before a day.
func before(day string, days int) string {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil { // the beginning
		return day
	}
	return t.AddDate(0, 0, -days).Format(time.DateOnly)
}

// factsOf are what the rows of a page prove.
func factsOf[V any](rows []row[V], of func(v *V) []processor.Fact) (facts []processor.Fact) {
	for i := range rows {
		switch r := &rows[i]; {
		case r.valid:
			facts = append(facts, of(&r.v)...)
		case r.mayBeOurs():
			facts = append(facts, unreadable("row", string(r.text), "", r.reference))
		}
	}
	return facts
}

// transferFacts are what a row of the list of transfers proves, if it may be one of ours.
func transferFacts(v *wireTransfer) []processor.Fact {
	if !isExternalID(v.ExternalReference) {
		return nil
	}
	r := v.report()
	if r.Lookup != processor.Found {
		return []processor.Fact{unreadable("transfer", v.ID, v.Status, v.ExternalReference)}
	}
	return []processor.Fact{{Transfer: &processor.ListedTransfer{
		ExternalID: v.ExternalReference, ProcessorID: r.ProcessorID, EndToEndID: r.EndToEndID, State: r.State, Amount: r.Amount,
		PIXKey: v.BankAccount.Key, Receiver: v.BankAccount.Owner,
	}}}
}

// paymentFacts are what a row of a list of charges proves, if it may be one of ours: its
// payment, its refunds and, in the list of them, its dispute.
func paymentFacts(feed processor.Feed, now time.Time, v *wirePayment) (facts []processor.Fact) {
	if !isExternalID(v.ExternalReference) {
		return nil
	}
	if v.check() != nil {
		return []processor.Fact{unreadable("charge", v.ID, v.Status, v.ExternalReference)}
	}
	if !v.paid() || feed == processor.FeedRefunds && v.Status != statusRefunded && len(v.Refunds) == 0 {
		return nil
	}
	paidAt, _ := endOf(v.paidDay())
	if paidAt.After(now) {
		paidAt = now
	}
	installments := 1
	if v.Installment != "" {
		installments = 0 // the row is one of them
	}
	facts = append(facts, processor.Fact{Payment: &processor.Payment{
		ID: v.ID, ExternalID: v.ExternalReference, Amount: moneyOf(v.Value), PaidAt: paidAt, Card: v.card(installments), Cost: v.cost(),
	}})
	facts = append(facts, refundFacts(v)...)
	if d := v.dispute(); d != nil && feed == processor.FeedChanges { // it has what the refunds leave
		facts = append(facts, processor.Fact{Change: &processor.Change{Subject: processor.SubjectCharge, ExternalID: v.ExternalReference, Dispute: d}})
	}
	return facts
}

// refundFacts are the refunds of a charge that were paid, or failed. The money that a dispute took is
// not a refund.
func refundFacts(v *wirePayment) (facts []processor.Fact) {
	for i, id := range refundIDs(v) {
		r := &v.Refunds[i]
		state := refundStates[r.Status]
		if state != processor.TransferPaid && state != processor.TransferFailed || !isAmount(moneyOf(r.Value)) || !isExternalID(id) && v.mayBeTaken(r) {
			continue
		}
		facts = append(facts, processor.Fact{Refund: &processor.ListedRefund{
			ExternalID: id, PaymentID: v.ID, State: state, Amount: moneyOf(r.Value),
		}})
	}
	return facts
}

// unreadable is a row that proves nothing.
func unreadable(kind, id, status, externalID string) processor.Fact {
	sum := sha256.Sum256([]byte(kind + "\x00" + id + "\x00" + status + "\x00" + externalID))
	return processor.Fact{Unreadable: &processor.Unreadable{ID: hex.EncodeToString(sum[:]), ExternalID: externalID, Cause: processor.InvalidValues}}
}
