package env

import (
	"context"
	"slices"
	"sync"
	"time"
)

// VirtualClock advances only by Advance, which fires timers and timeouts in order of
// their due time and, if equal, of their creation.
type VirtualClock struct {
	mu      sync.Mutex
	changed sync.Cond // the number of alarms grew
	start   time.Time
	offset  time.Duration
	elapsed time.Duration
	serial  uint64
	alarms  []*alarm // unordered, because there are few
}

// alarm is a timer or timeout.
type alarm struct {
	due    time.Duration // by Monotonic
	serial uint64        // order of creation
	ring   func(now time.Time)
}

// NewVirtualClock returns a clock with the time start.
func NewVirtualClock(start time.Time) *VirtualClock {
	c := &VirtualClock{start: start.UTC().Truncate(time.Microsecond)}
	c.changed.L = &c.mu
	return c
}

// Now implements [Clock].
func (c *VirtualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *VirtualClock) now() time.Time {
	return c.start.Add(c.elapsed + c.offset).Truncate(time.Microsecond)
}

// Monotonic implements [Clock].
func (c *VirtualClock) Monotonic() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsed
}

// SetOffset makes the wall clock jump, as if the machine's clock were set. It does not
// affect timers and Monotonic.
func (c *VirtualClock) SetOffset(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = d
}

// Offset returns the offset of the last SetOffset.
func (c *VirtualClock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// Advance advances the clock by d. It fires each due timer with the clock at its due
// time, including timers that are created in between.
func (c *VirtualClock) Advance(d time.Duration) {
	c.mu.Lock()
	target := c.elapsed + max(d, 0)
	for {
		next := c.earliest()
		if next == nil || next.due > target {
			break
		}
		c.remove(next)
		c.elapsed = max(c.elapsed, next.due)
		now := c.now()
		c.mu.Unlock()
		next.ring(now)
		c.mu.Lock()
	}
	c.elapsed = max(c.elapsed, target)
	c.mu.Unlock()
}

// Next returns the time until the next timer or timeout is due; false if there is none.
func (c *VirtualClock) Next() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.earliest()
	if next == nil {
		return 0, false
	}
	return max(next.due-c.elapsed, 0), true
}

// Pause advances the clock by d or, if d is negative, timer by timer until ctx ends: it stands
// for a peer that answers late, or never. Other timers may be due before the one that ends ctx.
func (c *VirtualClock) Pause(ctx context.Context, d time.Duration) {
	if d >= 0 {
		c.Advance(d)
		return
	}
	for ctx.Err() == nil {
		wait, ok := c.Next()
		if !ok {
			break
		}
		c.Advance(wait)
	}
	<-ctx.Done()
}

// BlockUntil blocks until at least n timers and timeouts are pending, so that a test can
// wait for another goroutine to sleep.
func (c *VirtualClock) BlockUntil(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.alarms) < n {
		c.changed.Wait()
	}
}

// NewTimer implements [Clock].
func (c *VirtualClock) NewTimer(d time.Duration) Timer {
	fired := make(chan time.Time, 1)
	t := &virtualTimer{clock: c, fired: fired}
	t.alarm = c.schedule(d, func(now time.Time) { fired <- now })
	return t
}

// WithTimeout implements [Clock]. The context has no Deadline, because other code would
// compare it with the machine's clock.
func (c *VirtualClock) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx := &virtualContext{Context: parent, done: make(chan struct{})}
	if err := parent.Err(); err != nil {
		ctx.end(err)
		return ctx, func() {}
	}
	a := c.schedule(d, func(time.Time) { ctx.end(context.DeadlineExceeded) })
	stop := afterFunc(parent, func() {
		c.cancel(a)
		ctx.end(parent.Err())
	})
	return ctx, func() {
		stop()
		c.cancel(a)
		ctx.end(context.Canceled)
	}
}

// afterFunc calls f when ctx ends: in the same goroutine if ctx is a virtual context,
// else in a new one.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if virtual, ok := ctx.(*virtualContext); ok {
		return virtual.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// schedule registers an alarm, or fires it at once if d is not positive.
func (c *VirtualClock) schedule(d time.Duration, ring func(time.Time)) *alarm {
	c.mu.Lock()
	c.serial++
	a := &alarm{due: c.elapsed + d, serial: c.serial, ring: ring}
	if d <= 0 {
		now := c.now()
		c.mu.Unlock()
		ring(now)
		return a
	}
	c.alarms = append(c.alarms, a)
	c.changed.Broadcast()
	c.mu.Unlock()
	return a
}

func (c *VirtualClock) cancel(a *alarm) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.remove(a)
}

func (c *VirtualClock) remove(a *alarm) bool {
	for i, other := range c.alarms {
		if other == a {
			last := len(c.alarms) - 1
			c.alarms[i], c.alarms[last] = c.alarms[last], nil
			c.alarms = c.alarms[:last]
			return true
		}
	}
	return false
}

func (c *VirtualClock) earliest() *alarm {
	var first *alarm
	for _, a := range c.alarms {
		if first == nil || a.due < first.due || a.due == first.due && a.serial < first.serial {
			first = a
		}
	}
	return first
}

type virtualTimer struct {
	clock *VirtualClock
	alarm *alarm
	fired chan time.Time
}

func (t *virtualTimer) C() <-chan time.Time { return t.fired }
func (t *virtualTimer) Stop() bool          { return t.clock.cancel(t.alarm) }

// virtualContext is a context with a timeout on a virtual clock. Package context calls
// its AfterFunc method, which ends derived contexts in the goroutine that advances the
// clock, so that a single-threaded simulation is deterministic.
type virtualContext struct {
	context.Context
	done chan struct{}

	mu    sync.Mutex
	err   error
	after []*func() // in order of registration
}

func (c *virtualContext) Done() <-chan struct{} { return c.done }

func (c *virtualContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		// The parent may have ended but not yet called end.
		return c.Context.Err()
	}
	return c.err
}

// AfterFunc calls f when the context ends; stop prevents that and reports whether it did. If the
// context ended meanwhile, f runs in a goroutine of its own: the caller may hold its locks, as
// package context does.
func (c *virtualContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	ended := c.err != nil
	if !ended {
		c.after = append(c.after, &f)
	}
	c.mu.Unlock()
	if ended {
		go f()
		return func() bool { return false }
	}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.after, &f)
		if i < 0 {
			return false
		}
		c.after = slices.Delete(c.after, i, i+1)
		return true
	}
}

func (c *virtualContext) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	after := c.after
	c.after = nil
	close(c.done)
	c.mu.Unlock()
	for _, f := range after {
		(*f)()
	}
}
