package env

import (
	"context"
	"sync/atomic"
	"time"
)

// Clock is a source of time and timers.
type Clock interface {
	// Now is the wall clock in UTC, truncated to microseconds, the resolution of
	// the store. It may jump in either direction: use Monotonic for durations.
	Now() time.Time
	// Monotonic is the time since the clock was created, for leases, latencies and
	// backoff. It never jumps, and includes the time while the process is stopped
	// and, on Linux, while the machine sleeps.
	Monotonic() time.Duration
	// NewTimer returns a timer that fires once, d from now by the monotonic
	// clock; at once if d is not positive.
	NewTimer(d time.Duration) Timer
	// WithTimeout is [context.WithTimeout] by this clock: the context ends
	// with [context.DeadlineExceeded] after d.
	WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// Timer fires once.
type Timer interface {
	// C receives the clock's time when the timer fires.
	C() <-chan time.Time
	// Stop ends the timer; false if it had fired or been stopped before.
	Stop() bool
}

// SystemClock is the machine's clock. The sandbox can set an offset of its wall
// clock, which does not affect the monotonic clock and timers: the caller of
// SetOffset must wake the workers that depend on the time.
type SystemClock struct {
	start  time.Duration // by monotonic
	offset atomic.Int64  // nanoseconds
}

// NewSystemClock returns the machine's clock, with no offset.
func NewSystemClock() *SystemClock {
	return &SystemClock{start: monotonic()}
}

// Now implements [Clock].
func (c *SystemClock) Now() time.Time {
	return time.Now().Add(c.Offset()).UTC().Truncate(time.Microsecond)
}

// Monotonic implements [Clock].
func (c *SystemClock) Monotonic() time.Duration { return monotonic() - c.start }

// SetOffset makes Now run ahead of the machine's wall clock by d, which may be
// negative.
func (c *SystemClock) SetOffset(d time.Duration) { c.offset.Store(int64(d)) }

// Offset returns the offset of the last SetOffset.
func (c *SystemClock) Offset() time.Duration { return time.Duration(c.offset.Load()) }

// Unshifted is clock without the sandbox's offset: the real time, which receivers
// compare with the time in a signature.
func Unshifted(clock Clock) Clock {
	if c, ok := clock.(*SystemClock); ok {
		return unshifted{c}
	}
	return clock
}

type unshifted struct{ *SystemClock }

func (c unshifted) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// NewTimer implements [Clock]; the offset does not affect it.
func (c *SystemClock) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

// WithTimeout implements [Clock]; the offset does not affect it.
func (c *SystemClock) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return withTimeout(parent, d)
}

type systemTimer struct{ timer *time.Timer }

func (t systemTimer) C() <-chan time.Time { return t.timer.C }
func (t systemTimer) Stop() bool          { return t.timer.Stop() }
