package worker_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/worker"
)

// throttled is a throttle on a virtual clock.
type throttled struct {
	*worker.Throttle

	t          *testing.T
	clock      *env.VirtualClock
	backlogged bool
}

func newThrottled(t *testing.T) *throttled {
	t.Helper()
	_, clock := env.Virtual(time.Unix(0, 0), 1)
	v := &throttled{t: t, clock: clock}
	v.Throttle = worker.NewThrottle(clock, func() bool { return v.backlogged })
	return v
}

// wants begins a run and compares how long it waits, and whether it is throttled.
func (v *throttled) wants(wait time.Duration, throttled bool) {
	v.t.Helper()
	result := make(chan bool)
	go func() { result <- v.Begin(v.t.Context()) }()
	if wait > 0 {
		for left, waits := v.clock.Next(); !waits || left != wait; left, waits = v.clock.Next() {
			runtime.Gosched()
		}
		v.clock.Advance(wait)
	}
	if got := <-result; got != throttled {
		v.t.Errorf("throttled %t, want %t", got, throttled)
	}
}

func TestRunsAreSpacedWhileRequestsQueue(t *testing.T) {
	v := newThrottled(t)
	v.wants(0, false)
	v.wants(0, false) // without requests one follows the other
	v.backlogged = true
	v.wants(100*time.Millisecond, true)
	v.clock.Advance(30 * time.Millisecond)
	v.wants(70*time.Millisecond, true)
	v.clock.Advance(time.Second)
	v.wants(0, true)
	v.backlogged = false
	v.wants(0, false)
}

// A load that lasts does not delay work without end.
func TestLateWorkEndsTheSpacing(t *testing.T) {
	v := newThrottled(t)
	v.backlogged = true
	v.wants(0, true)
	now := v.clock.Now()
	v.Took(now.Add(-5*time.Second), now)
	v.Took(now, now) // the other work of the run was not late
	v.wants(0, false)
	v.Took(now.Add(-4999*time.Millisecond), now)
	v.wants(100*time.Millisecond, true)
}

func TestThrottleEndsWithItsContext(t *testing.T) {
	v := newThrottled(t)
	v.backlogged = true
	v.wants(0, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v.Begin(ctx)
}
