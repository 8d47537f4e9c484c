package app_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/httpapi/apitest"
)

// visits are successful requests for each operation of the contract. In paths, {payin},
// {payout}, {event} and others stand for ids that exist.
var visits = map[string]step{
	"POST /payin":                         {ask: "POST /payin", body: pixOf, status: 201},
	"GET /payin":                          {ask: "GET /payin?limit=1&status=PENDING&paymentMethod=PIX&createdFrom=2020-01-01T00:00:00Z&createdTo=2120-01-01T00:00:00Z", status: 200},
	"GET /payin/{id}":                     {ask: "GET /payin/{payin}?expand=customer,items", status: 200},
	"POST /payin/{id}/cancel":             {ask: "POST /payin/{payin}/cancel", status: 200},
	"POST /payout":                        {ask: "POST /payout", body: payoutOf, status: 201},
	"GET /payout":                         {ask: "GET /payout?limit=1&status=COMPLETED&referenceId=visited", status: 200},
	"GET /payout/{id}":                    {ask: "GET /payout/{payout}?expand=beneficiary", status: 200},
	"POST /payout/{id}/cancel":            {ask: "POST /payout/{canceled}/cancel", status: 200},
	"POST /payout/{id}/approve":           {ask: "POST /payout/{approved}/approve", status: 200},
	"POST /payout/{id}/reject":            {ask: "POST /payout/{rejected}/reject", body: `{"reason":"no"}`, status: 200},
	"GET /limits":                         {ask: "GET /limits", status: 200},
	"GET /balance":                        {ask: "GET /balance?at=2120-01-01T00:00:00Z", status: 200},
	"GET /statement":                      {ask: "GET /statement?limit=1&account=available&kind=payout_held&from=2020-01-01T00:00:00Z&to=2120-01-01T00:00:00Z", status: 200},
	"GET /prices":                         {ask: "GET /prices", status: 200},
	"GET /receivables":                    {ask: "GET /receivables?from=2026-01-01&to=2126-01-01", status: 200},
	"GET /receivables/{date}":             {ask: "GET /receivables/2026-11-24?limit=1", status: 200},
	"POST /payin/{id}/refunds":            {ask: "POST /payin/{refundable}/refunds", body: `{"referenceId":"visit refund","amount":1}`, status: 201},
	"GET /payin/{id}/refunds":             {ask: "GET /payin/{refundable}/refunds?limit=1&status=FAILED&referenceId=visited", status: 200},
	"GET /disputes":                       {ask: "GET /disputes?limit=1&status=OPEN&kind=MED&respondBefore=2120-01-01T00:00:00Z", status: 200},
	"GET /disputes/{id}":                  {ask: "GET /disputes/{defended}", status: 200},
	"POST /disputes/{id}/defense":         {ask: "POST /disputes/{defended}/defense", body: defenseOf, status: 200},
	"POST /disputes/{id}/accept":          {ask: "POST /disputes/{accepted}/accept", status: 200},
	"POST /payout-batches":                {ask: "POST /payout-batches", body: batchesOf, status: 201},
	"GET /payout-batches":                 {ask: "GET /payout-batches?limit=1", status: 200},
	"GET /payout-batches/{id}":            {ask: "GET /payout-batches/{batch}", status: 200},
	"GET /refunds":                        {ask: "GET /refunds?limit=1&createdFrom=2020-01-01T00:00:00Z&createdTo=2120-01-01T00:00:00Z", status: 200},
	"GET /refunds/{id}":                   {ask: "GET /refunds/{refund}", status: 200},
	"POST /sandbox/refunds/{id}/{action}": {ask: "POST /sandbox/refunds/{refund}/fail", nobody: true, status: 204},
	"GET /events":                         {ask: "GET /events?limit=1", status: 200},
	"GET /events/{id}":                    {ask: "GET /events/{event}", status: 200},
	"GET /events/{id}/attempts":           {ask: "GET /events/{event}/attempts", status: 200},
	"POST /events/{id}/redeliver":         {ask: "POST /events/{event}/redeliver", status: 202},
	"GET /webhook-secret":                 {ask: "GET /webhook-secret", status: 200},
	"GET /credential":                     {ask: "GET /credential", status: 200, holds: `"keyId":"sandbox_key" "sandbox":true`, lacks: "sandbox_secret"},
	"POST /credential/rotate":             {ask: "POST /credential/rotate", body: `{"overlapSeconds":604800}`, status: 200, holds: `"apiSecret"`, lacks: "sandbox_secret"},
	"POST /events/redeliver":              {ask: "POST /events/redeliver", body: `{"from":"2020-01-01T00:00:00Z","to":"2020-01-02T00:00:00Z","types":["payin.*"]}`, status: 202, holds: `{"count":0}`},
	"POST /webhook-secret/rotate":         {ask: "POST /webhook-secret/rotate", status: 200, holds: "whsec_"},
	"POST /webhook-endpoints":             {ask: "POST /webhook-endpoints", body: `{"url":"https://shop.example/events","events":["payin.*","refund.failed"],"description":"ERP"}`, status: 201, holds: `"secret":"whsec_`},
	"GET /webhook-endpoints":              {ask: "GET /webhook-endpoints?limit=1", status: 200, lacks: "whsec_"},
	"GET /webhook-endpoints/{id}":         {ask: "GET /webhook-endpoints/{endpoint}", status: 200, lacks: "whsec_"},
	"PATCH /webhook-endpoints/{id}":       {ask: "PATCH /webhook-endpoints/{endpoint}", body: `{"events":["*"],"description":""}`, status: 200, lacks: "whsec_"},
	"DELETE /webhook-endpoints/{id}":      {ask: "DELETE /webhook-endpoints/{removed}", status: 204},
	"POST /webhook-endpoints/{id}/rotate": {ask: "POST /webhook-endpoints/{endpoint}/rotate", body: `{"overlapSeconds":60}`, status: 200, holds: `"secret":"whsec_`},
	"POST /webhook-endpoints/{id}/test":   {ask: "POST /webhook-endpoints/{endpoint}/test", status: 200, holds: `"status":200`},
	"GET /openapi.json":                   {ask: "GET /openapi.json", nobody: true, status: 200},
	"GET /docs":                           {ask: "GET /docs", nobody: true, status: 200, holds: `id="createPayin" href="#PayinRequest"`, lacks: "<script http://"},
	"GET /docs/errors":                    {ask: "GET /docs/errors", nobody: true, status: 200, holds: `id="validation_failed"`, lacks: "<script"},
	"GET /healthz":                        {ask: "GET /healthz", nobody: true, status: 200},
	"GET /readyz":                         {ask: "GET /readyz", nobody: true, status: 200},
	"POST /sandbox/payin/{id}/{action}":   {ask: "POST /sandbox/payin/{payin}/pay", body: `{"amount":1}`, nobody: true, status: 204},
	"POST /sandbox/payout/{id}/{action}":  {ask: "POST /sandbox/payout/{payout}/return", nobody: true, status: 204},
	"POST /sandbox/faults":                {ask: "POST /sandbox/faults", body: `{"operation":"refund","kind":"late"}`, nobody: true, status: 204},
	"DELETE /sandbox/faults":              {ask: "DELETE /sandbox/faults", nobody: true, status: 204},
	"POST /sandbox/clock":                 {ask: "POST /sandbox/clock", body: `{"advance":1}`, nobody: true, status: 204},
	"GET /sandbox/processor/transfers":    {ask: "GET /sandbox/processor/transfers", nobody: true, status: 200},
	"POST /inbound/{account}/{token}":     {ask: "POST /inbound/sandbox/TOKEN", nobody: true, status: 200}, // with a signature
}

// disputed is the dispute of a new pay-in.
func disputed(t *testing.T, g *apptest.Installed, reference string) (id string) {
	t.Helper()
	payin := g.Must(201, "POST", "/payin", with(pixOf, "{ref}", reference)).Get("id")
	g.Must(204, "POST", "/sandbox/payin/"+payin+"/pay", "")
	g.Must(204, "POST", "/sandbox/payin/"+payin+"/dispute", "")
	apptest.Until(t, func() string {
		list := g.Must(200, "GET", "/disputes?payinId="+payin, "")
		if id = list.Get("data.0.id"); id == "" {
			return list.Body
		}
		return ""
	})
	return id
}

// Every operation of the contract succeeds, and the gateway serves the contract that the
// tests use.
func TestEveryRoute(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		v := apptest.NewReceiver(t, app.SandboxWebhookSecret, nil)
		known := map[string]string{"{ref}": "visit"}
		known["{payin}"] = g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "payin")).Get("id")
		known["{payout}"] = g.Must(201, "POST", "/payout", hooked(payoutOf, v, "/h", "visited")).Get("id")
		arrived(t, v, "/h", "payout.processing", "payout.completed")
		known["{event}"] = eventOf(t, g, known["{payout}"])
		attempted(t, g, known["{event}"], 1)
		quiet := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(quiet.Close)
		for _, name := range []string{"{endpoint}", "{removed}"} {
			known[name] = g.Must(201, "POST", "/webhook-endpoints", `{"url":"`+quiet.URL+`","events":["refund.failed"]}`).Get("id")
		}
		known["{refundable}"] = g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "refundable")).Get("id")
		g.Must(204, "POST", "/sandbox/payin/"+known["{refundable}"]+"/pay", "")
		known["{refund}"] = g.Must(201, "POST", "/payin/"+known["{refundable}"]+"/refunds", `{"referenceId":"visited refund","amount":2}`).Get("id")
		for _, name := range []string{"defended", "accepted"} {
			known["{"+name+"}"] = disputed(t, g, name)
		}
		known["{batch}"] = g.Must(201, "POST", "/payout-batches", with(batchesOf, "{ref}", "visited batch")).Get("id")
		arm(g, "transfer", "not_sent", 1000)
		n := 0
		apptest.Until(t, func() string { // once the circuit breaker is open, payouts stay pending
			n++
			known["{canceled}"] = g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", fmt.Sprint("canceled ", n))).Get("id")
			if got := g.Ask("POST", "/payout/"+known["{canceled}"]+"/cancel", ""); got.Status != 200 {
				return got.Body
			}
			return ""
		})
		g.Must(204, "DELETE", "/sandbox/faults", "")

		asker := needApproval(t, g, 1)
		for _, name := range []string{"approved", "rejected"} {
			known["{"+name+"}"] = asker.Must(201, "POST", "/payout", with(with(payoutOf, "500", "700"), "{ref}", name)).Get("id")
		}

		routes := 0
		doc := apitest.Document(t).Paths.Map()
		for _, path := range slices.Sorted(maps.Keys(doc)) {
			for method := range doc[path].Operations() {
				routes++
				a, ok := visits[method+" "+path]
				if !ok {
					t.Errorf("no visit of %s %s", method, path)
					continue
				}
				if path == "/inbound/{account}/{token}" {
					a.body = `{"id":"visit","subject":"charge","externalId":"nobodys","createdAt":"2026-01-01T00:00:00Z"}`
					a.head = signed(a.body, apptest.BankSecret, 0)
				}
				a.play(t, g, known, never)
			}
		}
		if routes != len(visits) {
			t.Errorf("the contract has %d operations, %d are visited", routes, len(visits))
		}
		served := g.Anonymous().Must(200, "GET", "/openapi.json", "").Body
		for path := range doc {
			if !strings.Contains(served, `"`+path+`"`) {
				t.Errorf("the contract that is served lacks %s", path)
			}
		}
	})
}
