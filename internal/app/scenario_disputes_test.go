package app_test

import (
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
)

// defenseOf is a defense with a file: "%PDF-1".
const defenseOf = `{"text":"Entregue em 12/11.\nNota 7.","files":[{"name":"nota.pdf","type":"application/pdf","content":"JVBERi0x"}]}`

var disputeScenarios = []scenario{
	{"defended, lost and reversed", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/dispute", status: 409},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "POST /sandbox/payin/{id}/dispute", body: `{"amount":400,"reason":"Golpe"}`, status: 204},
		{ask: "GET /disputes?payinId={id}&status=OPEN,SUBMITTED&kind=MED", status: 200, holds: `"payinId":" "paymentId":"E "kind":"MED" "reason":"Golpe" "amount":400 "status":"OPEN" "respondBy":" "nextCursor":null`, lacks: `"takenAmount" "defense" "blocked" "closedAt"`},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"DISPUTED" "disputedAmount":400`},
		{ask: "GET /disputes?payinId={id}&respondBefore=2026-01-01T00:00:00Z", status: 200, holds: `{"data":[]`},
		{ask: "GET /statement?kind=dispute_opened&account=disputed", status: 200, holds: `"amount":400 "orderType":"payin" "disputeId":"`, lacks: `"installment"`},
		{ask: "POST /disputes/{dispute}/defense", body: defenseOf, status: 200, holds: `"status":"SUBMITTED" "text":"Entregue "name":"nota.pdf" "size":6 "submittedAt":"`, lacks: "JVBERi0x"},
		{ask: "POST /disputes/{dispute}/defense", body: defenseOf, status: 200, holds: `"status":"SUBMITTED" "version":2`, sent: true},
		{ask: "POST /disputes/{dispute}/defense", body: `{"text":"Outra."}`, status: 409, holds: `"code":"invalid_state"`},
		{ask: "POST /sandbox/payin/{id}/lose", status: 204},
		{ask: "GET /disputes/{dispute}", status: 200, holds: `"status":"LOST" "text":"Entregue "closedAt":"`},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"CHARGEBACK" "disputedAmount":400`},
		{ask: "POST /disputes/{dispute}/accept", status: 409, holds: `"code":"invalid_state"`},
		{ask: "POST /sandbox/payin/{id}/reverse", status: 204},
		{ask: "GET /disputes/{dispute}", status: 200, holds: `"status":"REVERSED" "version":4`},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`, lacks: `"disputedAmount"`},
	}, "dispute_answers 1, disputes 1, entry chargeback_reversed 1, entry charged_back 1, entry dispute_opened 1, entry received 1, event dispute.closed 2, event dispute.opened 1, " +
		"event dispute.submitted 1, event payin.chargeback 1, event payin.dispute_won 1, event payin.disputed 1, event payin.paid 1, notices 4, payins 1, receipt_claims 1, receipts 1"},
	{"given up", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "POST /sandbox/payin/{id}/dispute", status: 204},
		{ask: "GET /disputes?payinId={id}", status: 200, holds: `"amount":1000`},
		{ask: "POST /disputes/{dispute}/accept", status: 200, holds: `"status":"LOST" "closedAt":"`},
		{ask: "POST /disputes/{dispute}/accept", status: 200, holds: `"status":"LOST" "version":2`},
		{ask: "POST /disputes/{dispute}/defense", body: defenseOf, status: 409, holds: `"code":"invalid_state"`},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"CHARGEBACK"`},
	}, "dispute_answers 1, disputes 1, entry charged_back 1, entry dispute_opened 1, entry received 1, event dispute.closed 1, event dispute.opened 1, " +
		"event payin.chargeback 1, event payin.disputed 1, event payin.paid 1, notices 3, payins 1, receipt_claims 1, receipts 1"},
	{"a block, then a dispute, lost in part", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "POST /sandbox/payin/{id}/block", status: 204},
		{ask: "GET /disputes?payinId={id}", status: 200, holds: `"status":"OPEN" "blocked":true`, lacks: `"respondBy"`},
		{ask: "POST /disputes/{dispute}/accept", status: 409, holds: `"code":"invalid_state"`},
		{ask: "POST /sandbox/payin/{id}/dispute", status: 204},
		{ask: "GET /disputes/{dispute}", status: 200, holds: `"status":"OPEN" "respondBy":" "version":2`, lacks: `"blocked"`},
		{ask: "POST /sandbox/payin/{id}/lose", body: `{"amount":300}`, status: 204},
		{ask: "GET /disputes/{dispute}", status: 200, holds: `"status":"LOST" "takenAmount":300`},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"CHARGEBACK" "disputedAmount":300`},
	}, "disputes 1, entry charged_back 1, entry dispute_opened 1, entry dispute_won 1, entry received 1, event dispute.closed 1, event dispute.opened 2, " +
		"event payin.chargeback 1, event payin.dispute_won 1, event payin.disputed 1, event payin.paid 1, notices 4, payins 1, receipt_claims 1, receipts 1"},
	{"a defense that the bank does not take", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "POST /sandbox/payin/{id}/dispute", status: 204},
		{ask: "GET /disputes?payinId={id}", status: 200},
		{ask: "POST /sandbox/faults", body: `{"operation":"defense","kind":"refuse"}`, status: 204},
		{ask: "POST /disputes/{dispute}/defense", body: defenseOf, status: 200, holds: `"status":"SUBMITTED"`},
	}, "case dispute_answer 1, dispute_answers 1, disputes 1, entry dispute_opened 1, entry received 1, event dispute.opened 1, event dispute.submitted 1, " +
		"event payin.disputed 1, event payin.paid 1, notices 2, payins 1, receipt_claims 1, receipts 1"},
	{"a defense without an answer of the bank", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "POST /sandbox/payin/{id}/dispute", status: 204},
		{ask: "GET /disputes?payinId={id}", status: 200},
		{ask: "POST /sandbox/faults", body: `{"operation":"defense","kind":"server_error_after"}`, status: 204},
		{ask: "POST /disputes/{dispute}/accept", status: 200, holds: `"status":"LOST"`},
	}, "dispute_answers 1, disputes 1, entry charged_back 1, entry dispute_opened 1, entry received 1, event dispute.closed 1, event dispute.opened 1, " +
		"event payin.chargeback 1, event payin.disputed 1, event payin.paid 1, notices 3, payins 1, receipt_claims 1, receipts 1"},
	{"not a defense", []step{
		{ask: "POST /payin", body: pixOf, status: 201},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "POST /sandbox/payin/{id}/dispute", status: 204},
		{ask: "GET /disputes?payinId={id}", status: 200},
		{ask: "POST /disputes/{dispute}/defense", body: `{}`, status: 422, holds: `"field":"text" "code":"required"`},
		{ask: "POST /disputes/{dispute}/defense", body: `{"text":"a","files":[{"name":"a","type":"image/png","content":"JVBERi0x"}]}`, status: 422, holds: `"field":"files[0].content" "code":"invalid_format"`},
		{ask: "POST /disputes/{dispute}/defense", body: `{"text":"a","files":[{"name":"","type":"text/html","content":"?"}]}`, status: 422, holds: `"field":"files[0].name" "field":"files[0].type" "field":"files[0].content"`},
		{ask: "POST /disputes/{dispute}/defense", body: `{"text":"a","surprise":1}`, status: 400, holds: `"code":"unknown_field"`},
		{ask: "POST /disputes/{dispute}/defense", body: `{"text":"4111 1111 1111 1111"}`, status: 422, holds: `"field":"text" "code":"not_allowed"`},
		{ask: "POST /disputes/{dispute}/defense", body: `{"text":"` + strings.Repeat("é", 100<<10) + `"}`, status: 422, holds: `"field":"text" "code":"too_long"`},
		{ask: "POST /disputes/{dispute}/defense", body: defenseOf, nobody: true, status: 401},
		{ask: "POST /disputes/019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a/defense", body: defenseOf, status: 404},
		{ask: "POST /disputes/019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a/accept", status: 404},
		{ask: "GET /disputes/019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a", status: 404},
		{ask: "GET /disputes?status=DONE&kind=X&payinId=1&respondBefore=now", status: 422, holds: `"field":"status" "field":"kind" "field":"respondBefore" "field":"payinId"`},
		{ask: "POST /sandbox/payin/{id}/dispute", body: `{"kind":"OTHER"}`, status: 422},
	}, "disputes 1, entry dispute_opened 1, entry received 1, event dispute.opened 1, event payin.disputed 1, event payin.paid 1, notices 2, payins 1, receipt_claims 1, receipts 1"},
}

func TestDisputes(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) { runScenarios(t, g, "", disputeScenarios) })
}

// After its deadline a dispute takes no defense. It has a case about the
// deadline or none: that depends on when the worker ran.
func TestDefenseTooLate(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		payin := g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "late")).Get("id")
		g.Must(204, "POST", "/sandbox/payin/"+payin+"/pay", "")
		g.Must(204, "POST", "/sandbox/payin/"+payin+"/dispute", `{"kind":"CHARGEBACK","respondInSeconds":100000}`)
		var id string
		apptest.Until(t, func() string {
			list := g.Must(200, "GET", "/disputes?payinId="+payin, "")
			if id = list.Get("data.0.id"); id == "" {
				return list.Body
			}
			return ""
		})
		g.Must(204, "POST", "/sandbox/clock", `{"advance":100001}`)
		g.Must(409, "POST", "/disputes/"+id+"/defense", defenseOf)
		if got := g.Must(200, "GET", "/disputes/"+id, ""); got.Get("status") != "OPEN" || got.Get("version") != "1" || strings.Contains(got.Body, "defense") {
			t.Errorf("after it: %s", got.Body)
		}
		g.Verify(t)
	})
}
