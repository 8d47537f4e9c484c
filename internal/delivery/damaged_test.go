package delivery_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/store"
)

// An event that cannot be opened gets a case, and delays no other event of its merchant.
func TestClaimParksADamagedEvent(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, reference := range []string{"bad", "good"} {
			p := g.Payin(g.Merchant, reference, "https://shop.example/hook")
			g.Bank.Receive(p.ExternalID, "pay-"+reference, 100_00)
		}
		g.ReadFeeds()
		none := map[string]string{"postgres": "'\\x'::bytea", "sqlite": "x''"}[g.Engine]
		g.Execute("UPDATE deliveries SET next_at = 1, claimed_by = " + none) // as after the death of the process that had claimed them
		g.Damage("events", "body", "number = 1")
		claimed, err := g.Deliveries.Claim(t.Context(), g.Merchant.ID, 10)
		g.Must(err)
		if len(claimed) != 1 || claimed[0].EventNumber != 2 {
			t.Errorf("claimed %+v, want the delivery of event 2", claimed)
		}
		g.WantCases(store.CaseDamaged)
	})
}
