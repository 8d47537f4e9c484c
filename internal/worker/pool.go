package worker

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// Pool bounds the calls of a worker in flight. A step starts calls without waiting for
// them, so that a slow call delays no other; the end of a call wakes the worker.
type Pool struct {
	spawn Spawn
	slots chan struct{}
	calls sync.WaitGroup
	waker *Waker
}

// Spawn starts a call that is to run beside its caller; nil starts it in a goroutine.
// Simulations run it in a goroutine of their own schedule.
type Spawn func(call func())

// Inline is the Spawn of tests without concurrency: the step that starts a call runs it.
func Inline(call func()) { call() }

// NewPool returns a pool with slots slots that wakes the worker when a call ends.
func NewPool(slots int, waker *Waker, spawn Spawn) *Pool {
	return &Pool{spawn: spawn, slots: make(chan struct{}, slots), waker: waker}
}

// Free is the number of free slots.
func (p *Pool) Free() int { return cap(p.slots) - len(p.slots) }

// Size is the number of slots.
func (p *Pool) Size() int { return cap(p.slots) }

// Reserve reserves up to n slots for RunReserved without waiting, and returns their number.
func (p *Pool) Reserve(n int) (reserved int) {
	for ; reserved < n; reserved++ {
		select {
		case p.slots <- struct{}{}:
		default:
			return reserved
		}
	}
	return reserved
}

// Acquire waits for a slot until ctx ends, and reports whether it reserved one, for
// [Pool.Release].
func (p *Pool) Acquire(ctx context.Context) bool {
	select {
	case p.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Release releases n reserved slots.
func (p *Pool) Release(n int) {
	for range n {
		<-p.slots
	}
}

// Run starts a call. If no slot is free, it waits.
func (p *Pool) Run(call func()) { p.RunThen(call, always) }

// RunReserved starts a call in a reserved slot.
func (p *Pool) RunReserved(call func()) { p.start(call, always) }

// RunThen starts a call and, after its slot is released, calls then, which returns whether
// to wake the worker.
func (p *Pool) RunThen(call func(), then func() (wake bool)) {
	p.slots <- struct{}{}
	p.start(call, then)
}

func always() bool { return true }

func (p *Pool) start(call func(), then func() (wake bool)) {
	run := func() {
		defer p.Release(1)
		call()
	}
	all := func() {
		run()
		if then() {
			p.waker.Wake()
		}
	}
	if p.spawn == nil {
		p.calls.Go(all)
		return
	}
	p.spawn(all)
}

// Wait waits until no call is in flight.
func (p *Pool) Wait() { p.calls.Wait() }

// Call calls a function and uses failed to convert a panic into an answer.
func Call[T any](call func() T, failed func(cause error) T) (answer T) {
	defer func() {
		if v := recover(); v != nil {
			answer = failed(fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	return call()
}

// Waits between attempts to record the result of a call.
const (
	recordWaitMin = 100 * time.Millisecond
	recordWaitMax = 5 * time.Second
)

// Recorder records the results of calls.
type Recorder struct {
	Env env.Env
	Log *slog.Logger
	// Once disables retries: for tests that do not advance the clock.
	Once bool
}

// Record records the result of a call, and retries until it succeeds; its row remains
// claimed until then. It gives up when ctx ends, at shutdown; another process then takes
// over the row.
func (r *Recorder) Record(ctx context.Context, what string, write func(context.Context) error) {
	for wait := recordWaitMin; ; wait = min(2*wait, recordWaitMax) {
		err := write(context.WithoutCancel(ctx))
		if err == nil {
			return
		}
		r.Log.ErrorContext(ctx, what+" not recorded", "error", err)
		if r.Once {
			return
		}
		timer := r.Env.Clock.NewTimer(r.Env.Random.Jitter(wait, 20))
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
