package worker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/worker"
)

// waking is a waker and the number of its wakes.
func waking() (w *worker.Waker, wakes *atomic.Int64) {
	wakes = new(atomic.Int64)
	return worker.NewWaker(func() { wakes.Add(1) }), wakes
}

// As many calls run concurrently as there are slots; the end of each wakes the worker.
func TestPoolRunsCallsBesideEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, wakes := waking()
		pool := worker.NewPool(3, w, nil)
		gate := make(chan struct{})
		var running atomic.Int64
		for range 3 {
			pool.Run(func() {
				running.Add(1)
				<-gate
			})
		}
		synctest.Wait()
		if running.Load() != 3 || pool.Free() != 0 || pool.Size() != 3 || wakes.Load() != 0 {
			t.Errorf("%d run, %d of %d slots are free, woken %d times", running.Load(), pool.Free(), pool.Size(), wakes.Load())
		}
		gate <- struct{}{}
		synctest.Wait()
		if pool.Free() != 1 || wakes.Load() != 1 {
			t.Errorf("after one call %d slots are free, woken %d times", pool.Free(), wakes.Load())
		}
		close(gate)
		pool.Wait()
		if pool.Free() != 3 || wakes.Load() != 3 {
			t.Errorf("after all %d slots are free, woken %d times", pool.Free(), wakes.Load())
		}
	})
}

// A call beyond the slots waits for one.
func TestPoolIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := waking()
		pool := worker.NewPool(1, w, nil)
		gate := make(chan struct{})
		pool.Run(func() { <-gate })
		started := false
		go func() { pool.Run(func() { started = true }) }()
		synctest.Wait()
		if started {
			t.Error("a second call runs")
		}
		close(gate)
		synctest.Wait()
		pool.Wait()
		if !started {
			t.Error("the second call did not run")
		}
	})
}

// The slot of a call is free when then runs, which decides whether the worker is woken.
func TestPoolRunThen(t *testing.T) {
	t.Parallel()
	for name, spawn := range map[string]worker.Spawn{"a goroutine": nil, "inline": worker.Inline} {
		for _, wake := range []bool{false, true} {
			w, wakes := waking()
			pool := worker.NewPool(1, w, spawn)
			called, free := false, -1
			pool.RunThen(func() { called = true }, func() bool {
				free = pool.Free()
				return wake
			})
			pool.Wait()
			want := int64(0)
			if wake {
				want = 1
			}
			if !called || free != 1 || wakes.Load() != want {
				t.Errorf("%s, wake %v: called %v, %d free, woken %d times", name, wake, called, free, wakes.Load())
			}
		}
	}
}

// An inline pool runs each call in the step that starts it.
func TestPoolInline(t *testing.T) {
	t.Parallel()
	w, _ := waking()
	pool := worker.NewPool(1, w, worker.Inline)
	order := ""
	for _, name := range []string{"a", "b"} {
		pool.Run(func() { order += name })
		order += "."
	}
	if order != "a.b." || pool.Free() != 1 {
		t.Errorf("order %q, %d free", order, pool.Free())
	}
}

// The slot of a call that panics is released.
func TestPoolReleasesTheSlotOfAPanic(t *testing.T) {
	t.Parallel()
	w, _ := waking()
	pool := worker.NewPool(1, w, worker.Inline)
	func() {
		defer func() { _ = recover() }()
		pool.Run(func() { panic("a bug") })
	}()
	if pool.Free() != 1 {
		t.Errorf("%d slots are free", pool.Free())
	}
}

// Free slots are reserved, and then used or released.
func TestPoolReserve(t *testing.T) {
	t.Parallel()
	w, wakes := waking()
	pool := worker.NewPool(5, w, nil)
	if n := pool.Reserve(3); n != 3 || pool.Free() != 2 {
		t.Errorf("reserved %d, %d free", n, pool.Free())
	}
	if n := pool.Reserve(3); n != 2 || pool.Free() != 0 {
		t.Errorf("reserved %d of the last two, %d free", n, pool.Free())
	}
	if n := pool.Reserve(1); n != 0 {
		t.Errorf("reserved %d of none", n)
	}
	pool.Release(2)
	var calls atomic.Int64
	for range 3 {
		pool.RunReserved(func() { calls.Add(1) })
	}
	pool.Wait()
	if calls.Load() != 3 || pool.Free() != 5 || wakes.Load() != 3 {
		t.Errorf("%d calls, %d free, woken %d times", calls.Load(), pool.Free(), wakes.Load())
	}
}

// A panic of a call becomes an answer with its cause and stack.
func TestCall(t *testing.T) {
	t.Parallel()
	failed := func(cause error) string { return "failed: " + cause.Error() }
	if got := worker.Call(func() string { return "answer" }, failed); got != "answer" {
		t.Errorf("answer %q", got)
	}
	got := worker.Call(func() string { panic("a bug") }, failed)
	if !strings.HasPrefix(got, "failed: panic: a bug\n") || !strings.Contains(got, "pool_test.go") {
		t.Errorf("answer %q", got)
	}
}

// failing is a write that fails the given number of times.
func failing(times int, tries *int) func(context.Context) error {
	return func(ctx context.Context) error {
		if *tries++; *tries <= times {
			return errors.New("the database is away")
		}
		return ctx.Err()
	}
}

// Recording a result is retried after increasing waits until it succeeds.
func TestRecorder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, clock := env.Virtual(epoch, 1)
		var lines syncBuffer
		r := worker.Recorder{Env: e, Log: slog.New(slog.NewTextHandler(&lines, nil))}
		tries, done := 0, make(chan struct{})
		go func() {
			r.Record(t.Context(), "payout's answer", failing(9, &tries))
			close(done)
		}()
		for n, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000} {
			want *= time.Millisecond
			synctest.Wait()
			wait, waits := clock.Next()
			if !waits || tries != n+1 || wait < want*8/10 || wait > want*12/10 {
				t.Errorf("try %d is followed by a wait of %v, want about %v", tries, wait, want)
			}
			clock.Advance(wait)
		}
		<-done
		if tries != 10 || strings.Count(lines.String(), "payout's answer not recorded") != 9 {
			t.Errorf("%d tries, log %s", tries, lines.String())
		}
	})
}

// A write continues when the workers stop, but it is not retried.
func TestRecorderStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, clock := env.Virtual(epoch, 1)
		r := worker.Recorder{Env: e, Log: quiet}
		ctx, cancel := context.WithCancel(t.Context())
		tries, done := 0, make(chan struct{})
		go func() {
			r.Record(ctx, "result", failing(5, &tries))
			close(done)
		}()
		synctest.Wait()
		cancel()
		<-done
		if _, waits := clock.Next(); tries != 1 || waits {
			t.Errorf("%d tries, a timer is left: %v", tries, waits)
		}
		tries = 0
		r.Record(ctx, "result", failing(0, &tries)) // with a context that is not the ended one
		if tries != 1 {
			t.Errorf("%d tries after the end", tries)
		}
	})
}

// With Once, a recorder tries once.
func TestRecorderOnce(t *testing.T) {
	t.Parallel()
	e, clock := env.Virtual(epoch, 1)
	var lines bytes.Buffer
	r := worker.Recorder{Env: e, Log: slog.New(slog.NewTextHandler(&lines, nil)), Once: true}
	tries := 0
	r.Record(t.Context(), "result", failing(5, &tries))
	if _, waits := clock.Next(); tries != 1 || waits || !strings.Contains(lines.String(), "result not recorded") {
		t.Errorf("%d tries, a timer is left: %v, log %s", tries, waits, lines.String())
	}
}
