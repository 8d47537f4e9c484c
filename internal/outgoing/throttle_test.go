package outgoing_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
)

// completes runs the worker once to send p, without letting time pass.
func completes(g *coretest.Gateway, p payment.Payout) {
	g.T.Helper()
	_, err := g.Outgoing.Send(g.T.Context())
	g.Must(err)
	reach(g, p.ReferenceID+" is completed", func() bool { return g.ReadPayout(p).Status == payment.PayoutCompleted })
}

// While requests queue for their commits, payouts are claimed every 100 ms, until one of them
// has waited for 5 s; else at once.
func TestClaimsAreSpacedDuringABurst(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Concurrent()
		backlogged := false
		g.Outgoing.ThrottleWhile(func() bool { return backlogged })
		completes(g, g.Payout("first", 1_00))
		completes(g, g.Payout("at once, as no requests queue", 1_00))
		backlogged = true
		spaced := g.Payout("spaced", 1_00)
		ran := make(chan error)
		go func() {
			_, err := g.Outgoing.Send(t.Context())
			ran <- err
		}()
		for wait, waits := g.Clock.Next(); !waits || wait != 100*time.Millisecond; wait, waits = g.Clock.Next() {
			runtime.Gosched()
		}
		g.WantPayout(spaced, payment.PayoutPending, payment.StepQueued)
		g.Clock.Advance(100 * time.Millisecond)
		g.Must(<-ran)

		late := g.Payout("late", 1_00)
		g.Pass(5 * time.Second)
		completes(g, late)
		completes(g, g.Payout("at once, as one was late", 1_00))
	})
}
