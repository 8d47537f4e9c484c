package app_test

import (
	"fmt"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
)

// The two requests of the specification, to the letter.
const (
	givenPayin  = `{"paymentMethod":"PIX","amount":12990,"referenceId":"{ref}","webhookUrl":"{hook}","customer":{"name":"Maria da Silva","email":"maria@example.com","document":"52998224725","phone":"11987654321","address":{"street":"Rua das Flores","number":"123","neighborhood":"Centro","city":"Sao Paulo","state":"SP","zipCode":"01001000"}},"items":[{"title":"Camiseta","quantity":1,"unitPrice":12990,"tangible":true}]}`
	givenPayout = `{"amount":500,"pixKey":"maria@example.com","pixKeyType":"EMAIL","beneficiaryName":"Maria","beneficiaryDocument":"52998224725","webhookUrl":"{hook}","referenceId":"{ref}"}`
)

// The rows that pay-ins and payouts leave in the database.
const (
	rowsPaid    = "entry received 1, event payin.paid 1, notices 1, payins 1, receipt_claims 1, receipts 1"
	rowsPaidOut = "entry payout_held 1, entry payout_paid 1, event payout.completed 1, event payout.processing 1, notices 1, payouts 1"
)

var payinScenarios = []scenario{
	{"the given pay-in, without credentials", []step{
		{ask: "POST /payin", body: givenPayin, nobody: true, status: 201, holds: `"status":"PENDING" "amount":12990 "qrcode":"000201 "externalId":" "checkoutUrl":"http "referenceId":" "origin":"public"`, lacks: "Maria 52998224725 Flores"},
		{ask: "POST /payin", body: givenPayin, nobody: true, status: 201, holds: "Idempotency-Replayed:true"},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "GET /payin/{id}?expand=customer,items", status: 200, holds: `"status":"PAID" "paidAmount":12990 "netAmount":12990 "endToEndId":"E "name":"Maria "title":"Camiseta" "origin":"public"`},
	}, "deliveries 1, " + rowsPaid},
	{"an order and its repeats", []step{
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"status":"PENDING" "amount":1000 "version":1 "qrcode":"000201 "txid": Content-Type:application/json`, lacks: `Idempotency-Replayed "customer" Maria "paidAt" "late" "fee" "failure"`},
		{ask: "POST /payin", body: pixOf, status: 201, holds: "Idempotency-Replayed:true"},
		{ask: "POST /payin", head: "Idempotency-Key: k1", body: pixOf, status: 201, holds: "Idempotency-Replayed:true"},
		{ask: "POST /payin", body: ` { "referenceId" :"{ref}","customer":{"document":"52998224725","name":"Maria"},"items":null,"amount":1000,"paymentMethod":"PIX"}`, status: 201, holds: "Idempotency-Replayed:true"},
		{ask: "POST /payin", body: with(pixOf, "Maria", "maria"), status: 409, holds: `"code":"reference_conflict" "field":"customer"`, lacks: `maria "field":"amount"`},
		{ask: "POST /payin", body: with(pixOf, `1000`, `1001,"webhookUrl":"{hook}"`), status: 409, holds: `"field":"amount" "field":"webhookUrl"`, lacks: `"field":"customer"`},
		{ask: "POST /payin", body: with(pixOf, "1000", "0"), status: 409, holds: `"field":"amount"`},
		{ask: "POST /payin", body: with(pixOf, `"amount"`, `"surprise":1,"amount"`), status: 400, holds: `"code":"unknown_field"`},
		{ask: "GET /payin/{id}", status: 200, holds: `"version":1 "amount":1000`},
		{ask: "HEAD /payin/{id}", status: 200, lacks: "PENDING"},
	}, "payins 1"},
	{"the same reference with credentials and without", []step{
		{ask: "POST /payin", body: with(pixOf, "1000", "5"), nobody: true, status: 201, holds: `"origin":"public" "amount":5`, lacks: "Idempotency-Replayed"},
		{ask: "POST /payin", body: with(pixOf, "1000", "1001"), nobody: true, status: 409, holds: `"code":"reference_conflict"`, lacks: `"errors": "field"`},
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"amount":1000`, lacks: `Idempotency-Replayed "origin"`},
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"amount":1000 Idempotency-Replayed:true`, lacks: `"origin"`},
		{ask: "POST /payin", body: pixOf, nobody: true, status: 409, lacks: `"errors": "field"`},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`, lacks: `"origin"`},
	}, "entry received 1, event payin.paid 1, notices 1, payins 2, receipt_claims 1, receipts 1"},
	{"the same reference for a pay-in and a payout", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /payout", body: payoutOf, status: 201, lacks: "Idempotency-Replayed"},
		{ask: "GET /payout/{id}", status: 200, holds: `"status":"COMPLETED" "endToEndId":"E "completedAt":`, await: true},
	}, "entry payout_held 1, entry payout_paid 1, event payout.completed 1, event payout.processing 1, notices 1, payins 1, payouts 1"},
	{"paid, and canceled too late", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/pay", nobody: true, status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID" "paidAmount":1000 "netAmount":1000 "fee":0 "endToEndId":"E "paidAt":" "version":2`, lacks: `"late"`},
		{ask: "POST /payin/{id}/cancel", status: 409, holds: `"code":"invalid_state"`},
		{ask: "POST /sandbox/payin/{id}/expire", status: 409, holds: `"code":"invalid_state"`},
		{ask: "POST /sandbox/payin/{id}/win", status: 409},
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"status":"PAID" Idempotency-Replayed:true`},
	}, rowsPaid},
	{"canceled twice, then paid", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /payin/{id}/cancel", status: 200, holds: `"status":"CANCELED" "version":2`},
		{ask: "POST /payin/{id}/cancel", body: `{"ignored":true}`, status: 200, holds: `"status":"CANCELED" "version":2`},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID" "late":true "version":3`},
	}, "entry received 1, event payin.canceled 1, event payin.paid 1, notices 1, payins 1, receipt_claims 1, receipts 1"},
	{"expired, then paid in two parts", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/expire", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"EXPIRED"`},
		{ask: "POST /sandbox/payin/{id}/pay", body: `{"amount":400}`, status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"EXPIRED" "paidAmount":400`},
		{ask: "POST /sandbox/payin/{id}/pay", body: `{"amount":700}`, status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID" "paidAmount":1000 "unappliedAmount":100 "late":true`},
		{ask: "GET /events?limit=200", status: 200, holds: `"type":"payin.overpaid" "unappliedAmount":100`},
	}, "case overpaid 1, entry received 2, entry received_unapplied 1, event payin.expired 1, event payin.overpaid 1, event payin.paid 1, event payin.underpaid 1, notices 3, payins 1, receipt_claims 2, receipts 2"},
	{"paid twice", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID" "paidAmount":1000 "unappliedAmount":1000`},
		{ask: "GET /balance", status: 200, lacks: `"unapplied":0`},
	}, "case overpaid 1, entry received 1, entry received_unapplied 1, event payin.overpaid 1, event payin.paid 1, notices 2, payins 1, receipt_claims 2, receipts 2"},
	{"failed, and money is turned away by the bank", []step{
		{ask: "POST /payin", body: cardOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/fail", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"FAILED" "failure":{"code":" "message":"`},
		{ask: "POST /sandbox/payin/{id}/pay", status: 409, holds: `"code":"invalid_state"`},
		{ask: "POST /payin/{id}/cancel", status: 409},
	}, "event payin.failed 1, notices 1, payins 1"},
	{"a card, paid", []step{
		{ask: "POST /payin", body: with(cardOf, `"amount"`, `"installments":3,"description":"Camiseta","metadata":{"cart":"9"},"amount"`), status: 201, holds: `"description":"Camiseta" "metadata":{"cart":"9"} "card":{"checkoutUrl":"http`, lacks: `"pix" "boleto"`},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID" "last4":"1111" "brand":`},
	}, rowsPaid},
	{"a bill, paid", []step{
		{ask: "POST /payin", body: billOf, status: 201, holds: `"barcode":"999 "digitableLine":"999 "ourNumber":" "dueDate":" "pixQrcode":"000201 "pdfUrl":"http "checkoutUrl":"http`, lacks: "card"},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`},
	}, rowsPaid},
	{"disputed twice: won, lost, and taken back", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/lose", status: 409},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "POST /sandbox/payin/{id}/dispute", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"DISPUTED"`},
		{ask: "POST /sandbox/payin/{id}/dispute", status: 409},
		{ask: "POST /sandbox/payin/{id}/win", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`},
		{ask: "POST /sandbox/payin/{id}/dispute", status: 204},
		{ask: "POST /sandbox/payin/{id}/lose", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"CHARGEBACK"`},
		{ask: "POST /sandbox/payin/{id}/win", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`},
	}, "disputes 2, entry chargeback_reversed 1, entry charged_back 1, entry dispute_opened 2, entry dispute_won 1, entry received 1, event dispute.closed 3, event dispute.opened 2, event payin.chargeback 1, event payin.dispute_won 2, event payin.disputed 2, event payin.paid 1, notices 6, payins 1, receipt_claims 1, receipts 1"},
	{"personal data is shown with expand", []step{
		{ask: "POST /payin", body: with(pixOf, `"amount"`, `"items":[{"title":"Livro","quantity":2,"unitPrice":0,"tangible":false}],"amount"`), status: 201, lacks: "Livro Maria"},
		{ask: "GET /payin/{id}", status: 200, lacks: "Livro Maria"},
		{ask: "GET /payin?referenceId=nobody", status: 200, holds: `"data":[]`},
		{ask: "GET /payin/{id}?expand=customer", status: 200, holds: "Maria 52998224725", lacks: "Livro"},
		{ask: "GET /payin/{id}?expand=items", status: 200, holds: `"items":[{"title":"Livro","quantity":2,"unitPrice":0,"tangible":false}]`, lacks: "Maria"},
		{ask: "GET /payin/{id}?expand=customer,customer", status: 422},
		{ask: "GET /payin/{id}?expand=beneficiary", status: 422},
	}, "payins 1"},
}

var payoutScenarios = []scenario{
	{"the given payout, and its repeats", []step{
		{ask: "POST /payout", body: givenPayout, status: 201, holds: `"status":"PENDING" "amount":"500" "currency":"BRL" "pixKey":"maria@example.com" "pixKeyType":"EMAIL" "approval":"none" "version":1`, lacks: "52998224725 Maria Idempotency-Replayed endToEndId"},
		{ask: "POST /payout", body: givenPayout, status: 201, holds: `Idempotency-Replayed:true`},
		{ask: "POST /payout", body: with(givenPayout, "500", "501"), status: 409, holds: `"code":"reference_conflict" "field":"amount"`, lacks: `"field":"pixKey"`},
		{ask: "POST /payout", body: with(givenPayout, "maria@", "MARIA@"), status: 409, holds: `"field":"pixKey"`, lacks: "MARIA"},
		// It completes in about a second.
		{ask: "GET /payout/{id}", status: 200, holds: `"status":"COMPLETED" "version":3`, await: true},
		{ask: "POST /payout", body: givenPayout, status: 201, holds: `"status":"COMPLETED" Idempotency-Replayed:true`},
		{ask: "POST /payout/{id}/cancel", status: 409, holds: `"code":"invalid_state"`},
		{ask: "POST /sandbox/payout/{id}/fail", status: 409},
		{ask: "GET /payout/{id}?expand=beneficiary", status: 200, holds: `"name":"Maria" "document":"52998224725"`},
		{ask: "GET /sandbox/processor/transfers?externalId={externalId}", nobody: true, status: 200, holds: `"status":"paid" "amount":500 "pixKey":"maria@example.com"`},
	}, "deliveries 2, " + rowsPaidOut},
	{"more than there is", []step{
		{ask: "POST /payout", body: with(payoutOf, "500", "99999999999"), status: 422, holds: `"code":"insufficient_balance"`},
		{ask: "POST /payout", body: payoutOf, status: 201, lacks: "Idempotency-Replayed"}, // the reference was still unused
	}, rowsPaidOut},
	{"refused by the bank", []step{
		{ask: "POST /sandbox/faults", body: `{"operation":"transfer","kind":"refuse","count":1}`, status: 204},
		{ask: "POST /payout", body: payoutOf, status: 201},
		{ask: "GET /payout/{id}", status: 200, holds: `"status":"FAILED" "failure":{"code":"`, await: true},
		{ask: "POST /sandbox/payout/{id}/return", status: 409},
		{ask: "POST /payout", body: payoutOf, status: 201, holds: `"status":"FAILED" Idempotency-Replayed:true`},
	}, "entry payout_held 1, entry payout_released 1, event payout.failed 1, event payout.processing 1, payouts 1"},
	{"returned by the receiver's bank", []step{
		{ask: "POST /payout", body: payoutOf, status: 201},
		{ask: "GET /payout/{id}", status: 200, holds: `"status":"COMPLETED"`, await: true},
		{ask: "POST /sandbox/payout/{id}/return", nobody: true, status: 204},
		{ask: "GET /payout/{id}", status: 200, holds: `"status":"RETURNED" "returnedAmount":"500" "version":4`},
		{ask: "POST /sandbox/payout/{id}/return", status: 409},
		{ask: "GET /sandbox/processor/transfers?externalId={externalId}", status: 200, holds: `"status":"returned"`},
	}, "entry payout_held 1, entry payout_paid 1, entry payout_returned 1, event payout.completed 1, event payout.processing 1, event payout.returned 1, notices 2, payouts 1"},
	{"keys of every type, echoed as sent and paid in their normal form", []step{
		{ask: "POST /payout", body: with(with(payoutOf, "maria@example.com", "11987654321"), "EMAIL", "PHONE"), status: 201, holds: `"pixKey":"11987654321"`},
		{ask: "GET /sandbox/processor/transfers?externalId={externalId}", status: 200, holds: `"pixKey":"+5511987654321" "status":"paid"`, await: true},
		{ask: "POST /payout", body: with(with(with(payoutOf, "maria@example.com", "123E4567-E89B-12D3-A456-426614174000"), "EMAIL", "EVP"), "{ref}", "{ref} evp"), status: 201, holds: "123E4567"},
		{ask: "GET /sandbox/processor/transfers?externalId={externalId}", status: 200, holds: `"pixKey":"123e4567-e89b-12d3-a456-426614174000" "status":"paid"`, await: true},
		{ask: "POST /payout", body: with(with(with(payoutOf, "maria@example.com", "52998224725"), "EMAIL", "CPF"), "{ref}", "{ref} cpf"), status: 201},
		{ask: "POST /payout", body: with(with(with(payoutOf, "maria@example.com", "12ABC34501DE35"), "EMAIL", "CNPJ"), "{ref}", "{ref} cnpj"), status: 201},
	}, "entry payout_held 4, entry payout_paid 4, event payout.completed 4, event payout.processing 4, notices 4, payouts 4"},
}

// clockScenarios advance the clock of all orders, so they run first.
var clockScenarios = []scenario{
	{"time passes", []step{
		{ask: "POST /payin", body: with(pixOf, `"amount"`, `"expiresIn":60,"amount"`), status: 201},
		{ask: "POST /sandbox/clock", nobody: true, body: `{"advance":30}`, status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PENDING"`},
		{ask: "POST /sandbox/clock", body: `{"advance":31}`, status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"EXPIRED"`},
		{ask: "POST /payin", body: with(pixOf, `"amount"`, `"expiresIn":60,"amount"`), status: 201, holds: `"status":"EXPIRED" Idempotency-Replayed:true`},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID" "late":true`},
	}, "entry received 1, event payin.expired 1, event payin.paid 1, notices 1, payins 1, receipt_claims 1, receipts 1"},
	{"a repeat does not fail because time has moved on", []step{
		{ask: "POST /payin", body: billOf, status: 201},
		{ask: "POST /sandbox/clock", body: `{"advance":864000}`, status: 204}, // past its due date
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PENDING"`},    // and still to be paid
		{ask: "POST /sandbox/clock", body: `{"advance":2592000}`, status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"EXPIRED"`},
		{ask: "POST /payin", body: billOf, status: 201, holds: `"status":"EXPIRED" Idempotency-Replayed:true`},
	}, "event payin.expired 1, payins 1"},
}

// Scenarios of orders on one gateway.
func TestScenarios(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		hook := apptest.NewReceiver(t, app.SandboxWebhookSecret, nil)
		runScenarios(t, g, hook.URL, clockScenarios)
		runScenarios(t, g, hook.URL, payinScenarios)
		runScenarios(t, g, hook.URL, payoutScenarios)
		arrived(t, hook, "/", "payin.paid", "payout.processing", "payout.completed")
		// A repeat is accepted even if its due date has passed.
		dated := with(billOf, `"amount"`, `"dueDate":"`+g.Must(201, "POST", "/payin", with(billOf, "{ref}", "date")).Get("boleto.dueDate")+`","amount"`)
		g.Must(201, "POST", "/payin", with(dated, "{ref}", "dated"))
		g.Must(204, "POST", "/sandbox/clock", `{"advance":864000}`)
		if again := g.Must(201, "POST", "/payin", with(dated, "{ref}", "dated")); !again.Replayed() {
			t.Errorf("not answered as a repeat: %s", again.Body)
		}
		g.Must(422, "POST", "/payin", with(dated, "{ref}", "dated anew"))
	})
}

// The sandbox's routes complete or fail a payout before it completes by itself. If they
// are late, the test tries another payout.
func TestPayoutActions(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		for action, status := range map[string]string{"complete": "COMPLETED", "fail": "FAILED"} {
			n := 0
			apptest.Until(t, func() string {
				n++
				id := g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", fmt.Sprint(action, n))).Get("id")
				if got := g.Ask("POST", "/sandbox/payout/"+id+"/"+action, ""); got.Status != 204 {
					return got.Body
				}
				if got := g.Must(200, "GET", "/payout/"+id, "").Get("status"); got != status {
					t.Errorf("%s: it is %s", action, got)
				}
				return ""
			})
		}
		g.Verify(t)
	})
}
