package asaas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/asaasface"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

const (
	testKey    = "$aact_hmlg_0123456789abcdef"
	testToken  = "the-token-of-notices-0123456789abcdef"
	faceURL    = "https://asaas.invalid"
	gatewayURL = "https://gateway.invalid/inbound/asaas/token"
)

// start is when tests begin: some afternoon in Brazil.
var start = time.Date(2026, 11, 20, 18, 30, 0, 0, time.UTC)

// contract is the hand-written description of Asaas' API.
type contract struct {
	doc    *openapi3.T
	router routers.Router
}

var load = sync.OnceValues(func() (*contract, error) {
	text, err := os.ReadFile("testdata/asaas.yaml")
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	router, err := legacy.NewRouter(doc)
	return &contract{doc, router}, err
})

// decimals matches a number that is not written with two decimals.
var decimals = regexp.MustCompile(`"(value|totalValue|netValue|balance|transferFee)":-?\d+(\.\d|\.\d{3,})?[,}]`)

// check compares a request and its answer with the contract.
func (c *contract) check(r *http.Request, sent []byte, status int, header http.Header, body []byte) error {
	if bad := decimals.FindString(string(sent) + string(body)); bad != "" {
		return fmt.Errorf("%s is not an amount with two decimals", bad)
	}
	again := r.Clone(context.Background())
	again.Body = io.NopCloser(bytes.NewReader(sent))
	again.ContentLength = int64(len(sent))
	route, params, err := c.router.FindRoute(again)
	if err != nil {
		return err
	}
	options := &openapi3filter.Options{AuthenticationFunc: func(_ context.Context, input *openapi3filter.AuthenticationInput) error {
		if got := input.RequestValidationInput.Request.Header.Values("access_token"); len(got) != 1 || got[0] != testKey {
			return errors.New("the API key is missing")
		}
		return nil
	}, IncludeResponseStatus: true}
	input := &openapi3filter.RequestValidationInput{Request: again, PathParams: params, Route: route, Options: options}
	if err := openapi3filter.ValidateRequest(again.Context(), input); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if len(body) == 0 || status >= 500 {
		return nil
	}
	response := &openapi3filter.ResponseValidationInput{RequestValidationInput: input, Status: status, Header: header, Options: options}
	response.SetBodyBytes(body)
	return openapi3filter.ValidateResponse(again.Context(), response)
}

// valid compares a body with a schema of the contract.
func (c *contract) valid(schema string, body []byte) error {
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	return c.doc.Components.Schemas[schema].Value.VisitJSON(value)
}

// wire carries calls to the face in this goroutine, and compares both with the contract.
type wire struct {
	t       testing.TB
	handler http.Handler
	refuse  func(r *http.Request) bool
	calls   int
}

var errRefusedConnection = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// RoundTrip implements [http.RoundTripper].
func (w *wire) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	if w.refuse != nil && w.refuse(r) {
		w.refuse = nil
		return nil, errRefusedConnection
	}
	w.calls++
	var sent []byte
	if r.Body != nil {
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	arrived := r.Clone(r.Context())
	arrived.Header = http.Header{}
	for name, values := range r.Header {
		for _, v := range values {
			arrived.Header.Add(name, v)
		}
	}
	arrived.Body = io.NopCloser(bytes.NewReader(sent))
	rec := httptest.NewRecorder()
	defer func() {
		if cause := recover(); cause == http.ErrAbortHandler {
			answer, err = nil, errors.Join(io.ErrUnexpectedEOF, r.Context().Err())
		} else if cause != nil {
			panic(cause)
		}
	}()
	w.handler.ServeHTTP(rec, arrived)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if c, err := load(); err != nil {
		w.t.Error(err)
	} else if body := rec.Body.Bytes(); len(body) == 0 || jsontext.Value(body).IsValid() { // else it was cut
		if err := c.check(r, sent, rec.Code, rec.Header(), rec.Body.Bytes()); err != nil {
			w.t.Errorf("%s %s: %v\n%s\n%s", r.Method, r.URL, err, sent, rec.Body)
		}
	}
	return rec.Result(), nil
}

// gateway accepts the face's notices, and approves transfers unless decide is set.
type gateway struct {
	t       testing.TB
	mu      sync.Mutex
	notices []processortest.Notice
	decide  func(processortest.Notice) (status int, contentType string, body []byte)
}

// RoundTrip implements [http.RoundTripper].
func (g *gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := processortest.Notice{Header: r.Header.Clone(), Body: body}
	answer := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}}
	schema := "Question"
	switch {
	case !strings.HasSuffix(r.URL.Path, "/consent"):
		schema = "Notice"
		g.notices = append(g.notices, n)
	case g.decide == nil:
		answer.Body = io.NopCloser(strings.NewReader(`{"status":"APPROVED"}`))
	default:
		status, contentType, reply := g.decide(n)
		if status == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		answer.StatusCode, answer.Body = status, io.NopCloser(bytes.NewReader(reply))
		answer.Header.Set("Content-Type", contentType)
		if c, err := load(); err == nil {
			if err := c.valid("Reply", reply); err != nil {
				g.t.Errorf("reply %s: %v", reply, err)
			}
		}
	}
	if c, err := load(); err != nil {
		g.t.Error(err)
	} else if err := c.valid(schema, body); err != nil {
		g.t.Errorf("%s: %v\n%s", schema, err, body)
	}
	return answer, nil
}

// harness is the driver and the bank's face.
type harness struct {
	t       *testing.T
	clock   *env.VirtualClock
	bank    *sandboxbank.Bank // the contract
	face    *asaasface.Face
	gateway *gateway
	wire    *wire
	driver  *Processor
	ids     int
}

func newHarness(t *testing.T, settings ...string) *harness {
	t.Helper()
	w, clock := env.Virtual(start, 1)
	h := &harness{t: t, clock: clock, gateway: &gateway{t: t}}
	relay := &asaasface.Relay{Next: h.gateway}
	bank, err := sandboxbank.Open(sandboxbank.Options{
		Secret: "a secret between bank and gateway", Clock: clock, IDs: w.IDs, Notify: relay,
		Pause: clock.Pause,
	})
	must(t, err)
	t.Cleanup(func() { _ = bank.Close() })
	h.bank, err = bank.Contract(asaasface.ContractRepeat, asaasface.ContractName)
	must(t, err)
	h.face, err = asaasface.Open(asaasface.Options{Bank: h.bank, Key: testKey, Notify: h.gateway, BaseURL: faceURL})
	must(t, err)
	relay.Serve(h.face)
	h.wire = &wire{t: t, handler: h.face.Handler()}
	h.driver = openDriver(t, h.wire, clock, settings...)
	must(t, h.driver.Install(t.Context(), gatewayURL))
	return h
}

// openDriver opens an account; settings are pairs of name and value.
func openDriver(t testing.TB, transport http.RoundTripper, clock env.Clock, settings ...string) *Processor {
	t.Helper()
	a := processor.Account{ID: "asaas", Settings: map[string]string{SettingBaseURL: faceURL + "/v3"}, Secrets: map[string]string{SecretKey: testKey, SecretToken: testToken}}
	for i := 0; i < len(settings); i += 2 {
		a.Settings[settings[i]] = settings[i+1]
	}
	p, err := Driver{}.Open(a, processor.Env{Clock: clock, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return p.(*Processor)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h *harness) newID() string {
	h.ids++
	return fmt.Sprintf("%032d", h.ids)
}

// call calls the face, past the driver and the contract.
func (h *harness) call(method, path, body string) []byte {
	h.t.Helper()
	r := httptest.NewRequestWithContext(h.t.Context(), method, faceURL+path, strings.NewReader(body))
	if body == "" {
		r.Body = http.NoBody
	}
	r.Header.Set("access_token", testKey)
	w := httptest.NewRecorder()
	h.face.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		h.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// rows reads a list of the face to its end.
func rows[Row any](h *harness, path string) (all []Row) {
	h.t.Helper()
	for {
		var page list[Row]
		must(h.t, json.Unmarshal(h.call(http.MethodGet, fmt.Sprintf("%s&limit=100&offset=%d", path, len(all)), ""), &page))
		if all = append(all, page.Data...); !*page.HasMore {
			return all
		}
	}
}

func (h *harness) payments(externalID string) []wirePayment {
	h.t.Helper()
	return rows[wirePayment](h, "/v3/payments?externalReference="+externalID)
}

// elapse lets a few seconds pass at the bank.
func (h *harness) elapse(t *testing.T) {
	t.Helper()
	for range 6 {
		for {
			did, err := h.bank.Step(t.Context(), h.clock.Now())
			must(t, err)
			if did == 0 {
				break
			}
		}
		h.clock.Advance(time.Second)
	}
}

// operationOf is the operation of a request.
func operationOf(r *http.Request) processortest.Operation {
	switch {
	case r.Method == http.MethodGet:
		return processortest.Query
	case strings.HasSuffix(r.URL.Path, "/refund"):
		return processortest.Refund
	case strings.HasSuffix(r.URL.Path, "/transfers"):
		return processortest.Transfer
	case strings.HasSuffix(r.URL.Path, "/payments"):
		return processortest.Charge
	default:
		return ""
	}
}

func (h *harness) misbehave(t *testing.T, operation processortest.Operation, fault processortest.Fault) {
	t.Helper()
	if fault == processortest.NotSent {
		h.wire.refuse = func(r *http.Request) bool { return operationOf(r) == operation }
		return
	}
	h.arm(t, bankapi.Operation(operation), bankapi.FaultKind(fault))
}

// arm makes the next call of the contract misbehave.
func (h *harness) arm(t *testing.T, operation bankapi.Operation, kind bankapi.FaultKind) {
	t.Helper()
	body := fmt.Sprintf(`{"operation":%q,"kind":%q,"count":1}`, operation, kind)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/control/faults", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer a secret between bank and gateway")
	r.Header.Set("Content-Type", bankapi.JSONType)
	w := httptest.NewRecorder()
	h.bank.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("arm: %d %s", w.Code, w.Body)
	}
}

func (h *harness) pay(externalID string) {
	h.t.Helper()
	h.call(http.MethodPost, "/v3/sandbox/payment/"+h.payments(externalID)[0].ID+"/confirm", "")
}

func (h *harness) transfers(_ *testing.T, externalID string) (entries []processortest.Entry) {
	h.t.Helper()
	for _, v := range rows[wireTransfer](h, "/v3/transfers?") {
		if v.ExternalReference == externalID {
			entries = append(entries, processortest.Entry{ExternalID: externalID, Amount: moneyOf(v.Value)})
		}
	}
	return entries
}

func (h *harness) refunds(_ *testing.T, externalID string) (entries []processortest.Entry) {
	h.t.Helper()
	for _, v := range rows[wirePayment](h, "/v3/payments?") {
		for _, r := range v.Refunds {
			if r.Description == externalID {
				entries = append(entries, processortest.Entry{ExternalID: externalID, Amount: moneyOf(r.Value)})
			}
		}
	}
	return entries
}

// conformance makes the harness fit the suite of all processors.
func (h *harness) conformance() processortest.Harness {
	return processortest.Harness{
		Processor: h.driver, Clock: h.clock, NewID: h.newID, PaidOnce: true, ByDay: true, Secrets: []string{testKey, testToken},
		Open: func(t *testing.T, farSide http.RoundTripper) processor.Processor {
			t.Helper()
			return openDriver(t, farSide, h.clock)
		},
		Greet: func(r *http.Request) (status int, body string) {
			switch {
			case !strings.HasSuffix(r.URL.Path, "/customers"):
				return 0, ""
			case r.Method == http.MethodGet:
				return http.StatusOK, listJSON()
			default:
				return http.StatusOK, `{"id":"cus_1","cpfCnpj":"52998224725"}`
			}
		},
		Faults: []processortest.Fault{
			processortest.Refuse, processortest.NotSent, processortest.TimeoutBefore, processortest.TimeoutAfter,
			processortest.ServerErrorAfter, processortest.Late, processortest.Garbage,
		},
		Misbehave: h.misbehave, Transfers: h.transfers, Refunds: h.refunds, Elapse: h.elapse,
		Pay: func(_ *testing.T, r processor.ChargeRequest, _ money.Cents) { h.pay(r.ExternalID) },
		Notices: func(*testing.T) []processortest.Notice {
			h.gateway.mu.Lock()
			defer h.gateway.mu.Unlock()
			return append([]processortest.Notice(nil), h.gateway.notices...)
		},
	}
}

func TestProcessor(t *testing.T) {
	processortest.Run(t, func(t *testing.T) processortest.Harness { return newHarness(t).conformance() })
}

func TestProcessorAsksConsent(t *testing.T) {
	processortest.Run(t, func(t *testing.T) processortest.Harness {
		h := newHarness(t, SettingValidation, "on")
		h.call(http.MethodPut, "/panel/withdrawal-validation", fmt.Sprintf(`{"url":%q,"authToken":%q}`, gatewayURL+"/consent", testToken))
		c := h.conformance()
		c.OnQuestion = func(answer func(q processortest.Notice) (status int, contentType string, body []byte)) {
			h.gateway.mu.Lock()
			defer h.gateway.mu.Unlock()
			h.gateway.decide = answer
		}
		return c
	})
}
