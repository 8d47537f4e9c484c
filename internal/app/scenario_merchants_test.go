package app_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/httpapi/apitest"
)

// merchantRoutes lists the operations of the contract that need credentials, as METHOD
// path.
func merchantRoutes(t *testing.T) []string {
	t.Helper()
	var list []string
	for path, item := range apitest.Document(t).Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.Security == nil || len(*operation.Security) > 0 && len((*operation.Security)[0]) > 0 {
				list = append(list, method+" "+path)
			}
		}
	}
	slices.Sort(list)
	if len(list) < 14 {
		t.Fatalf("the contract has only %d operations with credentials: %v", len(list), list)
	}
	return list
}

// varying matches the parts that differ between equivalent answers.
var varying = regexp.MustCompile(`"requestId":"[0-9a-f]*"`)

// mine creates one of each resource, and returns their ids by the first part of their paths.
func mine(t *testing.T, g *apptest.Installed, hook string) map[string]string {
	t.Helper()
	ids := map[string]string{"payin": g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "mine")).Get("id")}
	ids["payout"] = g.Must(201, "POST", "/payout", with(with(payoutOf, `"amount"`, `"webhookUrl":"`+hook+`/h","amount"`), "{ref}", "mine")).Get("id")
	g.Must(204, "POST", "/sandbox/payin/"+ids["payin"]+"/pay", "")
	ids["refunds"] = g.Must(201, "POST", "/payin/"+ids["payin"]+"/refunds", `{"referenceId":"mine","amount":1}`).Get("id")
	g.Must(204, "POST", "/sandbox/refunds/"+ids["refunds"]+"/complete", "")
	disputed := g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "mine, disputed")).Get("id")
	g.Must(204, "POST", "/sandbox/payin/"+disputed+"/pay", "")
	g.Must(204, "POST", "/sandbox/payin/"+disputed+"/dispute", "")
	ids["disputes"] = g.Must(200, "GET", "/disputes", "").Get("data.0.id")
	ids["webhook-endpoints"] = g.Must(201, "POST", "/webhook-endpoints", `{"url":"`+hook+`/e","events":["refund.failed"]}`).Get("id")
	awaitFinal(t, g.Client)
	ids["events"] = g.Must(200, "GET", "/events", "").Get("data.0.id")
	return ids
}

// Every route answers another merchant's id like an unknown id, and merchants do not
// affect each other.
func TestMerchantsAreApart(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		hook := apptest.NewReceiver(t, app.SandboxWebhookSecret, nil)
		ids := mine(t, g, hook.URL)
		m, other := g.NewMerchant("The other one", 1_000)
		before := g.Rows(t)
		for _, route := range merchantRoutes(t) {
			method, path, _ := strings.Cut(route, " ")
			if !strings.Contains(path, "{id}") {
				continue
			}
			mine, nobodys := ids["payin"], "01a1fc88-370d-71db-9c03-c351fb553c2e"
			noun, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
			if id := ids[noun]; id != "" {
				mine = id
			}
			if noun == "events" {
				nobodys = "evt_01a1fc88370d71db9c03c351fb553c2e"
			}
			body := ""
			switch route { // their form is checked first
			case "POST /payin/{id}/refunds":
				body = `{"referenceId":"theirs","amount":1}`
			case "POST /disputes/{id}/defense":
				body = `{"text":"theirs"}`
			}
			foreign := other.Must(404, method, strings.Replace(path, "{id}", mine, 1), body)
			unknown := other.Must(404, method, strings.Replace(path, "{id}", nobodys, 1), body)
			if a, b := varying.ReplaceAllString(foreign.Body, ""), varying.ReplaceAllString(unknown.Body, ""); a != b {
				t.Errorf("%s: a foreign id is answered %s, an unknown one %s", route, a, b)
			}
		}
		if rows := g.Rows(t).Since(before); rows != "" {
			t.Errorf("requests with foreign ids left %s", rows)
		}
		other.Must(404, "GET", "/payin/"+ids["payin"]+"?expand=customer", "")
		for _, path := range []string{"/payin", "/payout", "/disputes", "/events", "/payin?referenceId=mine"} {
			if list := other.Must(200, "GET", path, ""); !strings.Contains(list.Body, `"data":[]`) {
				t.Errorf("%s of the other merchant is %s", path, list.Body)
			}
		}
		// The same reference is another order, and a page is another page.
		if got := other.Must(201, "POST", "/payin", with(pixOf, "{ref}", "mine")); got.Replayed() || got.Get("id") == ids["payin"] {
			t.Errorf("the other merchant got %s", got.Body)
		}
		g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "mine too"))
		cursor := g.Must(200, "GET", "/payin?limit=1", "").Get("nextCursor")
		other.Must(422, "GET", "/payin?limit=1&cursor="+cursor, "")
		g.Must(422, "GET", "/payout?limit=1&cursor="+cursor, "")
		if got := other.Must(200, "GET", "/balance", "").Get("available"); got != "1000" {
			t.Errorf("the other merchant has %s, want 1000", got)
		}
		other.Must(422, "POST", "/payout", with(with(payoutOf, "500", "1001"), "{ref}", "too much"))
		if mine, theirs := g.Must(200, "GET", "/webhook-secret", ""), other.Must(200, "GET", "/webhook-secret", ""); mine.Body == theirs.Body {
			t.Error("two merchants have one webhook secret")
		}
		g.Verify(t)
		// The credential of a closed merchant is refused.
		if _, err := g.Admin.Merchants.Close(t.Context(), m.ID, true); err != nil {
			t.Fatal(err)
		}
		apptest.Until(t, func() string {
			if got := other.Ask("GET", "/balance", ""); got.Status != 401 {
				return "a revoked credential is still accepted"
			}
			return ""
		})
		g.Must(200, "GET", "/balance", "")
	})
}
