package app_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
)

// arm lets the next calls of the bank misbehave.
func arm(g *apptest.Installed, operation, kind string, count int) {
	g.Must(204, "POST", "/sandbox/faults", fmt.Sprintf(`{"operation":%q,"kind":%q,"count":%d}`, operation, kind, count))
}

// chargeFaults tell what becomes of an order whose charge misbehaves. The fault
// is armed before the order, as the bank remembers it with the charge. What is
// asked until it is answered well may need a second request on a slow machine.
var chargeFaults = []struct {
	kind string
	logs string // what the gateway says of the call: the fault came to pass
	acts []act
	rows string
}{
	{"refuse", "", []act{
		{ask: "POST /payin", body: pixOf, status: 502, holds: `"code":"processor_refused"`},
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"status":"FAILED" "failure":{"code":" Idempotency-Replayed:true`},
		{ask: "POST /payin", body: with(pixOf, "1000", "1001"), status: 409},
	}, "event payin.failed 1, payins 1"},
	{"not_sent", "outcome=not_sent", []act{
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"status":"PENDING" "qrcode":"000201`, await: true},
	}, "payins 1"},
	{"timeout_before", "outcome=unknown", []act{
		{ask: "POST /payin", body: pixOf, status: 504, holds: `"code":"processor_timeout"`},
		{ask: "GET /payin?referenceId={ref}", status: 200, holds: `"status":"PENDING"`, lacks: "qrcode"},
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201 Idempotency-Replayed:true`, await: true},
		{ask: "POST /payin", body: with(pixOf, "1000", "1001"), status: 409},
	}, "payins 1"},
	{"timeout_after", "outcome=unknown", []act{
		{ask: "POST /payin", body: pixOf, status: 504, holds: `"code":"processor_timeout"`},
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201`, await: true},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`},
	}, rowsPaid},
	{"server_error_after", "outcome=unknown", []act{
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201`, await: true},
	}, "payins 1"},
	{"rubbish", "outcome=unknown", []act{
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201`, await: true},
	}, "payins 1"},
	{"notify_twice", "", []act{ // one notice with one id, sent twice: one row
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201`, await: true},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`},
	}, rowsPaid},
	{"notify_reordered", "", []act{ // the first part's notice comes after the second's
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201`, await: true},
		{ask: "POST /sandbox/payin/{id}/pay", body: `{"amount":400}`, status: 204},
		{ask: "POST /sandbox/payin/{id}/pay", body: `{"amount":600}`, status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID" "paidAmount":1000`},
	}, "entry received 2, event payin.paid 1, event payin.underpaid 1, notices 2, payins 1, receipt_claims 2, receipts 2"},
	{"notify_never", "", []act{ // found in the bank's list of payments
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201`, await: true},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`},
	}, "entry received 1, event payin.paid 1, payins 1, receipt_claims 1, receipts 1"},
}

// Each way in which a charge may misbehave, and what becomes of its order.
func TestChargeFaults(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		for i := range chargeFaults {
			fault := &chargeFaults[i]
			before := len(g.Log.String())
			arm(g, "charge", fault.kind, 1)
			s := story{fault.kind, fault.acts, fault.rows}
			s.tell(t, g, "", fault.kind)
			if said := g.Log.String()[before:]; !strings.Contains(said, fault.logs) {
				t.Errorf("%s: it did not come to pass: %q is not in %s", fault.kind, fault.logs, said)
			}
		}
		g.Verify(t)
	})
}

// Every way in which a transfer, or a question about one, may misbehave, all at
// once, each on another payout. One of them is refused. The others are paid,
// each by one transfer in the bank's own books.
func TestTransferFaults(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		const refused = 1
		kinds := []string{"refuse", "not_sent", "timeout_before", "timeout_after", "server_error_after", "late", "rubbish", "notify_twice", "notify_reordered", "notify_never"}
		for _, kind := range kinds {
			arm(g, "transfer", kind, 1)
		}
		for _, kind := range kinds[:7] {
			arm(g, "query", kind, 1)
		}
		for _, kind := range kinds {
			g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", kind))
		}
		var payouts apptest.Answer
		apptest.Until(t, func() string {
			payouts = g.Must(200, "GET", "/payout", "")
			if open := strings.Count(payouts.Body, `"PENDING"`) + strings.Count(payouts.Body, `"PROCESSING"`); open > 0 {
				return fmt.Sprintf("%d payouts are open", open)
			}
			// A question that is never answered may end after its payout. One gets
			// a late answer, and one may get a whole one: that there is no transfer.
			log := g.Log.Lines("WARN")
			for word, n := range map[string]int{"outcome=not_sent": 1, "outcome=unknown": 4, "not learned|not applied": 5} {
				if got := len(regexp.MustCompile(word).FindAllString(log, -1)); got < n {
					return fmt.Sprintf("%d faults came to pass, want %d of %q:\n%s", got, n, word, log)
				}
			}
			return ""
		})
		failed := 0
		for i, externalID := range payouts.List("externalId") {
			transfers := g.Must(200, "GET", "/sandbox/processor/transfers?externalId="+externalID, "").List("status")
			switch status := payouts.List("status")[i]; {
			case status == "FAILED" && len(transfers) == 0:
				failed++
			case status != "COMPLETED" || !slices.Equal(transfers, []string{"paid"}):
				t.Errorf("a payout is %s, the bank has the transfers %v", status, transfers)
			}
		}
		paid := len(kinds) - refused
		if got := g.Must(200, "GET", "/balance", ""); failed != refused || got.Get("available") != fmt.Sprint(int(app.SandboxFunds)-500*paid) || got.Get("held") != "0" {
			t.Errorf("%d payouts failed, want %d; the balance is %s", failed, refused, got.Body)
		}
		g.Verify(t)
	})
}

// A bank that cannot be reached for a while: its payouts wait, can be taken
// back, and go out once it is back. Cleared faults do not come to pass.
func TestBankOutOfReach(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		arm(g, "transfer", "not_sent", 1000)
		first := g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "first"))
		for n := range 3 {
			apptest.Until(t, func() string {
				if tries := strings.Count(g.Log.String(), "outcome=not_sent"); tries <= n {
					return fmt.Sprintf("tried %d times", tries)
				}
				return ""
			})
			g.Must(204, "POST", "/sandbox/clock", `{"advance":20}`) // beyond the next wait
		}
		// The bank is now left alone: what comes stays PENDING, and may be canceled.
		second := g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "second"))
		if got := g.Must(200, "POST", "/payout/"+second.Get("id")+"/cancel", ""); got.Get("status") != "CANCELED" {
			t.Errorf("canceled: %s", got.Body)
		}
		g.Must(200, "POST", "/payout/"+second.Get("id")+"/cancel", "")
		g.Must(204, "DELETE", "/sandbox/faults", "")
		g.Must(204, "POST", "/sandbox/clock", `{"advance":60}`) // it is tried again by then
		apptest.Until(t, func() string {
			if got := g.Must(200, "GET", "/payout/"+first.Get("id"), ""); got.Get("status") != "COMPLETED" {
				return "it is still " + got.Body
			}
			return ""
		})
		g.Must(409, "POST", "/payout/"+first.Get("id")+"/cancel", "")
		if list := g.Must(200, "GET", "/sandbox/processor/transfers", "").List("externalId"); len(list) != 1 || list[0] != first.Get("externalId") {
			t.Errorf("the bank has the transfers %v", list)
		}
		g.Verify(t)
	})
}
