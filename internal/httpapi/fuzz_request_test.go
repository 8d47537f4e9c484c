package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/httpapi/apitest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/wire"
)

// newFuzzed is an API over a gateway in memory.
func newFuzzed(f *testing.F) *harness {
	f.Helper()
	w, clock := env.Virtual(start, 1)
	keys, err := db.NewKeyring(bytes.Repeat([]byte{7}, db.MasterKeyLength), w.Random)
	if err != nil {
		f.Fatal(err)
	}
	h := &harness{t: f, gateway: newGateway(w), clock: clock, keys: keys}
	h.first, h.second = h.merchant(1, "sandbox", ""), h.merchant(2, "other", "strict")
	h.credential("key1", "secret1", h.first.ID, nil)
	h.credential("key2", "secret2", h.second.ID, nil)
	h.handler = httpapi.New(httpapi.Options{
		Admission: h.gateway, Payins: payins{h.gateway}, Payouts: payouts{h.gateway}, Refunds: refunds{h.gateway}, Events: h.gateway,
		Reader: h.gateway, Keys: keys, Env: w, AllowHTTP: true, Sandbox: idle{}, Links: checkout.Links("https://pay.example", keys),
		Processors: processor.Registry{"strict": strict{}}, PublicMerchant: h.first.ID, AnonymousRate: httpapi.Rate{PerSecond: 1e6, Burst: 1e6},
	})
	return h
}

// addOrders creates orders of both merchants, each with an event.
func (h *harness) addOrders(f *testing.F) {
	f.Helper()
	for i := range 3 {
		for merchant, key := range []string{"1", "2"} {
			change := strings.NewReplacer(`"r1"`, strconv.Quote(fmt.Sprint("o", i)), "5000", "1", "52998224724", "52998224725")
			create := func(path, body string) answer {
				a := h.do("POST", path, change.Replace(body), as("key"+key, "secret"+key))
				if a.status != http.StatusCreated {
					f.Fatal(a.status, a.body)
				}
				return a
			}
			create("/payout", payoutBody)
			order := create("/payin", payinBody)
			create("/payin/"+order.text("id")+"/refunds", fmt.Sprintf(`{"referenceId":"o%d"}`, i))
			e := payment.Event{
				Merchant: []payment.ID{h.first.ID, h.second.ID}[merchant], Number: int64(i) + 1, ID: payment.ID{byte(i), byte(merchant)},
				Type: "payin.created", Version: 1, CreatedAt: h.clock.Now(),
			}
			var err error
			if e.Body, err = e.Envelope([]byte(order.body)); err != nil {
				f.Fatal(err)
			}
			h.gateway.events = append(h.gateway.events, e)
		}
		h.clock.Advance(time.Minute)
	}
}

// idle is a sandbox that does nothing.
type idle struct{}

// PayinAction does nothing.
func (idle) PayinAction(context.Context, payment.ID, string, wire.SandboxPayin) error { return nil }

// PayoutAction does nothing.
func (idle) PayoutAction(context.Context, payment.ID, string) error { return nil }

// ArmFault does nothing.
func (idle) ArmFault(context.Context, wire.SandboxFault) error { return nil }

// ClearFaults does nothing.
func (idle) ClearFaults(context.Context) error { return nil }

// AdvanceClock does nothing.
func (idle) AdvanceClock(context.Context, time.Duration) error { return nil }

// Transfers lists one transfer.
func (idle) Transfers(_ context.Context, _, externalID string) ([]wire.SandboxTransfer, error) {
	return []wire.SandboxTransfer{{ExternalID: externalID, Amount: 1, PIXKey: "m@example.com", Status: "paid", CreatedAt: start}}, nil
}

// headerLine is a header line that a server accepts (RFC 9110, section 5).
var headerLine = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+: [^\\x00-\\x08\\x0a-\\x1f\\x7f]*$")

// FuzzRequest sends anything to the API: the answer fits the contract and is never
// 5xx.
func FuzzRequest(f *testing.F) {
	g := newFuzzed(f)
	g.addOrders(f)
	payin := "/payin/" + g.gateway.payinRows[0].ID.String()
	for _, line := range []string{
		"GET " + payin, "GET " + payin + "?expand=customer,items", "HEAD /events?limit=200", "GET /payin/%00", "GET /payin/..%2f..%2fpayout", "OPTIONS *", "PROPFIND /balance",
		"GET /events/evt_00000000000000000000000000000000/attempts", "POST " + payin + "/cancel", "GET /payout?createdFrom=2026-03-01T9:00:00Z", "GET //payin", "GET /payin/",
		"GET /openapi.json?x", "DELETE /webhook-secret", "POST /events/evt_00000000000000000000000000000000/redeliver", "GET /readyz", "GET /sandbox/processor/transfers?externalId=%00",
	} {
		method, target, _ := strings.Cut(line, " ")
		f.Add(method, target, "", []byte(nil), uint8(1))
	}
	for target, body := range map[string]string{
		"/sandbox" + payin + "/pay": `{"amount":7}`, "/sandbox" + payin + "/expire": "", "/sandbox" + payin + "/dispute": `{"amount":7}`,
		"/sandbox/payout/019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a/return": "{}", "/sandbox/clock": `{"advance":315360000}`,
		"/sandbox/faults": `{"operation":"charge","kind":"refuse","count":1000000}`,
	} {
		f.Add("POST", target, "", []byte(body), uint8(0))
	}
	for _, headers := range []string{
		"", "X-Api-Key: key1\nX-Api-Key: key2", "Content-Type: application/json;charset=\"utf-8", "Content-Type: text/plain", "Idempotency-Key: \xff",
		"Idempotency-Key: a\nIdempotency-Key: b", "Content-Encoding: gzip", "X-Api-Secret: secret1", "Idempotency-Key: " + strings.Repeat("é", 256),
	} {
		f.Add("POST", "/payin", headers, []byte(strings.Replace(payinBody, "r1", "f1", 1)), uint8(1))
		f.Add("POST", "/payout", headers, []byte(strings.Replace(payoutBody, "r1", "f1", 1)), uint8(2))
	}
	f.Fuzz(func(t *testing.T, method, target, headers string, body []byte, credential uint8) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://gateway.invalid/", bytes.NewReader(body))
		if err != nil {
			return
		}
		r.URL, r.RequestURI, r.RemoteAddr = u, target, "203.0.113.1:1"
		if len(body) > 0 {
			r.Header.Set("Content-Type", "application/json")
		}
		if n := strconv.Itoa(int(credential % 3)); n != "0" {
			as("key"+n, "secret"+n)(r)
		}
		for line := range strings.SplitSeq(headers, "\n") {
			if name, value, _ := strings.Cut(line, ": "); headerLine.MatchString(line) {
				if http.CanonicalHeaderKey(name) == "Content-Type" {
					r.Header.Del(name)
				}
				r.Header.Add(name, value)
			}
		}
		if len(g.gateway.payinRows) > 200 {
			g.gateway.payinRows = g.gateway.payinRows[:6]
		}
		if len(g.gateway.payoutRows) > 200 {
			g.gateway.payoutRows, g.gateway.available = g.gateway.payoutRows[:6], 100_000
		}
		w := httptest.NewRecorder()
		g.handler.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("%s %s is answered with %d %s", method, target, w.Code, w.Body)
		}
		if !strings.Contains(strings.ToLower(u.EscapedPath()), "%2f") { // the contract's router reads it as a slash, unlike Go's
			apitest.Check(t, r, body, w.Code, w.Header(), w.Body.Bytes())
		}
		if w.Code >= 400 && method != http.MethodHead && (answer{body: w.Body.String()}).text("requestId") != w.Header().Get("X-Request-Id") {
			t.Fatalf("%s %s is answered with %d %s", method, target, w.Code, w.Body)
		}
	})
}
