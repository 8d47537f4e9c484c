package payout_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// The end of an approval parks a payout that cannot be decoded, as it does one that cannot be decrypted,
// and as the executor does since 526285a.
func TestExpireParksAPayoutThatCannotBeDecoded(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		above, approvals := money.Cents(5_00), int64(1)
		g.SetLimits(limits.Limits{Payout: limits.Payout{ApprovalAbove: &above, Approvals: &approvals}})
		bad, good := g.Payout("bad", 10_00), g.Payout("good", 10_00)
		g.Execute("UPDATE payouts SET failure = '{' WHERE external_id = '" + bad.ExternalID + "'")
		g.Jump(72 * time.Hour)
		for range 3 {
			_, err := g.Payouts.Expire(t.Context())
			g.Must(err)
			g.Jump(time.Hour)
		}
		g.WantPayout(good, payment.PayoutCanceled, payment.StepDone)
		g.WantCases(store.CaseDamaged)
	})
}
