package cluster_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/env"
)

// A heartbeat increments the node's counter and the installation's epoch, in the database
// and outside.
func TestHeartbeat(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := g.Second()
		for _, process := range []*coretest.Gateway{g, other, g} {
			before, epoch := process.Registered().Heartbeat, g.Marker.Epoch
			process.Heartbeat()
			if after := process.Registered().Heartbeat; after != before+1 || g.Marker.Epoch != epoch+1 {
				t.Errorf("the node went from %d to %d, the epoch from %d to %d", before, after, epoch, g.Marker.Epoch)
			}
			inst, err := g.Store.ReadInstallation(t.Context())
			g.Must(err)
			if inst.Epoch != g.Marker.Epoch || !inst.RestoredAt.IsZero() {
				t.Errorf("the installation is %+v", inst)
			}
		}
	})
}

// A process that was declared dead continues under another id, and claims again.
func TestHeartbeatOfADeadProcess(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := g.Second()
		id := g.Node.ID()
		other.DeclareDead(g)
		wantNodes(other, other)
		g.Heartbeat()
		if g.Node.ID() == id {
			t.Error("the id did not change")
		}
		wantNodes(other, other, g)
		g.Payout("r", 10_00)
		g.Send()
		g.WantBank(1, 1)
	})
}

// A heartbeat whose commit is unknown is not repeated and does not renew the lease.
func TestUnknownHeartbeatDoesNotRenewTheLease(t *testing.T) {
	for _, at := range []env.Failpoint{env.BeforeCommit, env.AfterCommit} {
		t.Run(string(at), func(t *testing.T) {
			var cut *atomic.Int64
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.Clock.Advance(time.Second)
				left := g.Node.Lease.Remaining()
				cut.Store(1)
				if _, err := g.Cluster.KeepAlive(t.Context()); err == nil {
					t.Error("an unknown heartbeat returned no error")
				}
				if got := g.Node.Lease.Remaining(); got != left {
					t.Errorf("the lease runs for %v, want %v", got, left)
				}
				g.Heartbeat()
				if g.Node.Lease.Remaining() <= left {
					t.Error("the next heartbeat did not renew the lease")
				}
				if !g.Node.RestoredAt().IsZero() {
					t.Error("the database is treated as a restored backup")
				}
			}, func(e *env.Env) { cut = coretest.CutCommits(e, at) })
		})
	}
}

// A database with a lower epoch than outside is a restored backup. A higher one means that
// a process died before it wrote the epoch outside.
func TestEpochOutside(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		inst, err := g.Store.ReadInstallation(t.Context())
		g.Must(err)
		for ahead, restored := range map[int64]bool{-1: false, 0: false, 1: true} {
			g.Must(g.Cluster.Join(t.Context(), cluster.Mark{Epoch: inst.Epoch + ahead}, false))
			if got := !g.Node.RestoredAt().IsZero(); got != restored {
				t.Errorf("with an epoch outside that is ahead by %d: restored %v", ahead, got)
			}
			g.Execute("UPDATE installation SET restored_at = 0")
			inst, err = g.Store.ReadInstallation(t.Context())
			g.Must(err)
		}
	})
}

// Dead processes are detected by the time for which this process has observed an unchanged
// heartbeat, not by clocks: a process that was itself stopped does not declare others dead
// when it continues.
func TestStoppedProcessDeclaresNobodyDead(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		other := g.Second()
		g.Heartbeat()
		for range 10 { // g is stopped, and other is alive
			other.Clock.Advance(time.Second)
			if other.Clock.Now().Second()%2 == 0 {
				other.Heartbeat()
			}
		}
		id := other.Node.ID()
		g.Heartbeat()
		other.Heartbeat()
		if other.Node.ID() != id {
			g.T.Error("a process that is alive was declared dead")
		}
	})
}
