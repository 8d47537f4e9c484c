package outgoing_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// payoutAt requests a payout of the merchant at another processor.
func payoutAt(g *coretest.Gateway, name, reference string) payment.Payout {
	g.T.Helper()
	m := g.Merchant
	m.Routes = payment.AllRoutes(name)
	p, _, err := g.Payouts.Request(g.T.Context(), m, coretest.PayoutRequest(reference, 1_00))
	g.Must(err)
	return p
}

// A payout does not wait behind the same merchant's payouts at a processor that is gone.
func TestMissingProcessorDelaysNoOther(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Processor("gone", coretest.NewBank())
		older := payoutAt(g, "gone", "older")
		g.NoProcessor("gone")
		g.Pass(time.Second)
		p := g.Payout("r", 10_00)
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantPayout(older, payment.PayoutPending, payment.StepQueued)
	})
}

// Nor do payouts wait behind payouts of a processor with an open breaker.
func TestOpenBreakerDelaysNoOther(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		down := coretest.NewBank()
		down.AnswerTransfer = always(notSent)
		g.Processor("down", down)
		var older payment.Payout
		for i := range 4 { // the last one finds the breaker open
			older = payoutAt(g, "down", fmt.Sprint("older ", i))
			g.Send()
		}
		p := g.Payout("r", 10_00)
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantPayout(older, payment.PayoutPending, payment.StepQueued)
		if len(down.Calls) != 3 {
			t.Errorf("%d calls to the processor that is down", len(down.Calls))
		}
	})
}

// reach waits until a state is reached by calls that run concurrently, with the clock
// standing still.
func reach(g *coretest.Gateway, what string, reached func() bool) {
	g.T.Helper()
	for !reached() {
		if g.T.Context().Err() != nil {
			g.T.Fatalf("not reached: %s", what)
		}
		runtime.Gosched()
	}
}

// step runs a step until it has nothing to do, beside calls that hang.
func step(g *coretest.Gateway, run func(context.Context) (int, error)) {
	g.T.Helper()
	for {
		did, err := run(g.T.Context())
		g.Must(err)
		if did == 0 {
			return
		}
	}
}

// hanging returns a gateway with concurrent calls and one more processor, which hangs.
func hanging(g *coretest.Gateway) *coretest.Hanging {
	g.T.Helper()
	h := coretest.NewHanging(g.T)
	g.Processor("slow", h)
	g.Concurrent()
	g.T.Cleanup(h.Release) // before the calls are awaited
	return h
}

// While one processor hangs with more payouts than it has slots, payouts at another are
// sent and completed; time-outs open the breaker of the one that hangs, and no other.
func TestHangingProcessorDelaysNoOther(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		slow := hanging(g)
		var waiting []payment.Payout
		for i := range 80 {
			waiting = append(waiting, payoutAt(g, "slow", fmt.Sprint("slow ", i)))
		}
		step(g, g.Outgoing.Send)
		reach(g, "all slots of the hanging processor are taken", func() bool { return slow.Waiting() == 64 })
		g.WantPayout(waiting[79], payment.PayoutPending, payment.StepQueued)

		complete := func(reference string) {
			t.Helper()
			p := g.Payout(reference, 1_00)
			step(g, g.Outgoing.Send)
			reach(g, reference+" is completed", func() bool { return g.ReadPayout(p).Status == payment.PayoutCompleted })
		}
		complete("healthy, while the other hangs")
		if slow.Waiting() != 64 {
			t.Errorf("%d calls hang", slow.Waiting())
		}
		g.Clock.Advance(5 * time.Second) // the time-out of a transfer
		g.UntilWithin(raceWithin, g.Outgoing.Wait)
		g.WantPayout(waiting[0], payment.PayoutProcessing, payment.StepUnknown)
		g.Heartbeat()
		complete("healthy, while the other's breaker is open")
		g.WantPayout(waiting[79], payment.PayoutPending, payment.StepQueued)
		if slow.Arrived() != 64 {
			t.Errorf("%d calls to the processor that lets calls time out", slow.Arrived())
		}
	})
}

// Look-ups that hang delay no look-up at another processor.
func TestHangingLookUpsDelayNoOther(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		silent := coretest.NewBank()
		silent.AnswerTransfer = coretest.Unknown
		g.Processor("slow", silent)
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			b.Pay(r, processor.TransferPaid)
			return processor.TransferAnswer{}
		}
		for i := range 40 {
			payoutAt(g, "slow", fmt.Sprint("slow ", i))
		}
		p := g.Payout("r", 1_00)
		g.Send()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		slow := hanging(g)
		g.Jump(2 * time.Second)
		step(g, g.Outgoing.LookUp)
		reach(g, "all slots of the hanging processor are taken", func() bool { return slow.Waiting() == 32 })
		reach(g, "the other's payout is completed", func() bool { return g.ReadPayout(p).Status == payment.PayoutCompleted })
		if slow.Waiting() != 32 {
			t.Errorf("%d look-ups hang", slow.Waiting())
		}
		g.Clock.Advance(10 * time.Second) // the time-out of a look-up
		g.UntilWithin(raceWithin, g.Outgoing.Wait)
		g.Heartbeat()
		step(g, g.Outgoing.LookUp)
		if slow.Arrived() != 32 {
			t.Errorf("%d look-ups at a processor whose breaker is open", slow.Arrived())
		}
	})
}
