package bench

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// begin is when virtual clocks start.
var begin = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// sleepOn sleeps by advancing a virtual clock, whose only sleeper it is.
func sleepOn(clock *env.VirtualClock) func(context.Context, time.Duration) bool {
	return func(_ context.Context, d time.Duration) bool {
		clock.Advance(d)
		return true
	}
}

// In an open loop requests are due at the rate, even if earlier answers are late; a late
// worker gets a due time in the past.
func TestOpenLoop(t *testing.T) {
	clock := env.NewVirtualClock(begin)
	clock.Advance(time.Hour) // so that the start is not 0
	p := newSchedule(clock, 4, 500*time.Millisecond, time.Second, 0)
	var due []time.Duration
	for i := range 6 {
		at, ok := p.take(t.Context(), sleepOn(clock))
		if !ok {
			t.Fatalf("request %d is not sent", i)
		}
		due = append(due, at-time.Hour)
		if late := clock.Monotonic() - at; i == 2 && late != 450*time.Millisecond || i < 2 && late != 0 {
			t.Errorf("request %d is sent %v late", i, late)
		}
		if i == 1 {
			clock.Advance(700 * time.Millisecond) // a slow answer
		}
	}
	want := []time.Duration{0, 250e6, 500e6, 750e6, 1000e6, 1250e6}
	if !slices.Equal(due, want) {
		t.Errorf("due at %v, want %v", due, want)
	}
	if _, ok := p.take(t.Context(), sleepOn(clock)); ok || p.unsent.Load() != 0 {
		t.Errorf("the loop did not end, or left %d unsent", p.unsent.Load())
	}
	if p.window.contains(time.Hour+499*time.Millisecond) || !p.window.contains(time.Hour+500*time.Millisecond) || p.window.contains(time.Hour+1500*time.Millisecond) {
		t.Errorf("the window is %v", p.window)
	}
}

// Requests that were due but found no free worker before the end are counted, not sent.
func TestUnsent(t *testing.T) {
	clock := env.NewVirtualClock(begin)
	p := newSchedule(clock, 10, 0, time.Second, 0)
	if _, ok := p.take(t.Context(), sleepOn(clock)); !ok {
		t.Fatal("the first is not sent")
	}
	clock.Advance(2 * time.Second)
	for range 3 {
		if _, ok := p.take(t.Context(), sleepOn(clock)); ok {
			t.Fatal("one is sent after the end")
		}
	}
	if n := p.unsent.Load(); n != 9 {
		t.Errorf("%d are unsent, want 9", n)
	}
}

func TestRateIsExact(t *testing.T) {
	p := newSchedule(env.NewVirtualClock(begin), 7, 0, 0, 0)
	for _, n := range []int64{7, 7_000_000_000_000} {
		if got := p.offset(n); got != time.Duration(n/7)*time.Second {
			t.Errorf("request %d is due after %v", n, got)
		}
	}
	if got := p.offset(1); got != 142857142 {
		t.Errorf("request 1 is due after %v", got)
	}
}

// In a closed loop a request is due when a worker is free, until the end.
func TestClosedLoop(t *testing.T) {
	clock := env.NewVirtualClock(begin)
	p := newSchedule(clock, 0, time.Second, time.Second, 0)
	for range 2 {
		if at, ok := p.take(t.Context(), nil); !ok || at != clock.Monotonic() {
			t.Errorf("due at %v, %v", at, ok)
		}
		clock.Advance(900 * time.Millisecond)
	}
	clock.Advance(200 * time.Millisecond)
	if _, ok := p.take(t.Context(), nil); ok {
		t.Error("a request after the end")
	}
}

func TestLimit(t *testing.T) {
	p := newSchedule(env.NewVirtualClock(begin), 0, 0, 0, 100)
	var group sync.WaitGroup
	var mu sync.Mutex
	sent := 0
	for range 8 {
		group.Go(func() {
			for {
				if _, ok := p.take(t.Context(), nil); !ok {
					return
				}
				mu.Lock()
				sent++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if sent != 100 {
		t.Errorf("%d are sent", sent)
	}
}

func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	clock := env.NewVirtualClock(begin)
	p := newSchedule(clock, 1, 0, 0, 0)
	a := newPreciseTimer(clock)
	defer a.close()
	if _, ok := p.take(ctx, a.sleep); !ok {
		t.Error("the first waits")
	}
	go func() {
		clock.BlockUntil(1)
		cancel()
	}()
	if _, ok := p.take(ctx, a.sleep); ok {
		t.Error("one is sent after it was stopped")
	}
	if _, ok := p.take(ctx, a.sleep); ok {
		t.Error("one is sent after it was stopped")
	}
}

// A precise timer is never early on its clock.
func TestPreciseTimer(t *testing.T) {
	clock := env.NewSystemClock()
	a := newPreciseTimer(clock)
	defer a.close()
	for _, d := range []time.Duration{1, time.Microsecond, 300 * time.Microsecond, 3 * time.Millisecond} {
		start := clock.Monotonic()
		if !a.sleep(t.Context(), d) || clock.Monotonic()-start < d {
			t.Errorf("%v took %v", d, clock.Monotonic()-start)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a.sleep(ctx, time.Hour) {
		t.Error("slept after it was stopped")
	}
}
