package outgoing_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
)

// throttled is a gateway whose requests are committed in groups, as in production.
func throttled(g *coretest.Gateway) {
	g.T.Helper()
	g.Concurrent()
	g.Writer.Start()
	g.T.Cleanup(g.Writer.Stop)
}

// completes sends p without letting time pass.
func completes(g *coretest.Gateway, p payment.Payout) {
	g.T.Helper()
	step(g, g.Outgoing.Send)
	reach(g, p.ReferenceID+" is completed", func() bool { return g.ReadPayout(p).Status == payment.PayoutCompleted })
}

// While requests are committed, payouts are claimed every 100 ms; without requests, at
// once.
func TestClaimsAreSpacedDuringABurst(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		throttled(g)
		completes(g, g.Payout("the first leaves at once", 1_00))
		second := g.Payout("second", 1_00)
		ran := make(chan error)
		go func() {
			_, err := g.Outgoing.Send(t.Context())
			ran <- err
		}()
		for wait, waits := g.Clock.Next(); !waits || wait != 100*time.Millisecond; wait, waits = g.Clock.Next() {
			runtime.Gosched()
		}
		g.WantPayout(second, payment.PayoutPending, payment.StepQueued)
		g.Clock.Advance(100 * time.Millisecond)
		g.Must(<-ran)
		completes(g, second) // although the latest run was just now: there was no request since
	})
}

// A payout that has waited for 5 s ends the spacing: a load that lasts does not delay
// payouts without end.
func TestLatePayoutsAreNotSpaced(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		throttled(g)
		late := g.Payout("late", 1_00)
		g.Pass(5 * time.Second)
		_, err := g.Outgoing.Send(t.Context())
		g.Must(err)
		reach(g, "the late payout is completed", func() bool { return g.ReadPayout(late).Status == payment.PayoutCompleted })
		completes(g, g.Payout("at once", 1_00))
	})
}
