package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// Marker keeps the installation's epoch outside the database, so that restoring a backup
// does not reset it.
type Marker interface {
	Read() (epoch int64, err error)
	Write(epoch int64) error
}

// Options configure a Cluster.
type Options struct {
	Node   *Node
	Store  *store.Store
	Writer *write.Writer
	Env    env.Env
	Log    *slog.Logger
	Marker Marker // may be nil
	// Released is called after the claims of a dead node were released.
	Released func(n store.Node)
}

// Cluster keeps this process registered and releases the work of dead nodes.
type Cluster struct {
	Options

	seen map[payment.ID]seenNode
}

// New returns this process's view of the cluster.
func New(o Options) *Cluster { return &Cluster{Options: o, seen: map[payment.ID]seenNode{}} }

// MaxSchedule is longer than any schedule. Work with a later due time was scheduled by a
// clock that was ahead.
const MaxSchedule = 27 * time.Hour

// Join registers this process under a new id. outside is the epoch last kept outside the
// database, 0 if there is none: a database with a lower epoch is a restored backup, and
// from then on payouts are looked up before they are sent. alone means that no other
// process can be alive (SQLite): the claims of others are released at once.
func (c *Cluster) Join(ctx context.Context, outside int64, alone bool) error {
	inst, err := c.Store.ReadInstallation(ctx)
	if err != nil {
		return store.Problem(err)
	}
	was := inst
	nodes, err := c.Store.Nodes(ctx)
	if err != nil {
		return store.Problem(err)
	}
	id, began := payment.ID(c.Env.IDs.NewID(c.Env.Clock.Now())), c.began()
	restored := outside > inst.Epoch
	err = c.Store.Transact(ctx, func(tx *store.Tx) error {
		if restored {
			inst = was.Restored(outside, tx.Now)
			if err := tx.BeginHistory(ctx, inst); err != nil {
				return err
			}
		}
		if alone {
			for _, n := range nodes {
				if _, err := tx.ReleaseNode(ctx, n); err != nil {
					return err
				}
			}
		}
		if err := tx.RescheduleFuture(ctx, tx.Now.Add(MaxSchedule), 0); err != nil {
			return err
		}
		return tx.RegisterNode(ctx, id)
	})
	if err != nil {
		return store.Problem(err)
	}
	if restored {
		c.logRestored(ctx, was.Epoch, outside)
	}
	c.Node.mu.Lock()
	c.Node.id, c.Node.lastHeartbeat = id, 0
	if c.Node.wallClock.IsZero() { // else the last heartbeat's: the clock may have been set since
		c.Node.wallClock = began
	}
	c.Node.mu.Unlock()
	return c.follow(ctx, inst)
}

func (c *Cluster) logRestored(ctx context.Context, epoch, outside int64) {
	c.Log.ErrorContext(ctx, "the database is an older copy of itself: payouts and refunds wait until the lists of their accounts were read, and are looked up before they are sent", "epoch", epoch, "expected", outside)
}
