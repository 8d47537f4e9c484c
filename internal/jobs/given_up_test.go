package jobs_test

import (
	"errors"
	"testing"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// nodeOf is a process as others see it.
func (g *gateway) nodeOf() store.Node {
	g.t.Helper()
	nodes, err := g.store.Nodes(g.t.Context())
	g.must(err)
	for _, n := range nodes {
		if n.ID == g.flow.Node() {
			return n
		}
	}
	g.t.Fatal("the process is not on the list")
	return store.Node{}
}

// A process that others have given up for dead, and does not know it yet, takes
// nothing in hand: if it died now, nobody would look for what it had.
func TestGivenUpProcessClaimsNothing(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.payout("r", 10_00)
		heir := g.second()
		g.notify("n", p.ExternalID)
		_, err := heir.flow.Release(t.Context(), g.nodeOf())
		g.must(err)
		// It claims, and dies before it does anything.
		due := store.Due{Merchant: g.merchant.ID, Processor: bankName}
		if _, _, err := g.flow.BeginSends(t.Context(), due, 10); !errors.Is(err, store.ErrConflict) {
			t.Errorf("claim of payouts: %v, want ErrConflict", err)
		}
		if _, err := g.flow.ClaimNotices(t.Context(), 10); !errors.Is(err, store.ErrConflict) {
			t.Errorf("claim of notices: %v, want ErrConflict", err)
		}

		heir.submit()
		heir.apply()
		heir.want(p, payment.PayoutCompleted, payment.StepDone)
		if g.bank.questions != 1 {
			t.Errorf("the notice was followed %d times", g.bank.questions)
		}
	})
}
