package payout_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// No batch of a merchant whose payouts are stopped is accepted; it may be sent again.
func TestBatchWhileStopped(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		stop := store.Case{Merchant: g.Merchant.ID, Kind: store.CaseContradiction, Subject: g.Merchant.ID, StopsPayouts: true, Params: store.ReasonReturnedTooMuch.With(nil)}
		var n store.Needs
		n.Balances(g.Merchant.ID)
		g.Must(g.Store.Transact(t.Context(), func(tx *store.Tx) error {
			return tx.Apply(t.Context(), &n, func(_ *store.Loaded, c *store.Changes) error { c.OpenCase(stop); return nil })
		}))
		if _, _, err := g.Payouts.RequestBatch(t.Context(), g.Merchant, batchOf("b", 1_00, 2_00)); !problem.Is(err, problem.Unavailable) {
			t.Errorf("stopped: %v", err)
		}
		g.Execute("UPDATE cases SET stops_payouts = 0")
		if _, replayed, err := g.Payouts.RequestBatch(t.Context(), g.Merchant, batchOf("b", 1_00, 2_00)); err != nil || replayed {
			t.Errorf("afterwards: %t, %v", replayed, err)
		}
		g.WantBalances(coretest.Opening-3_00, 3_00)
		g.WantProven()
	})
}
