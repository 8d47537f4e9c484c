package account_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// A batch that was requested and partly paid in the past that a restored backup lacks is
// requested again: the item whose transfer is found gets it and its account, and is not paid
// again; the other item is paid at the account of today.
func TestBatchAfterARestore(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := restoreWithoutPayout(t, g)
		request := func() (payment.PayoutBatch, error) {
			r := &wire.PayoutBatchRequest{ReferenceID: wire.Some("b")}
			r.Items = append(r.Items, coretest.PayoutRequest("new", 50_00), coretest.PayoutRequest("lost", 900_00))
			b, _, err := g.Payouts.RequestBatch(t.Context(), g.Merchant, r)
			return b, err
		}
		if _, err := request(); !problem.Is(err, problem.Unavailable) {
			t.Fatalf("a batch while transfers are not read: %v", err)
		}
		g.Clear()
		g.WantCases(store.CasePayoutFound)
		b, err := request()
		g.Must(err)
		g.WantCases()
		for range 5 {
			g.Send()
			g.LookUp()
			g.Jump(time.Minute)
		}
		g.Run(g.Payouts.CompleteBatches)
		got, err := g.Store.PayoutBatch(t.Context(), b.Merchant, b.ID)
		g.Must(err)
		if got.Counts[payment.PayoutCompleted] != 2 || got.Status() != payment.BatchCompleted {
			t.Errorf("the batch is %+v", got)
		}
		list, err := g.Store.Payouts(t.Context(), g.Merchant.ID, store.Filter{Batch: b.ID, First: got.First, Last: got.Last, Limit: 9})
		g.Must(err)
		at := map[string]string{}
		for _, p := range list {
			at[p.ReferenceID] = p.Processor
		}
		if at["lost"] != coretest.BankName || at["new"] != "second" {
			t.Errorf("the payouts are at %v", at)
		}
		if len(g.Bank.Calls) != 0 || len(other.Calls) != 1 {
			t.Errorf("%d and %d further transfers", len(g.Bank.Calls), len(other.Calls))
		}
		g.WantBalances(50_00, 0)
		g.WantProven()
	})
}
