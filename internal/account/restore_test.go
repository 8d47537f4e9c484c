package account_test

import (
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// restoreWithoutPayout restores a backup that lacks the payout "lost" of 900.00: it was paid at
// the first account, and payouts go to the second one now.
func restoreWithoutPayout(t *testing.T, g *coretest.Gateway) (second *coretest.Bank) {
	t.Helper()
	s, _, second := setUp(t, g)
	g.SetRoutes(s, payment.OperationPayout, "", "second")
	g.Heartbeat()
	g.Bank.Pay(processor.TransferRequest{
		ExternalID: g.Store.ExternalID(&g.Merchant, payment.OperationPayout, "lost"), Amount: 900_00,
	}, processor.TransferPaid)
	g.Execute("UPDATE installation SET epoch = epoch - 3")
	g.Heartbeat()
	return second
}

// A payout that was paid in the past that a restored backup lacks is not paid again at
// another account: a new payout waits until the transfers of every account are read, and
// gets the account of the one that is found.
func TestRoutesAfterARestore(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := restoreWithoutPayout(t, g)
		g.Bank.Down = true
		g.Jump(g.Bank.Profiled.Transfer.QuietPeriod + time.Second)
		g.ReadFeeds()
		g.Heartbeat()
		if g.Node.Frozen("second") || !g.Node.Frozen(coretest.BankName) {
			t.Fatal("only the transfers of the account that answers are read")
		}
		request := func() (payment.Payout, error) {
			p, _, err := g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest("lost", 900_00))
			return p, err
		}
		if _, err := request(); !problem.Is(err, problem.Unavailable) || !strings.HasSuffix(problem.From(err).Cause.Error(), ": "+coretest.BankName) {
			t.Fatalf("a payout while the transfers of another account are not read: %v", err)
		}
		wantOneAnswer(g, "lost", 900_00)
		g.Bank.Down = false
		g.Pass(time.Minute)
		g.Clear()
		g.WantCases(store.CasePayoutFound)
		wantOneAnswer(g, "lost", 900_00) // both are to go to the transfer's account
		p, err := request()
		if err != nil || p.Processor != coretest.BankName {
			t.Fatalf("the found transfer is at %s, and its payout at %s, %v", coretest.BankName, p.Processor, err)
		}
		g.WantCases()
		for range 5 {
			g.Send()
			g.LookUp()
			g.Jump(time.Minute)
		}
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		if len(g.Bank.Calls)+len(other.Calls) != 0 {
			t.Errorf("%d and %d further transfers", len(g.Bank.Calls), len(other.Calls))
		}
		g.WantBalances(100_00, 0)
		g.WantProven()
	})
}

// wantOneAnswer commits a request that is refused, and a copy of it, in one batch: the copy
// gets the same answer, not one about the merchant's balance.
func wantOneAnswer(g *coretest.Gateway, reference string, amount int64) {
	g.T.Helper()
	ops := make([]write.Operation, 2)
	for i := range ops {
		op, err := g.Payouts.NewRequestOp(g.Merchant, coretest.PayoutRequest(reference, amount))
		g.Must(err)
		ops[i] = op
	}
	changes := g.Changes(func() {
		errs := g.Writer.All(g.T.Context(), ops)
		if errs[0] == nil || errs[1] == nil || errs[0].Error() != errs[1].Error() || problem.Is(errs[1], problem.InsufficientBalance) {
			g.T.Errorf("the request is answered %v, its copy %v", errs[0], errs[1])
		}
	})
	if changes != "" {
		g.T.Errorf("changes %s", changes)
	}
}

// An account that was added after the restore, and to which no payout is routed, delays none.
func TestAccountThatIsAddedAfterARestoreDelaysNoPayout(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s, r, _ := setUp(t, g)
		g.Heartbeat()
		g.Execute("UPDATE installation SET epoch = epoch - 3")
		g.Heartbeat()
		g.Clear()
		g.Account(s, "third", "test", "none") // cannot be opened
		follow(t, r)
		if _, _, err := g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest("next", 1_00)); err != nil {
			t.Error(err)
		}
	})
}

// refundsOnly is an account that sends no transfers.
type refundsOnly struct {
	processor.Processor
	processor.Refunder
}

// An account that only gives payments back waits after a restore too, and is counted as frozen: new
// refunds are refused meanwhile.
func TestAccountThatOnlyRefundsIsFrozen(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s, r := g.Accounts(coretest.Driver{Name: "test", Banks: map[string]processor.Processor{"one": refundsOnly{g.Bank, g.Bank}}})
		g.Account(s, coretest.BankName, "test", "one")
		follow(t, r)
		frozen := func(string) bool { return true }
		if got := r.States(frozen)["frozen"]; got != 1 || !r.Waits(coretest.BankName) || r.Waits("nobody") {
			t.Errorf("%d accounts are frozen", got)
		}
	})
}
