package cluster

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// start is how a process starts.
type start int

// A start is continuous if the database is known to be that of the last process. Every other one is
// cold: a process that was killed looks like an older copy of its database, and the copy of a disk has
// the mark too.
const (
	startCold       start = iota
	startContinuous       // no process ran before, another process lives, or both sides agree on a clean stop
	startRestored         // the mark proves that the database is an older copy
)

// AgreementFor is how long a clean stop counts: a copy of the stopped gateway's folder has its token
// too.
const AgreementFor = time.Minute

// startOf decides how a process starts. lives means that another process lives on this database.
func startOf(inst *store.Installation, outside Mark, lives bool, now time.Time) start {
	switch {
	case outside.Epoch > inst.Epoch:
		return startRestored
	case lives || Agree(inst, outside, now) || inst.UpdatedAt.IsZero():
		return startContinuous
	default:
		return startCold
	}
}

// Agree reports whether a database and the mark outside agree on a clean stop, a short time ago:
// neither has changed since.
func Agree(inst *store.Installation, outside Mark, now time.Time) bool {
	return inst.StopToken != "" && inst.StopToken == outside.Stop && inst.Epoch == outside.Epoch &&
		now.Sub(inst.StoppedAt).Abs() <= AgreementFor
}

// lookEvery is the wait between two looks at the heartbeats of others.
const lookEvery = 250 * time.Millisecond

// anotherLives reports whether another process lives on this database: its heartbeat advances, or it
// has registered itself meanwhile. A copy has the heartbeats of its past, and they stand still.
func (c *Cluster) anotherLives(ctx context.Context, nodes []store.Node) (bool, error) {
	return Lives(ctx, c.Store, nodes, c.Env.Clock.Now(), c.wait)
}

// Lives is anotherLives for those that are no process of the cluster. nodes are the registered ones,
// now is the time of that.
func Lives(ctx context.Context, s *store.Store, nodes []store.Node, now time.Time, wait func(context.Context, time.Duration) error) (bool, error) {
	before := map[payment.ID]int64{}
	recent := false
	for _, n := range nodes {
		before[n.ID] = n.Heartbeat
		recent = recent || now.Sub(n.Clock).Abs() <= AgreementFor
	}
	if !recent { // they ended long ago
		return false, nil
	}
	for waited := time.Duration(0); waited < deadAfter; waited += lookEvery {
		if err := wait(ctx, lookEvery); err != nil {
			return false, err
		}
		after, err := s.Nodes(ctx)
		if err != nil {
			return false, store.Problem(err)
		}
		for _, n := range after {
			if was, known := before[n.ID]; !known || n.Heartbeat > was {
				return true, nil
			}
		}
	}
	return false, nil
}

func (c *Cluster) wait(ctx context.Context, d time.Duration) error {
	if c.Wait != nil {
		return c.Wait(ctx, d)
	}
	timer := c.Env.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
