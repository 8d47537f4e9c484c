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

// arm injects a fault into the next calls of the bank.
func arm(g *apptest.Installed, operation, kind string, count int) {
	g.Must(204, "POST", "/sandbox/faults", fmt.Sprintf(`{"operation":%q,"kind":%q,"count":%d}`, operation, kind, count))
}

// chargeFaults are faults of a charge and their effects on the order. A fault is armed
// before the order, because the bank stores it with the charge. Steps with await may need
// several requests on a slow machine.
var chargeFaults = []struct {
	kind  string
	logs  string // the log line that proves the fault
	steps []step
	rows  string
}{
	{"refuse", "", []step{
		{ask: "POST /payin", body: pixOf, status: 502, holds: `"code":"processor_refused"`},
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"status":"FAILED" "failure":{"code":" Idempotency-Replayed:true`},
		{ask: "POST /payin", body: with(pixOf, "1000", "1001"), status: 409},
	}, "event payin.failed 1, payins 1"},
	{"not_sent", "outcome=not_sent", []step{
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"status":"PENDING" "qrcode":"000201`, await: true},
	}, "payins 1"},
	{"timeout_before", "outcome=unknown", []step{
		{ask: "POST /payin", body: pixOf, status: 504, holds: `"code":"processor_timeout"`},
		{ask: "GET /payin?referenceId={ref}", status: 200, holds: `"status":"PENDING"`, lacks: "qrcode"},
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201 Idempotency-Replayed:true`, await: true},
		{ask: "POST /payin", body: with(pixOf, "1000", "1001"), status: 409},
	}, "payins 1"},
	{"timeout_after", "outcome=unknown", []step{
		{ask: "POST /payin", body: pixOf, status: 504, holds: `"code":"processor_timeout"`},
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201`, await: true},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`},
	}, rowsPaid},
	{"server_error_after", "outcome=unknown", []step{
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201`, await: true},
	}, "payins 1"},
	{"rubbish", "outcome=unknown", []step{
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201`, await: true},
	}, "payins 1"},
	{"registering", "", []step{ // the bill follows, with an event
		{ask: "POST /payin", body: billOf, status: 201, holds: `"status":"PENDING"`, lacks: "barcode"},
		{ask: "POST /payin", body: billOf, status: 201, holds: `Idempotency-Replayed:true`, lacks: "barcode"},
		{ask: "POST /sandbox/clock", body: `{"advance":12}`, status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PENDING" "barcode":"999`, await: true},
	}, "event payin.updated 1, payins 1"},
	{"notify_twice", "", []step{ // one notice with one id, sent twice: one row
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201`, await: true},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`},
	}, rowsPaid},
	{"notify_reordered", "", []step{ // the first part's notice comes after the second's
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201`, await: true},
		{ask: "POST /sandbox/payin/{id}/pay", body: `{"amount":400}`, status: 204},
		{ask: "POST /sandbox/payin/{id}/pay", body: `{"amount":600}`, status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID" "paidAmount":1000`},
	}, "entry received 2, event payin.paid 1, event payin.underpaid 1, notices 2, payins 1, receipt_claims 2, receipts 2"},
	{"notify_never", "", []step{ // found in the bank's list of payments
		{ask: "POST /payin", body: pixOf, status: 201, holds: `"qrcode":"000201`, await: true},
		{ask: "POST /sandbox/payin/{id}/pay", status: 204},
		{ask: "GET /payin/{id}", status: 200, holds: `"status":"PAID"`},
	}, "entry received 1, event payin.paid 1, payins 1, receipt_claims 1, receipts 1"},
}

// Every fault of a charge has the expected effect on its order.
func TestChargeFaults(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		for i := range chargeFaults {
			fault := &chargeFaults[i]
			before := len(g.Log.String())
			arm(g, "charge", fault.kind, 1)
			s := scenario{fault.kind, fault.steps, fault.rows}
			s.run(t, g, "", fault.kind)
			if said := g.Log.String()[before:]; !strings.Contains(said, fault.logs) {
				t.Errorf("%s: no effect: %q is not in %s", fault.kind, fault.logs, said)
			}
		}
		g.Verify(t)
	})
}

// All faults of transfers and look-ups at once, each on another payout. One payout is
// refused. The others are paid, each by one transfer in the bank's records.
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
			// A look-up without an answer may end after its payout. One gets a late answer, and
			// one may get a complete one: that there is no transfer.
			log := g.Log.Lines("WARN")
			for word, n := range map[string]int{"outcome=not_sent": 1, "outcome=unknown": 4, "could not be looked up|not applied": 5} {
				if got := len(regexp.MustCompile(word).FindAllString(log, -1)); got < n {
					return fmt.Sprintf("%d faults took effect, want %d of %q:\n%s", got, n, word, log)
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

// While the bank is unreachable, payouts wait and can be canceled; they are sent when it
// is back. Cleared faults have no effect.
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
		g.Must(204, "POST", "/sandbox/clock", `{"advance":60}`) // beyond the next attempt
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
