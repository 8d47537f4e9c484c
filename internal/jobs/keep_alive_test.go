package jobs_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/jobs"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// inHand has a process take one of each kind of work in hand, and do nothing
// with it: a payout, a delivery, a notice.
func inHand(g *gateway) (out flow.Sending, in payment.Payin) {
	g.t.Helper()
	ctx := g.t.Context()
	g.payout("r", 10_00)
	in = g.order(g.merchant, "paid", "")
	g.bank.receive(in.ExternalID, "pay-1", 100_00)
	g.notify("n-1", "charge "+in.ExternalID)
	g.canceled(g.merchant, "canceled", hook)

	due, err := g.store.PayoutsDue(ctx, g.clock.Now(), store.ToSend)
	g.must(err)
	sends, _, err := g.flow.BeginSends(ctx, due[0], 10)
	g.must(err)
	deliveries, err := g.flow.ClaimDeliveries(ctx, g.merchant.ID, 10)
	g.must(err)
	notices, err := g.flow.ClaimNotices(ctx, 10)
	g.must(err)
	if len(sends) != 1 || len(deliveries) != 1 || len(notices) != 0 { // the notice is in hand from its birth
		g.t.Fatalf("in hand: %d payouts, %d deliveries; %d notices were not", len(sends), len(deliveries), len(notices))
	}
	return sends[0], in
}

// work runs all that could take something over.
func (g *gateway) work() {
	g.t.Helper()
	g.submit()
	g.resolve()
	g.apply()
	g.deliver()
}

func TestDeadProcessIsSucceededWithinFiveSeconds(t *testing.T) {
	each(t, func(t *testing.T, dying *gateway) {
		heir := dying.second()
		out, in := inHand(dying)
		dying.bank.pay(out.Request, "paid") // the bytes had left
		for range 2 {                       // it does not beat any more
			heir.pass(time.Second)
			heir.work()
		}
		heir.want(out.Payout, payment.PayoutProcessing, payment.StepIntent)
		heir.wantPayin(in, payment.PayinPending, 0, 0)
		heir.wantRequests(0) // too early: it may just be slow
		for range 3 {
			heir.pass(time.Second)
			heir.work()
		}
		heir.want(out.Payout, payment.PayoutCompleted, payment.StepDone) // asked about, not sent
		heir.wantPaid(0, 1)
		heir.wantPayin(in, payment.PayinPaid, 100_00, 1)
		heir.wantRequests(1)
		heir.wantNodes(heir)

		dying.beat() // it was only stopped: it joins anew, and has nothing in hand
		heir.wantNodes(heir, dying)
		dying.work()
		heir.wantPaid(0, 1)
		heir.wantRequests(1)
	})
}

func TestLiveProcessKeepsItsWork(t *testing.T) {
	each(t, func(t *testing.T, busy *gateway) {
		other := busy.second()
		out, in := inHand(busy)
		for range 20 {
			other.pass(time.Second)
			other.work()
			if other.clock.Now().Unix()%2 == 0 { // slow, and alive
				busy.beat()
			}
		}
		other.want(out.Payout, payment.PayoutProcessing, payment.StepIntent)
		other.wantPayin(in, payment.PayinPending, 0, 0)
		other.wantRequests(0)
		other.wantPaid(0, 0)
		other.wantNodes(busy, other)
	})
}

// A process that ends in order leaves nothing to wait for.
func TestLeavingFreesWorkAtOnce(t *testing.T) {
	each(t, func(t *testing.T, leaving *gateway) {
		other := leaving.second()
		_, in := inHand(leaving)
		leaving.must(leaving.jobs.Leave(t.Context()))
		other.work()
		other.wantPayin(in, payment.PayinPaid, 100_00, 1)
		other.wantRequests(1)
		other.wantNodes(other)
		leaving.work()
		other.wantRequests(1)
	})
}

// However long the database was away, the duties are back soon after it is.
func TestDutiesAreBackSoon(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		if g.engine != "sqlite" {
			return // a server that is away takes its time to say so
		}
		o := g.options
		o.Shared = true
		gone, err := store.Open(t.Context(), o)
		g.must(err)
		g.must(gone.Close())
		assembly := g.assembly
		assembly.Store, assembly.Flow = gone, flow.New(flow.Options{Store: gone, Env: g.env})
		for i, l := range jobs.New(assembly).Loops() {
			longest := 5500 * time.Millisecond
			if i == 0 { // the heartbeat
				longest = 1100 * time.Millisecond
			}
			l.Start(t.Context())
			for range 12 {
				g.clock.BlockUntil(1)
				wait, _ := g.clock.Next()
				if wait > longest {
					t.Errorf("%s rests for %v after failing %d times", l.Name(), wait, l.Stats().Failures)
				}
				g.clock.Advance(wait)
			}
			l.Stop()
		}
	})
}

// wantNodes compares which processes are known to be alive.
func (g *gateway) wantNodes(alive ...*gateway) {
	g.t.Helper()
	nodes, err := g.store.Nodes(g.t.Context())
	g.must(err)
	known := map[payment.ID]bool{}
	for _, n := range nodes {
		known[n.ID] = true
	}
	for _, process := range alive {
		if !known[process.flow.Node()] {
			g.t.Errorf("a process that lives is not known")
		}
	}
	if len(nodes) != len(alive) {
		g.t.Fatalf("%d processes are known, want %d", len(nodes), len(alive))
	}
}
