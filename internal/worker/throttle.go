package worker

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// Requests come before the work that they create: while they queue for their commits, the
// runs of a worker with a Throttle are ThrottleInterval apart and take at most ThrottledWork
// each. After a run that took work which had waited for throttleLimit, the next run is not
// throttled (docs/decisions/0011).
const (
	ThrottleInterval = 100 * time.Millisecond
	ThrottledWork    = 32
	throttleLimit    = 5 * time.Second
)

// Throttle spaces the runs of one worker. It is not safe for concurrent use.
type Throttle struct {
	clock      env.Clock
	backlogged func() bool

	began time.Duration // the latest run, on the monotonic clock
	late  bool          // it took work that had waited for throttleLimit or longer
}

// NewThrottle throttles while backlogged reports that requests queue for their commits.
func NewThrottle(clock env.Clock, backlogged func() bool) *Throttle {
	return &Throttle{clock: clock, backlogged: backlogged, began: -ThrottleInterval}
}

// Begin begins a run, and reports whether it is throttled; then it waits first.
func (t *Throttle) Begin(ctx context.Context) (throttled bool) {
	throttled = !t.late && t.backlogged()
	if left := t.began + ThrottleInterval - t.clock.Monotonic(); throttled && left > 0 {
		timer := t.clock.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-ctx.Done():
		}
	}
	t.began, t.late = t.clock.Monotonic(), false
	return throttled
}

// Took records that the run took work that has been due since a time.
func (t *Throttle) Took(since, now time.Time) { t.late = t.late || now.Sub(since) >= throttleLimit }
