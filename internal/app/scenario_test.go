package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/httpapi/apitest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// The two requests that the users were promised, to the letter.
const (
	givenPayin = `{"paymentMethod":"PIX","amount":12990,"referenceId":"given","webhookUrl":"%[1]s","customer":{"name":"Maria da Silva","email":"maria@example.com","document":"52998224725","phone":"11987654321","address":{"street":"Rua das Flores","number":"123","neighborhood":"Centro","city":"Sao Paulo","state":"SP","zipCode":"01001000"}},"items":[{"title":"Camiseta","quantity":1,"unitPrice":12990,"tangible":true}]}`
	givenBill  = `{"paymentMethod":"BOLETO","amount":5000,"referenceId":"bill","customer":{"name":"Maria","document":"52998224725"}}`
	givenCard  = `{"paymentMethod":"CREDIT_CARD","amount":5000,"referenceId":"card","installments":3,"customer":{"name":"Maria","document":"52998224725"}}`
	givenPix   = `{"paymentMethod":"PIX","amount":100,"referenceId":"order","customer":{"name":"Maria","document":"52998224725"}}`
	givenOut   = `{"amount":500,"pixKey":"maria@example.com","pixKeyType":"EMAIL","beneficiaryName":"Maria","beneficiaryDocument":"52998224725","webhookUrl":"%[1]s","referenceId":"out"}`
)

// step is one request of a scenario, and what its answer must and must not hold.
// {id} stands for the id of the last order that was created, {externalId} alike.
type step struct {
	ask    string // METHOD path
	body   string
	bare   bool // without credentials
	status int
	holds  string // words, each of which the answer holds
	lacks  string // words, none of which it holds
}

// scenario is a story and everything that it leaves behind: events, entries of
// the ledger, deliveries that reached the receiver. Nothing else may be there.
type scenario struct {
	name    string
	steps   []step
	events  string // types in order; the last word may be awaited
	entries string // kinds in order
	news    string // types that reached the receiver, in any order
}

var scenarios = []scenario{
	{
		"the given pay-in without credentials, paid", []step{
			{ask: "POST /payin", body: givenPayin, bare: true, status: 201, holds: `"status":"PENDING" "amount":12990 "qrcode":"000201 "externalId":" "referenceId":"given"`, lacks: "Maria 52998224725 Flores checkoutUrl"},
			{ask: "POST /payin", body: givenPayin, bare: true, status: 201, holds: `"referenceId":"given"`},
			{ask: "POST /sandbox/payin/{id}/pay", status: 204},
			{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID" "paidAmount":12990 "netAmount":12990 "endToEndId":"E`, lacks: "Maria"},
			{ask: "GET /payin/{id}?expand=customer,items", status: 200, holds: `"name":"Maria "title":"Camiseta"`},
			{ask: "GET /balance", status: 200, holds: `"available":100012990 "held":0`},
		}, "payin.paid", "received", "payin.paid",
	},
	{
		"the given payout", []step{
			{ask: "POST /payout", body: givenOut, status: 201, holds: `"status":"PENDING" "amount":"500" "currency":"BRL" "pixKey":"maria@example.com"`, lacks: "52998224725"},
			{ask: "POST /payout", body: givenOut, status: 201},
			{ask: "GET /payout/{id}?expand=beneficiary", status: 200, holds: `"document":"52998224725"`},
		}, "payout.processing payout.completed", "payout_held payout_paid", "payout.processing payout.completed",
	},
	{
		"credentials", []step{
			{ask: "POST /payout", body: givenOut, bare: true, status: 401, holds: `"code":"unauthorized"`},
			{ask: "GET /balance", bare: true, status: 401},
			{ask: "GET /payin", bare: true, status: 401},
		}, "", "", "",
	},
	{
		"the same reference, asked for differently", []step{
			{ask: "POST /payin", body: givenPix, status: 201},
			{ask: "POST /payin", body: strings.Replace(givenPix, "100", "101", 1), status: 409, holds: `"code":"reference_conflict" "field":"amount"`, lacks: "101"},
			{ask: "POST /payin", body: strings.Replace(givenPix, "100", "101", 1), bare: true, status: 409, holds: `"code":"reference_conflict"`, lacks: `"field"`},
			{ask: "GET /payin/{id}", status: 200, holds: `"amount":100`},
		}, "", "", "",
	},
	{
		"all faults at once, and none is kept", []step{
			{ask: "POST /payin", body: `{"paymentMethod":"X","amount":0,"referenceId":"order","customer":{"document":"1"},"items":[{"title":""}]}`, status: 422,
				holds: `"field":"paymentMethod" "field":"amount" "field":"customer.name" "field":"customer.document" "field":"items[0].title" "field":"items[0].quantity"`},
			{ask: "POST /payin", body: `{"surprise":1}`, status: 400, holds: `"code":"unknown_field" "field":"surprise" "field":"amount"`},
			{ask: "POST /payin", body: `{"amount":1,"amount":2}`, status: 400, holds: `"code":"duplicate_field"`},
			{ask: "POST /payin", body: `{"amount":1`, status: 400, holds: `"code":"malformed_json"`},
			{ask: "POST /payout", body: `{"amount":"1"}`, status: 422, holds: `"field":"amount" "code":"invalid_type" "field":"pixKey"`},
			{ask: "POST /payin", body: givenPix, status: 201},
		}, "", "", "",
	},
	{
		"short, over and second payments", []step{
			{ask: "POST /payin", body: givenPix, status: 201},
			{ask: "POST /sandbox/payin/{id}/pay", body: `{"amount":40}`, status: 204},
			{ask: "GET /payin/{id}", status: 200, holds: `"status":"PENDING" "paidAmount":40`},
			{ask: "POST /sandbox/payin/{id}/pay", body: `{"amount":70}`, status: 204},
			{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID" "paidAmount":100`},
			{ask: "POST /sandbox/payin/{id}/pay", body: `{"amount":5}`, status: 204},
			{ask: "GET /balance", status: 200, holds: `"available":100000100 "unapplied":15`},
		}, "payin.underpaid payin.paid payin.overpaid payin.overpaid", "received received received_unapplied received_unapplied", "",
	},
	{
		"paid after it was canceled", []step{
			{ask: "POST /payin", body: givenPix, status: 201},
			{ask: "POST /payin/{id}/cancel", status: 200, holds: `"status":"CANCELED"`},
			{ask: "POST /payin/{id}/cancel", status: 200, holds: `"status":"CANCELED"`},
			{ask: "POST /sandbox/payin/{id}/pay", status: 204},
			{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID" "late":true`},
			{ask: "POST /payin/{id}/cancel", status: 409, holds: `"code":"invalid_state"`},
		}, "payin.canceled payin.paid", "received", "",
	},
	{
		"a day goes by", []step{
			{ask: "POST /payin", body: givenPix, status: 201},
			{ask: "POST /sandbox/clock", body: `{"advance":90000}`, status: 204},
			{ask: "GET /payin/{id}", status: 200, holds: `"status":"EXPIRED"`},
			{ask: "POST /payin", body: givenPix, status: 201, holds: `"status":"EXPIRED"`},
		}, "payin.expired", "", "",
	},
	{
		"bill and card", []step{
			{ask: "POST /payin", body: givenBill, status: 201, holds: `"barcode":"999 "digitableLine":"999 "pixQrcode":"000201 "dueDate":"`, lacks: "pdfUrl"},
			{ask: "POST /sandbox/payin/{id}/pay", status: 204},
			{ask: "POST /payin", body: givenCard, status: 201, holds: `"paymentMethod":"CREDIT_CARD"`, lacks: `"card":`},
			{ask: "POST /sandbox/payin/{id}/fail", status: 204},
			{ask: "GET /payin/{id}", status: 200, holds: `"status":"FAILED" "failure":{"code":"`},
		}, "payin.paid payin.failed", "received", "",
	},
	{
		"a dispute, lost", []step{
			{ask: "POST /payin", body: givenPix, status: 201},
			{ask: "POST /sandbox/payin/{id}/dispute", status: 409},
			{ask: "POST /sandbox/payin/{id}/pay", status: 204},
			{ask: "POST /sandbox/payin/{id}/dispute", status: 204},
			{ask: "GET /balance", status: 200, holds: `"disputed":100`},
			{ask: "POST /sandbox/payin/{id}/lose", status: 204},
			{ask: "GET /payin/{id}", status: 200, holds: `"status":"CHARGEBACK"`},
			{ask: "GET /balance", status: 200, holds: `"disputed":0 "available":100000000`},
		}, "payin.paid payin.disputed payin.chargeback", "received dispute_opened charged_back", "",
	},
	{
		"a payout that the bank refuses", []step{
			{ask: "POST /sandbox/faults", body: `{"operation":"transfer","kind":"refuse","count":1}`, status: 204},
			{ask: "POST /payout", body: strings.Replace(givenOut, `"webhookUrl":"%[1]s",`, "", 1), status: 201},
		}, "payout.processing payout.failed", "payout_held payout_released", "",
	},
	{
		"a payout whose answer is lost is paid once", []step{
			{ask: "POST /sandbox/faults", body: `{"operation":"transfer","kind":"server_error_after","count":1}`, status: 204},
			{ask: "POST /payout", body: strings.Replace(givenOut, `"webhookUrl":"%[1]s",`, "", 1), status: 201},
		}, "payout.processing payout.completed", "payout_held payout_paid", "",
	},
	{
		"a payout that comes back", []step{
			{ask: "POST /payout", body: strings.Replace(givenOut, `"webhookUrl":"%[1]s",`, "", 1), status: 201},
			{ask: "POST /sandbox/payout/{id}/complete", status: 204},
			{ask: "POST /sandbox/payout/{id}/return", status: 204},
			{ask: "GET /payout/{id}", status: 200, holds: `"status":"RETURNED" "returnedAmount":"500"`},
			{ask: "POST /payout/{id}/cancel", status: 409, holds: `"code":"invalid_state"`},
			{ask: "GET /balance", status: 200, holds: `"available":100000000 "held":0`},
		}, "payout.processing payout.completed payout.returned", "payout_held payout_paid payout_returned", "",
	},
	{
		"a charge that is refused uses its reference", []step{
			{ask: "POST /sandbox/faults", body: `{"operation":"charge","kind":"refuse","count":1}`, status: 204},
			{ask: "POST /payin", body: givenPix, status: 502, holds: `"code":"processor_refused"`},
			{ask: "POST /payin", body: givenPix, status: 201, holds: `"status":"FAILED" "failure"`},
		}, "payin.failed", "", "",
	},
	{
		"a charge whose answers are lost is there in the end", []step{
			{ask: "POST /sandbox/faults", body: `{"operation":"charge","kind":"rubbish","count":2}`, status: 204},
			{ask: "POST /payin", body: givenPix, status: 201, holds: `"qrcode":"000201`},
			{ask: "POST /sandbox/faults", body: `{"operation":"charge","kind":"not_sent","count":1}`, status: 204},
			{ask: "POST /payin", body: givenCard, status: 201},
		}, "", "", "",
	},
	{
		"a charge that hangs", []step{
			{ask: "POST /sandbox/faults", body: `{"operation":"charge","kind":"timeout_after","count":1}`, status: 204},
			{ask: "POST /payin", body: givenPix, status: 504, holds: `"code":"processor_timeout"`},
			{ask: "GET /payin?referenceId=order", status: 200, holds: `"status":"PENDING"`, lacks: "qrcode"},
			{ask: "POST /payin", body: givenPix, status: 201, holds: `"qrcode":"000201`},
		}, "", "", "",
	},
	{
		"notices twice, in disorder and never", []step{
			{ask: "POST /payin", body: givenPix, status: 201},
			{ask: "POST /sandbox/faults", body: `{"operation":"charge","kind":"notify_twice","count":1}`, status: 204},
			{ask: "POST /sandbox/payin/{id}/pay", status: 204},
			{ask: "DELETE /sandbox/faults", status: 204},
			{ask: "POST /payin", body: givenBill, status: 201},
			{ask: "POST /sandbox/faults", body: `{"operation":"charge","kind":"notify_never","count":1}`, status: 204},
			{ask: "POST /sandbox/payin/{id}/pay", status: 204},
			{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`},
		}, "payin.paid payin.paid", "received received", "",
	},
	{
		"other routes", []step{
			{ask: "GET /healthz", bare: true, status: 200}, {ask: "GET /readyz", bare: true, status: 200},
			{ask: "GET /openapi.json", bare: true, status: 200, holds: `"openapi"`},
			{ask: "GET /webhook-secret", status: 200, holds: "whsec_"},
			{ask: "GET /payin/01a1fc88-370d-71db-9c03-c351fb553c2e", status: 404, holds: `"code":"not_found"`},
			{ask: "GET /payin?limit=0", status: 422}, {ask: "GET /payin?color=red", status: 422}, {ask: "GET /events", status: 200, holds: `"nextCursor":"`},
			{ask: "PUT /payin", status: 405, holds: `"code":"method_not_allowed"`}, {ask: "GET /nowhere", status: 404},
			{ask: "GET /sandbox/processor/transfers?externalId=000014Zv0uTqGxW8bYc2RkPmNs5LdAeF", bare: true, status: 200, holds: `"data":[]`},
			{ask: "POST /sandbox/payin/01a1fc88-370d-71db-9c03-c351fb553c2e/pay", status: 404},
		}, "", "", "",
	},
}

// receiver takes webhooks and checks each with a published verifier.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	news []string
	seen map[string]string // body by webhook-id
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	verifier, err := webhooks.NewWebhook(app.SandboxWebhookSecret)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{seen: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = verifier.Verify(body, req.Header)
		}
		var event struct{ ID, Type string }
		if err == nil {
			err = json.Unmarshal(body, &event)
		}
		if err != nil || event.ID != req.Header.Get("Webhook-Id") {
			t.Errorf("webhook: %v: %s", err, body)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if before, again := r.seen[event.ID]; again && before != string(body) {
			t.Errorf("event %s came with other bytes", event.ID)
		} else if !again {
			r.news = append(r.news, event.Type)
		}
		r.seen[event.ID] = string(body)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return words(r.news)
}

func words(list []string) string {
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return strings.Join(sorted, " ")
}

func TestScenarios(t *testing.T) {
	engines(t, func(t *testing.T, environ, _ []string) {
		asked := map[string]bool{}
		for i := range scenarios {
			t.Run(scenarios[i].name, func(t *testing.T) { scenarios[i].play(t, environ, ownData(t, environ), asked) })
		}
		for path, item := range apitest.Document(t).Paths.Map() {
			for method := range item.Operations() {
				if route := method + " " + path; !asked[route] && !elsewhere[route] {
					t.Errorf("no scenario asks %s", route)
				}
			}
		}
	})
}

// elsewhere are operations that other tests ask: they need an event's id, or
// the bank's signature.
var elsewhere = map[string]bool{
	"GET /events/{id}": true, "GET /events/{id}/attempts": true, "POST /events/{id}/redeliver": true, "POST /inbound/{processor}": true,
	"GET /payout": true,
}

// ownData gives a scenario a data folder of its own and, on SQLite, with it a
// database; PostgreSQL gets another database.
func ownData(t *testing.T, environ []string) []string {
	t.Helper()
	own := []string{"data", t.TempDir()}
	if len(environ) > 0 {
		own = append(own, "database", storetest.Postgres(t))
	}
	return own
}

// play tells a scenario and compares what it left behind.
func (s *scenario) play(t *testing.T, environ, flags []string, asked map[string]bool) {
	t.Helper()
	cfg := load(t, config.Dev, environ, flags...)
	g := run(t, cfg)
	hooks := newReceiver(t)
	client := &http.Client{Transport: apitest.Transport(t, http.DefaultTransport), Timeout: time.Minute}
	order := map[string]any{"id": "", "externalId": ""}
	for _, st := range s.steps {
		method, path, _ := strings.Cut(st.ask, " ")
		asked[method+" "+pattern(path)] = true
		path = strings.NewReplacer("{id}", order["id"].(string), "{externalId}", order["externalId"].(string)).Replace(path)
		body := st.body
		if strings.Contains(body, "%[1]s") {
			body = fmt.Sprintf(body, hooks.URL+"/hook")
		}
		status, text := g.ask(client, method, path, body, st.bare)
		if status != st.status {
			t.Fatalf("%s: %d, want %d: %s\n%s", st.ask, status, st.status, text, g.log)
		}
		for _, word := range strings.Fields(st.holds) {
			if !strings.Contains(text, word) {
				t.Errorf("%s: %q is missing in %s", st.ask, word, text)
			}
		}
		for _, word := range strings.Fields(st.lacks) {
			if strings.Contains(text, word) {
				t.Errorf("%s: %q is in %s", st.ask, word, text)
			}
		}
		if status == 201 {
			if err := json.Unmarshal([]byte(text), &order); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.compare(t, g, cfg, hooks)
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// pattern is a path as the contract names it.
func pattern(path string) string {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if _, err := payment.ParseID(part); err == nil {
			parts[i] = "{id}"
		}
		if i == 4 && parts[1] == "sandbox" {
			parts[i] = "{action}"
		}
	}
	return strings.Join(parts, "/")
}

// ask sends a request and returns status and body.
func (g *gateway) ask(client *http.Client, method, path, body string, bare bool) (int, string) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, "http://"+g.app.Address()+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if !bare {
		r.Header.Set("X-Api-Key", app.SandboxKey)
		r.Header.Set("X-Api-Secret", app.SandboxSecret)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := client.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// compare waits for the scenario's last event and delivery, and then wants just
// what it names: events, entries, news.
func (s *scenario) compare(t *testing.T, g *gateway, cfg *config.Config, hooks *receiver) {
	t.Helper()
	admin, err := app.OpenAdmin(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	m, err := admin.Store.MerchantByName(t.Context(), app.SandboxMerchant)
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		if got := eventsOf(t, admin.Store, m.ID); got != s.events {
			return fmt.Sprintf("events %q, want %q", got, s.events)
		}
		if got := hooks.got(); got != words(strings.Fields(s.news)) {
			return fmt.Sprintf("news %q, want %q", got, s.news)
		}
		return ""
	}, g)
	if got := entriesOf(t, admin.Store, m.ID); got != strings.TrimSpace("funded "+s.entries) {
		t.Errorf("entries %q, want %q", got, "funded "+s.entries)
	}
	proofs, err := admin.Store.Verify(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range proofs {
		if len(p.Faults) > 0 {
			t.Errorf("verify: %+v", p)
		}
	}
}

// until looks again until nothing is missing, for 15 s at the most.
func until(t *testing.T, missing func() string, g *gateway) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for what := missing(); what != ""; what = missing() {
		if time.Now().After(deadline) {
			t.Fatalf("%s\n%s", what, g.log)
		}
		wait(20 * time.Millisecond)
	}
}

func eventsOf(t *testing.T, s *store.Store, merchant payment.ID) string {
	t.Helper()
	list, err := s.Events(context.Background(), merchant, 0, 200)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for i := range list {
		types = append(types, string(list[i].Type))
	}
	return strings.Join(types, " ")
}

func entriesOf(t *testing.T, s *store.Store, merchant payment.ID) string {
	t.Helper()
	list, err := s.Postings(context.Background(), merchant, store.Posting{}, 500)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for i := range list {
		if i == 0 || list[i].Entry != list[i-1].Entry {
			kinds = append(kinds, string(list[i].Kind))
		}
	}
	return strings.Join(kinds, " ")
}
