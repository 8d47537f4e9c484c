package env_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/env"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestSystemClockOffset(t *testing.T) {
	t.Parallel()
	clock := env.NewSystemClock()
	before := clock.Now()
	clock.SetOffset(48 * time.Hour)
	after := clock.Now()
	if d := after.Sub(before); d < 48*time.Hour || d > 49*time.Hour {
		t.Errorf("an offset of 48h moved the wall clock by %v", d)
	}
	if clock.Offset() != 48*time.Hour {
		t.Errorf("offset = %v", clock.Offset())
	}
	if after.Location() != time.UTC || after.Nanosecond()%1000 != 0 {
		t.Errorf("now is %v: want UTC in microseconds", after)
	}
	if m := clock.Monotonic(); m < 0 || m > time.Hour {
		t.Errorf("monotonic time moved with the offset: %v", m)
	}
}

func TestSystemClockWakes(t *testing.T) {
	t.Parallel()
	clock := env.NewSystemClock()
	<-clock.NewTimer(time.Millisecond).C()
	timer := clock.NewTimer(time.Hour)
	if !timer.Stop() || timer.Stop() {
		t.Error("want Stop true at the first call, false at the second")
	}
	ctx, cancel := clock.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("err = %v", ctx.Err())
	}
}

func TestVirtualClockShowsDueTime(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	timer := clock.NewTimer(3 * time.Second)
	clock.Advance(2 * time.Second)
	select {
	case <-timer.C():
		t.Fatal("fired early")
	default:
	}
	if next, ok := clock.Next(); !ok || next != time.Second {
		t.Errorf("next = %v, %v", next, ok)
	}
	clock.Advance(10 * time.Second)
	if at := <-timer.C(); !at.Equal(epoch.Add(3 * time.Second)) {
		t.Errorf("fired at %v", at)
	}
	if timer.Stop() {
		t.Error("a fired timer was stopped")
	}
	if _, ok := clock.Next(); ok {
		t.Error("a timer is pending")
	}
	if now := clock.Now(); !now.Equal(epoch.Add(12 * time.Second)) {
		t.Errorf("now = %v", now)
	}
}

// TestVirtualClockOrder creates random timeouts, which must end in order of due time and
// then of creation.
func TestVirtualClockOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		clock := env.NewVirtualClock(epoch)
		delays := rapid.SliceOfN(rapid.Int64Range(1, 20), 1, 30).Draw(t, "delays")
		var ended []int
		var want []int
		for i, d := range delays {
			ctx, cancel := clock.WithTimeout(context.Background(), time.Duration(d))
			defer cancel()
			// context.AfterFunc would start a goroutine, in any order.
			onEnd := ctx.(interface{ AfterFunc(func()) func() bool })
			onEnd.AfterFunc(func() { ended = append(ended, i) })
			want = append(want, i)
		}
		slices.SortStableFunc(want, func(a, b int) int { return int(delays[a] - delays[b]) })
		for range 20 {
			clock.Advance(time.Duration(rapid.Int64Range(0, 5).Draw(t, "step")))
		}
		clock.Advance(20)
		if !slices.Equal(ended, want) {
			t.Fatalf("ended %v, want %v", ended, want)
		}
	})
}

func TestVirtualClockJumps(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	timer := clock.NewTimer(time.Hour)
	clock.SetOffset(-24 * time.Hour)
	if got := clock.Now(); !got.Equal(epoch.Add(-24 * time.Hour)) {
		t.Errorf("now = %v", got)
	}
	if clock.Monotonic() != 0 || clock.Offset() != -24*time.Hour {
		t.Error("a jump of the wall clock moved the monotonic one")
	}
	if !timer.Stop() {
		t.Error("a jump of the wall clock fired a timer")
	}
}

func TestVirtualTimeout(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	type key struct{}
	parent, cancelParent := context.WithCancel(context.WithValue(context.Background(), key{}, "kept"))
	defer cancelParent()

	outer, cancelOuter := clock.WithTimeout(parent, time.Minute)
	defer cancelOuter()
	inner, cancelInner := clock.WithTimeout(outer, time.Hour)
	defer cancelInner()
	derived, cancelDerived := context.WithCancel(inner)
	defer cancelDerived()
	if _, has := inner.Deadline(); has {
		t.Error("a virtual timeout must have no Deadline")
	}
	if inner.Value(key{}) != "kept" {
		t.Error("values are lost")
	}
	clock.Advance(time.Minute - 1)
	if derived.Err() != nil {
		t.Fatalf("ended early: %v", derived.Err())
	}
	clock.Advance(1)
	for name, ctx := range map[string]context.Context{"outer": outer, "inner": inner, "derived": derived} {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("%s: err = %v", name, ctx.Err())
		}
		<-ctx.Done()
	}
	if _, waits := clock.Next(); waits {
		t.Error("an ended context left a timer behind")
	}
	if err := parent.Err(); err != nil {
		t.Errorf("the parent ended too: %v", err)
	}
}

func TestVirtualTimeoutCanceled(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	ctx, cancel := clock.WithTimeout(t.Context(), time.Minute)
	cancel()
	cancel()
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("err = %v", ctx.Err())
	}
	if _, waits := clock.Next(); waits {
		t.Error("a canceled context left a timer behind")
	}

	parent, cancelParent := context.WithCancel(t.Context())
	child, cancelChild := clock.WithTimeout(parent, time.Minute)
	defer cancelChild()
	cancelParent()
	<-child.Done()
	if !errors.Is(child.Err(), context.Canceled) {
		t.Errorf("err = %v", child.Err())
	}
	late, cancelLate := clock.WithTimeout(parent, time.Minute)
	defer cancelLate()
	<-late.Done()

	now, cancelNow := clock.WithTimeout(t.Context(), 0)
	defer cancelNow()
	if !errors.Is(now.Err(), context.DeadlineExceeded) {
		t.Errorf("a time-out of zero: %v", now.Err())
	}
}

func TestVirtualClockBlockUntil(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	woken := make(chan time.Time)
	go func() { woken <- <-clock.NewTimer(time.Hour).C() }()
	clock.BlockUntil(1)
	clock.Advance(time.Hour)
	if at := <-woken; !at.Equal(epoch.Add(time.Hour)) {
		t.Errorf("woken at %v", at)
	}
}

// Signatures have the real time, even if the sandbox's clock has an offset.
func TestUnshiftedHasNoOffset(t *testing.T) {
	clock := env.NewSystemClock()
	clock.SetOffset(48 * time.Hour)
	if lead := clock.Now().Sub(env.Unshifted(clock).Now()); lead < 47*time.Hour {
		t.Errorf("the unshifted clock is only %s behind", lead)
	}
	virtual := env.NewVirtualClock(time.Unix(0, 0))
	if env.Unshifted(virtual) != env.Clock(virtual) {
		t.Error("a virtual clock must be returned unchanged")
	}
}

// Package context holds the lock of a derived context while it registers it, and the function
// takes that lock: a context that has just ended must not call it in the same goroutine.
func TestAfterFuncOfAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := env.NewVirtualClock(epoch).WithTimeout(t.Context(), time.Second)
	cancel()
	var lock sync.Mutex
	called := make(chan struct{})
	lock.Lock()
	stop := ctx.(interface{ AfterFunc(func()) func() bool }).AfterFunc(func() {
		lock.Lock()
		defer lock.Unlock()
		close(called)
	})
	lock.Unlock()
	<-called
	if stop() {
		t.Error("it was stopped after its call")
	}
}
