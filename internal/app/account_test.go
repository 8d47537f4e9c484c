package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/account"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/store"
)

// postAppended sends a signed notice to an address that the contract does not list.
func postAppended(t *testing.T, address, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(signed(body, apptest.BankSecret, 0), "\n") {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// A running gateway follows the commands of another process without a restart: states,
// and the address for notices.
func TestGatewayFollowsAccounts(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		serial := 0
		until := func(status int) {
			t.Helper()
			apptest.Until(t, func() string {
				serial++
				if got := g.Ask("POST", "/payout", with(payoutOf, "{ref}", fmt.Sprint("follows ", serial))); got.Status != status {
					return fmt.Sprintf("answered %d %s, want %d", got.Status, got.Body, status)
				}
				return ""
			})
		}
		set := func(state payment.AccountState) {
			t.Helper()
			if _, err := g.Admin.Accounts.SetState(t.Context(), sandbox.Name, state); err != nil {
				t.Fatal(err)
			}
		}
		until(201)
		set(payment.AccountSuspended)
		until(503)
		set(payment.AccountLive)
		until(201)

		first := g.NoticePath()
		rotated, err := g.Admin.Accounts.Rotate(t.Context(), sandbox.Name, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		next := account.NoticePath(&rotated)
		body := `{"id":"of-nobody","subject":"charge","externalId":"0000000000000000000000000000nobody","createdAt":"2026-01-01T00:00:00Z"}`
		send := func(path string, status int) {
			t.Helper()
			apptest.Until(t, func() string {
				if got := g.Anonymous().Ask("POST", path, body, strings.Split(signed(body, apptest.BankSecret, 0), "\n")...); got.Status != status {
					return fmt.Sprintf("answered %d, want %d", got.Status, status)
				}
				return ""
			})
		}
		send(next, 200)
		send(first, 200)
		for path, status := range map[string]int{next + "/pix": 200, next + "/": 200, next + "x/pix": 404} {
			if got := postAppended(t, g.Base+path, body); got != status { // processors append to the address
				t.Errorf("%d for an appended path, want %d", got, status)
			}
		}
		if _, err := g.Admin.Accounts.Finish(t.Context(), sandbox.Name); err != nil {
			t.Fatal(err)
		}
		send(first, 404)
		send(next, 200)
		order := g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "after the rotation"))
		g.Must(204, "POST", "/sandbox/payin/"+order.Get("id")+"/pay", "")
	})
}

// An account may be a further contract of the gateway's own bank, with transfers, payments
// and notices of its own. A contract that asks for consent gets it.
func TestContractOfTheOwnBank(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		useContract(t, g, "second", "pays-again")
		useContract(t, g, "third", "asks-consent")
		for account, want := range map[string]bool{"second": false, "third": true} {
			if asks, err := g.Admin.Store.AsksConsent(t.Context(), account); err != nil || asks != want {
				t.Errorf("account %s is proved to ask: %v, %v", account, asks, err)
			}
		}
	})
}

// useContract adds an account at a contract, and pays a pay-in and a payout of it.
func useContract(t *testing.T, g *apptest.Installed, id, repeat string) {
	t.Helper()
	admin := g.Admin.Accounts
	if _, err := admin.Add(t.Context(), store.Account{
		ID: id, Driver: sandbox.Name, Settings: map[string]string{"contract": id, "repeat": repeat},
	}); err != nil {
		t.Fatal(err)
	}
	m, client := g.NewMerchant("of the account "+id, 100_00)
	for _, operation := range []payment.Operation{payment.OperationPayin, payment.OperationPayout} {
		if err := admin.SetRoutes(t.Context(), &m, operation, "", []payment.Route{{Account: id}}); err != nil {
			t.Fatal(err)
		}
	}
	apptest.Until(t, func() string { // the gateway follows
		if _, err := g.App.NoticeURL(t.Context(), id); err != nil {
			return err.Error()
		}
		if got := client.Ask("POST", "/payin", with(pixOf, "{ref}", "first")); got.Status != 201 {
			return got.Body
		}
		return ""
	})
	order := client.Must(201, "POST", "/payin", with(pixOf, "{ref}", "paid"))
	client.Must(204, "POST", "/sandbox/payin/"+order.Get("id")+"/pay", "")
	if got := client.Must(200, "GET", "/payin/"+order.Get("id"), "").Get("status"); got != "PAID" {
		t.Errorf("the pay-in is %s", got)
	}
	sent := client.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "sent"))
	apptest.Until(t, func() string {
		if got := client.Must(200, "GET", "/payout/"+sent.Get("id"), "").Get("status"); got != "COMPLETED" {
			return got
		}
		return ""
	})
	payouts, err := g.Admin.Store.Payouts(t.Context(), m.ID, store.Filter{Limit: 10})
	if err != nil || len(payouts) != 1 || payouts[0].Processor != id {
		t.Errorf("payouts %+v, %v", payouts, err)
	}
}

// A running gateway suspends an account whose credentials its processor refuses, and resumes
// it by itself; payouts wait meanwhile, and nothing fails.
func TestGatewaySuspendsRefusedCredentials(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		wantCases := func(want string) {
			t.Helper()
			apptest.Until(t, func() string {
				list, err := g.Admin.Store.OpenCases(t.Context(), 10)
				if err != nil {
					return err.Error()
				}
				var kinds []string
				for i := range list {
					kinds = append(kinds, string(list[i].Kind))
				}
				if got := strings.Join(kinds, " "); got != want {
					return fmt.Sprintf("open cases %q, want %q", got, want)
				}
				return ""
			})
		}
		arm(g, "credentials", "refuse", 1_000_000)
		sent := g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "sent")).Get("id")
		accepted := []string{sent}
		wantCases("account_refused")
		apptest.Until(t, func() string { // the gateway follows within 2 s
			got := g.Ask("POST", "/payout", with(payoutOf, "{ref}", fmt.Sprint("refused ", len(accepted))))
			if got.Status == 201 {
				accepted = append(accepted, got.Get("id"))
			}
			if got.Status != 503 {
				return got.Body
			}
			return ""
		})
		if got := get(t, g.Base+"/metrics"); !strings.Contains(got, `porteira_accounts{state="refused"} 1`) {
			t.Error("the metric does not count the account")
		}
		if got := g.Must(200, "GET", "/payout/"+sent, "").Get("status"); got != "PROCESSING" && got != "PENDING" {
			t.Errorf("the payout is %s", got)
		}
		g.Must(204, "DELETE", "/sandbox/faults", "")
		g.Must(204, "POST", "/sandbox/clock", `{"advance":400}`) // beyond the longest wait
		wantCases("")
		for _, id := range accepted {
			await(g.Gateway, "/payout/"+id, "COMPLETED")
		}
		transfersMade(g.Gateway, len(accepted))
		g.Verify(t)
	})
}
