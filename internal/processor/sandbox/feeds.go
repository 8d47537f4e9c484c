package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// transfersEvery is the wait between reads of the list of transfers: notices report most
// of it sooner.
const transfersEvery = time.Minute

// fromTime begins a cursor that is a time, not a position of the bank's list.
const fromTime = "from "

// Feeds implements [processor.Feeder].
func (p *Processor) Feeds() map[processor.Feed]processor.FeedSpec {
	return map[processor.Feed]processor.FeedSpec{
		processor.FeedPayments: {},
		processor.FeedChanges:  {},
		processor.FeedRefunds:  {},
		processor.FeedTransfers: {Every: transfersEvery, From: func(t time.Time) string {
			return fromTime + t.UTC().Format(time.RFC3339Nano)
		}},
	}
}

// Read implements [processor.Feeder]. The bank appends to its lists, so pages need no
// overlap.
func (p *Processor) Read(ctx context.Context, feed processor.Feed, cursor string) (processor.Page, error) {
	query := url.Values{"cursor": {cursor}}
	switch feed {
	case processor.FeedPayments:
		return readPage(ctx, p, "/payments", query, func(page *bankapi.PaymentPage) ([]bankapi.Payment, bankapi.Listing) {
			return page.Data, page.Listing
		}, paymentFact)
	case processor.FeedChanges:
		return readPage(ctx, p, "/changes", query, func(page *bankapi.ChangePage) ([]bankapi.Change, bankapi.Listing) {
			return page.Data, page.Listing
		}, changeFact)
	case processor.FeedRefunds:
		return readPage(ctx, p, "/refunds", query, func(page *bankapi.RefundPage) ([]bankapi.RefundEntry, bankapi.Listing) {
			return page.Data, page.Listing
		}, refundFact)
	case processor.FeedTransfers:
		if since, ok := strings.CutPrefix(cursor, fromTime); ok {
			query = url.Values{"from": {since}}
		}
		return readPage(ctx, p, "/transfers", query, func(page *bankapi.TransferPage) ([]bankapi.TransferEntry, bankapi.Listing) {
			return page.Data, page.Listing
		}, transferFact)
	default:
		return processor.Page{}, fmt.Errorf("sandbox: no feed %q", feed)
	}
}

func readPage[Body, Entry any](ctx context.Context, p *Processor, path string, query url.Values,
	open func(*Body) ([]Entry, bankapi.Listing), fact func(*Entry) (processor.Fact, bool),
) (processor.Page, error) {
	result := p.client.do(ctx, http.MethodGet, path+"?"+query.Encode(), nil, nil)
	body := parse[Body](&result)
	if result.lookup() != processor.Found {
		return processor.Page{}, result.cause()
	}
	entries, listing := open(&body)
	if entries == nil || !isTokenOrNone(listing.NextCursor) {
		return processor.Page{}, errAnswerForm
	}
	page := processor.Page{Next: listing.NextCursor, More: listing.More, Through: listing.Through}
	for i := range entries {
		f, ok := fact(&entries[i])
		if !ok {
			f = unreadable(&entries[i])
		}
		page.Facts = append(page.Facts, f)
	}
	return page, nil
}

// unreadable is an invalid entry, which its contents identify.
func unreadable[Entry any](entry *Entry) processor.Fact {
	text, err := json.Marshal(entry)
	if err != nil { // it was JSON
		panic(err)
	}
	var of struct {
		ExternalID string `json:"externalId"`
	}
	if json.Unmarshal(text, &of) != nil || !bankapi.IsExternalID(of.ExternalID) {
		of.ExternalID = ""
	}
	sum := sha256.Sum256(text)
	return processor.Fact{Unreadable: &processor.Unreadable{ID: hex.EncodeToString(sum[:]), ExternalID: of.ExternalID, Cause: processor.InvalidValues}}
}

func paymentFact(v *bankapi.Payment) (processor.Fact, bool) {
	if !validPayment(v) {
		return processor.Fact{}, false
	}
	paid := paymentOf(v)
	return processor.Fact{Payment: &paid}, true
}

func changeFact(c *bankapi.Change) (processor.Fact, bool) {
	if !bankapi.IsExternalID(c.ExternalID) || c.Returned < 0 || c.Returned > money.Max {
		return processor.Fact{}, false
	}
	change := processor.Change{Subject: processor.Subject(c.Subject), ExternalID: c.ExternalID, Returned: c.Returned}
	if c.Dispute != nil {
		dispute := disputeOf(*c.Dispute)
		change.Dispute = &dispute
	}
	return processor.Fact{Change: &change}, true
}

func transferFact(v *bankapi.TransferEntry) (processor.Fact, bool) {
	t := processor.ListedTransfer{ExternalID: v.ExternalID, ProcessorID: v.ID, EndToEndID: v.EndToEndID, Amount: v.Amount, Returned: v.Returned, SentAt: v.CreatedAt, PIXKey: v.PIXKey}
	switch v.Status {
	case "processing":
		t.State = processor.TransferProcessing
	case "paid", "returned":
		t.State = processor.TransferPaid
	case "failed":
		t.State = processor.TransferFailed
	default:
		return processor.Fact{}, false
	}
	ok := bankapi.IsExternalID(t.ExternalID) && isTokenOrNone(t.ProcessorID) && isTokenOrNone(t.EndToEndID) && t.Amount > 0 && t.Amount <= money.Max && t.Returned >= 0 && t.Returned <= t.Amount
	return processor.Fact{Transfer: &t}, ok
}

func refundFact(v *bankapi.RefundEntry) (processor.Fact, bool) {
	r := processor.ListedRefund{
		ExternalID: v.ExternalID, PaymentID: v.PaymentID, EndToEndID: v.EndToEndID, State: processor.TransferState(v.State),
		Amount: v.Amount, Failure: validFailure(v.Failure),
	}
	ok := bankapi.IsExternalID(r.ExternalID) && isToken(r.PaymentID) && isTokenOrNone(r.EndToEndID) && isAmount(r.Amount) &&
		(v.State == bankapi.OrderPaid || v.State == bankapi.OrderFailed)
	return processor.Fact{Refund: &r}, ok
}

// Balance implements [processor.BalanceReader].
func (p *Processor) Balance(ctx context.Context) (processor.Balance, error) {
	result := p.client.do(ctx, http.MethodGet, "/balance", nil, nil)
	body := parse[struct {
		Amount *money.Cents `json:"amount"`
	}](&result)
	if result.lookup() != processor.Found {
		return processor.Balance{}, result.cause()
	}
	if body.Amount == nil {
		return processor.Balance{}, errAnswerForm
	}
	return processor.Balance{Amount: *body.Amount}, nil
}
