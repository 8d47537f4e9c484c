package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// Each request below has every error of the ones after it too, and is answered
// with the first: path, method, credentials, address, scope, media type, size,
// form, reference, values.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.want("first order", h.do("POST", "/payin", payinBody), 201, "")
	h.credential("elsewhere", "s", h.first.ID, func(c *store.Credential) { c.AllowedIPs, c.Scopes = prefixes("10.0.0.0/8"), nil })
	h.credential("reader", "s", h.first.ID, func(c *store.Credential) { c.Scopes = []string{store.ScopeRead} })
	huge := strings.Repeat(" ", 64<<10) + "{"
	values := strings.Replace(payinBody, "12345", "0", 1)
	plain := header("Content-Type", "text/plain")
	for _, tt := range []struct {
		name, method, path, body string
		changes                  []sending
		status                   int
		code                     string
	}{
		{"path", "PUT", "/payins", huge, []sending{as("x", "y"), plain}, 404, "not_found"},
		{"method", "PUT", "/payin", huge, []sending{as("x", "y"), plain}, 405, "method_not_allowed"},
		{"credentials", "POST", "/payin", huge, []sending{as("elsewhere", "y"), plain}, 401, "unauthorized"},
		{"address", "POST", "/payin", huge, []sending{as("elsewhere", "s"), plain}, 403, "forbidden_ip"},
		{"scope", "POST", "/payin", huge, []sending{as("reader", "s"), plain}, 403, "forbidden_scope"},
		{"media type", "POST", "/payin", huge, []sending{plain}, 415, "unsupported_media_type"},
		{"size", "POST", "/payin", huge, nil, 413, "body_too_large"},
		{"form", "POST", "/payin", values + "x", nil, 400, "malformed_json"},
		{"unknown field", "POST", "/payin", strings.Replace(values, "{", `{"x":1,`, 1), nil, 400, "unknown_field"},
		{"reference", "POST", "/payin", values, nil, 409, "reference_conflict"},
		{"values", "POST", "/payin", strings.Replace(values, "r1", "r2", 1), nil, 422, "validation_failed"},
		{"nothing", "POST", "/payin", strings.Replace(payinBody, "r1", "r2", 1), nil, 201, ""},
	} {
		h.want(tt.name, h.do(tt.method, tt.path, tt.body, tt.changes...), tt.status, tt.code)
	}
	if len(h.gateway.payinRows) != 2 {
		t.Errorf("%d orders were created", len(h.gateway.payinRows))
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, tt := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"DELETE", "/payin", 405, "GET, HEAD, POST"},
		{"OPTIONS", "/payout", 405, "GET, HEAD, POST"},
		{"TRACE", "/balance", 405, "GET, HEAD"},
		{"get", "/balance", 405, "GET, HEAD"},
		{"GET", "/payin/019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a/cancel", 405, "POST"},
		{"HEAD", "/balance", 200, ""},
		{"HEAD", "/healthz", 200, ""},
		{"GET", "/", 404, ""}, {"GET", "/payin/", 404, ""}, {"GET", "//payin", 404, ""}, {"GET", "/payout/../payin", 404, ""},
		{"GET", "/payin/a/b/c", 404, ""}, {"GET", "/Payin", 404, ""}, {"OPTIONS", "*", 404, ""},
		{"POST", "/sandbox/clock", 404, ""}, {"POST", "/inbound/sandbox/token", 404, ""}, // not mounted here
	} {
		a := h.do(tt.method, tt.path, "")
		if a.status != tt.status || a.header.Get("Allow") != tt.allow {
			t.Errorf("%s %s: answered %d with Allow %q", tt.method, tt.path, a.status, a.header.Get("Allow"))
		}
		if tt.method == "HEAD" && a.header.Get("Content-Length") == "" {
			t.Errorf("%s: no Content-Length", tt.path)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	seen := map[string]bool{}
	for _, path := range []string{"/balance", "/nowhere", "/openapi.json", "/payin?x=1"} {
		a := h.do("GET", path, "", header("X-Request-Id", "mine"))
		id := a.header.Get("X-Request-Id")
		if len(id) != 32 || seen[id] || a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers are %v", path, a.header)
		}
		if a.status >= 400 && a.text("requestId") != id {
			t.Errorf("%s: document and header disagree on the request's id", path)
		}
		seen[id] = true
	}
	if a := h.do("GET", "/balance", "", anonymously); a.header.Get("WWW-Authenticate") == "" {
		t.Error("401 lacks WWW-Authenticate")
	}
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for i, tt := range []struct {
		change sending
		status int
	}{
		{header("Content-Type", "application/json"), 201},
		{header("Content-Type", "application/json; charset=utf-8"), 201},
		{header("Content-Type", `Application/JSON; charset="UTF-8"`), 201},
		{header("Content-Type", "application/json; charset=utf8"), 201},
		{header("Content-Type", "application/json;charset=UTF_8"), 201},
		{header("Content-Type", "application/json; charset="), 415},
		{header("Content-Type", "text/csv"), 415},
		{header("Content-Type", "application/json; charset=latin1"), 415},
		{header("Content-Type", "application/jsonx"), 415},
		{header("Content-Type", "application/problem+json"), 415},
		{header("Content-Type", "text/json"), 415},
		{header("Content-Type", ""), 415},
		{header("Content-Type"), 415},
		{header("Content-Type", "application/json", "application/json"), 415},
		{header("Content-Encoding", "gzip"), 415},
	} {
		body := strings.Replace(payinBody, "r1", fmt.Sprint("media", i), 1)
		if a := h.do("POST", "/payin", body, tt.change); a.status != tt.status {
			t.Errorf("%d: answered %d %s, want %d", i, a.status, a.body, tt.status)
		}
	}
}

func TestBodySize(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	full := payinBody + strings.Repeat(" ", 64<<10-len(payinBody))
	h.want("largest", h.do("POST", "/payin", full), 201, "")
	h.want("one more byte", h.do("POST", "/payin", full+" "), 413, "body_too_large")
	chunked := func(r *http.Request) { r.ContentLength = -1 }
	h.want("one more byte, length unknown", h.do("POST", "/payin", full+" ", chunked), 413, "body_too_large")
	h.want("no body", h.do("POST", "/payin", "", header("Content-Type", "application/json")), 400, "malformed_json")
}

func TestReplay(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, tt := range []struct{ path, body, member string }{
		{"/payin", payinBody, "amount"},
		{"/payout", payoutBody, "amount"},
	} {
		first := h.do("POST", tt.path, tt.body)
		h.want("first", first, 201, "")
		again := h.do("POST", tt.path, " "+tt.body)
		h.want("again", again, 201, "")
		if first.header.Get("Idempotency-Replayed") != "" || again.header.Get("Idempotency-Replayed") != "true" ||
			first.body != again.body {
			t.Errorf("%s: answered %v %s, then %v %s", tt.path, first.header, first.body, again.header, again.body)
		}
		other := h.do("POST", tt.path, strings.Replace(tt.body, `"amount":`, `"amount":1`, 1))
		h.want("other", other, 409, "reference_conflict")
		if other.text("errors.0.field") != tt.member {
			t.Errorf("%s: conflict does not name the member: %s", tt.path, other.body)
		}
		theirs := h.do("POST", tt.path, strings.Replace(strings.Replace(tt.body, "24724", "24725", 1), "http:", "https:", 1), as("key2", "secret2"))
		h.want("another merchant's", theirs, 201, "")
	}
}

// A repeated request is accepted even if it is invalid by now: here, the due date
// has passed.
func TestReplayOutlivesRules(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	due := strings.Replace(payinBody, `"PIX",`, `"BOLETO","dueDate":"2026-03-01",`, 1)
	due = strings.Replace(due, "r1", "r2", 1)
	h.want("due today", h.do("POST", "/payin", due), 201, "")
	h.clock.Advance(48 * time.Hour)
	a := h.do("POST", "/payin", due)
	h.want("due the day before yesterday", a, 201, "")
	if a.header.Get("Idempotency-Replayed") != "true" || a.text("referenceId") != "r2" {
		t.Errorf("answered %v %s", a.header, a.body)
	}
	h.want("another one", h.do("POST", "/payin", strings.Replace(due, "r2", "r3", 1)), 422, "validation_failed")
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const name = "Idempotency-Key"
	h.want("one", h.do("POST", "/payin", payinBody, header(name, "abc")), 201, "")
	if got := h.gateway.payinRows[0].Details.IdempotencyKey; got != "abc" {
		t.Errorf("stored %q", got)
	}
	h.want("another, which changes nothing", h.do("POST", "/payin", payinBody, header(name, "def")), 201, "")
	for _, path := range []string{"/payin", "/payout"} {
		h.want("two", h.do("POST", path, payinBody, header(name, "abc", "abc")), 400, "duplicate_field")
		h.want("empty", h.do("POST", path, payinBody, header(name, "")), 422, "validation_failed")
		h.want("not UTF-8", h.do("POST", path, payinBody, header(name, "\xff")), 422, "validation_failed")
		h.want("long", h.do("POST", path, payinBody, header(name, strings.Repeat("k", 256))), 422, "validation_failed")
	}
}

// Some processors require valid check digits, the sandbox does not.
func TestCheckDigitsAreTheProcessorsRule(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.want("sandbox", h.do("POST", "/payin", payinBody), 201, "")
	a := h.do("POST", "/payin", payinBody, as("key2", "secret2"))
	h.want("strict", a, 422, "validation_failed")
	if a.text("errors.0.field") != "customer.document" {
		t.Errorf("answered %s", a.body)
	}
}

func TestErrorsOfFlowAndStore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		status int
		code   string
	}{
		{problem.New(problem.ProcessorTimeout, "Late."), 504, "processor_timeout"},
		{problem.New(problem.ProcessorRefused, "No."), 502, "processor_refused"},
		{problem.New(problem.Overloaded, "Full."), 503, "overloaded"},
		{fmt.Errorf("x: %w", problem.New(problem.Unavailable, "Down.")), 503, "unavailable"},
		{errors.New("a bug that knows maria@example.com"), 500, "internal_error"},
	} {
		h := newHarness(t)
		h.want("warm", h.do("GET", "/webhook-secret", ""), 200, "")
		h.gateway.err = tt.err
		a := h.do("POST", "/payin", payinBody)
		h.want("order", a, tt.status, tt.code)
		if strings.Contains(a.body, "maria@") {
			t.Errorf("the cause is shown: %s", a.body)
		}
	}
	h := newHarness(t)
	h.want("warm", h.do("GET", "/webhook-secret", ""), 200, "")
	h.gateway.err = fmt.Errorf("read: %w", store.ErrUnavailable)
	h.want("read", h.do("GET", "/payin", ""), 503, "unavailable")
	h.gateway.err = nil
	h.want("not enough money", h.do("POST", "/payout", strings.Replace(payoutBody, "5000", "100001", 1)), 422, "insufficient_balance")
}

// A panic affects one request: 500, and one line in the log.
func TestPanic(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.gateway.panics = true
	h.want("panic", h.do("POST", "/payin", payinBody), 500, "internal_error")
	h.gateway.panics = false
	h.want("after it", h.do("POST", "/payin", payinBody), 201, "")
	if text := h.log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "panic") {
		t.Errorf("log is %s", text)
	}
}

// One line per request, without personal data or secrets.
func TestLog(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	created := h.do("POST", "/payin", payinBody, header("Idempotency-Key", "canary"))
	h.do("GET", "/payin/"+created.text("id")+"?expand=customer", "")
	h.do("GET", "/payin?referenceId=canary", "")
	h.do("GET", "/canary", "")
	h.do("GET", "/balance", "", as("canary", "canary"))
	h.do("CANARY", "/balance", "")
	text := h.log.String()
	if strings.Count(text, "\n") != 6 {
		t.Errorf("%d lines for 6 requests", strings.Count(text, "\n"))
	}
	for _, part := range []string{`"route":"/payin/{id}"`, `"status":201`, `"merchant":1`, `"credential":"key1"`, created.header.Get("X-Request-Id"), `"code":"unauthorized"`} {
		if !strings.Contains(text, part) {
			t.Errorf("the log lacks %s", part)
		}
	}
	for _, part := range []string{"canary", "CANARY", "secret1", "Maria", "52998224724", "maria@", created.text("id")} {
		if strings.Contains(text, part) {
			t.Errorf("the log holds %s", part)
		}
	}
}

// A refusal that says when to retry is a state that passes and that doctor reports: a warning, with its cause.
func TestPassingStateIsAWarning(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.gateway.err = problem.New(problem.Unavailable, "Payouts wait.").WithRetryAfter(time.Second).With(errors.New("account a is not read"))
	h.want("a payout", h.do("POST", "/payout", payoutBody), 503, "unavailable")
	if text := h.log.String(); strings.Contains(text, "ERROR") || !strings.Contains(text, `"level":"WARN"`) || !strings.Contains(text, `"cause":"account a is not read"`) {
		t.Errorf("it is logged as %s", text)
	}
}

// A disconnected client is not logged as an error; any other failure is, with its
// cause.
func TestClientDisconnects(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		logged bool
	}{
		{problem.New(problem.Unavailable, "Too long.").With(context.Canceled), false},
		{errors.New("a bug"), true},
	} {
		h := newHarness(t)
		h.want("warm", h.do("GET", "/webhook-secret", ""), 200, "")
		h.gateway.err = tt.err
		gone, leave := context.WithCancel(t.Context())
		leave()
		h.do("POST", "/payin", payinBody, func(r *http.Request) { *r = *r.WithContext(gone) })
		text := h.log.String()
		if strings.Contains(text, "ERROR") != tt.logged || strings.Contains(text, `"cause":"a bug"`) != tt.logged {
			t.Errorf("%v is logged as %s", tt.err, text)
		}
	}
}

// New work that would wait too long is rejected before its body is read; reads and
// health checks are not.
func TestNotAdmitted(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	created := h.do("POST", "/payin", payinBody)
	h.want("order", created, 201, "")
	h.gateway.full = 1200 * time.Millisecond
	for _, path := range []string{"/payin", "/payout", "/payin/" + created.text("id") + "/cancel"} {
		a := h.do("POST", path, "no JSON")
		h.want(path, a, 503, "overloaded")
		if got := a.header.Get("Retry-After"); got != "2" {
			t.Errorf("%s: Retry-After is %q, want the 1.2 s, rounded up", path, got)
		}
	}
	if text := h.log.String(); strings.Contains(text, "ERROR") || strings.Count(text, `"level":"WARN"`) != 1 {
		t.Errorf("three refusals are logged as %s, want one warning and no error", text)
	}
	h.want("wrong credentials", h.do("POST", "/payin", payinBody, as("key1", "wrong")), 401, "unauthorized")
	h.want("a read", h.do("GET", "/payin/"+created.text("id"), ""), 200, "")
	h.want("health", h.do("GET", "/healthz", ""), 200, "")
	h.gateway.full = 0
	h.want("afterwards", h.do("POST", "/payin", payinBody), 201, "")
}

func TestOverload(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) { o.InFlight = 5 }) // four for writes
	h.gateway.begun, h.gateway.proceed = make(chan struct{}), make(chan struct{})
	done := make(chan answer)
	for i := range 4 {
		body := strings.Replace(payinBody, "r1", fmt.Sprint("busy", i), 1)
		go func() { done <- h.do("POST", "/payin", body) }()
		<-h.gateway.begun
	}
	a := h.do("POST", "/payin", payinBody)
	h.want("a fifth write", a, 503, "overloaded")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	h.want("a read", h.do("GET", "/payin", ""), 200, "")
	h.want("health", h.do("GET", "/healthz", ""), 200, "")
	close(h.gateway.proceed)
	for range 4 {
		h.want("one that was in flight", <-done, 201, "")
	}
	h.gateway.begun = nil
	h.want("afterwards", h.do("POST", "/payin", payinBody), 201, "")
}

func prefixes(list ...string) (out []netip.Prefix) {
	for _, text := range list {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// A card number in the header Idempotency-Key is refused.
func TestCardNumberInIdempotencyKey(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.do("POST", "/payin", payinBody, header("Idempotency-Key", "order 4111_1111_1111_1111"))
	h.want("card number", a, 422, "validation_failed")
	if strings.Contains(a.body, "1111") || len(h.gateway.payinRows) != 0 {
		t.Errorf("the number is repeated, or an order was created: %s", a.body)
	}
}

// hanging is a database that answers no query of balances.
type hanging struct {
	httpapi.Reader

	entered chan struct{}
}

func (h hanging) Balances(ctx context.Context, _ payment.ID) (ledger.Balances, error) {
	close(h.entered)
	<-ctx.Done()
	return nil, fmt.Errorf("read balances: %w", ctx.Err())
}

// A database that hangs, rather than fails, leaves no request without an answer.
func TestRequestTimeout(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	h := newHarness(t, func(o *httpapi.Options) { o.Reader = hanging{o.Reader, entered} })
	go func() {
		<-entered
		h.clock.Advance(25 * time.Second)
	}()
	h.want("a query that hangs", h.do("GET", "/balance", ""), 503, "unavailable")
}
