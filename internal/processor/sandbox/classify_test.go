package sandbox

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// scripted answers every request with the same bytes.
type scripted struct {
	status int
	header http.Header
	body   string
	stream io.Reader // in place of body
	err    error
}

// RoundTrip implements [http.RoundTripper].
func (s scripted) RoundTrip(*http.Request) (*http.Response, error) {
	if s.err != nil {
		return nil, s.err
	}
	header := http.Header{"Content-Type": {bankapi.JSONType}}
	for name, values := range s.header {
		header[name] = values
	}
	body := s.stream
	if body == nil {
		body = strings.NewReader(s.body)
	}
	return &http.Response{StatusCode: s.status, Header: header, Body: io.NopCloser(body)}, nil
}

// askAll makes every call once over a transport.
func askAll(t *testing.T, transport http.RoundTripper, base string) (outcomes [3]processor.Outcome, lookups [3]processor.Lookup) {
	t.Helper()
	p, err := NewProcessor(Options{URL: base, Secret: testSecret, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	yes := func() error { return nil }
	transfer := processor.TransferRequest{ExternalID: "abc", Amount: 100, KeyType: "EVP", Key: "k", Name: "n", Document: "d"}
	outcomes[0] = p.Charge(t.Context(), processor.ChargeRequest{ExternalID: "abc", Amount: 100, Method: "PIX"}, yes).Outcome
	outcomes[1] = p.Transfer(t.Context(), transfer, yes).Outcome
	outcomes[2] = p.Refund(t.Context(), processor.RefundRequest{ExternalID: "abc", Amount: 100, PaymentID: "E"}, yes).Outcome
	lookups[0] = p.QueryCharge(t.Context(), "abc").Lookup
	lookups[1] = p.QueryTransfer(t.Context(), "abc").Lookup
	lookups[2] = p.QueryRefund(t.Context(), "E", "abc").Lookup
	return outcomes, lookups
}

// endless never stops sending.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

const completeAnswer = `{"externalId":"abc","amount":100,"method":"PIX","state":"processing"}`

func problemBody(code bankapi.Code) string {
	return `{"code":"` + string(code) + `","message":"words"}`
}

// classifications are the expected outcomes of each answer.
var classifications = []struct {
	name    string
	status  int
	body    string
	outcome processor.Outcome
	lookup  processor.Lookup
}{
	{"malformed", 400, problemBody(bankapi.CodeRequestInvalid), processor.Refused, processor.LookupUnknown},
	{"charge refused", 422, problemBody(bankapi.CodeChargeRefused), processor.Refused, processor.LookupUnknown},
	{"account invalid", 422, problemBody(bankapi.CodeAccountInvalid), processor.Refused, processor.LookupUnknown},
	{"refund refused", 422, problemBody(bankapi.CodeRefundRefused), processor.Refused, processor.LookupUnknown},
	{"no such payment", 422, problemBody(bankapi.CodePaymentUnknown), processor.Refused, processor.LookupUnknown},
	{"refund too large", 422, problemBody(bankapi.CodeRefundTooMuch), processor.Refused, processor.LookupUnknown},
	{"disputed", 422, problemBody(bankapi.CodePaymentDisputed), processor.Refused, processor.LookupUnknown},
	{"other content before", 409, problemBody(bankapi.CodeContentDiffers), processor.Unknown, processor.LookupUnknown},
	{"credentials revoked", 401, problemBody(bankapi.CodeUnauthorized), processor.Unknown, processor.LookupUnknown},

	{"charge not found", 404, problemBody(bankapi.CodeChargeUnknown), processor.Unknown, processor.NotFound},
	{"transfer not found", 404, problemBody(bankapi.CodeTransferUnknown), processor.Unknown, processor.NotFound},
	{"refund not found", 404, problemBody(bankapi.CodeRefundUnknown), processor.Unknown, processor.NotFound},
	{"no such route", 404, problemBody(bankapi.CodeNotFound), processor.Unknown, processor.LookupUnknown},
	{"not found by a proxy", 404, `{"error":"not found"}`, processor.Unknown, processor.LookupUnknown},
	{"query refused", 503, problemBody(bankapi.CodeQueryRefused), processor.Unknown, processor.LookupUnknown},

	{"documented code, other status", 500, problemBody(bankapi.CodeAccountInvalid), processor.Unknown, processor.LookupUnknown},
	{"documented status, no code", 422, `{}`, processor.Unknown, processor.LookupUnknown},
	{"documented status, other code", 422, problemBody("surprise"), processor.Unknown, processor.LookupUnknown},
	{"documented status, half a body", 422, problemBody(bankapi.CodeAccountInvalid)[:20], processor.Unknown, processor.LookupUnknown},
	{"half a body", 200, completeAnswer[:40], processor.Unknown, processor.LookupUnknown},
	{"no body", 200, "", processor.Unknown, processor.LookupUnknown},
	{"double member", 200, `{"externalId":"abc",` + completeAnswer[1:], processor.Unknown, processor.LookupUnknown},
	{"about another id", 200, strings.Replace(completeAnswer, "abc", "abd", 1), processor.Unknown, processor.LookupUnknown},
	{"unknown state", 200, strings.Replace(completeAnswer, "processing", "dancing", 1), processor.Unknown, processor.LookupUnknown},
	{"created", 201, completeAnswer, processor.Unknown, processor.LookupUnknown},
	{"no content", 204, "", processor.Unknown, processor.LookupUnknown},
	{"redirect", 302, problemBody("moved"), processor.Unknown, processor.LookupUnknown},
	{"forbidden", 403, problemBody("forbidden"), processor.Unknown, processor.LookupUnknown},
	{"too large", 413, problemBody(bankapi.CodeBodyTooLarge), processor.Unknown, processor.LookupUnknown},
	{"other type", 415, problemBody(bankapi.CodeMediaUnsupported), processor.Unknown, processor.LookupUnknown},
	{"too many requests", 429, problemBody(bankapi.CodeTooManyRequests), processor.Later, processor.LookupUnknown},
	{"id in use", 409, problemBody(bankapi.CodeIDInUse), processor.Known, processor.LookupUnknown},
	{"rate limit, by a proxy", 429, problemBody("rate_limited"), processor.Unknown, processor.LookupUnknown},
	{"server error", 500, problemBody(bankapi.CodeInternal), processor.Unknown, processor.LookupUnknown},
	{"bad gateway", 502, "<html>", processor.Unknown, processor.LookupUnknown},
	{"unavailable", 503, problemBody("x"), processor.Unknown, processor.LookupUnknown},
	{"gateway timeout", 504, problemBody("x"), processor.Unknown, processor.LookupUnknown},
}

// TestClassification tries each answer. A row in the code that claims more than
// "unknown" moves money, so each must have one here.
func TestClassification(t *testing.T) {
	tested := make(map[verdict]bool)
	for _, c := range classifications {
		t.Run(c.name, func(t *testing.T) {
			outcomes, lookups := askAll(t, scripted{status: c.status, body: c.body}, "http://bank.invalid")
			for i := range 3 {
				// A charge is recognised by its content, in any state.
				if outcomes[i] != c.outcome && (i > 0 || c.name != "unknown state") {
					t.Errorf("call %d: %v, want %v", i, outcomes[i], c.outcome)
				}
				if lookups[i] != c.lookup {
					t.Errorf("question %d: %v, want %v", i, lookups[i], c.lookup)
				}
			}
		})
		for _, v := range verdicts {
			if v.status == c.status && problemBody(v.code) == c.body {
				tested[v] = true
			}
		}
	}
	for _, v := range verdicts {
		if !tested[v] && v.status != http.StatusOK {
			t.Errorf("no case tests the row %d %s", v.status, string(v.code))
		}
	}
}

// same fails unless all six calls ended alike.
func same(t *testing.T, transport http.RoundTripper, base string, outcome processor.Outcome) {
	t.Helper()
	outcomes, lookups := askAll(t, transport, base)
	if outcomes != [3]processor.Outcome{outcome, outcome, outcome} {
		t.Errorf("outcomes %v, want %v", outcomes, outcome)
	}
	if lookups != [3]processor.Lookup{} {
		t.Errorf("lookups %v, want unknown", lookups)
	}
}

func TestUnreadableAnswersAreUnknown(t *testing.T) {
	answers := map[string]scripted{
		"done, but HTML":       {status: 200, body: completeAnswer, header: http.Header{"Content-Type": {"text/html"}}},
		"done, but untyped":    {status: 200, body: completeAnswer, header: http.Header{"Content-Type": nil}},
		"done, but compressed": {status: 200, body: completeAnswer, header: http.Header{"Content-Encoding": {"gzip"}}},
		"refused, but HTML": {
			status: 422, body: problemBody(bankapi.CodeAccountInvalid), header: http.Header{"Content-Type": {"text/html"}},
		},
		"endless":              {status: 200, stream: endless{}},
		"cut off by the net":   {status: 200, stream: io.MultiReader(strings.NewReader(completeAnswer), failing{})},
		"reset":                {err: errors.New("read: connection reset by peer")},
		"ended by its context": {err: context.DeadlineExceeded},
		"cancelled":            {err: context.Canceled},
		"broken while writing": {err: &net.OpError{Op: "write", Err: errors.New("broken pipe")}},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) { same(t, answer, "http://bank.invalid", processor.Unknown) })
	}
}

// An answer to an order of another amount proves nothing about ours.
func TestAnswerOfAnotherAmountIsUnknown(t *testing.T) {
	body := strings.Replace(completeAnswer, "100", "101", 1)
	outcomes, _ := askAll(t, scripted{status: http.StatusOK, body: body}, "http://bank.invalid")
	if outcomes != [3]processor.Outcome{} {
		t.Errorf("outcomes %v, want unknown", outcomes)
	}
}

// The wait that the bank names reaches the executor.
func TestLaterNamesItsWait(t *testing.T) {
	p, err := NewProcessor(Options{URL: "http://bank.invalid", Secret: testSecret, Transport: scripted{
		status: http.StatusTooManyRequests, body: problemBody(bankapi.CodeTooManyRequests), header: http.Header{"Retry-After": {"30"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	send := func() processor.TransferAnswer {
		return p.Transfer(t.Context(), processor.TransferRequest{ExternalID: "abc", Amount: 100}, func() error { return nil })
	}
	first, second := send(), send()
	if first.Outcome != processor.Later || first.Wait != 30*time.Second || second.Outcome != processor.Later || second.Wait <= 0 || second.Wait > first.Wait {
		t.Errorf("%+v, then %+v", first, second)
	}
}

// failing is a connection that breaks.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestNothingSent: real dialers and real connection failures.
func TestNothingSent(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	_ = closed.Close()
	encrypted := httptest.NewUnstartedServer(http.NotFoundHandler())
	encrypted.Config.ErrorLog = log.New(io.Discard, "", 0)
	encrypted.StartTLS()
	defer encrypted.Close()
	trusting := x509.NewCertPool()
	trusting.AddCert(encrypted.Certificate())

	dials := func(opts env.OutboundOptions) http.RoundTripper { return env.NewOutbound(opts).Processor() }
	cases := []struct {
		name      string
		transport http.RoundTripper
		base      string
	}{
		{"connection refused", dials(env.OutboundOptions{}), "http://" + nobody},
		{"no such name", dials(env.OutboundOptions{
			Resolve: func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") },
		}), "http://bank.invalid"},
		{"certificate of an unknown authority", dials(env.OutboundOptions{}), encrypted.URL},
		{"certificate for another host", dials(env.OutboundOptions{
			RootCAs: trusting,
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			},
		}), strings.Replace(encrypted.URL, "127.0.0.1", "bank.invalid", 1)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { same(t, c.transport, c.base, processor.NotSent) })
	}
}

// TestHungUp: a server that accepts the request and closes may have acted.
func TestHungUp(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	same(t, env.NewOutbound(env.OutboundOptions{}).Processor(), server.URL, processor.Unknown)
}

// TestRedirectIsNotFollowed: the request must not go to another address.
func TestRedirectIsNotFollowed(t *testing.T) {
	var elsewhere int
	mux := http.NewServeMux()
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere++ })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	same(t, env.NewOutbound(env.OutboundOptions{}).Processor(), server.URL, processor.Unknown)
	if elsewhere != 0 {
		t.Errorf("the redirect was followed %d times", elsewhere)
	}
}

// The wait of a busy bank reaches each call with an effect, within a day.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const date = "Fri, 20 Nov 2026 12:00:00 GMT"
	for _, row := range []struct {
		name string
		set  http.Header
		want time.Duration
	}{
		{"none", http.Header{}, 0},
		{"seconds", http.Header{"Retry-After": {"90"}}, 90 * time.Second},
		{"zero", http.Header{"Retry-After": {"0"}}, 0},
		{"negative", http.Header{"Retry-After": {"-5"}}, 0},
		{"no number", http.Header{"Retry-After": {"soon"}}, 0},
		{"a fraction", http.Header{"Retry-After": {"1.5"}}, 0},
		{"weeks", http.Header{"Retry-After": {"4000000000"}}, 24 * time.Hour},
		{"more than fits", http.Header{"Retry-After": {"99999999999999999999"}}, 0},
		{"a time", http.Header{"Retry-After": {"Fri, 20 Nov 2026 12:01:00 GMT"}, "Date": {date}}, time.Minute},
		{"a time that has passed", http.Header{"Retry-After": {"Fri, 20 Nov 2026 11:00:00 GMT"}, "Date": {date}}, 0},
		{"a time in another year", http.Header{"Retry-After": {"Fri, 19 Nov 2027 12:00:00 GMT"}, "Date": {date}}, 24 * time.Hour},
		{"a time that has passed, without a date", http.Header{"Retry-After": {"Fri, 20 Nov 2020 12:01:00 GMT"}}, 0},
	} {
		busy := scripted{status: http.StatusTooManyRequests, header: row.set, body: problemBody(bankapi.CodeTooManyRequests)}
		bank := func() *Processor { // a new one each: a busy account makes no second call
			p, err := NewProcessor(Options{URL: "http://bank.example", Secret: testSecret, Transport: busy})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		yes := func() error { return nil }
		charge := bank().Charge(t.Context(), processor.ChargeRequest{ExternalID: "abc", Amount: 100, Method: "PIX"}, yes)
		cancel := bank().CancelCharge(t.Context(), processor.CancelRequest{ExternalID: "abc"}, yes)
		transfer := bank().Transfer(t.Context(), processor.TransferRequest{ExternalID: "abc", Amount: 100}, yes)
		refund := bank().Refund(t.Context(), processor.RefundRequest{ExternalID: "abc", Amount: 100, PaymentID: "E"}, yes)
		for call, got := range map[string]struct {
			outcome processor.Outcome
			wait    time.Duration
		}{
			"charge": {charge.Outcome, charge.Wait}, "cancel": {cancel.Outcome, cancel.Wait},
			"transfer": {transfer.Outcome, transfer.Wait}, "refund": {refund.Outcome, refund.Wait},
		} {
			if got.outcome != processor.Later || got.wait != row.want {
				t.Errorf("%s: %s is %s with a wait of %s, want %s", row.name, call, got.outcome, got.wait, row.want)
			}
		}
	}
}
