package cluster

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// Mark is what is kept outside the database, so that restoring a backup does not reset it.
type Mark struct {
	Epoch int64  // of the installation; 0 if none is kept
	Stop  string // the token of a clean stop; "" while a gateway runs
}

// Marker keeps the mark.
type Marker interface {
	Read() (Mark, error)
	Write(m Mark) error
}

// Options configure a Cluster.
type Options struct {
	Node   *Node
	Store  *store.Store
	Writer *write.Writer
	Env    env.Env
	Log    *slog.Logger
	Marker Marker // may be nil
	// Wait waits for a time; nil waits on the clock.
	Wait func(ctx context.Context, d time.Duration) error
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

// Join registers this process under a new id. outside is the mark last kept outside the database.
// If nothing shows that the database is that of the last process, a new history begins: see
// [startOf]. alone means that no other process can be alive (SQLite): the claims of others are
// released at once.
func (c *Cluster) Join(ctx context.Context, outside Mark, alone bool) error {
	feeds, err := c.Store.Feeds(ctx)
	if err != nil {
		return store.Problem(err)
	}
	was, err := c.Store.ReadInstallation(ctx)
	if err != nil {
		return store.Problem(err)
	}
	nodes, err := c.Store.Nodes(ctx) // after the installation: who wrote its epoch is registered
	if err != nil {
		return store.Problem(err)
	}
	lives, looked := c.Node.ID() != payment.ID{}, alone // this process lives, if it was declared dead
	if !lives && !looked && startOf(&was, outside, false, c.Env.Clock.Now()) == startCold {
		looked = true
		if lives, err = c.anotherLives(ctx, nodes); err != nil {
			return err
		}
	}
	id, began := payment.ID(c.Env.IDs.NewID(c.Env.Clock.Now())), c.began()
	var inst store.Installation
	var how start
	err = c.Store.Transact(ctx, func(tx *store.Tx) error {
		if was, err = tx.Installation(ctx); err != nil {
			return err
		}
		if how = startOf(&was, outside, lives, tx.Now); how == startCold && !looked {
			return errChanged
		}
		if inst, err = c.begin(ctx, tx, was, how, outside); err != nil {
			return err
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
	switch {
	case errors.Is(err, errChanged):
		return c.Join(ctx, outside, alone)
	case err != nil:
		return store.Problem(err)
	}
	switch how {
	case startRestored:
		c.logRestored(ctx, was.Epoch, outside.Epoch)
	case startCold:
		c.Log.WarnContext(ctx, "the last process did not stop cleanly, or this is a copy of its database: payouts and refunds wait until the lists of their accounts were read; in a copy, secrets that were revoked later are valid again: porteira credential list", "lastHeartbeat", was.UpdatedAt)
	case startContinuous:
	}
	c.Node.mu.Lock()
	c.Node.id, c.Node.lastHeartbeat = id, 0
	if c.Node.wallClock.IsZero() { // else the last heartbeat's: the clock may have been set since
		c.Node.wallClock = began
	}
	c.Node.mu.Unlock()
	c.follow(inst, feeds)
	return nil
}

// Observe follows the installation as it is now, for a process that decides beside gateways: it does not
// join, and claims nothing.
func (c *Cluster) Observe(ctx context.Context) error {
	feeds, err := c.Store.Feeds(ctx) // before the installation, as in [Cluster.feeds]
	if err != nil {
		return store.Problem(err)
	}
	inst, err := c.Store.ReadInstallation(ctx)
	if err != nil {
		return store.Problem(err)
	}
	c.Node.mu.Lock()
	c.Node.epoch = inst.Epoch
	c.Node.mu.Unlock()
	c.follow(inst, feeds)
	return nil
}

// errChanged means that another process has started on the database since it was read.
var errChanged = errors.New("cluster: another process has started")

// begin begins a new history, if that is due, and takes the token of a clean stop, so that no other
// start agrees with it.
func (c *Cluster) begin(ctx context.Context, tx *store.Tx, inst store.Installation, how start, outside Mark) (store.Installation, error) {
	stopped := inst.StopToken
	inst.StopToken = ""
	switch {
	case how == startRestored:
		inst = inst.Restored(outside.Epoch, tx.Now)
	case how == startCold:
		inst = inst.ColdStart(tx.Now)
	case stopped != "":
		return inst, tx.SetInstallation(ctx, inst)
	default:
		return inst, nil
	}
	return inst, tx.BeginHistory(ctx, inst)
}

func (c *Cluster) logRestored(ctx context.Context, epoch, outside int64) {
	c.Log.ErrorContext(ctx, "the database is an older copy of itself: payouts and refunds wait until the lists of their accounts were read, and are looked up before they are sent; secrets that were revoked or replaced later are valid again: porteira credential list", "epoch", epoch, "expected", outside)
}
