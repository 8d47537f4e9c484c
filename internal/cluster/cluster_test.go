package cluster_test

import (
	"errors"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// claimAll makes a process claim a payout, a delivery and a notice, without doing the
// work.
func claimAll(g *coretest.Gateway) (out outgoing.ClaimedSend, in payment.Payin) {
	g.T.Helper()
	ctx := g.T.Context()
	g.Payout("r", 10_00)
	in = g.Payin(g.Merchant, "paid", "")
	g.Bank.Receive(in.ExternalID, "pay-1", 100_00)
	g.Notify("n-1", "charge "+in.ExternalID) // claimed when it is stored
	g.Canceled(g.Merchant, "canceled", coretest.Hook)

	due, err := g.Store.PayoutsDue(ctx, g.Clock.Now(), store.ToSend)
	g.Must(err)
	sends, _, err := g.Outgoing.Claim(ctx, due[0], 10)
	g.Must(err)
	if len(sends) != 1 {
		g.T.Fatalf("claimed %d payouts", len(sends))
	}
	deliveries, err := g.Deliveries.Claim(ctx, g.Merchant.ID, 10)
	g.Must(err)
	if len(deliveries) != 0 { // it was claimed when it was created
		g.T.Fatalf("claimed %d deliveries", len(deliveries))
	}
	return sends[0], in
}

// work runs all steps that could take over work.
func work(g *coretest.Gateway) {
	g.T.Helper()
	g.Send()
	g.LookUp()
	g.Apply()
	g.Deliver()
}

// wantNodes compares the registered processes.
func wantNodes(g *coretest.Gateway, alive ...*coretest.Gateway) {
	g.T.Helper()
	nodes, err := g.Store.Nodes(g.T.Context())
	g.Must(err)
	known := map[payment.ID]bool{}
	for _, n := range nodes {
		known[n.ID] = true
	}
	for _, process := range alive {
		if !known[process.Node.ID()] {
			g.T.Errorf("a process that is alive is not registered")
		}
	}
	if len(nodes) != len(alive) {
		g.T.Fatalf("%d processes are registered, want %d", len(nodes), len(alive))
	}
}

func TestWorkOfADeadProcessIsReleasedWithinFiveSeconds(t *testing.T) {
	coretest.EachEngine(t, func(_ *testing.T, dying *coretest.Gateway) {
		other := dying.Second()
		out, in := claimAll(dying)
		dying.Bank.Pay(out.Request, processor.TransferPaid) // the request was sent
		for range 2 {                                       // its heartbeat has stopped
			other.Pass(time.Second)
			work(other)
		}
		other.WantPayout(out.Payout, payment.PayoutProcessing, payment.StepIntent)
		other.WantPayin(in, payment.PayinPending, 0, 0)
		other.WantRequests(0) // too early: it may just be slow
		for range 3 {
			other.Pass(time.Second)
			work(other)
		}
		other.WantPayout(out.Payout, payment.PayoutCompleted, payment.StepDone) // looked up, not sent
		other.WantBank(0, 1)
		other.WantPayin(in, payment.PayinPaid, 100_00, 1)
		other.WantRequests(1)
		wantNodes(other, other)

		dying.Heartbeat() // it was only stopped: it joins again, without claims
		wantNodes(other, other, dying)
		work(dying)
		other.WantBank(0, 1)
		other.WantRequests(1)
	})
}

func TestSlowProcessKeepsItsWork(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, slow *coretest.Gateway) {
		other := slow.Second()
		out, in := claimAll(slow)
		for range 20 {
			other.Pass(time.Second)
			work(other)
			if other.Clock.Now().Unix()%2 == 0 { // slow but alive
				slow.Heartbeat()
			}
		}
		other.WantPayout(out.Payout, payment.PayoutProcessing, payment.StepIntent)
		other.WantPayin(in, payment.PayinPending, 0, 0)
		other.WantRequests(0)
		other.WantBank(0, 0)
		wantNodes(other, slow, other)
	})
}

// A clean shutdown releases all claims at once.
func TestLeavingReleasesWorkAtOnce(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, leaving *coretest.Gateway) {
		other := leaving.Second()
		out, in := claimAll(leaving)
		leaving.Must(leaving.Leave(t.Context(), true))
		work(other)
		other.WantPayout(out.Payout, payment.PayoutProcessing, payment.StepUnknown)
		other.WantPayin(in, payment.PayinPaid, 100_00, 1)
		other.WantRequests(1)
		wantNodes(other, other)
		work(leaving)
		other.WantRequests(1)
	})
}

// A process that starts alone, as on SQLite, releases the claims of others.
func TestStartingAloneReleasesWorkAtOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		_, in := claimAll(g)
		g.StopCleanly()
		g.Must(g.Cluster.Join(t.Context(), g.Marker.Mark, true))
		g.Heartbeat()
		wantNodes(g, g)
		g.Restart(nil) // nothing in memory survives
		work(g)
		g.WantPayin(in, payment.PayinPaid, 100_00, 1)
		g.WantRequests(1)
	})
}

// Only one process releases the claims of a dead one, and a process with a heartbeat keeps
// its claims.
func TestReleaseIsGuardedByTheHeartbeat(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := g.Second()
		claimAll(g)
		seen := g.Registered()
		g.Heartbeat()
		if released, err := other.Cluster.Release(t.Context(), seen); err != nil || released != 0 {
			t.Errorf("released %d of a process that is alive, %v", released, err)
		}
		wantNodes(g, g, other)
		seen = g.Registered()
		if released, err := other.Cluster.Release(t.Context(), seen); err != nil || released != 3 {
			t.Errorf("released %d, %v; want 3", released, err)
		}
		if released, err := other.Cluster.Release(t.Context(), seen); err != nil || released != 0 {
			t.Errorf("released %d once more, %v", released, err)
		}
	})
}

// A process that others have declared dead cannot claim: if it died now, no other process
// would release its claims.
func TestDeadProcessClaimsNothing(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		other, dead := g.Second(), g.Second()
		g.Notify("n", p.ExternalID)
		other.DeclareDead(g) // g had claimed the notice
		other.DeclareDead(dead)
		// It claims, and dies before it does anything.
		due := store.Due{Merchant: g.Merchant.ID, Processor: coretest.BankName}
		if _, _, err := dead.Outgoing.Claim(t.Context(), due, 10); !errors.Is(err, write.ErrNodeDead) {
			t.Errorf("claim of payouts: %v, want ErrNodeDead", err)
		}
		if _, err := dead.Notices.Apply(t.Context()); !errors.Is(err, write.ErrNodeDead) {
			t.Errorf("claim of notices: %v, want ErrNodeDead", err)
		}
		if _, err := dead.Deliveries.Claim(t.Context(), g.Merchant.ID, 10); !errors.Is(err, write.ErrNodeDead) {
			t.Errorf("claim of deliveries: %v, want ErrNodeDead", err)
		}

		other.Send()
		other.Apply()
		other.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		if g.Bank.Queries != 1 {
			t.Errorf("the notice was queried %d times", g.Bank.Queries)
		}
	})
}

// Work that was scheduled while the clock was a year ahead, as before time
// synchronisation, does not wait for a year after the clock is corrected.
func TestClockThatWasAhead(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		defer g.Clock.SetOffset(0)
		g.Clock.SetOffset(365 * 24 * time.Hour)
		g.Heartbeat()
		g.Bank.AnswerTransfer = coretest.Unknown
		unknown := g.Payout("unknown", 10_00)
		g.Send()
		g.Bank.AnswerTransfer = nil
		queued := g.Payout("not sent yet", 20_00)
		g.Receivers.Always(500)
		g.Canceled(g.Merchant, "canceled", coretest.Hook)
		g.Deliver()
		p := g.Payin(g.Merchant, "paid", "")
		g.Bank.Down = true
		g.Notify("n", "charge "+p.ExternalID)
		g.Apply()
		g.Bank.Down = false
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)

		g.Clock.SetOffset(0)
		g.Heartbeat()
		g.Send()
		g.WantPayout(queued, payment.PayoutCompleted, payment.StepDone)
		g.Bank.Pay(g.Bank.Calls[0], processor.TransferPaid)
		g.LookUp()
		g.WantPayout(unknown, payment.PayoutCompleted, payment.StepDone)
		g.Apply()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		g.Receivers.Always(200)
		g.Deliver()
		g.WantRequests(2)
		g.WantProven()
	})
}

// A clock that is set right between the start of a process and its first heartbeat puts no work off.
func TestClockIsSetRightBeforeTheFirstHeartbeat(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		defer g.Clock.SetOffset(0)
		g.Clock.SetOffset(3 * time.Hour)
		n := cluster.NewNode(g.Clock)
		joined := cluster.New(cluster.Options{Store: g.Store, Writer: g.Writer, Env: g.Env, Node: n, Marker: g.Marker, Log: g.Logger()})
		g.StopCleanly()
		g.Must(joined.Join(t.Context(), g.Marker.Mark, false))
		p := g.Payout("of the clock that is ahead", 10_00)
		g.Clock.SetOffset(0)
		_, err := joined.KeepAlive(t.Context())
		g.Must(err)
		if due := g.ReadPayout(p).NextAt; due.After(g.Clock.Now()) {
			t.Errorf("it is due in %v", due.Sub(g.Clock.Now()))
		}
	})
}

// A heartbeat that took half of the lease is followed by the next one at once.
func TestSlowHeartbeatIsFollowedAtOnce(t *testing.T) {
	slow := time.Duration(0)
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for took, want := range map[time.Duration]int{0: 0, time.Second: 0, 2 * time.Second: 1} {
			slow = took
			if again, err := g.Cluster.KeepAlive(t.Context()); err != nil || again != want {
				t.Errorf("after %v it returns %d, %v", took, again, err)
			}
			slow = 0
		}
	}, func(e *env.Env) {
		clock := e.Clock.(*env.VirtualClock)
		e.OnFailpoint = func(f env.Failpoint) error {
			if f == env.BeforeCommit {
				clock.Advance(slow)
			}
			return nil
		}
	})
}
