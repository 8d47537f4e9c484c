package coretest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
)

// BankName is the name of the bank as a processor.
const BankName = "bank"

// ErrDown is the cause of the answers of a bank that is down.
var ErrDown = errors.New("bank: connection refused")

// Bank is a processor with records of its own, which the gateway under test cannot
// change. Tests set its fields to make it misbehave.
type Bank struct {
	Profiled processor.Profile

	Mu        sync.Mutex
	Transfers map[string]*Transfer
	Charges   map[string]*processor.ChargeReport
	Incoming  []processor.Payment         // all payments, oldest first
	Changed   []processor.Change          // all later changes, oldest first
	Calls     []processor.TransferRequest // every request that arrived
	Sent      []Sent                      // all transfers, oldest first
	Refunds   Refunds
	Costs     []processor.ListedCost // if it is not nil, the bank lists what it charged
	Queries   int
	Down      bool                    // queries and feeds fail
	FeedsDown map[processor.Feed]bool // these feeds fail

	Now           func() time.Time                 // of the bank's clock
	Unreadable    map[string]*processor.Unreadable // invalid entries of lists: transfers by external id, payments by id
	Unlisted      bool                             // the bank does not list its transfers
	OnRead        func()                           // called in each read of a feed; may be nil
	OnQueryCharge func()                           // called in each query of a charge; may be nil
	OnSend        func()                           // called before the guard of a transfer; may be nil
	// AnswerCharge, AnswerTransfer, AnswerQuery and AnswerCancel, if set, replace the bank's own answers.
	AnswerCharge   func(b *Bank, r processor.ChargeRequest) processor.ChargeAnswer
	AnswerTransfer func(b *Bank, r processor.TransferRequest) processor.TransferAnswer
	AnswerQuery    func(b *Bank, externalID string) processor.TransferReport
	AnswerCancel   func(b *Bank, r processor.CancelRequest) processor.CancelAnswer
	Cancels        int // requests to cancel a charge

	Refusing bool // of the credentials, in every call
	Checks   int  // tries of the credentials
	refused  bool // the last call
}

// refuses reports whether a call is refused because of the credentials.
func (b *Bank) refuses() bool {
	b.refused = b.Refusing
	return b.refused
}

// Refused implements [processor.Authenticator].
func (b *Bank) Refused() bool {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.refused
}

// Authenticate implements [processor.Authenticator].
func (b *Bank) Authenticate(context.Context) error {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.Checks++
	if b.refuses() {
		return processor.ErrCredentials
	}
	return nil
}

// Sent is the time and the id of a transfer.
type Sent struct {
	At         time.Time
	ExternalID string
}

// Transfer is a transfer in the bank's records. Returned is in cents.
type Transfer struct {
	Request  processor.TransferRequest
	State    processor.TransferState
	Returned money.Cents
}

// NewBank returns a bank that pays every transfer immediately.
func NewBank() *Bank {
	return &Bank{
		Now:     func() time.Time { return Start },
		Refunds: Refunds{Made: map[string]*BankRefund{}}, Transfers: map[string]*Transfer{}, Charges: map[string]*processor.ChargeReport{},
		Profiled: processor.Profile{
			Name: BankName, Methods: payment.Methods, CancelsCharges: payment.Methods, CodeKey: processortest.Key,
			Transfer: processor.Effect{Repeat: processor.RepeatReturnsFirst, QuietPeriod: time.Minute, Timeout: 5 * time.Second},
			Charge:   processor.Effect{Repeat: processor.RepeatReturnsFirst, QuietPeriod: time.Minute, Timeout: 4 * time.Second},
			Refund:   processor.Effect{Repeat: processor.RepeatReturnsFirst, QuietPeriod: time.Minute, Timeout: 5 * time.Second},

			RefundWindows: map[payment.Method]time.Duration{payment.PIX: 90 * 24 * time.Hour},
		},
	}
}

// Profile implements [processor.Processor].
func (b *Bank) Profile() processor.Profile { return b.Profiled }

// Pay records a transfer, once per id, and reports it. The caller holds Mu.
func (b *Bank) Pay(r processor.TransferRequest, state processor.TransferState) processor.TransferReport {
	if _, ok := b.Transfers[r.ExternalID]; !ok {
		b.Transfers[r.ExternalID] = &Transfer{Request: r, State: state}
		b.Sent = append(b.Sent, Sent{b.Now(), r.ExternalID})
	}
	return b.Report(r.ExternalID)
}

// Report is the bank's record of a transfer. The caller holds Mu.
func (b *Bank) Report(externalID string) processor.TransferReport {
	t, ok := b.Transfers[externalID]
	if !ok {
		return processor.TransferReport{Lookup: processor.NotFound}
	}
	return processor.TransferReport{
		Lookup: processor.Found, State: t.State, EndToEndID: "E" + externalID[:31], Amount: t.Request.Amount,
		Returned: t.Returned, Evidence: "bank's records",
	}
}

// Transfer implements [processor.Transferrer].
func (b *Bank) Transfer(ctx context.Context, r processor.TransferRequest, guard func() error) processor.TransferAnswer {
	if err := ctx.Err(); err != nil {
		return processor.TransferAnswer{Outcome: processor.NotSent, Cause: err}
	}
	if b.OnSend != nil {
		b.OnSend()
	}
	if err := guard(); err != nil {
		return processor.TransferAnswer{Outcome: processor.NotSent, Cause: err}
	}
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.Calls = append(b.Calls, r)
	if b.refuses() {
		return processor.TransferAnswer{Cause: processor.ErrCredentials}
	}
	if b.AnswerTransfer != nil {
		return b.AnswerTransfer(b, r)
	}
	return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferPaid)}
}

// Unknown is an AnswerTransfer that times out, without a transfer.
func Unknown(*Bank, processor.TransferRequest) processor.TransferAnswer {
	return processor.TransferAnswer{Cause: errors.New("timeout")}
}

// QueryTransfer implements [processor.Transferrer].
func (b *Bank) QueryTransfer(_ context.Context, externalID string) processor.TransferReport {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.Queries++
	if b.refuses() {
		return processor.TransferReport{Cause: processor.ErrCredentials}
	}
	if b.Down {
		return processor.TransferReport{Cause: ErrDown}
	}
	if b.AnswerQuery != nil {
		return b.AnswerQuery(b, externalID)
	}
	return b.Report(externalID)
}

// Charge implements [processor.Charger]: one charge per id.
func (b *Bank) Charge(_ context.Context, r processor.ChargeRequest, guard func() error) processor.ChargeAnswer {
	if err := guard(); err != nil {
		return processor.ChargeAnswer{Outcome: processor.NotSent, Cause: err}
	}
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if b.refuses() {
		return processor.ChargeAnswer{Cause: processor.ErrCredentials}
	}
	if b.AnswerCharge != nil {
		return b.AnswerCharge(b, r)
	}
	if b.Charges[r.ExternalID] == nil {
		b.Charges[r.ExternalID] = &processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeOpen}
	}
	return processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{PIX: processortest.PIX(r)}}
}

// CancelCharge implements [processor.ChargeCanceler].
func (b *Bank) CancelCharge(_ context.Context, r processor.CancelRequest, guard func() error) processor.CancelAnswer {
	if err := guard(); err != nil {
		return processor.CancelAnswer{Outcome: processor.NotSent, Cause: err}
	}
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.Cancels++
	charge := b.Charges[r.ExternalID]
	switch {
	case b.AnswerCancel != nil:
		return b.AnswerCancel(b, r)
	case charge == nil:
		return processor.CancelAnswer{NotFound: true}
	case len(charge.Payments) > 0:
		return processor.CancelAnswer{Outcome: processor.Refused}
	default:
		charge.State = processor.ChargeCanceled
		return processor.CancelAnswer{Outcome: processor.Done}
	}
}

// QueryCharge implements [processor.Charger].
func (b *Bank) QueryCharge(_ context.Context, externalID string) processor.ChargeReport {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.Queries++
	if b.OnQueryCharge != nil {
		b.OnQueryCharge()
	}
	charge := b.Charges[externalID]
	switch {
	case b.refuses():
		return processor.ChargeReport{Cause: processor.ErrCredentials}
	case b.Down:
		return processor.ChargeReport{Cause: ErrDown}
	case charge == nil:
		return processor.ChargeReport{Lookup: processor.NotFound}
	}
	report := *charge
	report.Payments = slices.Clone(charge.Payments)
	return report
}

// Receive records a payment of a charge, or of an id without a charge.
func (b *Bank) Receive(externalID, id string, amount money.Cents) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if b.Charges[externalID] == nil {
		b.Charges[externalID] = &processor.ChargeReport{Lookup: processor.Found}
	}
	p := processor.Payment{ID: id, ExternalID: externalID, EndToEndID: "E" + id, Amount: amount, PaidAt: Start}
	b.Charges[externalID].Payments = append(b.Charges[externalID].Payments, p)
	b.Incoming = append(b.Incoming, p)
}

// Return records money that the receiver's bank returned, total in cents.
func (b *Bank) Return(externalID string, total money.Cents) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.Transfers[externalID].Returned = total
	b.Changed = append(b.Changed, processor.Change{Subject: processor.SubjectTransfer, ExternalID: externalID, Returned: total})
}

// Dispute records the state of a dispute of a charge, which names no payment.
func (b *Bank) Dispute(externalID, id string, amount money.Cents, state processor.DisputeState) {
	b.Disputes(externalID, processor.Dispute{ID: id, Amount: amount, State: state})
}

// Disputes records a dispute of a charge as it is now.
func (b *Bank) Disputes(externalID string, d processor.Dispute) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	id := d.ID
	charge := b.Charges[externalID]
	charge.Disputes = slices.DeleteFunc(charge.Disputes, func(old processor.Dispute) bool { return old.ID == id })
	charge.Disputes = append(charge.Disputes, d)
	b.Changed = append(b.Changed, processor.Change{Subject: processor.SubjectCharge, ExternalID: externalID, Dispute: &d})
}

// Feeds implements [processor.Feeder].
func (b *Bank) Feeds() map[processor.Feed]processor.FeedSpec {
	feeds := map[processor.Feed]processor.FeedSpec{processor.FeedPayments: {}, processor.FeedChanges: {}}
	if !b.Refunds.Unlisted {
		feeds[processor.FeedRefunds] = processor.FeedSpec{}
	}
	if b.Costs != nil {
		feeds[processor.FeedCosts] = processor.FeedSpec{}
	}
	if !b.Unlisted {
		feeds[processor.FeedTransfers] = processor.FeedSpec{From: b.cursorFrom}
	}
	return feeds
}

// cursorFrom is the number of transfers before a time.
func (b *Bank) cursorFrom(t time.Time) string {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	n := 0
	for n < len(b.Sent) && b.Sent[n].At.Before(t) {
		n++
	}
	return strconv.Itoa(n)
}

// Read lists what a feed has, two entries at a time; the cursor counts them.
func (b *Bank) Read(_ context.Context, feed processor.Feed, cursor string) (processor.Page, error) {
	if b.OnRead != nil {
		b.OnRead()
	}
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if b.refuses() {
		return processor.Page{}, processor.ErrCredentials
	}
	if b.Down || b.FeedsDown[feed] {
		return processor.Page{}, ErrDown
	}
	list := b.listed(feed)
	from, _ := strconv.Atoi(cursor)
	to := min(from+2, len(list))
	page := processor.Page{Facts: list[from:to], Next: strconv.Itoa(to), More: to < len(list)}
	if !page.More {
		page.Through = b.Now()
	}
	return page, nil
}

// listed is all entries of a feed, oldest first. The caller holds Mu.
func (b *Bank) listed(feed processor.Feed) (list []processor.Fact) {
	switch feed {
	case processor.FeedPayments:
		for i := range b.Incoming {
			if e := b.Unreadable[b.Incoming[i].ID]; e != nil {
				list = append(list, processor.Fact{Unreadable: e})
				continue
			}
			list = append(list, processor.Fact{Payment: &b.Incoming[i]})
		}
	case processor.FeedTransfers:
		for _, v := range b.Sent {
			if e := b.Unreadable[v.ExternalID]; e != nil {
				list = append(list, processor.Fact{Unreadable: e})
				continue
			}
			t := b.Transfers[v.ExternalID]
			list = append(list, processor.Fact{Transfer: &processor.ListedTransfer{
				ExternalID: v.ExternalID, EndToEndID: "E" + v.ExternalID[:31], State: t.State, Amount: t.Request.Amount, Returned: t.Returned,
			}})
		}
	case processor.FeedCosts:
		for i := range b.Costs {
			list = append(list, processor.Fact{Cost: &b.Costs[i]})
		}
	case processor.FeedRefunds:
		for i := range b.Refunds.Listed {
			list = append(list, processor.Fact{Refund: &b.Refunds.Listed[i]})
		}
	default:
		for i := range b.Changed {
			list = append(list, processor.Fact{Change: &b.Changed[i]})
		}
	}
	return list
}

// VerifyNotice accepts every notice.
func (b *Bank) VerifyNotice(http.Header, []byte, time.Time) (string, error) { return "notice", nil }

// ParseNotice reads a notice whose body names one subject per line: a transfer by its
// id, by "paid" and its id if it reports the payment, or by "failed", its id and the reason; a charge by "charge" and its id,
// with the id of a payment after a slash if it reports one; a refund by "refund" and its
// id.
func (b *Bank) ParseNotice(body []byte) (hints []processor.Hint, err error) {
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSuffix(line, "\n")
		kind, id, _ := strings.Cut(line, " ")
		switch {
		case kind == "charge":
			h := processor.Hint{Subject: processor.SubjectCharge}
			var paid string
			if h.ExternalID, paid, _ = strings.Cut(id, "/"); paid != "" {
				h.Payment = &processor.Payment{ID: paid, ExternalID: h.ExternalID}
			}
			hints = append(hints, h)
		case kind == "paid":
			hints = append(hints, processor.Hint{Subject: processor.SubjectTransfer, ExternalID: id, Transfer: processor.TransferPaid})
		case kind == "failed":
			h := processor.Hint{Subject: processor.SubjectTransfer, Transfer: processor.TransferFailed}
			h.ExternalID, h.Reason, _ = strings.Cut(id, " ")
			hints = append(hints, h)
		case kind == "refund":
			h := processor.Hint{Subject: processor.SubjectRefund}
			h.ExternalID, h.PaymentID, _ = strings.Cut(id, " of ")
			hints = append(hints, h)
		case len(line) == payment.ExternalIDLength:
			hints = append(hints, processor.Hint{Subject: processor.SubjectTransfer, ExternalID: line})
		case line == "panic":
			panic("a bug of the processor's package")
		default:
			return nil, errors.New("bank: unreadable notice")
		}
	}
	return hints, nil
}
