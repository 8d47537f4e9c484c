package bench

import (
	"context"
	"os"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// coarse is how much of a sleep is left to an alarm's fine part.
const coarse = 2 * time.Millisecond

// alarm wakes one goroutine on time. Go's own timers may come a millisecond
// late, as they wait in whole milliseconds where nothing else happens
// (epoll_wait), which is more than many a latency that is measured here. Where
// the system has better, the end of a sleep is left to that.
type alarm struct {
	clock env.Clock
	fine  *os.File // a timer that can be read when it is due; nil where there is none
}

func newAlarm(clock env.Clock) *alarm {
	a := &alarm{clock: clock}
	if _, real := clock.(*env.SystemClock); real {
		a.fine = openTimer()
	}
	return a
}

// sleep passes d; false if ctx ended before, of which the fine part takes no
// notice.
func (a *alarm) sleep(ctx context.Context, d time.Duration) bool {
	if a.fine == nil {
		return wait(ctx, a.clock, d)
	}
	due := a.clock.Monotonic() + d
	if d > coarse && !wait(ctx, a.clock, d-coarse) {
		return false
	}
	if d = due - a.clock.Monotonic(); d > 0 && !readTimer(a.fine, d) {
		return wait(ctx, a.clock, due-a.clock.Monotonic())
	}
	return true
}

func (a *alarm) close() {
	if a.fine != nil {
		_ = a.fine.Close()
	}
}
