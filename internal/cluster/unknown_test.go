package cluster_test

import (
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// wantAbandoned checks that the process continues under a new id, and that the payout that
// it may have sent under the old one is looked up.
func wantAbandoned(g *coretest.Gateway, before payment.ID, p payment.Payout) {
	g.T.Helper()
	got := g.ReadPayout(p)
	if g.Node.ID() == before || got.Step != payment.StepUnknown || !got.ClaimedBy.IsZero() || got.NextAt.IsZero() {
		g.T.Fatalf("node %s after %s, payout %s claimed by %s", g.Node.ID(), before, got.Step, got.ClaimedBy)
	}
}

// After a claim whose commit is unknown, the next heartbeat releases the claims, and a
// payout that may have been sent is unknown.
func TestUnknownClaimIsAbandoned(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		sends, _, err := g.Outgoing.Claim(t.Context(), store.Due{Merchant: g.Merchant.ID, Processor: coretest.BankName}, 10)
		g.Must(err)
		before := g.Node.ID()
		g.Node.ClaimsUnknown()
		g.Heartbeat()
		wantAbandoned(g, before, p)
		// The answer to a call in flight under the old id still proves what it says.
		g.Must(g.Outgoing.RecordSend(t.Context(), sends[0], processor.TransferAnswer{Outcome: processor.NotSent}))
		g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
	})
}

// A claim whose unknown commit took effect runs again and finds nothing; the next heartbeat
// releases its claims.
func TestClaimOfAnUnknownCommit(t *testing.T) {
	var cuts *atomic.Int64
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		before := g.Node.ID()
		cuts.Store(1)
		g.Until(func() {
			sends, claimed, err := g.Outgoing.Claim(t.Context(), store.Due{Merchant: g.Merchant.ID, Processor: coretest.BankName}, 10)
			if err != nil || len(sends) != 0 || claimed != 0 || cuts.Load() != 0 {
				t.Errorf("claimed %v, %d, %v; %d cuts are left", sends, claimed, err, cuts.Load())
			}
		})
		g.Heartbeat()
		wantAbandoned(g, before, p)
	}, func(e *env.Env) { cuts = coretest.CutCommits(e, env.AfterCommit) })
}
