package account_test

import (
	"fmt"
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

// setUp gives a gateway two accounts, at two banks.
func setUp(t *testing.T, g *coretest.Gateway) (s *account.Service, r *account.Registry, other *coretest.Bank) {
	t.Helper()
	other = coretest.NewBank()
	other.Now = g.Bank.Now
	s, r = g.Accounts(coretest.Driver{Name: "test", Banks: map[string]processor.Processor{"one": g.Bank, "two": other}})
	g.Account(s, coretest.BankName, "test", "one")
	g.Account(s, "second", "test", "two")
	follow(t, r)
	return s, r, other
}

func follow(t *testing.T, r *account.Registry) {
	t.Helper()
	if _, err := r.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Another process follows each change at its next poll, without a restart, and a process
// without the driver leaves the account to others.
func TestEveryProcessFollows(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s, first, _ := setUp(t, g)
		_, second := g.Second().Accounts(coretest.Driver{Name: "test", Banks: map[string]processor.Processor{"one": g.Bank}})
		if got := strings.Join(first.IDs(), " ") + "; " + strings.Join(second.IDs(), " "); got != "bank second; bank" {
			t.Fatalf("open accounts: %s", got)
		}
		a, err := s.SetState(t.Context(), coretest.BankName, payment.AccountSuspended)
		g.Must(err)
		if err := second.Allows(coretest.BankName, payment.UseTransfer); err != nil {
			t.Errorf("before the poll: %v", err)
		}
		follow(t, second)
		if err := second.Allows(coretest.BankName, payment.UseTransfer); !problem.Is(err, problem.Unavailable) {
			t.Errorf("after the poll: %v", err)
		}
		if second.Find(coretest.BankName) == nil || second.Find("second") != nil || second.Find("nobody") != nil {
			t.Error("look-ups need no state, and an account that is not open has no processor")
		}
		if got := second.States(func(id string) bool { return id == coretest.BankName }); got["suspended"] != 1 || got["not_open"] != 1 || got["live"] != 0 || got["frozen"] != 1 {
			t.Errorf("states %v", got)
		}
		token := a.Secrets.NoticeToken
		rotated, err := s.Rotate(t.Context(), coretest.BankName, nil, true)
		g.Must(err)
		follow(t, second)
		for token, want := range map[string]bool{token: true, rotated.Secrets.NoticeToken: true, "": false, token[1:]: false} {
			if got := second.Authentic(coretest.BankName, token); got != want {
				t.Errorf("token of %d characters is accepted: %t", len(token), got)
			}
		}
		_, err = s.Finish(t.Context(), coretest.BankName)
		g.Must(err)
		follow(t, second)
		if second.Authentic(coretest.BankName, token) || !second.Authentic(coretest.BankName, rotated.Secrets.NoticeToken) {
			t.Error("the previous token is valid until the rotation is finished, not longer")
		}
	})
}

// A payout waits while its account is suspended, with its money held, and is sent once the
// account is resumed; new orders go to the next account.
func TestSuspendedAccountSendsNothing(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s, r, other := setUp(t, g)
		g.Payout("waits", 10_00)
		_, err := s.SetState(t.Context(), coretest.BankName, payment.AccountSuspended)
		g.Must(err)
		follow(t, r)
		if _, _, err := g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest("new", 10_00)); !problem.Is(err, problem.Unavailable) {
			t.Errorf("a new payout: %v", err)
		}
		if p, replayed, err := g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest("waits", 10_00)); err != nil || !replayed || p.Processor != coretest.BankName {
			t.Errorf("the repeated payout: %+v, %t, %v", p, replayed, err)
		}
		g.SetRoutes(s, payment.OperationPayin, "", "second")
		if p := g.Payin(g.Merchant, "of the second account", ""); p.Processor != "second" {
			t.Errorf("the order has account %s", p.Processor)
		}
		g.SetRoutes(s, payment.OperationPayout, "", coretest.BankName, "second")
		if p := g.Payout("of the second account", 5_00); p.Processor != "second" {
			t.Errorf("the payout has account %s", p.Processor)
		}
		g.Send()
		if len(g.Bank.Calls) != 0 {
			t.Errorf("%d transfers of the suspended account", len(g.Bank.Calls))
		}
		_, err = s.SetState(t.Context(), coretest.BankName, payment.AccountLive)
		g.Must(err)
		follow(t, r)
		g.Send()
		g.Send()
		if len(g.Bank.Calls) != 1 || len(other.Calls) != 1 {
			t.Errorf("%d transfers after the account was resumed, %d of the other", len(g.Bank.Calls), len(other.Calls))
		}
		g.WantBalances(coretest.Opening-15_00, 0)
		g.WantProven()
	})
}

// A draining account takes no new order, and its payouts are sent.
func TestDrainingAccount(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s, r, _ := setUp(t, g)
		g.Payout("before", 10_00)
		_, err := s.SetState(t.Context(), coretest.BankName, payment.AccountDraining)
		g.Must(err)
		follow(t, r)
		if _, _, err := g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest("new", 10_00)); !problem.Is(err, problem.Unavailable) {
			t.Errorf("a new payout: %v", err)
		}
		if _, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("new", "")); !problem.Is(err, problem.Unavailable) {
			t.Errorf("a new pay-in: %v", err)
		}
		g.Send()
		if len(g.Bank.Calls) != 1 {
			t.Errorf("%d transfers", len(g.Bank.Calls))
		}
	})
}

// The order's row keeps its account: a repeated request goes to the order's account, not to
// the one that the merchant's routes name today.
func TestOrderKeepsItsAccount(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s, _, other := setUp(t, g)
		g.Bank.AnswerCharge = func(*coretest.Bank, processor.ChargeRequest) processor.ChargeAnswer {
			g.Clock.Advance(time.Minute) // past the time-out
			return processor.ChargeAnswer{}
		}
		if _, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", "")); !problem.Is(err, problem.ProcessorTimeout) {
			t.Fatalf("the bank did not answer: %v", err)
		}
		g.Heartbeat()
		g.Bank.AnswerCharge = nil
		other.AnswerCharge = func(*coretest.Bank, processor.ChargeRequest) processor.ChargeAnswer {
			t.Error("the other account is asked for the order's charge")
			return processor.ChargeAnswer{}
		}
		g.SetRoutes(s, payment.OperationPayin, "", "second")
		g.Pass(5 * time.Second) // to the next call
		var p payment.Payin
		var replayed bool
		var err error
		g.UntilWithin(2*time.Second, func() { // its calls wait for each other, less than the timeout
			p, replayed, err = g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
		})
		if err != nil || !replayed || p.Processor != coretest.BankName || !p.Ready() {
			t.Errorf("the repeated order: account %s, replayed %t, ready %t, %v", p.Processor, replayed, p.Ready(), err)
		}
	})
}

// A method that no account of the routes offers is refused, and nothing is stored.
func TestMethodThatIsNotOffered(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s, _, other := setUp(t, g)
		other.Profiled.Methods = []payment.Method{payment.Boleto}
		g.SetRoutes(s, payment.OperationPayin, "", "second")
		if changes := g.Changes(func() {
			if _, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", "")); !problem.Is(err, problem.MethodNotEnabled) {
				t.Errorf("answered %v", err)
			}
		}); changes != "" {
			t.Errorf("changes %s", changes)
		}
		err := s.SetRoutes(t.Context(), &g.Merchant, payment.OperationPayin, payment.PIX, []payment.Route{{Account: "second"}})
		if !problem.Is(err, problem.ValidationFailed) {
			t.Errorf("a route to it: %v", err)
		}
	})
}

// Notices of an account that this process cannot open are left to others, which apply
// them; no case is opened.
func TestNoticesAreLeftToOthers(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		setUp(t, g)
		p := g.Payin(g.Merchant, "order", "")
		g.Bank.Receive(p.ExternalID, "E1", p.Amount)
		g.Node.Lease.Drop() // it does not claim what it records
		g.Notify("n1", "charge "+p.ExternalID)
		g.Accounts(coretest.Driver{Name: "of another version"})
		if changes := g.Changes(func() { g.Apply() }); changes != "" {
			t.Errorf("a process that cannot open the account changed %s", changes)
		}
		g.Accounts(coretest.Driver{Name: "test", Banks: map[string]processor.Processor{"one": g.Bank}})
		g.Apply()
		if got, err := g.Store.Payin(t.Context(), p.Merchant, p.ID); err != nil || got.Status != payment.PayinPaid {
			t.Errorf("the pay-in is %s, %v", got.Status, err)
		}
	})
}

// An account whose secrets do not open affects no other, and opens once its row is repaired,
// without a restart.
func TestDamagedAccountIsRepaired(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		_, _, other := setUp(t, g)
		var sealed []byte
		write := func(value []byte) {
			t.Helper()
			g.Must(g.Store.Transact(t.Context(), func(tx *store.Tx) error {
				return tx.ExecOne(t.Context(), "UPDATE accounts SET secrets = $1 WHERE id = 'second'", value)
			}))
		}
		g.Must(g.Store.Transact(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow(t.Context(), "SELECT secrets FROM accounts WHERE id = 'second'").Scan(&sealed)
		}))
		write([]byte("damaged"))
		_, r := g.Accounts(coretest.Driver{Name: "test", Banks: map[string]processor.Processor{"one": g.Bank, "two": other}})
		for range 3 {
			follow(t, r)
		}
		if got := strings.Join(r.IDs(), " "); got != coretest.BankName {
			t.Errorf("open accounts: %s", got)
		}
		if n := strings.Count(g.Log.String(), "account cannot be opened"); n != 1 {
			t.Errorf("%d lines in the log", n)
		}
		p := g.Payout("of the healthy account", 10_00)
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		write(sealed)
		follow(t, r)
		if got := strings.Join(r.IDs(), " "); got != coretest.BankName+" second" {
			t.Errorf("open accounts after the repair: %s", got)
		}
	})
}

// Every process knows which lists cannot be read, and how often they failed.
func TestFailingFeeds(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		_, r, other := setUp(t, g)
		other.FeedsDown = map[processor.Feed]bool{processor.FeedTransfers: true}
		wantFailures := func(want string) {
			t.Helper()
			follow(t, r)
			got := ""
			for _, f := range r.Feeds() {
				if f.Failures > 0 {
					got += fmt.Sprintln(f.Account, f.Feed, f.Failures, f.LastError)
				}
			}
			if got != want {
				t.Errorf("the feeds that fail are %q, want %q", got, want)
			}
		}
		g.ReadFeeds()
		g.ReadFeeds()
		wantFailures("second transfers 2 bank: connection refused\n")
		other.FeedsDown = nil
		g.ReadFeeds()
		wantFailures("")
	})
}
