package account_test

import (
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/account"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

func check(t *testing.T, r *account.Registry) {
	t.Helper()
	if _, err := r.CheckCredentials(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// wantState compares the state of the first account, as this process has it.
func wantState(t *testing.T, s *account.Service, want payment.AccountState, refused bool) {
	t.Helper()
	a, err := s.Find(t.Context(), coretest.BankName)
	if err != nil || a.State != want || a.Refused() != refused {
		t.Errorf("the account is %s, refused: %t, want %s, %t; %v", a.State, a.Refused(), want, refused, err)
	}
}

// refuse makes the bank refuse the credentials in a look-up, and checks them.
func refuse(t *testing.T, g *coretest.Gateway, r *account.Registry) {
	t.Helper()
	g.Bank.Refusing = true
	g.Bank.QueryTransfer(t.Context(), "any")
	check(t, r)
}

// An account whose credentials are refused is suspended with one case: its payouts wait with
// their money held, no payment fails, and the account beside it is not affected. Once the
// credentials are accepted it is resumed, and its orders catch up, however long it took.
func TestRefusedCredentials(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s, r, other := setUp(t, g)
		analysis := g.Payin(g.Merchant, "in analysis", "")
		g.Bank.Charges[analysis.ExternalID].State = processor.ChargeAnalysis
		g.Must(g.Payins.Receive(t.Context(), coretest.BankName, analysis.ExternalID, g.Bank.QueryCharge(t.Context(), analysis.ExternalID), nil))
		g.Bank.Refusing = true
		sent := g.Payout("sent", 10_00)
		g.Send()
		g.WantPayout(sent, payment.PayoutProcessing, payment.StepUnknown)
		waits := g.Payout("waits", 20_00)
		check(t, r)
		wantState(t, s, payment.AccountSuspended, true)
		if r.States(func(string) bool { return false })["refused"] != 1 {
			t.Errorf("states %v", r.States(func(string) bool { return false }))
		}
		if _, _, err := g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest("new", 1_00)); !problem.Is(err, problem.Unavailable) {
			t.Errorf("a new payout: %v", err)
		}
		g.SetRoutes(s, payment.OperationPayout, "", "second")
		healthy := g.Payout("at the second account", 5_00)
		g.Bank.Receive(analysis.ExternalID, "paid meanwhile", 100_00) // its notice is lost
		queries := g.Bank.Queries
		for range 100 {
			check(t, r)
			g.Send()
			g.LookUp()
			g.Charge()
			g.Run(g.Notices.ReadFeeds)
			g.Jump(time.Hour)
		}
		g.WantPayout(healthy, payment.PayoutCompleted, payment.StepDone)
		g.WantPayout(sent, payment.PayoutProcessing, payment.StepUnknown)
		g.WantPayout(waits, payment.PayoutPending, payment.StepQueued)
		g.WantBalances(coretest.Opening-35_00, 30_00)
		g.WantCases(store.CaseAccountRefused)
		if g.Bank.Queries != queries || len(g.Bank.Calls) != 1 || len(other.Calls) != 1 {
			t.Errorf("%d queries and %d sends at the suspended account, %d at the other", g.Bank.Queries-queries, len(g.Bank.Calls)-1, len(other.Calls))
		}
		list, err := g.Store.OpenCases(t.Context(), 10)
		g.Must(err)
		if v := list[0].Params; v["account"] != coretest.BankName || !strings.HasPrefix(v["since"], "2026-11-20T12:00") {
			t.Errorf("case %+v", list[0])
		}
		if found, err := g.Store.FindCase(t.Context(), list[0].ID); err != nil || found.Kind != store.CaseAccountRefused {
			t.Errorf("case %+v, %v", found, err)
		}

		g.Bank.Refusing = false
		check(t, r)
		wantState(t, s, payment.AccountLive, false)
		g.WantCases()
		g.LookUp()
		g.Charge()
		for range 3 {
			g.Send()
			g.Pass(time.Second)
		}
		g.WantPayout(sent, payment.PayoutCompleted, payment.StepDone)
		g.WantPayout(waits, payment.PayoutCompleted, payment.StepDone)
		g.WantPayin(analysis, payment.PayinPaid, 100_00, 1)
		g.WantCases()
		g.WantProven()
	})
}

// Refused credentials are tried less and less often, by one process at a time, and soon again
// after a clock that was ahead was set right.
func TestRefusedCredentialsAreTriedRarely(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s, r, _ := setUp(t, g)
		_, second := g.Second().Accounts(coretest.Driver{Name: "test", Banks: map[string]processor.Processor{"one": g.Bank}})
		refuse(t, g, r)
		follow(t, second)
		tries := g.Bank.Checks
		for range 3600 {
			g.Clock.Advance(time.Second)
			check(t, r)
			check(t, second)
		}
		if n := g.Bank.Checks - tries; n < 12 || n > 22 {
			t.Errorf("tried %d times in an hour", n)
		}
		g.WantCases(store.CaseAccountRefused)
		g.Execute("UPDATE accounts SET check_at = check_at + 86400000000")
		tries = g.Bank.Checks
		check(t, r)
		check(t, second)
		if n := g.Bank.Checks - tries; n != 1 {
			t.Errorf("tried %d times after the clock was set right", n)
		}
		wantState(t, s, payment.AccountSuspended, true)
	})
}

// The suspension by an operator is never lifted, also of an account that the gateway had
// suspended, whose case then closes.
func TestSuspensionByAnOperatorStays(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s, r, _ := setUp(t, g)
		suspend := func() {
			t.Helper()
			_, err := s.SetState(t.Context(), coretest.BankName, payment.AccountSuspended)
			g.Must(err)
			follow(t, r)
			for _, refusing := range []bool{true, false} {
				g.Bank.Refusing = refusing
				g.Jump(10 * time.Minute)
				check(t, r)
				wantState(t, s, payment.AccountSuspended, false)
			}
			g.WantCases()
		}
		suspend()
		_, err := s.SetState(t.Context(), coretest.BankName, payment.AccountLive)
		g.Must(err)
		follow(t, r)
		refuse(t, g, r)
		wantState(t, s, payment.AccountSuspended, true)
		suspend()
		if _, err := s.SetState(t.Context(), coretest.BankName, payment.AccountSuspended); !problem.Is(err, problem.InvalidState) {
			t.Errorf("suspended twice: %v", err)
		}
	})
}

// After a rotation the credentials are tried at once. A draining account drains on.
func TestRotationIsTriedAtOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s, r, _ := setUp(t, g)
		_, err := s.SetState(t.Context(), coretest.BankName, payment.AccountDraining)
		g.Must(err)
		follow(t, r)
		refuse(t, g, r)
		wantState(t, s, payment.AccountSuspended, true)
		g.Bank.Refusing = false
		check(t, r)
		wantState(t, s, payment.AccountSuspended, true)
		_, err = s.Rotate(t.Context(), coretest.BankName, map[string]string{"key": "new"}, false)
		g.Must(err)
		follow(t, r)
		check(t, r)
		wantState(t, s, payment.AccountDraining, false)
		g.WantCases()
	})
}

// An answer that refused an earlier version of the credentials suspends nothing.
func TestRefusalOfAnEarlierVersion(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s, r, _ := setUp(t, g)
		_, err := s.Rotate(t.Context(), coretest.BankName, map[string]string{"key": "new"}, false)
		g.Must(err)
		refuse(t, g, r) // r has not followed yet
		wantState(t, s, payment.AccountLive, false)
		g.WantCases()
	})
}
