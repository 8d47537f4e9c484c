package payin_test

import (
	"errors"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// A pay-in that cannot expire gets a case, and delays no other.
func TestExpireParksADamagedPayin(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		bad := g.Payin(g.Merchant, "bad", "")
		good := g.Payin(g.Merchant, "good", "")
		g.Execute("UPDATE payins SET details = '{' WHERE external_id = '" + bad.ExternalID + "'")
		g.Jump(2 * time.Hour)
		g.Run(g.Payins.Expire) // fails if the worker fails
		g.WantPayin(good, payment.PayinExpired, 0, 0)
		g.WantCases(store.CaseDamaged)
		if due, err := g.Store.PayinsDue(t.Context(), g.Clock.Now(), 10); err != nil || len(due) != 0 {
			t.Errorf("due: %v, %v", due, err)
		}
		// The commit of the case runs again, as after an unknown commit, or in another process.
		if err := g.Commit(write.OpenCase{Case: store.DamagedCase(bad.Merchant, bad.ID, "payins"), Park: true}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("parked twice: %v", err)
		}
		g.WantCases(store.CaseDamaged)
	})
}
