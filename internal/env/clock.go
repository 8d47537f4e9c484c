package env

import (
	"context"
	"sync/atomic"
	"time"
)

// Clock tells the time and wakes sleepers.
type Clock interface {
	// Now is the wall clock in UTC, cut to microseconds, which is what the
	// store keeps. It may jump either way: never subtract two of them to
	// decide whether something is still allowed.
	Now() time.Time
	// Monotonic is the time since the clock was made. It never jumps and
	// never runs backwards, and it goes on while the process is stopped and
	// (on Linux) while the machine sleeps: for leases, latencies and back-off.
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

// SystemClock is the machine's clock. Its wall clock may be moved by an
// offset, by which the sandbox lets time pass; its monotonic clock and its
// timers may not, so whoever moves the offset wakes the loops that care.
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

// Offset returns what SetOffset was last given.
func (c *SystemClock) Offset() time.Duration { return time.Duration(c.offset.Load()) }

// Unshifted is clock without the sandbox's offset: the time that the rest of
// the world has, by which others judge what we sign.
func Unshifted(clock Clock) Clock {
	if c, ok := clock.(*SystemClock); ok {
		return unshifted{c}
	}
	return clock
}

type unshifted struct{ *SystemClock }

func (c unshifted) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// NewTimer implements [Clock]; the offset does not concern it.
func (c *SystemClock) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

// WithTimeout implements [Clock]; the offset does not concern it.
func (c *SystemClock) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(parent, d)
}

type systemTimer struct{ timer *time.Timer }

func (t systemTimer) C() <-chan time.Time { return t.timer.C }
func (t systemTimer) Stop() bool          { return t.timer.Stop() }
