package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// KeepAlive is the step of the heartbeat worker: it writes the heartbeat, renews the
// lease, and releases the work of dead nodes.
func (c *Cluster) KeepAlive(ctx context.Context) (int, error) {
	if err := c.Node.Lease.Renew(ctx, c.heartbeat); err != nil {
		return 0, err
	}
	if err := c.releaseDead(ctx); err != nil {
		return 0, err
	}
	if c.Node.Lease.Remaining() < time.Second { // slow: the next one must follow at once
		return 1, nil
	}
	return 0, nil
}

// heartbeat advances the epoch in the database and outside. The lease depends on both: if
// only the database advanced, a backup could have a higher epoch than the marker, and its
// restoration would not be detected.
func (c *Cluster) heartbeat(ctx context.Context) error {
	epoch, err := c.Heartbeat(ctx)
	if err != nil || c.Marker == nil {
		return err
	}
	if err := c.Marker.Write(Mark{Epoch: epoch}); err != nil {
		return fmt.Errorf("keep the epoch outside the database: %w", err)
	}
	return nil
}

// errDead means that this node was declared dead: others own its claimed work.
var errDead = errors.New("cluster: node was declared dead")

// Heartbeat records that this process is alive and returns the installation's
// epoch. A process that was declared dead joins again under a new id.
func (c *Cluster) Heartbeat(ctx context.Context) (epoch int64, err error) {
	if err := c.abandonUnknownClaims(ctx); err != nil {
		return 0, err
	}
	feeds, err := c.feeds(ctx)
	if err != nil {
		return 0, err
	}
	op := c.Node.heartbeat()
	err = c.Writer.DoWithoutCancel(ctx, op)
	if errors.Is(err, errDead) {
		c.Log.WarnContext(ctx, "node was declared dead: joining again under a new id")
		if err := c.Join(ctx, Mark{Epoch: op.seen}, false); err != nil {
			return 0, err
		}
		return c.Heartbeat(ctx)
	}
	if err != nil {
		return 0, err
	}
	if op.rewound {
		c.logRestored(ctx, op.found, op.after.Epoch)
	}
	c.Node.recordHeartbeat(op)
	c.follow(op.after, feeds)
	return op.after.Epoch, c.followWallClock(ctx)
}

// feeds reads which accounts are cleared. That is before the installation is read: a transfer that
// proves a restore is found before its account is cleared.
func (c *Cluster) feeds(ctx context.Context) ([]store.Feed, error) {
	if c.Node.History() == 0 {
		return nil, nil
	}
	list, err := c.Store.Feeds(ctx)
	return list, store.Problem(err)
}

// follow records the history of the database, and which accounts are cleared in it.
func (c *Cluster) follow(inst store.Installation, feeds []store.Feed) {
	if inst.History != c.Node.History() {
		c.Store.ForgetMerchants()
	}
	c.Node.mu.Lock()
	defer c.Node.mu.Unlock()
	c.Node.restoredAt, c.Node.provedAt, c.Node.history, c.Node.cleared = inst.RestoredAt, inst.ProvedAt, inst.History, store.Cleared(feeds, inst.History)
}

// heartbeat advances the heartbeat of a node and the epoch of the installation. A database
// with a lower epoch than this process has seen is a restored backup. So is one that lacks this
// process's last heartbeat, although others have advanced the epoch since.
type heartbeat struct {
	node    payment.ID
	seen    int64
	last    int64 // heartbeat of this process
	next    int64 // heartbeat that is written
	found   int64
	rewound bool
	after   store.Installation
}

// Merchant implements [write.Operation].
func (h *heartbeat) Merchant() payment.ID { return payment.ID{} }

// Class implements [write.Operation].
func (h *heartbeat) Class() commit.Class { return commit.Urgent }

// Needs implements [write.Operation].
func (h *heartbeat) Needs(n *store.Needs) { n.Heartbeat(h.node) }

// Decide implements [write.Operation].
func (h *heartbeat) Decide(l *store.Loaded, c *store.Changes) error {
	node, alive := l.Node(h.node)
	if !alive {
		return errDead
	}
	h.after = l.Installation()
	h.found = h.after.Epoch + 1
	h.rewound = h.found <= h.seen || node.Heartbeat < h.last
	h.after.Epoch = h.found
	if h.rewound {
		h.after = h.after.Restored(max(h.found, h.seen+1), l.Now())
	}
	h.after.UpdatedAt, h.after.StopToken = l.Now(), ""
	node.Heartbeat++
	node.Clock = l.Now()
	h.next = node.Heartbeat
	c.SetNode(node)
	c.SetInstallation(h.after)
	return nil
}

// clockStep is the smallest step back of the wall clock that is detected.
const clockStep = time.Minute

// began is the wall clock at the monotonic clock's zero. It changes if the wall clock is set.
func (c *Cluster) began() time.Time { return c.Env.Clock.Now().Add(-c.Env.Clock.Monotonic()) }

// followWallClock reschedules work that was scheduled too late, after a wall clock that
// was ahead is set back.
func (c *Cluster) followWallClock(ctx context.Context) error {
	began := c.began()
	c.Node.mu.Lock()
	step := c.Node.wallClock.Sub(began)
	c.Node.mu.Unlock()
	if step > clockStep {
		c.Log.WarnContext(ctx, "the clock was set back: work that it has scheduled is due earlier", "by", step.Round(time.Second))
		err := c.Store.Transact(ctx, func(tx *store.Tx) error {
			return tx.RescheduleFuture(ctx, tx.Now.Add(MaxSchedule), step)
		})
		if err != nil {
			return store.Problem(err)
		}
		if restored := c.Node.RestoredAt(); !restored.IsZero() { // it may be too late as well
			inst, err := c.Store.ReadInstallation(ctx)
			if err != nil {
				return store.Problem(err)
			}
			c.Node.mu.Lock()
			c.Node.restoredAt, c.Node.provedAt = inst.RestoredAt, inst.ProvedAt
			c.Node.mu.Unlock()
		}
	}
	c.Node.mu.Lock()
	defer c.Node.mu.Unlock()
	c.Node.wallClock = began
	return nil
}
