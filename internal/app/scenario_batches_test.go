package app_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
)

// batchItem is a payout of a batch in JSON.
const batchItem = `{"amount":500,"pixKey":"maria@example.com","pixKeyType":"EMAIL","beneficiaryName":"Maria","beneficiaryDocument":"52998224725","referenceId":"{ref}-0"}`

// batchesOf is a batch of two payouts.
var batchesOf = `{"referenceId":"{ref}","items":[` + batchItem + `,` + with(batchItem, "-0", "-1") + `]}`

// rowsBatch are the rows of a batch of two payouts that are complete.
const rowsBatch = "entry payout_held 2, entry payout_paid 2, event payout.completed 2, event payout.processing 2, event payout_batch.completed 1, notices 2, payout_batches 1, payouts 2"

var batchScenarios = []scenario{
	{"two payouts", []step{
		{ask: "POST /payout-batches", body: batchesOf, status: 201, holds: `"status":"P "count":2 "amount":1000 "counts":{" "version":1 "createdAt":"`, lacks: "Idempotency-Replayed completedAt"},
		{ask: "POST /payout-batches", body: batchesOf, status: 201, holds: "Idempotency-Replayed:true"},
		{ask: "POST /payout-batches", body: with(batchesOf, "500", "501"), status: 409, holds: `"code":"reference_conflict" "field":"items"`},
		{ask: "GET /payout-batches/{id}", status: 200, holds: `"status":"COMPLETED" "counts":{"COMPLETED":2} "version":2 "completedAt":"`, await: true},
		{ask: "GET /payout?batchId={id}", status: 200, holds: `"batchId":" "amount":"500" "nextCursor":null`},
		{ask: "GET /payout?batchId={id}&status=FAILED", status: 200, holds: `"data":[]`},
		{ask: "GET /payout-batches?limit=1", status: 200, holds: `"status":"COMPLETED"`},
	}, rowsBatch},
	{"refused as a whole", []step{
		{ask: "POST /payout-batches", body: with(batchesOf, `-1"`, `-0"`), status: 422, holds: `"field":"items[1].referenceId" "code":"not_allowed"`},
		{ask: "POST /payout-batches", body: with(batchesOf, "500", "99999999999"), status: 422, holds: `"code":"insufficient_balance"`},
		{ask: "POST /payout-batches", body: with(batchesOf, "EMAIL", "CPF"), status: 422, holds: `"field":"items[0].pixKey" "code":"invalid_format"`},
		{ask: "POST /payout-batches", body: `{"referenceId":"r","items":[]}`, status: 422, holds: `"field":"items" "code":"too_short"`},
		{ask: "POST /payout-batches", body: `{"items":[{}],"surprise":1}`, status: 400, holds: `"code":"unknown_field" "field":"surprise"`},
		{ask: "POST /payout-batches", body: batchesOf, nobody: true, status: 401},
		{ask: "GET /payout-batches/019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a", status: 404},
		{ask: "GET /payout?batchId=019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a", status: 200, holds: `"data":[]`},
		{ask: "GET /payout?batchId=x", status: 422, holds: `"field":"batchId"`},
	}, ""},
}

func TestBatches(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) { runScenarios(t, g, "", batchScenarios) })
}

// A batch as CSV: every payout completes, one event says so, and nothing else
// happens. Another request is answered meanwhile.
func TestBatchAsCSV(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		const payouts = 150
		body := strings.Builder{}
		body.WriteString("referenceId,amount,pixKeyType,pixKey,beneficiaryName,beneficiaryDocument\n")
		for i := range payouts {
			fmt.Fprintf(&body, "row-%d,%d,EMAIL,m%d@example.com,\"Silva, Maria\",52998224725\n", i, 100+i, i%10)
		}
		before := g.Rows(t)
		got := g.Must(201, "POST", "/payout-batches?referenceId=large", body.String(), "Content-Type: text/csv")
		if got.Get("count") != fmt.Sprint(payouts) || got.Get("amount") != fmt.Sprint(100*payouts+payouts*(payouts-1)/2) {
			t.Errorf("the batch is %s", got.Body)
		}
		id := got.Get("id")
		g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "meanwhile"))
		apptest.Until(t, func() string {
			if got := g.Must(200, "GET", "/payout-batches/"+id, ""); got.Get("status") != "COMPLETED" || !strings.Contains(got.Body, fmt.Sprintf(`"counts":{"COMPLETED":%d}`, payouts)) {
				return got.Body
			}
			return ""
		})
		n, cursor := 0, ""
		for {
			page := g.Must(200, "GET", "/payout?batchId="+id+"&limit=100"+cursor, "")
			n += strings.Count(page.Body, `"batchId":"`+id+`"`)
			if cursor = page.Get("nextCursor"); cursor == "" {
				break
			}
			cursor = "&cursor=" + url.QueryEscape(cursor)
		}
		if n != payouts {
			t.Errorf("the list has %d payouts", n)
		}
		awaitFinal(t, g.Client)
		want := fmt.Sprintf("entry payout_held %[1]d, entry payout_paid %[1]d, event payout.completed %[1]d, event payout.processing %[1]d, event payout_batch.completed 1, "+
			"notices %[1]d, payout_batches 1, payouts %[1]d", payouts+1)
		apptest.Until(t, func() string {
			if rows := g.Rows(t).Since(before); rows != want {
				return "the batch left " + rows
			}
			return ""
		})
		// Its event has the same resource as GET; the client compares it with the contract.
		batch, events := g.Must(200, "GET", "/payout-batches/"+id, ""), 0
		for _, event := range eventIDs(t, g, "/events?limit=200") {
			if got := g.Must(200, "GET", "/events/"+event, ""); got.Get("type") == "payout_batch.completed" && strings.Contains(got.Body, `"data":`+batch.Body) {
				events++
			}
		}
		if events != 1 {
			t.Errorf("%d events have the batch %s", events, batch.Body)
		}
		g.Verify(t)
	})
}

// Orders are found by what is known about them, within seconds.
func TestFinding(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		found := func(path, want string) {
			t.Helper()
			apptest.Until(t, func() string {
				if got := g.Must(200, "GET", path, ""); !strings.Contains(got.Body, `"referenceId":"`+want+`"`) && want != "" || want == "" && !strings.Contains(got.Body, `"data":[]`) {
					return path + ": " + got.Body
				}
				return ""
			})
		}
		in := g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "found-in"))
		g.Must(204, "POST", "/sandbox/payin/"+in.Get("id")+"/pay", "")
		out := g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "found-out"))
		await(g.Gateway, "/payout/"+out.Get("id"), "COMPLETED")
		in, out = g.Must(200, "GET", "/payin/"+in.Get("id")+"?expand=customer", ""), g.Must(200, "GET", "/payout/"+out.Get("id")+"?expand=beneficiary", "")
		found("/payin?endToEndId="+in.Get("endToEndId"), "found-in")
		found("/payin?externalId="+in.Get("externalId"), "found-in")
		found("/payin?customerDocument="+in.Get("customer.document"), "found-in")
		found("/payin?minAmount="+in.Get("amount")+"&maxAmount="+in.Get("amount"), "found-in")
		found("/payin?customerDocument="+in.Get("customer.document")+"&status=PENDING", "")
		found("/payin?minAmount=99999999999", "")
		found("/payout?endToEndId="+out.Get("endToEndId"), "found-out")
		found("/payout?externalId="+out.Get("externalId"), "found-out")
		found("/payout?pixKey="+url.QueryEscape(strings.ToUpper(out.Get("pixKey"))), "found-out")
		found("/payout?beneficiaryDocument="+out.Get("beneficiary.document"), "found-out")
		found("/payout?beneficiaryDocument="+out.Get("beneficiary.document")+"&maxAmount=1", "")
		refunds := "/payin/" + in.Get("id") + "/refunds"
		back := g.Must(201, "POST", refunds, with(refundOf, "{ref}", "found-back"))
		await(g.Gateway, "/refunds/"+back.Get("id"), "COMPLETED")
		back = g.Must(200, "GET", "/refunds/"+back.Get("id"), "")
		for _, path := range []string{"/refunds", refunds} {
			found(path+"?endToEndId="+back.Get("endToEndId"), "found-back")
			found(path+"?externalId="+back.Get("externalId"), "found-back")
			found(path+"?minAmount=400&maxAmount=400", "found-back")
			found(path+"?minAmount=401", "")
			found(path+"?endToEndId="+in.Get("endToEndId"), "") // of the payment
		}
		g.Verify(t)
	})
}
