package jobs

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// seenNode is what this process has seen of another one's beat.
type seenNode struct {
	beat  int64
	since time.Duration // by our monotonic clock: clocks of machines differ
}

// KeepAlive writes this process's heartbeat, keeps the installation's beat
// outside the database, and takes over from processes whose beat stands still.
func (j *Jobs) KeepAlive(ctx context.Context) (int, error) {
	if err := j.lease.Renew(ctx, j.beat); err != nil {
		return 0, err
	}
	if err := j.takeOver(ctx); err != nil {
		return 0, err
	}
	if j.lease.Remaining() < everySecond { // the beat took so long that the next one cannot wait
		return 1, nil
	}
	return 0, nil
}

// beat moves the beat on, in the database and outside. The lease asks for both:
// while the beat outside stands still, a backup taken meanwhile would not be
// known for one once it is restored, so nothing may be sent that it lacks.
func (j *Jobs) beat(ctx context.Context) error {
	beat, err := j.Flow.Beat(ctx)
	if err != nil || j.Marker == nil {
		return err
	}
	if err := j.Marker.Write(beat); err != nil {
		return fmt.Errorf("keep the beat outside the database: %w", err)
	}
	return nil
}

// Leave ends this process's claims, as at a clean end. What came into being in
// its hand after the duties had stopped goes back untried.
func (j *Jobs) Leave(ctx context.Context) error {
	j.lease.Drop()
	for of := range byMerchant(j.queue.takeBorn(math.MaxInt)) {
		if ctx.Err() == nil {
			j.putOff(ctx, of, 0)
		}
	}
	return j.Flow.Leave(ctx)
}

// takeOver releases what dead processes had in hand. It judges by how long
// their beat stood still while this process itself was watching.
func (j *Jobs) takeOver(ctx context.Context) error {
	nodes, err := j.Store.Nodes(ctx)
	if err != nil {
		return err
	}
	now := j.Env.Clock.Monotonic()
	alive := make(map[payment.ID]seenNode, len(nodes))
	for _, n := range nodes {
		if n.ID == j.Flow.Node() {
			continue
		}
		seen, ok := j.seen[n.ID]
		if !ok || seen.beat != n.Beat {
			seen = seenNode{n.Beat, now}
		}
		if now-seen.since >= deadAfter {
			if _, err := j.Flow.Release(ctx, n); err != nil {
				return err
			}
			continue
		}
		alive[n.ID] = seen
	}
	j.seen = alive
	return nil
}
