package cluster_test

import (
	"fmt"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
)

// A replica that took over without the last commits is an older copy, also if it lacks one heartbeat
// only, and another process has advanced the epoch since.
func TestReplicaWithoutTheLastHeartbeat(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := g.Second()
		for range 2 {
			g.Heartbeat()
			other.Heartbeat()
		}
		if g.Node.History() != 0 || other.Node.History() != 0 {
			t.Fatal("the database is not a copy")
		}
		before := g.Registered().Heartbeat
		g.Heartbeat() // which is lost
		seen := g.Node.Epoch()
		g.Execute(fmt.Sprintf("UPDATE nodes SET heartbeat = %d WHERE heartbeat = %d", before, before+1), "UPDATE installation SET epoch = epoch - 1")
		other.Heartbeat()
		g.Heartbeat()
		other.Heartbeat()
		if g.Node.History() == 0 || other.Node.History() != g.Node.History() || g.Node.Epoch() <= seen {
			t.Errorf("histories %d and %d, epoch %d, seen %d", g.Node.History(), other.Node.History(), g.Node.Epoch(), seen)
		}
	})
}
