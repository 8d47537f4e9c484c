package bench

import (
	"context"
	"os"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// coarseMargin is the part of a sleep for which the kernel timer is used.
const coarseMargin = 2 * time.Millisecond

// preciseTimer wakes one goroutine on time. Go's timers may be a millisecond late in
// an idle process (epoll_wait), which is more than many measured latencies. If the
// kernel has a precise timer, the end of a sleep uses it.
type preciseTimer struct {
	clock  env.Clock
	kernel *os.File // becomes readable when it is due; may be nil
}

func newPreciseTimer(clock env.Clock) *preciseTimer {
	a := &preciseTimer{clock: clock}
	if _, real := clock.(*env.SystemClock); real {
		a.kernel = openKernelTimer()
	}
	return a
}

// sleep sleeps for d, and returns false if ctx ended before the last coarseMargin.
func (a *preciseTimer) sleep(ctx context.Context, d time.Duration) bool {
	if a.kernel == nil {
		return wait(ctx, a.clock, d)
	}
	due := a.clock.Monotonic() + d
	if d > coarseMargin && !wait(ctx, a.clock, d-coarseMargin) {
		return false
	}
	if d = due - a.clock.Monotonic(); d > 0 && !waitKernelTimer(a.kernel, d) {
		return wait(ctx, a.clock, due-a.clock.Monotonic())
	}
	return true
}

func (a *preciseTimer) close() {
	if a.kernel != nil {
		_ = a.kernel.Close()
	}
}
