package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
)

// refusals are invalid requests. None leaves a row.
var refusals = []step{
	// Path and method are checked first, without credentials.
	{ask: "GET /nowhere", nobody: true, status: 404, holds: `"code":"not_found"`},
	{ask: "GET /payin/", nobody: true, status: 404},
	{ask: "GET //payin", nobody: true, status: 404},
	{ask: "POST /sandbox/payin/{id}/pay/now", nobody: true, status: 404},
	{ask: "PUT /payin", nobody: true, status: 405, holds: `"code":"method_not_allowed" Allow:GET`},
	{ask: "DELETE /payout", nobody: true, status: 405, holds: "POST"},
	{ask: "POST /balance", nobody: true, status: 405},
	{ask: "GET /sandbox/faults", nobody: true, status: 405, holds: "Allow:DELETE POST"},

	// Then credentials.
	{ask: "POST /payout", nobody: true, body: "garbage", status: 401, holds: `"code":"unauthorized" Www-Authenticate:`},
	{ask: "GET /balance", nobody: true, status: 401},
	{ask: "GET /events", nobody: true, status: 401},
	{ask: "POST /payin", head: "X-Api-Secret:", body: pixOf, status: 401},
	{ask: "POST /payin", head: "X-Api-Key:", body: pixOf, status: 401},
	{ask: "POST /payin", head: "X-Api-Secret: sandbox_secreT", body: pixOf, status: 401},
	{ask: "POST /payin", head: "X-Api-Key: nobody", body: pixOf, status: 401},
	{ask: "POST /payin", head: "X-Api-Key: sandbox_key\nX-Api-Key: sandbox_key", body: pixOf, status: 401},
	{ask: "POST /payin", head: "X-Api-Secret: " + strings.Repeat("s", 300), body: pixOf, status: 401},
	{ask: "GET /payout", head: "X-Api-Secret: wrong", status: 401},

	// Then the type and size of the body.
	{ask: "POST /payin", head: "Content-Type:", body: pixOf, status: 415, holds: `"code":"unsupported_media_type"`},
	{ask: "POST /payin", head: "Content-Type: text/plain", body: pixOf, status: 415},
	{ask: "POST /payin", head: "Content-Type: application/json; charset=latin1", body: pixOf, status: 415},
	{ask: "POST /payout", head: "Content-Encoding: gzip", body: payoutOf, status: 415},
	{ask: "POST /payout", head: "Content-Type: text/plain", body: strings.Repeat("[", 70_000), status: 415},
	{ask: "POST /payout", body: strings.Repeat("[", 70_000), status: 413, holds: `"code":"body_too_large"`},
	{ask: "POST /sandbox/clock", body: strings.Repeat(" ", 70_000), status: 413},

	// Then its syntax.
	{ask: "POST /payin", head: "Content-Type: application/json", status: 400, holds: `"code":"malformed_json"`},
	{ask: "POST /payin", body: pixOf[:40], status: 400, holds: `"code":"malformed_json"`},
	{ask: "POST /payin", body: pixOf + "{}", status: 400, holds: `"code":"malformed_json"`},
	{ask: "POST /payin", body: with(pixOf, "Maria", "Mar\xffa"), status: 400},
	{ask: "POST /payin", body: with(pixOf, `"Maria"`, strings.Repeat("[", 8)+strings.Repeat("]", 8)), status: 400},
	{ask: "POST /payin", body: with(pixOf, `"name"`, `"name":"Rui","name"`), status: 400, holds: `"code":"duplicate_field" "field":"customer.name"`, lacks: "Rui Maria"},
	{ask: "POST /payin", body: with(pixOf, `"name"`, `"planet":"Vulcano","name"`), status: 400, holds: `"code":"unknown_field" "field":"customer.planet"`, lacks: "Vulcano"},
	{ask: "POST /payin", body: with(pixOf, `"amount"`, `"items":[{"color":"red"}],"status":"PAID","amount"`), status: 400, holds: `"field":"items[0].color" "field":"status" "field":"items[0].title"`},
	{ask: "POST /payout", body: with(payoutOf, `"amount"`, `"fee":0,"Amount"`), status: 400, holds: `"field":"fee" "field":"Amount" "field":"amount"`},
	{ask: "POST /payin", head: "Idempotency-Key: a\nIdempotency-Key: b", body: pixOf, status: 400, holds: `"code":"duplicate_field"`},
	{ask: "POST /payin", head: "Idempotency-Key: " + strings.Repeat("k", 256), body: pixOf, status: 422, holds: `"field":"Idempotency-Key"`},

	// Then its values: all invalid fields, each once.
	{ask: "POST /payin", status: 422, lacks: "zzz",
		body: `{"paymentMethod":"zzz","amount":0,"referenceId":"","webhookUrl":"ftp://zzz","customer":{"name":"","email":"zzz","document":"529.982.247-25","phone":"zzz",
			"address":{"street":" ","number":" ","complement":" ","neighborhood":" ","city":" ","state":"zz","zipCode":"zzz","country":"zzz"}},
			"items":[{"title":"4111111111111111","quantity":0,"unitPrice":-1},{}],"description":"5555 5555 5555 4444","metadata":{"k":"378282246310005"},"returnUrl":"https://zzz.example"}`,
		holds: `"field":"paymentMethod" "field":"amount" "field":"referenceId" "field":"webhookUrl" "field":"customer.name" "field":"customer.email" "field":"customer.document"
			"field":"customer.phone" "field":"customer.address.street" "field":"customer.address.number" "field":"customer.address.complement" "field":"customer.address.neighborhood"
			"field":"customer.address.city" "field":"customer.address.state" "field":"customer.address.zipCode" "field":"customer.address.country" "field":"items[0].title"
			"field":"items[0].quantity" "field":"items[0].unitPrice" "field":"items[0].tangible" "field":"items[1].title" "field":"description" "field":"metadata.k" "field":"returnUrl"
			"code":"not_allowed" "code":"out_of_range" "code":"too_short" "code":"invalid_format" "code":"required"`},
	{ask: "POST /payout", status: 422, lacks: "zzz",
		body:  `{"amount":100000000000,"pixKey":"zzz","pixKeyType":"CPF","beneficiaryName":"","beneficiaryDocument":"zzz","webhookUrl":"https://a:b@c.example","referenceId":"a\u0000b"}`,
		holds: `"field":"amount" "field":"pixKey" "field":"beneficiaryName" "field":"beneficiaryDocument" "field":"webhookUrl" "field":"referenceId"`},
	{ask: "POST /payout", body: `{}`, status: 422,
		holds: `"field":"amount" "field":"pixKey" "field":"pixKeyType" "field":"beneficiaryName" "field":"beneficiaryDocument" "field":"referenceId"`, lacks: "webhookUrl"},
	{ask: "POST /payin", body: `{"paymentMethod":null,"amount":null}`, status: 422, holds: `"code":"required"`, lacks: "invalid_type"},
	{ask: "POST /payin", body: with(pixOf, "1000", `"1000"`), status: 422, holds: `"field":"amount" "code":"invalid_type"`},
	{ask: "POST /payin", body: with(pixOf, "1000", "1000.0"), status: 422, holds: `"code":"invalid_type"`},
	{ask: "POST /payin", body: with(pixOf, "1000", "1e3"), status: 422, holds: `"code":"invalid_type"`},
	{ask: "POST /payin", body: with(billOf, "5000", "10000000000"), status: 422, holds: `"field":"amount" "code":"out_of_range"`},
	{ask: "POST /payin", body: with(pixOf, `"amount"`, `"dueDate":"2030-01-01","installments":2,"amount"`), status: 422, holds: `"field":"dueDate" "field":"installments" "code":"not_allowed"`},
	{ask: "POST /payin", body: with(pixOf, `"amount"`, `"expiresIn":59,"amount"`), status: 422, holds: `"field":"expiresIn"`},

	// Unknown resources and invalid parameters.
	{ask: "GET /payin/1", status: 404, holds: `"code":"not_found"`},
	{ask: "GET /payout/01a1fc88-370d-71db-9c03-c351fb553c2e", status: 404},
	{ask: "GET /events/evt_01a1fc88370d71db9c03c351fb553c2e", status: 404},
	{ask: "GET /events/evt_01a1fc88370d71db9c03c351fb553c2e/attempts", status: 404},
	{ask: "POST /events/evt_01a1fc88370d71db9c03c351fb553c2e/redeliver", status: 404},
	{ask: "POST /payin/01a1fc88-370d-71db-9c03-c351fb553c2e/cancel", status: 404},
	{ask: "POST /payout/01a1fc88-370d-71db-9c03-c351fb553c2e/cancel", status: 404},
	{ask: "POST /sandbox/payout/01a1fc88-370d-71db-9c03-c351fb553c2e/complete", status: 404},
	{ask: "POST /sandbox/payin/01a1fc88-370d-71db-9c03-c351fb553c2e/steal", status: 404},
	{ask: "GET /payin?limit=201", status: 422, holds: `"field":"limit"`},
	{ask: "GET /payin?limit=1&limit=1", status: 422, holds: `"field":"limit"`},
	{ask: "GET /payin?status=LOST&color=red&createdFrom=yesterday&cursor=abc", status: 422, holds: `"field":"status" "field":"color" "field":"createdFrom" "field":"cursor"`},
	{ask: "GET /payout?paymentMethod=PIX", status: 422, holds: `"field":"paymentMethod"`},
	{ask: "GET /events?status=PAID", status: 422},
	{ask: "GET /balance?expand=all", status: 422},

	// The sandbox's own routes are as strict.
	{ask: "POST /sandbox/faults", body: `{"operation":"theft","kind":"silent","count":0}`, status: 422, holds: `"field":"operation" "field":"kind" "field":"count"`},
	{ask: "POST /sandbox/faults", body: `{"operation":"charge","kind":"refuse","often":1}`, status: 400, holds: `"field":"often"`},
	{ask: "POST /sandbox/clock", body: `{"advance":-1}`, status: 422, holds: `"field":"advance"`},
	{ask: "POST /sandbox/clock", body: `{}`, status: 422, holds: `"code":"required"`},
	{ask: "POST /inbound/nobody", body: `{}`, status: 404},
	{ask: "POST /inbound/nobody/other", body: `{}`, status: 404},
	{ask: "POST /inbound/sandbox/other", nobody: true, body: `{}`, status: 404},
	{ask: "POST /inbound/sandbox/TOKEN", nobody: true, body: `{"id":"x","subject":"charge","externalId":"y"}`, status: 401, holds: `"code":"unauthorized"`},
}

// Refused requests leave no rows.
func TestRefusedRequestsLeaveNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		before := g.Rows(t)
		known := map[string]string{"{ref}": "refused", "{id}": "01a1fc88-370d-71db-9c03-c351fb553c2e"}
		for i := range refusals {
			a := &refusals[i]
			got, _ := a.play(t, g, known, never)
			if got.Get("status") != fmt.Sprint(a.status) || got.Get("requestId") != got.Header.Get("X-Request-Id") || got.Get("title") == "" {
				t.Errorf("%s: incomplete problem document: %s", a.ask, got.Body)
			}
			if rows := g.Rows(t).Since(before); rows != "" {
				t.Fatalf("%s with %.60q left %s", a.ask, a.body, rows)
			}
		}
		// The reference is still unused.
		g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "refused"))
		g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "refused"))
	})
}

// Without a public merchant, requests without credentials are refused.
func TestNoPublicMerchant(t *testing.T) {
	t.Parallel()
	g := apptest.Start(t, "sqlite", "public-merchant", "")
	g.Anonymous().Must(401, "POST", "/payin", with(pixOf, "{ref}", "stranger"))
	g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "customer"))
}
