package jobs_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

func refused(*bank, processor.TransferRequest) processor.TransferAnswer {
	return processor.TransferAnswer{Outcome: processor.NotSent, Cause: errDown}
}

// Once a processor is known to be out of reach, payouts wait as they came:
// PENDING, untouched, and can be taken back. When it is back they go.
func TestUnreachableProcessorLeavesPayoutsPending(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.transfer = refused
		var tried, waiting []payment.Payout
		for i := range 3 { // it takes three to know
			tried = append(tried, g.payout(fmt.Sprint("tried ", i), 10_00))
			g.submit()
		}
		for i := range 5 {
			waiting = append(waiting, g.payout(fmt.Sprint("waiting ", i), 10_00))
		}
		g.submit()
		g.wantPaid(3, 0)
		for _, p := range tried {
			g.want(p, payment.PayoutProcessing, payment.StepQueued)
		}
		for _, p := range waiting {
			g.want(p, payment.PayoutPending, payment.StepQueued)
			g.wantSends(p)
		}
		g.wantBalances(opening-80_00, 80_00)

		canceled, err := g.flow.CancelPayout(t.Context(), g.merchant.ID, waiting[4].ID)
		g.must(err)
		if canceled.Status != payment.PayoutCanceled {
			t.Errorf("canceled: %s", canceled.Status)
		}
		g.wantBalances(opening-70_00, 70_00)

		g.bank.transfer = nil
		for range 30 {
			g.pass(time.Second)
			g.submit()
		}
		for _, p := range append(tried, waiting[:4]...) {
			g.want(p, payment.PayoutCompleted, payment.StepDone)
		}
		g.want(canceled, payment.PayoutCanceled, payment.StepDone)
		g.wantBalances(opening-70_00, 0)
		g.wantPaid(3+7, 7)
	})
}

// A processor that stays away is tried less and less, once at a time.
func TestUnreachableProcessorIsTriedLessAndLess(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.transfer = refused
		for i := range 20 {
			g.payout(fmt.Sprint("r-", i), 10_00)
			if i < 3 {
				g.submit()
			}
		}
		last := len(g.bank.calls)
		for range 5 * 60 {
			g.pass(time.Second)
			g.submit()
			if now := len(g.bank.calls); now > last+1 {
				t.Fatalf("tried %d times within a second, after %d", now-last, last)
			}
			last = len(g.bank.calls)
		}
		// After 2, 4, 8, 16, 32 and then every 60 s.
		if last < 3+7 || last > 3+10 {
			t.Errorf("tried %d times in five minutes", last)
		}
	})
}

// An answer, whatever it says, shows that the processor can be reached.
func TestAnswersDoNotTripTheBreaker(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.transfer = func(*bank, processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Refused, Evidence: "AC03"}
		}
		for i := range 5 {
			p := g.payout(fmt.Sprint("r-", i), 10_00)
			g.submit()
			g.want(p, payment.PayoutFailed, payment.StepDone)
			g.wantSends(p, store.SendRefused)
		}
		g.wantBalances(opening, 0)
	})
}

// A process that lost the right to send on the way has learned nothing of the
// processor.
func TestOwnRefusalsDoNotTripTheBreaker(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.onTheWay = func() { g.jobs.Lease().Drop() }
		for i := range 5 {
			p := g.payout(fmt.Sprint("late-", i), 10_00)
			g.submit()
			g.want(p, payment.PayoutProcessing, payment.StepQueued)
			g.wantSends(p, store.SendNotSent)
			g.beat()
		}
		g.wantPaid(0, 0)
		g.bank.onTheWay = nil
		p := g.payout("in time", 10_00)
		g.submit()
		g.want(p, payment.PayoutCompleted, payment.StepDone)
		g.wantPaid(1, 1)
	})
}

// onTheWay is a gateway of which each payout, when it is on its way to the bank,
// meets something.
func onTheWay(t *testing.T, meet func(clock *env.VirtualClock), run func(t *testing.T, g *gateway)) {
	t.Helper()
	w, clock := env.Virtual(start, 1)
	w.OnFailpoint = func(m env.Failpoint) error {
		if m == env.BeforeTransfer {
			meet(clock)
		}
		return nil
	}
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		o.Env.Webhooks = &receivers{clock: clock}
		g := newGateway(t, o, o.Env, clock, newBank(), &memoryMarker{})
		var err error
		g.merchant, err = g.flow.CreateMerchant(t.Context(), store.Merchant{Name: "Loja", City: "SAO PAULO", Processor: bankName}, "")
		g.must(err)
		g.must(g.flow.Fund(t.Context(), g.merchant, opening))
		run(t, g)
	})
}

// Nor has one whose time was over before it called.
func TestOwnDelaysDoNotTripTheBreaker(t *testing.T) {
	late := time.Duration(0)
	onTheWay(t, func(clock *env.VirtualClock) { clock.Advance(late) }, func(t *testing.T, g *gateway) {
		late = 6 * time.Second
		for i := range 5 {
			p := g.payout(fmt.Sprint("late-", i), 10_00)
			g.submit()
			g.wantSends(p, store.SendNotSent)
			g.beat()
		}
		late = 0
		p := g.payout("in time", 10_00)
		g.submit()
		g.want(p, payment.PayoutCompleted, payment.StepDone)
	})
}

// Where commits are slow the lease may run out before a payout leaves: it leaves
// with the next heartbeat, unless the process was given up meanwhile.
func TestSendAwaitsTheNextHeartbeat(t *testing.T) {
	for _, givenUp := range []bool{false, true} {
		t.Run(fmt.Sprint("given up ", givenUp), func(t *testing.T) {
			onTheWay(t, func(clock *env.VirtualClock) { clock.Advance(2500 * time.Millisecond) }, func(t *testing.T, g *gateway) {
				g.besides()
				p := g.payout("r", 10_00)
				_, err := g.jobs.SubmitPayouts(t.Context())
				g.must(err)
				for _, waits := g.clock.Next(); !waits && g.read(p).Step == payment.StepIntent; _, waits = g.clock.Next() {
					runtime.Gosched()
				}
				if givenUp {
					nodes, err := g.store.Nodes(t.Context())
					g.must(err)
					_, err = g.flow.Release(t.Context(), nodes[0])
					g.must(err)
				}
				g.beat()
				g.until(g.jobs.Wait)
				if givenUp {
					g.want(p, payment.PayoutProcessing, payment.StepUnknown) // it is asked about
					g.wantPaid(0, 0)
					return
				}
				g.want(p, payment.PayoutCompleted, payment.StepDone)
				g.wantSends(p, store.SendPaid)
				g.wantPaid(1, 1)
			})
		})
	}
}

// A heartbeat that took so long that the lease is half over is followed by the
// next one at once.
func TestSlowHeartbeatIsFollowedAtOnce(t *testing.T) {
	w, clock := env.Virtual(start, 1)
	slow := time.Duration(0)
	w.OnFailpoint = func(m env.Failpoint) error {
		if m == env.BeforeCommit {
			clock.Advance(slow)
		}
		return nil
	}
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		slow = 0
		o.Env.Webhooks = &receivers{clock: clock}
		g := newGateway(t, o, o.Env, clock, newBank(), &memoryMarker{})
		for took, want := range map[time.Duration]int{0: 0, time.Second: 0, 2 * time.Second: 1} {
			slow = took
			if again, err := g.jobs.KeepAlive(t.Context()); err != nil || again != want {
				t.Errorf("after %v it asks for %d more, %v", took, again, err)
			}
		}
	})
}
