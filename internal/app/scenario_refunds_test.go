package app_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
)

const refundOf = `{"referenceId":"{ref}","amount":400,"reason":"Returned goods"}`

// rowsRefunded are the rows of a paid order with one completed refund of a part.
const rowsRefunded = "entry received 1, entry refund_held 1, entry refunded 1, event payin.paid 1, event payin.partially_refunded 1, " +
	"event refund.completed 1, notices 2, payins 1, receipt_claims 1, receipts 1, refund_parts 1, refunds 1"

var refundScenarios = []scenario{
	{"a part, then the rest", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /payin/{id}/refunds", body: refundOf, status: 409, holds: `"code":"invalid_state" PENDING`},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "POST /payin/{id}/refunds", body: refundOf, status: 201, holds: `"payinId":" "externalId":" "amount":400 "status":"P "reason":"Returned goods" "version":`, lacks: `"failure" "origin" "refundedAmount" Idempotency-Replayed`},
		{ask: "POST /payin/{id}/refunds", body: refundOf, status: 201, holds: "Idempotency-Replayed:true"},
		{ask: "POST /payin/{id}/refunds", body: with(refundOf, "400", "401"), status: 409, holds: `"code":"reference_conflict" "field":"amount"`},
		{ask: "GET /refunds/{refund}", status: 200, holds: `"status":"COMPLETED" "completedAt":" "endToEndId":"`, await: true},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PARTIALLY_REFUNDED" "refundedAmount":400`},
		{ask: "POST /payin/{id}/refunds", body: with(with(refundOf, "{ref}", "{ref} more"), "400", "601"), status: 422, holds: `"code":"validation_failed" "field":"amount" "code":"out_of_range"`},
		{ask: "POST /payin/{id}/refunds", body: `{"referenceId":"{ref} rest"}`, status: 201, holds: `"amount":600`},
		{ask: "GET /refunds/{refund}", status: 200, holds: `"status":"COMPLETED"`, await: true},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"REFUNDED" "refundedAmount":1000`},
		{ask: "POST /payin/{id}/refunds", body: with(refundOf, "{ref}", "{ref} more"), status: 409, holds: `"code":"invalid_state"`},
		{ask: "GET /payin/{id}/refunds?status=COMPLETED", status: 200, holds: `"amount":400 "amount":600 "nextCursor":null`},
		{ask: "GET /refunds?limit=1", status: 200, holds: `"amount":600 "nextCursor":"`, lacks: `"amount":400`},
	}, "entry received 1, entry refund_held 2, entry refunded 2, event payin.paid 1, event payin.partially_refunded 1, event payin.refunded 1, " +
		"event refund.completed 2, notices 3, payins 1, receipt_claims 1, receipts 1, refund_parts 2, refunds 2"},
	{"of an order that was paid in part and expired", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/pay", body: `{"amount":600}`, status: 204},
		{ask: "POST /sandbox/payin/{id}/expire", status: 204},
		{ask: "POST /payin/{id}/refunds", body: with(refundOf, "400", "601"), status: 422, holds: `"field":"amount" "code":"out_of_range"`},
		{ask: "POST /payin/{id}/refunds", body: refundOf, status: 201},
		{ask: "GET /refunds/{refund}", status: 200, holds: `"status":"COMPLETED"`, await: true},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"EXPIRED" "paidAmount":600 "refundedAmount":400`},
	}, "entry received 1, entry refund_held 1, entry refunded 1, event payin.expired 1, event payin.partially_refunded 1, event payin.underpaid 1, " +
		"event refund.completed 1, notices 3, payins 1, receipt_claims 1, receipts 1, refund_parts 1, refunds 1"},
	{"fails after it was completed", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "POST /payin/{id}/refunds", body: refundOf, status: 201},
		{ask: "GET /refunds/{refund}", status: 200, holds: `"status":"COMPLETED"`, await: true},
		{ask: "POST /sandbox/refunds/{refund}/fail", nobody: true, status: 204},
		{ask: "GET /refunds/{refund}", status: 200, holds: `"status":"FAILED" "failure":{"code":"`, lacks: `"completedAt"`},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`, lacks: `"refundedAmount"`},
		{ask: "POST /sandbox/refunds/{refund}/complete", nobody: true, status: 409},
	}, "entry received 1, entry refund_held 1, entry refund_taken_back 1, entry refunded 1, event payin.paid 1, event payin.partially_refunded 1, event payin.updated 1, " +
		"event refund.completed 1, event refund.failed 1, notices 3, payins 1, receipt_claims 1, receipts 1, refund_parts 1, refunds 1"},
	{"refused by the bank", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "POST /sandbox/faults", body: `{"operation":"refund","kind":"refuse"}`, status: 204},
		{ask: "POST /payin/{id}/refunds", body: refundOf, status: 201},
		{ask: "GET /refunds/{refund}", status: 200, holds: `"status":"FAILED" "failure":{"code":"refund_refused"`, await: true},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`, lacks: `"refundedAmount"`},
	}, "entry received 1, entry refund_held 1, entry refund_released 1, event payin.paid 1, event refund.failed 1, notices 1, payins 1, " +
		"receipt_claims 1, receipts 1, refund_parts 1, refunds 1"},
	{"an outcome that is not known", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "POST /sandbox/faults", body: `{"operation":"refund","kind":"server_error_after"}`, status: 204},
		{ask: "POST /payin/{id}/refunds", body: refundOf, status: 201},
		{ask: "GET /refunds/{refund}", status: 200, holds: `"status":"COMPLETED"`, await: true},
	}, rowsRefunded},
	{"a boleto cannot be given back", []step{
		{ask: "POST /payin", body: billOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "POST /payin/{id}/refunds", body: refundOf, status: 422, holds: `"code":"refund_not_possible" BOLETO`},
	}, rowsPaid},
	{"not a request", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /payin/{id}/refunds", body: `{}`, status: 422, holds: `"field":"referenceId" "code":"required"`},
		{ask: "POST /payin/{id}/refunds", body: `{"referenceId":"r","amount":0,"reason":"\u0007"}`, status: 422, holds: `"field":"amount" "code":"out_of_range" "field":"reason"`},
		{ask: "POST /payin/{id}/refunds", body: `{"referenceId":"r","amount":"1"}`, status: 422, holds: `"code":"invalid_type"`},
		{ask: "POST /payin/{id}/refunds", body: `{"referenceId":"r","surprise":1}`, status: 400, holds: `"code":"unknown_field"`},
		{ask: "POST /payin/019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a/refunds", body: refundOf, status: 404},
		{ask: "GET /payin/019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a/refunds", status: 404},
		{ask: "GET /refunds/019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a", status: 404},
		{ask: "GET /refunds?status=CANCELED", status: 422},
		{ask: "POST /sandbox/refunds/019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a/fail", status: 404},
		{ask: "POST /payin/{id}/refunds", body: refundOf, nobody: true, status: 401},
	}, "payins 1"},
}

func TestRefunds(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) { runScenarios(t, g, "", refundScenarios) })
}

// More than is available, and later than the bank allows.
func TestRefundLimits(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		v := apptest.NewReceiver(t, app.SandboxWebhookSecret, nil)
		id := g.Must(201, "POST", "/payin", hooked(pixOf, v, "/h", "refunded")).Get("id")
		g.Must(204, "POST", "/sandbox/payin/"+id+"/pay", "")
		available := g.Must(200, "GET", "/balance", "").Get("available")
		before := g.Rows(t)
		payout := g.Must(201, "POST", "/payout", with(with(payoutOf, "{ref}", "everything"), `"amount":500`, `"amount":`+available)).Get("id")
		if got := g.Must(422, "POST", "/payin/"+id+"/refunds", with(refundOf, "{ref}", "r")); got.Get("code") != "insufficient_balance" {
			t.Errorf("more than is available: %s", got.Body)
		}
		apptest.Until(t, func() string {
			if got := g.Ask("GET", "/payout/"+payout, ""); got.Get("status") != "COMPLETED" {
				return got.Body
			}
			return ""
		})
		g.Must(204, "POST", "/sandbox/payout/"+payout+"/return", "")
		g.Must(201, "POST", "/payin/"+id+"/refunds", with(refundOf, "{ref}", "r"))
		apptest.Until(t, func() string { // both have version 3
			if got := slices.Sorted(slices.Values(v.Types("/h"))); !slices.Equal(got, []string{"payin.paid", "payin.partially_refunded", "refund.completed"}) {
				return fmt.Sprint(got)
			}
			return ""
		})
		g.Must(204, "POST", "/sandbox/clock", fmt.Sprintf(`{"advance":%d}`, 90*24*60*60+1))
		if got := g.Must(422, "POST", "/payin/"+id+"/refunds", with(refundOf, "{ref}", "late")); got.Get("code") != "refund_not_possible" {
			t.Errorf("too late: %s", got.Body)
		}
		const want = "deliveries 2, entry payout_held 1, entry payout_paid 1, entry payout_returned 1, entry refund_held 1, entry refunded 1, " +
			"event payin.partially_refunded 1, event payout.completed 1, event payout.processing 1, event payout.returned 1, event refund.completed 1, " +
			"notices 3, payouts 1, refund_parts 1, refunds 1"
		apptest.Until(t, func() string {
			if rows := g.Rows(t).Since(before); rows != want {
				return "they left " + rows
			}
			return ""
		})
		g.Verify(t)
	})
}
