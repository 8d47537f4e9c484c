package cluster_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
)

// A node whose heartbeat has stopped loses its lease before others take over its work,
// with time to spare for a call that is just leaving.
func TestLeaseEndsBeforeOthersTakeOver(t *testing.T) {
	const step, margin = 50 * time.Millisecond, 250 * time.Millisecond
	coretest.Each(t, func(t *testing.T, stopped *coretest.Gateway) {
		other := stopped.Second()
		stopped.Heartbeat()
		other.Heartbeat() // which sees the last heartbeat at once
		dead := stopped.Registered()
		var lost, took time.Duration
		for passed := step; took == 0 && passed < time.Minute; passed += step {
			other.Clock.Advance(step)
			other.Heartbeat()
			if lost == 0 && !stopped.Node.Lease.Valid() {
				lost = passed
			}
			nodes, err := other.Store.Nodes(t.Context())
			other.Must(err)
			if len(nodes) == 1 && nodes[0].ID != dead.ID {
				took = passed
			}
		}
		if lost == 0 || took < lost+margin {
			t.Errorf("the lease ended after %v, and others took over after %v", lost, took)
		}
	})
}
