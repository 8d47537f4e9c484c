package apipix

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/processor"
)

// The lists of a bank: payments that were received and, at Efí, transfers and infractions. They are
// filtered by the time of their entries, which have no order that the standard names.
type listName string

const (
	listReceived    listName = "pix"
	listSent        listName = "enviados"
	listInfractions listName = "infracoes"
)

const (
	// pageSize is the number of entries of a page; the standard allows 1000.
	pageSize = 500
	// window is the longest time that one query covers.
	window = 30 * 24 * time.Hour
	// overlap is how much is read again, because an entry may appear late.
	overlap = 15 * time.Minute
	// pagesMax bounds the pages of a window.
	pagesMax = 100_000
	// beginning is how long ago a list without a cursor begins. The standard does not say how
	// far back banks list; a Pix can be given back for 90 days.
	beginning = refundWindow + 24*time.Hour
	// returnsEvery is the wait between two sweeps for returns: notices report most sooner.
	returnsEvery   = 15 * time.Minute
	paymentsEvery  = time.Minute
	transfersEvery = time.Minute
)

// cursor is a position in a list: a window of time, and a page of it. A sweep reads all of the
// last 90 days again, because a return is listed with its payment, at the payment's time.
type cursor struct {
	list     listName
	from, to time.Time // to is zero before the window is chosen
	page     int64
}

func (c *cursor) String() string {
	text := string(c.list) + " " + formatTime(c.from)
	if !c.to.IsZero() {
		text += " " + formatTime(c.to) + " " + strconv.FormatInt(c.page, 10)
	}
	return text
}

var errCursor = errors.New("apipix: the cursor is not of this driver")

func parseCursor(text string) (c cursor, err error) {
	parts := strings.Split(text, " ")
	if len(parts) != 2 && len(parts) != 4 {
		return c, errCursor
	}
	c.list = listName(parts[0])
	var ok1, ok2 bool
	c.from, ok1 = parseTime(parts[1])
	ok2 = true
	if len(parts) == 4 {
		c.to, ok2 = parseTime(parts[2])
		if c.page, err = strconv.ParseInt(parts[3], 10, 32); err != nil || c.page < 0 || c.to.Before(c.from) {
			return c, errCursor
		}
	}
	if !ok1 || !ok2 || c.list != listReceived && c.list != listSent && c.list != listInfractions {
		return c, errCursor
	}
	return c, nil
}

// Feeds implements [processor.Feeder].
func (p *Processor) Feeds() map[processor.Feed]processor.FeedSpec {
	return map[processor.Feed]processor.FeedSpec{
		processor.FeedPayments: {Every: paymentsEvery, From: from(listReceived)},
		processor.FeedRefunds:  {Every: returnsEvery},
		processor.FeedChanges:  {Every: returnsEvery},
	}
}

// Feeds implements [processor.Feeder].
func (e *Efi) Feeds() map[processor.Feed]processor.FeedSpec {
	specs := e.Processor.Feeds()
	specs[processor.FeedTransfers] = processor.FeedSpec{Every: transfersEvery, From: from(listSent)}
	return specs
}

func from(list listName) func(t time.Time) string {
	return func(t time.Time) string {
		return (&cursor{list: list, from: t.UTC().Truncate(time.Millisecond)}).String()
	}
}

// withReturns asks for payments that have returns only.
const withReturns = "&devolucaoPresente=true"

// Read implements [processor.Feeder].
func (p *Processor) Read(ctx context.Context, feed processor.Feed, at string) (processor.Page, error) {
	switch feed {
	case processor.FeedPayments:
		return p.readOn(ctx, listReceived, at, paymentFact)
	case processor.FeedRefunds:
		return p.sweep(ctx, at, sure(refundFacts), listReceived)
	case processor.FeedChanges:
		return p.sweep(ctx, at, sure(changeFacts), listReceived)
	default:
		return processor.Page{}, fmt.Errorf("apipix: no feed %q", feed)
	}
}

// Read implements [processor.Feeder].
func (e *Efi) Read(ctx context.Context, feed processor.Feed, at string) (processor.Page, error) {
	switch feed {
	case processor.FeedTransfers:
		return e.readOn(ctx, listSent, at, transferFact)
	case processor.FeedChanges:
		return e.sweep(ctx, at, e.changeFacts, listReceived, listSent, listInfractions)
	default:
		return e.Processor.Read(ctx, feed, at)
	}
}

// entryFacts are the facts of an entry of a list; ok is false if it is invalid.
type entryFacts func(list listName, raw jsontext.Value) (facts []processor.Fact, ok bool)

// pageFacts are the facts of a page of a list; missing is why they lack some.
type pageFacts func(ctx context.Context, c *cursor, read *readPage) (facts []processor.Fact, missing error)

// sure are the facts of a page whose entries need no further request.
func sure(facts entryFacts) pageFacts {
	return func(_ context.Context, c *cursor, read *readPage) ([]processor.Fact, error) {
		return read.facts(c.list, facts), nil
	}
}

// changeFacts are the facts of a page of changes at Efí. A payment with an infraction has its
// disputes from there.
func (e *Efi) changeFacts(ctx context.Context, c *cursor, read *readPage) (facts []processor.Fact, missing error) {
	if c.list == listInfractions {
		return e.infractionFacts(ctx, read.entries)
	}
	var contested map[string]bool // endToEndIds; nil: not read
	facts = read.facts(c.list, func(list listName, raw jsontext.Value) ([]processor.Fact, bool) {
		found, ok := changeFacts(list, raw)
		if list != listReceived || !ok || len(found) == 0 {
			return found, ok
		}
		if contested == nil {
			contested = map[string]bool{}
			_ = e.eachInfraction(ctx, c.from, e.clock.Now(), func(v *infraction) bool { // a query has to confirm each change
				contested[v.EndToEndID] = true
				return true
			})
		}
		var paid pix
		if unmarshal(raw, &paid) == nil && contested[paid.EndToEndID] {
			return nil, true
		}
		return found, true
	})
	return facts, nil
}

// readOn reads the next page of a list that is read once, from its cursor on.
func (p *Processor) readOn(ctx context.Context, list listName, at string, facts entryFacts) (processor.Page, error) {
	now := p.clock.Now().UTC().Truncate(time.Millisecond)
	c, err := p.begin(list, at, now)
	if err != nil || c.list != list {
		return processor.Page{}, cmp.Or(err, errCursor)
	}
	if c.from.After(now) {
		return processor.Page{Next: at, Through: now}, nil
	}
	read, err := p.readList(ctx, c.list, c.from, c.to, c.page, "")
	if err != nil {
		return processor.Page{}, err
	}
	page := processor.Page{Facts: read.facts(c.list, facts), More: true}
	switch {
	case read.more:
		c.page++
	case now.Sub(c.to) > overlap: // an earlier window
		c = cursor{list: list, from: c.to.Add(-overlap)}
	default:
		page.More, page.Through = false, c.to
		if read.at.Before(c.to) { // our clock runs ahead: the cursor must not pass later entries
			page.Through = read.at
		}
		c = cursor{list: list, from: page.Through.Add(-overlap)}
	}
	page.Next = c.String()
	return page, nil
}

// begin is the position of a cursor, with its window.
func (p *Processor) begin(list listName, at string, now time.Time) (c cursor, err error) {
	c = cursor{list: list, from: now.Add(-beginning)}
	if at != "" {
		if c, err = parseCursor(at); err != nil {
			return c, err
		}
	}
	if c.to.IsZero() {
		c.to = c.from.Add(window)
		if c.to.After(now) {
			c.to = now
		}
	}
	return c, nil
}

// sweep reads the next page of lists that are read again and again from their beginning.
func (p *Processor) sweep(ctx context.Context, at string, facts pageFacts, lists ...listName) (processor.Page, error) {
	now := p.clock.Now().UTC().Truncate(time.Millisecond)
	c, err := p.begin(lists[0], at, now)
	which := slices.Index(lists, c.list)
	if err != nil || which < 0 {
		return processor.Page{}, cmp.Or(err, errCursor)
	}
	read, err := p.sweepPage(ctx, &c)
	if err != nil {
		return processor.Page{}, err
	}
	page := processor.Page{More: true}
	page.Facts, err = facts(ctx, &c, &read)
	page.Missing = cmp.Or(read.missing, err)
	switch {
	case read.more:
		c.page++
	case now.Sub(c.to) > overlap:
		c = cursor{list: c.list, from: c.to}
	case which+1 < len(lists):
		c = cursor{list: lists[which+1], from: now.Add(-beginning)}
	default:
		if page.More = false; page.Missing == nil {
			page.Through = c.to
		}
		return page, nil // and again from the beginning
	}
	page.Next = c.String()
	return page, nil
}

// sweepPage reads the page of a list at a cursor: of payments those that have returns.
func (p *Processor) sweepPage(ctx context.Context, c *cursor) (readPage, error) {
	switch c.list {
	case listInfractions:
		read, err := p.readInfractions(ctx, c.from, c.to, c.page, infractionPageSize)
		switch {
		case errors.Is(err, errNotAllowed): // nothing else must wait for them
			return readPage{}, nil
		case errors.Is(err, errForm): // the other lists go on
			return readPage{entries: []jsontext.Value{[]byte(`"infracoes"`)}}, nil
		case err != nil: // the other lists go on, and the sweep begins again
			return readPage{missing: fmt.Errorf("the infractions of the MED cannot be read: %w", err)}, nil
		default:
			return read, nil
		}
	case listReceived:
		return p.readList(ctx, c.list, c.from, c.to, c.page, withReturns)
	default:
		return p.readList(ctx, c.list, c.from, c.to, c.page, "")
	}
}

// readPage is a page of a list.
type readPage struct {
	entries []jsontext.Value
	more    bool
	at      time.Time // when it came, by the bank's clock
	missing error     // see [processor.Page]
}

// listPath is the path of a page of a list; filter is further parameters.
func (p *Processor) listPath(list listName, from, to time.Time, page int64, filter string) string {
	path := p.prefix + "/pix"
	if list == listSent {
		path = "/v2/gn/pix/enviados"
	}
	return path + "?inicio=" + url.QueryEscape(formatTime(from)) + "&fim=" + url.QueryEscape(formatTime(to)) +
		"&paginacao.paginaAtual=" + strconv.FormatInt(page, 10) + "&paginacao.itensPorPagina=" + strconv.Itoa(pageSize) + filter
}

// readList reads a page of a list. A page that does not say which one it is, and of how many,
// is none: entries might be missing.
func (p *Processor) readList(ctx context.Context, name listName, from, to time.Time, number int64, filter string) (page readPage, err error) {
	result := p.get(ctx, p.listPath(name, from, to, number, filter))
	body := parse[list](&result)
	if !result.ok() {
		return page, result.cause()
	}
	if body.Parameters == nil || body.Parameters.Paging == nil {
		return page, errForm
	}
	at := body.Parameters.Paging
	if at.Page != number || at.Pages < 0 || at.Pages > pagesMax || len(body.Entries) > pageSize*2 {
		return page, errForm
	}
	page.entries, page.more, page.at = body.Entries, number+1 < at.Pages, result.at.UTC().Truncate(time.Millisecond)
	if page.more && len(page.entries) == 0 {
		return page, errForm
	}
	return page, nil
}

// facts reads the entries of a page, oldest first.
func (r *readPage) facts(list listName, read entryFacts) (all []processor.Fact) {
	for _, raw := range r.entries {
		facts, ok := read(list, raw)
		if !ok {
			facts = []processor.Fact{unreadable(raw)}
		}
		all = append(all, facts...)
	}
	slices.SortStableFunc(all, func(a, b processor.Fact) int {
		if a.Payment == nil || b.Payment == nil {
			return 0
		}
		return a.Payment.PaidAt.Compare(b.Payment.PaidAt)
	})
	return all
}

// unreadable is an invalid entry, which its contents identify.
func unreadable(raw jsontext.Value) processor.Fact {
	var of struct {
		TxID string `json:"txid"`
		ID   string `json:"idEnvio"`
	}
	if unmarshal(raw, &of) != nil {
		of.TxID, of.ID = "", ""
	}
	id := cmp.Or(of.ID, of.TxID)
	if !isWord(id, idMax) {
		id = ""
	}
	sum := sha256.Sum256(raw)
	return processor.Fact{Unreadable: &processor.Unreadable{ID: hex.EncodeToString(sum[:]), ExternalID: id, Cause: processor.InvalidValues}}
}

func paymentFact(_ listName, raw jsontext.Value) ([]processor.Fact, bool) {
	var v pix
	if unmarshal(raw, &v) != nil {
		return nil, false
	}
	paid, ok := v.payment()
	return []processor.Fact{{Payment: &paid}}, ok
}

// refundFacts are the returns of a payment that its receiver requested, here or at the bank,
// once they have ended, and those of disputes if the payment names no order: its txid cannot be that
// of a charge, as of a static code.
func refundFacts(_ listName, raw jsontext.Value) (facts []processor.Fact, ok bool) {
	var v pix
	if unmarshal(raw, &v) != nil || !isWord(v.EndToEndID, endToEndMax) {
		return nil, false
	}
	for i := range v.Returns {
		r := &v.Returns[i]
		if r.isDispute() && isTxID(v.TxID) { // a change of its order
			continue
		}
		report := r.report(r.ID)
		if report.Lookup != processor.Found || !isToken(r.ID, endToEndMax) {
			return nil, false
		}
		if report.State == processor.TransferProcessing {
			continue
		}
		facts = append(facts, processor.Fact{Refund: &processor.ListedRefund{
			ExternalID: r.name(v.EndToEndID), PaymentID: v.EndToEndID, EndToEndID: report.EndToEndID,
			State: report.State, Amount: report.Amount, Failure: report.Failure,
		}})
	}
	return facts, true
}

// changeFacts are the disputes of a payment, or what was returned of a transfer.
func changeFacts(list listName, raw jsontext.Value) (facts []processor.Fact, ok bool) {
	if list == listSent {
		return returnedFacts(raw)
	}
	var v pix
	if unmarshal(raw, &v) != nil {
		return nil, false
	}
	disputes, ok := v.disputesOf(nil, time.Time{})
	return v.changes(disputes), ok
}

// changes are the disputes of a payment as changes of its order. If it names none, refundFacts has
// its returns.
func (v *pix) changes(disputes []processor.Dispute) (facts []processor.Fact) {
	if !isTxID(v.TxID) {
		return nil
	}
	for i := range disputes {
		facts = append(facts, processor.Fact{Change: &processor.Change{
			Subject: processor.SubjectCharge, ExternalID: v.TxID, Dispute: &disputes[i],
		}})
	}
	return facts
}

func returnedFacts(raw jsontext.Value) ([]processor.Fact, bool) {
	facts, ok := transferFact(listSent, raw)
	if !ok {
		return nil, true // the list of transfers reports it
	}
	t := facts[0].Transfer
	if t.Returned == 0 {
		return nil, true
	}
	return []processor.Fact{{Change: &processor.Change{
		Subject: processor.SubjectTransfer, ExternalID: t.ExternalID, Returned: t.Returned,
	}}}, true
}

// transferFact is a transfer. One without an idEnvio was made at the bank's panel.
func transferFact(_ listName, raw jsontext.Value) ([]processor.Fact, bool) {
	var v transfer
	if unmarshal(raw, &v) != nil {
		return nil, false
	}
	report := v.report(v.ID)
	if report.Lookup != processor.Found || v.ID != "" && !isWord(v.ID, idMax) {
		return nil, false
	}
	listed := processor.ListedTransfer{
		ExternalID: v.ID, EndToEndID: report.EndToEndID, State: report.State, Amount: report.Amount, Returned: report.Returned,
	}
	var to listedReceiver
	if unmarshal(v.Receiver, &to) == nil {
		listed.PIXKey, listed.Receiver = to.Key, to.Identity.Name
	}
	if t, err := time.Parse(time.RFC3339, v.Time.Requested); err == nil {
		listed.SentAt = t.UTC()
	}
	return []processor.Fact{{Transfer: &listed}}, true
}
