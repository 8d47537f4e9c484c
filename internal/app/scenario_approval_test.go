package app_test

import (
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// needApproval makes payouts of the gateway's merchant above 6.00 need approvals, and returns
// a client with another credential of that merchant.
func needApproval(t *testing.T, g *apptest.Installed, approvals int64) *apptest.Client {
	t.Helper()
	m, err := g.Admin.Store.MerchantByName(t.Context(), "sandbox")
	if err == nil {
		_, err = g.Admin.Merchants.SetLimits(t.Context(), m.ID, func(l *limits.Limits) {
			l.Payout = limits.Payout{ApprovalAbove: new(money.Cents(600)), Approvals: &approvals}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	apptest.Until(t, func() string {
		got := g.Must(200, "GET", "/limits", "").Body
		if !strings.Contains(got, `"approvalAbove":600`) {
			return "limits are " + got
		}
		return ""
	})
	return credentialOf(t, g)
}

// credentialOf returns a client with a new credential of the gateway's merchant.
func credentialOf(t *testing.T, g *apptest.Installed, scopes ...string) *apptest.Client {
	t.Helper()
	m, err := g.Admin.Store.MerchantByName(t.Context(), "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	c, secret, err := g.Admin.Merchants.CreateCredential(t.Context(), merchant.NewCredential{Merchant: m.ID, Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	client := *g.Client
	client.Key, client.Secret = c.KeyID, secret
	return &client
}

// wantShown checks that each path shows a text.
func wantShown(t *testing.T, g *apptest.Installed, text string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if got := g.Client.Must(200, "GET", path, ""); !strings.Contains(got.Body, text) {
			t.Errorf("GET %s answers %s", path, got.Body)
		}
	}
}

// A payout above the limit waits, with its money held, until two other credentials approved
// it; another one is rejected.
func TestApproval(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		asker := needApproval(t, g, 2)
		boss, other, reader := credentialOf(t, g, "payout:approve"), credentialOf(t, g, "payout:approve"), credentialOf(t, g, "read", "payout:write")
		large := with(payoutOf, "500", "601")
		request := func(reference string) (path string) {
			t.Helper()
			got := asker.Must(201, "POST", "/payout", with(large, "{ref}", reference))
			if got.Get("approval") != "required" || got.Get("status") != "PENDING" || !strings.Contains(got.Body, `"approvals":{"given":0,"needed":2}`) {
				t.Errorf("the payout is %s", got.Body)
			}
			return "/payout/" + got.Get("id")
		}
		decide := func(c *apptest.Client, status int, path, body, holds string) {
			t.Helper()
			if got := c.Must(status, "POST", path, body); !strings.Contains(got.Body, holds) {
				t.Errorf("%s: %s, want %s", path, got.Body, holds)
			}
		}
		before := g.Rows(t)
		approved, rejected := request("approved"), request("rejected")
		if got := g.Must(200, "GET", "/balance", "").Get("held"); got != "1202" {
			t.Errorf("held %s", got)
		}
		decide(asker, 403, approved+"/approve", "", `"code":"forbidden_scope"`)
		decide(reader, 403, approved+"/approve", "", `"code":"forbidden_scope"`)
		const oneOfTwo = `"approval":"required","approvals":{"given":1,"needed":2}`
		decide(boss, 200, approved+"/approve", "", oneOfTwo)
		decide(boss, 200, approved+"/approve", "", oneOfTwo)
		wantShown(t, g, oneOfTwo, approved, "/payout?status=PENDING")
		decide(boss, 422, rejected+"/reject", `{"reason":"\u0007"}`, `"field":"reason"`)
		decide(boss, 400, rejected+"/reject", `{"why":"no"}`, `"code":"unknown_field"`)
		decide(boss, 200, rejected+"/reject", `{"reason":"no"}`, `"status":"CANCELED"`)
		decide(boss, 200, rejected+"/reject", "", `"approval":"rejected"`)
		decide(other, 409, rejected+"/approve", "", `"code":"invalid_state"`)
		if rows := g.Rows(t).Since(before); rows != "approvals 4, entry payout_held 2, entry payout_released 1, event payout.canceled 1, payouts 2" {
			t.Errorf("the decisions left %s", rows)
		}
		decide(other, 200, approved+"/approve", "", `"approval":"approved"`)
		awaitFinal(t, g.Client)
		if got := g.Must(200, "GET", approved, ""); got.Get("status") != "COMPLETED" || got.Get("approval") != "approved" || strings.Contains(got.Body, "approvals") {
			t.Errorf("the payout is %s", got.Body)
		}
		decide(other, 409, approved+"/reject", "", `"code":"invalid_state"`)
		if got := asker.Must(201, "POST", "/payout", with(large, "{ref}", "approved")); !got.Replayed() {
			t.Errorf("the repeated request got %s", got.Body)
		}
		// An operator decides beside the running gateway, under the same rule.
		byOperator := request("operator")
		id, err := payment.ParseID(strings.TrimPrefix(byOperator, "/payout/"))
		if err != nil {
			t.Fatal(err)
		}
		found, err := g.Admin.Store.FindPayout(t.Context(), id)
		for range 2 {
			if err == nil {
				found, err = g.Admin.Payouts.Approve(t.Context(), found.Merchant, id, actor.Author{Actor: "operator:ana", Reason: "checked"})
			}
		}
		if err != nil || found.Approval != payment.ApprovalRequired {
			t.Errorf("approved by one operator: %s, %v", found.Approval, err)
		}
		decide(boss, 200, byOperator+"/approve", "", `"approval":"approved"`)
		await(g.Gateway, byOperator, "COMPLETED")
		waiting := request("canceled")
		decide(asker, 200, waiting+"/cancel", "", `"status":"CANCELED"`)
		g.Verify(t)
	})
}

// A payout that nobody decided about in 72 hours says so: to its reader, in the list and in its event.
func TestExpiredApprovalIsShown(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		asker := needApproval(t, g, 2)
		boss := credentialOf(t, g, "payout:approve")
		request := func(reference string) (path string) {
			t.Helper()
			return "/payout/" + asker.Must(201, "POST", "/payout", with(with(payoutOf, "500", "601"), "{ref}", reference)).Get("id")
		}
		canceled, expired := request("canceled"), request("expired")
		boss.Must(200, "POST", expired+"/approve", "")
		asker.Must(200, "POST", canceled+"/cancel", "")
		g.Must(204, "POST", "/sandbox/clock", `{"advance":262800}`)
		await(g.Gateway, expired, "CANCELED")
		const shown = `"approval":"required","approvals":{"given":1,"needed":2,"expired":true}`
		wantShown(t, g, shown, expired, "/payout?referenceId=expired", "/events")
		if got := g.Must(200, "GET", canceled, ""); strings.Contains(got.Body, "approvals") {
			t.Errorf("the payout that its merchant canceled is %s", got.Body)
		}
		g.Verify(t)
	})
}
