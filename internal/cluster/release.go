package cluster

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
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
		err = c.Join(ctx, Mark{Epoch: c.Node.Epoch()}, false)
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

// Leave releases the claims of this process, for a clean shutdown. complete means that nothing of it
// is in flight: then the database and the mark outside agree on the stop, and the next start is
// continuous if it follows soon.
func (c *Cluster) Leave(ctx context.Context, complete bool) error {
	c.Node.Lease.Drop()
	nodes, err := c.Store.Nodes(ctx)
	if err != nil {
		return store.Problem(err)
	}
	i := slices.IndexFunc(nodes, func(n store.Node) bool { return n.ID == c.Node.ID() })
	if i < 0 {
		return nil
	}
	if !complete || c.Marker == nil {
		_, err = c.Release(ctx, nodes[i])
		return err
	}
	token := make([]byte, 16)
	c.Env.Random.Read(token)
	stop := Mark{Stop: hex.EncodeToString(token)}
	err = c.Store.Transact(ctx, func(tx *store.Tx) error {
		if _, err := tx.ReleaseNode(ctx, nodes[i]); err != nil {
			return err
		}
		inst, err := tx.Installation(ctx)
		if err != nil {
			return err
		}
		stop.Epoch, inst.StopToken, inst.StoppedAt = inst.Epoch, stop.Stop, tx.Now
		return tx.SetInstallation(ctx, inst)
	})
	switch {
	case errors.Is(err, store.ErrConflict): // it was declared dead
		return nil
	case err != nil:
		return store.Problem(err)
	}
	return c.Marker.Write(stop)
}
