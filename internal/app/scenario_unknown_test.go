package app_test

import (
	"testing"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

// atCareful adds an account that is not idempotent while a gateway is running, and a merchant whose
// payouts go there.
func atCareful(t *testing.T, g *apptest.Installed) *apptest.Client {
	t.Helper()
	_, err := g.Admin.Accounts.Add(t.Context(), store.Account{
		ID: "careful", Driver: sandbox.Name, Settings: map[string]string{sandbox.SettingContract: "careful", sandbox.SettingRepeat: "pays-again"},
	})
	if err != nil {
		t.Fatal(err)
	}
	m, client := g.NewMerchant("Careful", 100_00)
	if err := g.Admin.Accounts.SetRoutes(t.Context(), &m, payment.OperationPayout, "", []payment.Route{{Account: "careful"}}); err != nil {
		t.Fatal(err)
	}
	var first string
	apptest.Until(t, func() string { // the gateway follows
		got := client.Ask("POST", "/payout", with(payoutOf, "{ref}", "first"))
		first = got.Get("id")
		return got.Get("code")
	})
	untilCompleted(t, client, first)
	return client
}

func untilCompleted(t *testing.T, client *apptest.Client, payout string) {
	t.Helper()
	apptest.Until(t, func() string {
		if got := client.Must(200, "GET", "/payout/"+payout, ""); got.Get("status") != "COMPLETED" {
			return got.Body
		}
		return ""
	})
}

// A payout whose outcome stays unknown, at an account that might pay it twice, is decided by two
// persons. Faults and transfers of the sandbox are those of its account.
func TestUnknownPayoutIsDecidedByTwoPersons(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		client := atCareful(t, g)
		g.Must(422, "POST", "/sandbox/faults", `{"operation":"transfer","kind":"timeout_before","account":"nobody"}`)
		g.Must(422, "GET", "/sandbox/processor/transfers?account=nobody", "")
		g.Must(204, "POST", "/sandbox/faults", `{"operation":"transfer","kind":"timeout_before","account":"careful"}`)
		unknown := client.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "unknown"))
		var v store.Case
		apptest.Until(t, func() string {
			list, err := g.Admin.Store.OpenCases(t.Context(), 2)
			if err != nil || len(list) != 1 {
				return "no case"
			}
			v = list[0]
			return ""
		})
		if v.Kind != store.CasePayoutUnknown || v.Params.Reason() != store.ReasonNotIdempotent || v.Subject.String() != unknown.Get("id") {
			t.Fatalf("case %+v", v)
		}
		if got := client.Must(200, "GET", "/payout/"+unknown.Get("id"), ""); got.Get("status") != "PROCESSING" {
			t.Errorf("before the decision: %s", got.Body)
		}
		decide := func(by actor.Actor) (review.Result, error) {
			return g.Admin.Reviews.Resolve(t.Context(), review.Request{
				Case: v.ID, How: store.ResolvedRelease, Actor: by, Reason: "not in the statement", Evidence: "statement of today",
			})
		}
		if first, err := decide("operator:ana"); err != nil || first.Action != store.DecisionProposed {
			t.Fatalf("the first person: %+v, %v", first, err)
		}
		if _, err := decide("operator:ana"); !problem.Is(err, problem.InvalidState) {
			t.Errorf("the same person again: %v", err)
		}
		if second, err := decide("operator:bruno"); err != nil || second.Action != store.DecisionConfirmed {
			t.Fatalf("the second person: %+v, %v", second, err)
		}
		if got := client.Must(200, "GET", "/payout/"+unknown.Get("id"), ""); got.Get("status") != "FAILED" {
			t.Errorf("after the decision: %s", got.Body)
		}
		path := "/sandbox/processor/transfers?account=careful&externalId="
		if got := g.Must(200, "GET", path+unknown.Get("externalId"), ""); got.Get("data.0.externalId") != "" {
			t.Errorf("the bank has it: %s", got.Body)
		}
		g.Must(204, "DELETE", "/sandbox/faults", "")
		next := client.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "next"))
		untilCompleted(t, client, next.Get("id"))
		if got := g.Must(200, "GET", path+next.Get("externalId"), ""); got.Get("data.0.externalId") != next.Get("externalId") {
			t.Errorf("the bank lists %s", got.Body)
		}
		if got := g.Must(200, "GET", "/sandbox/processor/transfers", ""); got.Get("data.0.externalId") != "" {
			t.Errorf("the bank's own contract lists %s", got.Body)
		}
		g.Verify(t)
	})
}
