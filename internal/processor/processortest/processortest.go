// Package processortest is the conformance suite that each processor passes.
//
// A processor's test calls [Run] with a function that builds the processor, a far
// side that records its actions and can be made to misbehave, and ways to read
// those records. The suite tests the gateway's assumptions: that the processor
// answers "done", "refused" or "not sent" only with proof, that one id moves
// money once, and that it accepts only notices of the test server.
package processortest

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// Operation is a call that can be made to misbehave.
type Operation string

// The operations.
const (
	Charge   Operation = "charge"
	Transfer Operation = "transfer"
	Refund   Operation = "refund"
	Defense  Operation = "defense"
	Query    Operation = "query"
)

// Fault is a way in which the test server can misbehave.
type Fault string

// The faults. "After" and "before" refer to the effect of the call.
const (
	Refuse            Fault = "refuse"              // a definitive no
	NotSent           Fault = "not_sent"            // connection refused
	TimeoutBefore     Fault = "timeout_before"      // no effect, no answer
	TimeoutAfter      Fault = "timeout_after"       // effect, no answer
	ServerErrorBefore Fault = "server_error_before" // no effect, 5xx
	ServerErrorAfter  Fault = "server_error_after"  // effect, 5xx
	Late              Fault = "late"                // effect, answer within the timeout
	Garbage           Fault = "rubbish"             // effect, half a body
)

// Entry is a transfer or refund that the test server made.
type Entry struct {
	ExternalID string
	Amount     money.Cents
}

// Notice is a notice that the test server sent.
type Notice struct {
	Header http.Header
	Body   []byte
}

// Harness is a processor and its test server, built for one test. Functions that the
// test server does not support are nil; the cases that need them are left out.
type Harness struct {
	Processor processor.Processor
	// Clock bounds each call by the timeouts of the processor's profile, and is the
	// time at which notices are verified.
	Clock env.Clock
	// Open opens the processor with another test server. Greet answers what comes before a call there,
	// such as a request for a token; its status is 0 for all others. Secrets must be in no error.
	Open    func(t *testing.T, farSide http.RoundTripper) processor.Processor
	Greet   func(r *http.Request) (status int, body string)
	Secrets []string
	// NewID returns an external id that was not used before.
	NewID func() string
	// Faults are those that Misbehave supports.
	Faults []Fault
	// Misbehave makes the next call of the operation fail.
	Misbehave func(t *testing.T, operation Operation, fault Fault)
	// Transfers and Refunds read what the test server made under an id.
	Transfers func(t *testing.T, externalID string) []Entry
	Refunds   func(t *testing.T, externalID string) []Entry
	// PaidOnce: a charge is paid once, in full. ByDay: the test server's lists know days only, so
	// they have no order within one.
	PaidOnce, ByDay bool
	// Pay pays a charge.
	Pay func(t *testing.T, r processor.ChargeRequest, amount money.Cents)
	// Dispute disputes the payment of a charge. DisputeID is an id that a dispute may have there; ""
	// stands for any. NoFiles: answers to disputes are texts.
	DisputeID string
	NoFiles   bool
	Dispute   func(t *testing.T, r processor.ChargeRequest)
	// Elapse advances the test server's time by a few seconds.
	Elapse func(t *testing.T)
	// Notices returns the notices that the test server has sent so far.
	Notices func(t *testing.T) []Notice
	// OnQuestion sets how the test server's questions about transfers are answered; a status
	// of 0 is no answer. Until it is called each is approved. It is nil if the test server does
	// not ask.
	OnQuestion func(answer func(q Notice) (status int, contentType string, body []byte))
	// Forge signs a body as the test server does, for a time and with the test server's
	// secret unless wrongSecret is set.
	Forge func(t *testing.T, body []byte, at time.Time, wrongSecret bool) Notice
	// SignatureHeaders are the headers that every notice and every question needs.
	SignatureHeaders []string
	// Tolerance is how old, or ahead, a notice or a question may be.
	Tolerance time.Duration
}

// Run runs the suite on the processor that newHarness makes. Each case gets its
// own harness.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	probe := newHarness(t)
	cases := []struct {
		name    string
		applies bool
		run     func(t *testing.T, h Harness)
	}{
		{"Profile", true, testProfile},
		{"Charge", has[processor.Charger](probe), testCharge},
		{"ChargeFaults", has[processor.Charger](probe) && probe.Misbehave != nil, testChargeFaults},
		{"ChargeGuard", has[processor.Charger](probe), testChargeGuard},
		{"ChargeCancel", has[processor.ChargeCanceler](probe), testChargeCancel},
		{"OfflineCharge", has[processor.OfflineCharger](probe) && has[processor.Charger](probe), testOfflineCharge},
		{"ChargePaid", has[processor.Charger](probe) && probe.Pay != nil, testChargePaid},
		{"Payments", hasFeed(probe, processor.FeedPayments) && probe.Pay != nil, testPayments},
		{"Transfer", has[processor.Transferrer](probe), testTransfer},
		{"TransferGuard", has[processor.Transferrer](probe) && probe.Transfers != nil, testTransferGuard},
		{"TransferConflict", has[processor.Transferrer](probe) && probe.Transfers != nil && probe.Processor.Profile().Transfer.Repeat.Safe(), testTransferConflict},
		{"Consent", asks(probe), testConsent},
		{"ConsentRefused", asks(probe), testConsentRefused},
		{"QuestionForged", asks(probe) && probe.Forge != nil, testQuestionForged},
		{"TransfersFeed", hasFeed(probe, processor.FeedTransfers) && has[processor.Transferrer](probe), testTransfersFeed},
		{"TransferFaults", has[processor.Transferrer](probe) && probe.Misbehave != nil, testTransferFaults},
		{"QueryFaults", has[processor.Transferrer](probe) && probe.Misbehave != nil, testQueryFaults},
		{"Refund", has[processor.Refunder](probe) && probe.Pay != nil, testRefund},
		{"RefundFaults", has[processor.Refunder](probe) && probe.Pay != nil && probe.Misbehave != nil, testRefundFaults},
		{"Defense", disputes(probe), testDefense},
		{"DefenseFiles", disputes(probe) && probe.NoFiles, testFiles},
		{"DefenseFaults", disputes(probe) && probe.Misbehave != nil, testDefenseFaults},
		{"ForeignAnswers", probe.Open != nil, testForeignAnswers},
		{"NoticeGenuine", has[processor.Notifier](probe) && probe.Notices != nil && probe.Pay != nil, testNoticeGenuine},
		{"NoticeForged", has[processor.Notifier](probe) && probe.Notices != nil && probe.Forge != nil, testNoticeForged},
	}
	for _, c := range cases {
		if c.applies {
			t.Run(c.name, func(t *testing.T) { c.run(t, newHarness(t)) })
		}
	}
}

func has[T any](h Harness) bool {
	_, ok := h.Processor.(T)
	return ok
}

// asks reports whether the test server asks for consent to transfers.
func asks(h Harness) bool {
	return has[processor.Authorizer](h) && has[processor.Transferrer](h) && h.OnQuestion != nil
}

// disputes reports whether the processor takes answers to disputes.
func disputes(h Harness) bool {
	return has[processor.Defender](h) && has[processor.Charger](h) && h.Pay != nil && h.Dispute != nil
}

func hasFeed(h Harness, feed processor.Feed) bool {
	feeder, ok := h.Processor.(processor.Feeder)
	if ok {
		_, ok = feeder.Feeds()[feed]
	}
	return ok
}

func (h Harness) can(fault Fault) bool {
	return slices.Contains(h.Faults, fault)
}

func testProfile(t *testing.T, h Harness) {
	profile := h.Processor.Profile()
	if profile.Name == "" || len(profile.Methods) == 0 && has[processor.Charger](h) {
		t.Errorf("profile has no name, or charges by no method: %+v", profile)
	}
	if profile.Transfer.QuietPeriod <= 0 || profile.Charge.Timeout <= 0 || profile.Transfer.Timeout <= 0 {
		t.Errorf("profile leaves a time unbounded: %+v", profile)
	}
}

// bounded runs one call under a context that ends after d.
func bounded[T any](t *testing.T, h Harness, d time.Duration, call func(ctx context.Context) T) T {
	t.Helper()
	ctx, cancel := h.Clock.WithTimeout(t.Context(), d)
	defer cancel()
	return call(ctx)
}

func (h Harness) charge(t *testing.T, r processor.ChargeRequest) processor.ChargeAnswer {
	t.Helper()
	return h.chargeGuarded(t, r, willing)
}

func (h Harness) chargeGuarded(t *testing.T, r processor.ChargeRequest, guard func() error) processor.ChargeAnswer {
	t.Helper()
	return bounded(t, h, h.Processor.Profile().Charge.Timeout, func(ctx context.Context) processor.ChargeAnswer {
		return h.Processor.(processor.Charger).Charge(ctx, r, guard)
	})
}

func (h Harness) cancelCharge(t *testing.T, r processor.CancelRequest, guard func() error) processor.CancelAnswer {
	t.Helper()
	return bounded(t, h, h.Processor.Profile().Charge.Timeout, func(ctx context.Context) processor.CancelAnswer {
		return h.Processor.(processor.ChargeCanceler).CancelCharge(ctx, r, guard)
	})
}

func (h Harness) queryCharge(t *testing.T, id string) processor.ChargeReport {
	t.Helper()
	return bounded(t, h, h.Processor.Profile().Charge.Timeout, func(ctx context.Context) processor.ChargeReport {
		return h.Processor.(processor.Charger).QueryCharge(ctx, id)
	})
}

func (h Harness) transfer(t *testing.T, r processor.TransferRequest, guard func() error) processor.TransferAnswer {
	t.Helper()
	return bounded(t, h, h.Processor.Profile().Transfer.Timeout, func(ctx context.Context) processor.TransferAnswer {
		return h.Processor.(processor.Transferrer).Transfer(ctx, r, guard)
	})
}

func (h Harness) queryTransfer(t *testing.T, id string) processor.TransferReport {
	t.Helper()
	return bounded(t, h, h.Processor.Profile().Transfer.Timeout, func(ctx context.Context) processor.TransferReport {
		return h.Processor.(processor.Transferrer).QueryTransfer(ctx, id)
	})
}

func (h Harness) refund(t *testing.T, r processor.RefundRequest, guard func() error) processor.TransferAnswer {
	t.Helper()
	return bounded(t, h, h.Processor.Profile().Transfer.Timeout, func(ctx context.Context) processor.TransferAnswer {
		return h.Processor.(processor.Refunder).Refund(ctx, r, guard)
	})
}

func (h Harness) queryRefund(t *testing.T, paymentID, id string) processor.TransferReport {
	t.Helper()
	return bounded(t, h, h.Processor.Profile().Transfer.Timeout, func(ctx context.Context) processor.TransferReport {
		return h.Processor.(processor.Refunder).QueryRefund(ctx, paymentID, id)
	})
}

// chargeRequest is a new charge of R$ 123.45.
func (h Harness) chargeRequest(method payment.Method) processor.ChargeRequest {
	now := h.Clock.Now()
	r := processor.ChargeRequest{
		ExternalID: h.NewID(), Method: method, Amount: 12_345, ExpiresAt: now.Add(24 * time.Hour),
		MerchantName: "Padaria São João", MerchantCity: "São Paulo", Description: "order",
		Personal: payment.PersonalData{Customer: []byte(`{"name":"Maria da Silva","document":"52998224725"}`)},
	}
	if method == payment.Boleto {
		r.DueDate = now.Add(72 * time.Hour).Format(time.DateOnly)
		r.ExpiresAt = now.Add(33 * 24 * time.Hour)
	}
	return r
}

// transferRequest is a new Pix of R$ 67.89.
func (h Harness) transferRequest() processor.TransferRequest {
	return processor.TransferRequest{
		ExternalID: h.NewID(), Amount: 6_789, KeyType: "EMAIL", Key: "maria@example.com",
		Name: "Maria da Silva", Document: "52998224725", Description: "withdrawal",
	}
}

// again is the outcome of a request that is sent again under its id, after it had its effect.
func again(e processor.Effect) processor.Outcome {
	if e.Repeat == processor.RepeatRejected {
		return processor.Known
	}
	return processor.Done
}

// willing is a guard that lets the call pass.
func willing() error { return nil }
