package env

import (
	"context"
	"slices"
	"sync"
	"time"
)

// VirtualClock stands still until it is advanced. Timers and time-outs end
// inside the call to Advance that reaches them, in order of their due time
// and, at one due time, in the order in which they were made.
type VirtualClock struct {
	mu      sync.Mutex
	changed sync.Cond // the number of alarms grew
	start   time.Time
	offset  time.Duration
	elapsed time.Duration
	serial  uint64
	alarms  []*alarm // in no order: there are few
}

// alarm is one thing that happens at a due time.
type alarm struct {
	due    time.Duration // by Monotonic
	serial uint64        // order of making
	ring   func(now time.Time)
}

// NewVirtualClock returns a clock that shows start.
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

// SetOffset makes the wall clock jump, and neither timers nor Monotonic, as a
// machine's clock does when someone sets it.
func (c *VirtualClock) SetOffset(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = d
}

// Offset returns what SetOffset was last given.
func (c *VirtualClock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// Advance lets d pass. What is due happens in this call, with the clock
// showing its due time; what that makes due within d happens too.
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

// Next tells how long until the next timer or time-out is due, and false if
// none waits. A simulation with nothing else to do advances by it.
func (c *VirtualClock) Next() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.earliest()
	if next == nil {
		return 0, false
	}
	return max(next.due-c.elapsed, 0), true
}

// BlockUntil returns once at least n timers and time-outs wait, so that a test
// knows that another goroutine has gone to sleep before it advances.
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

// WithTimeout implements [Clock]. The context tells no Deadline of its own, as
// code outside this module would compare it with the machine's clock.
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

// afterFunc calls f when ctx ends: in the same goroutine where it is a virtual
// context, and in one of its own otherwise.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if virtual, ok := ctx.(*virtualContext); ok {
		return virtual.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// schedule registers an alarm, or rings it at once if d is not positive.
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

// virtualContext ends by a virtual clock. Its AfterFunc method, which package
// context looks for, ends derived contexts in the goroutine that advances the
// clock, so that a simulation in one goroutine stays deterministic.
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
		// What ends the parent may still be on its way to this context.
		return c.Context.Err()
	}
	return c.err
}

// AfterFunc calls f when the context ends; the returned function takes that
// back and tells whether it came in time.
func (c *virtualContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	ended := c.err != nil
	if !ended {
		c.after = append(c.after, &f)
	}
	c.mu.Unlock()
	if ended {
		f()
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
