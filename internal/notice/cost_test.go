package notice_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// Fees that a processor charged are booked once, on the platform's accounts, and so are fees that
// it gave back, even if they were charged before the account was added. No merchant pays for them.
func TestListedCosts(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Costs = []processor.ListedCost{{ID: "f-1", Amount: 45}, {ID: "f-2", Amount: 30}, {ID: "f-3", Amount: 0}, {ID: "f-4", Amount: -30}}
		want := func(cost money.Cents) {
			t.Helper()
			b, err := g.Store.Balances(t.Context(), payment.ID{})
			g.Must(err)
			if b[ledger.Costs]+b[ledger.WrittenOff] != -cost || b[ledger.Costs] > 0 || b[ledger.Clearing(coretest.BankName)] != cost {
				t.Errorf("costs %d, clearing %d, want a cost of %d", b[ledger.Costs], b[ledger.Clearing(coretest.BankName)], cost)
			}
			g.WantBalances(coretest.Opening, 0)
			g.WantProven()
			g.WantCases()
		}
		g.ReadFeeds()
		g.ReadFeeds()
		want(45)
		forgetCursor(g, processor.FeedCosts)
		g.ReadFeeds()
		g.ReadFeeds()
		want(45)
		g.Bank.Costs = append(g.Bank.Costs, processor.ListedCost{ID: "f-5", Amount: -1_00})
		g.ReadFeeds()
		want(45 - 1_00)
	})
}
