package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// abandonUnknownClaims joins again under a new id and releases the claims of the old one,
// after a commit with claims whose outcome is unknown. Calls in flight under the old id
// end as those of a dead process: confirmed results are recorded, and others are looked up.
func (c *Cluster) abandonUnknownClaims(ctx context.Context) error {
	c.Node.mu.Lock()
	unknown, old := c.Node.claimsUnknown, c.Node.id
	c.Node.claimsUnknown = false // before the new id, so that unknown claims under the new id are not lost
	c.Node.mu.Unlock()
	if !unknown {
		return nil
	}
	nodes, err := c.Store.Nodes(ctx)
	if err == nil {
		err = c.Join(ctx, c.Node.Epoch(), false)
	}
	if err != nil {
		c.Node.ClaimsUnknown()
		return store.Problem(err)
	}
	for _, n := range nodes {
		if n.ID == old {
			if _, err := c.Release(ctx, n); err != nil {
				return err // others release it: its heartbeat has stopped
			}
		}
	}
	return nil
}

// seenNode is the heartbeat of another node, and the time of its last change on this
// process's monotonic clock: clocks of machines differ.
type seenNode struct {
	heartbeat int64
	since     time.Duration
}

// releaseDead releases the claims of dead nodes: those whose heartbeat has not changed for
// deadAfter, while this process was running.
func (c *Cluster) releaseDead(ctx context.Context) error {
	nodes, err := c.Store.Nodes(ctx)
	if err != nil {
		return err
	}
	now := c.Env.Clock.Monotonic()
	alive := make(map[payment.ID]seenNode, len(nodes))
	for _, n := range nodes {
		if n.ID == c.Node.ID() {
			continue
		}
		seen, ok := c.seen[n.ID]
		if !ok || seen.heartbeat != n.Heartbeat {
			seen = seenNode{n.Heartbeat, now}
		}
		if now-seen.since >= deadAfter {
			if _, err := c.Release(ctx, n); err != nil {
				return err
			}
			continue
		}
		alive[n.ID] = seen
	}
	c.seen = alive
	return nil
}

// Release makes the claimed work of a dead node due. If the node is alive, or
// another process was faster, nothing happens.
func (c *Cluster) Release(ctx context.Context, n store.Node) (released int64, err error) {
	err = c.Store.Transact(ctx, func(tx *store.Tx) error {
		released, err = tx.ReleaseNode(ctx, n)
		return err
	})
	if errors.Is(err, store.ErrConflict) {
		return 0, nil
	}
	if err == nil && n.ID != c.Node.ID() {
		c.Log.InfoContext(ctx, "released the work of a dead node", "node", n.ID, "released", released)
		if c.Released != nil {
			c.Released(n)
		}
	}
	return released, store.Problem(err)
}

// Leave releases the claims of this process, for a clean shutdown.
func (c *Cluster) Leave(ctx context.Context) error {
	c.Node.Lease.Drop()
	nodes, err := c.Store.Nodes(ctx)
	if err != nil {
		return store.Problem(err)
	}
	for _, n := range nodes {
		if n.ID == c.Node.ID() {
			_, err = c.Release(ctx, n)
		}
	}
	return err
}
