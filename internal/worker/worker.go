// Package worker runs background workers: tick, wake, back off, count, stop.
//
// All work is in a [Step], which a simulation runs by [Worker.RunOnce] without a
// goroutine. A Worker runs it again at once while there is work, then when woken or after
// an interval, and after failures with exponential backoff.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// Step does a bounded amount of work and returns the number of items; 0 means that there
// is no work now.
type Step func(ctx context.Context) (did int, err error)

const (
	// firstBackoff is the wait after one failure; it doubles with each more.
	firstBackoff = 100 * time.Millisecond
	// spread is the jitter of waits in per cent, so that nodes and workers that started
	// together do not run in lockstep.
	spread = 10
)

// Waker wakes a worker. It is created before the worker, and is all that a creator of work
// needs.
type Waker struct {
	pending chan struct{} // wakes coalesce
	hook    func()
}

// NewWaker returns a Waker. hook, if not nil, is called at each wake: a simulation uses it
// to schedule the step.
func NewWaker(hook func()) *Waker { return &Waker{pending: make(chan struct{}, 1), hook: hook} }

// Wake makes the worker run its step soon. It never blocks. Several wakes cause one run, a
// wake during a run causes one more, and a wake does not shorten the wait after a failure.
func (w *Waker) Wake() {
	if w.hook != nil {
		w.hook()
	}
	select {
	case w.pending <- struct{}{}:
	default:
	}
}

// Options are the parameters of a worker. Name, Step, Clock and Log are required.
type Options struct {
	// Name identifies the worker in logs and metrics.
	Name string
	Step Step
	// Waker wakes the worker; if nil, New creates one.
	Waker *Waker
	// Every is the interval between runs without a wake, ±10 %; default 1 s.
	Every time.Duration
	// MaxBackoff is the longest wait after failures; default 30 s.
	MaxBackoff time.Duration
	Clock      env.Clock
	// Random adds jitter to waits; if nil they are exact.
	Random env.Random
	// Log gets one line per failed run.
	Log *slog.Logger
}

// Stats are the counters of a worker since its creation.
type Stats struct {
	Runs   int64 // of the step
	Did    int64 // sum of the step's results
	Errors int64 // failed or panicked runs
	// Failures is the number of failed runs in a row, 0 if the last one succeeded.
	Failures int
	// LastError is the latest failure, "" if there was none.
	LastError string
	// LastRun is the end of the last run, UTC; zero before the first run.
	LastRun time.Time
}

// Worker runs one step repeatedly, never concurrently with itself.
type Worker struct {
	opts  Options
	waker *Waker

	step  sync.Mutex // locked while the step runs
	mu    sync.Mutex // guards stats and life
	stats Stats
	life  *life // nil while stopped
}

// life is one span from Start to Stop.
type life struct {
	stopping chan struct{}
	done     chan struct{}
	once     sync.Once
}

// New returns a worker, not yet started.
func New(opts Options) *Worker {
	if opts.Every <= 0 {
		opts.Every = time.Second
	}
	if opts.MaxBackoff <= 0 {
		opts.MaxBackoff = 30 * time.Second
	}
	if opts.Waker == nil {
		opts.Waker = NewWaker(nil)
	}
	return &Worker{opts: opts, waker: opts.Waker}
}

// Name returns the worker's name.
func (w *Worker) Name() string { return w.opts.Name }

// Start runs the step in a goroutine until Stop is called or ctx ends. The step gets ctx.
// Starting a running worker does nothing.
func (w *Worker) Start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.life != nil {
		select {
		case <-w.life.done: // its context ended
		default:
			return
		}
	}
	current := &life{stopping: make(chan struct{}), done: make(chan struct{})}
	w.life = current
	go w.run(ctx, current)
}

// Stop waits for a running step and starts no other. It may be called before Start, twice,
// and from several goroutines, but not from the step itself.
func (w *Worker) Stop() {
	w.mu.Lock()
	current := w.life
	w.mu.Unlock()
	if current == nil {
		return
	}
	current.once.Do(func() { close(current.stopping) })
	<-current.done
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.life == current {
		w.life = nil
	}
}

// Wake wakes the worker; see [Waker.Wake].
func (w *Worker) Wake() { w.waker.Wake() }

// Stats returns the counters.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// RunOnce runs the step once in the caller's goroutine, counts it and returns its result. A
// panic becomes a [*PanicError].
func (w *Worker) RunOnce(ctx context.Context) (did int, err error) {
	w.step.Lock()
	defer w.step.Unlock()
	did, err = w.protected(ctx)

	now := w.opts.Clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Runs++
	w.stats.Did += int64(did)
	w.stats.LastRun = now
	if err == nil {
		w.stats.Failures = 0
		return did, nil
	}
	w.stats.Errors++
	w.stats.Failures++
	w.stats.LastError = err.Error()
	return did, fmt.Errorf("worker %s: %w", w.opts.Name, err)
}

// PanicError is a panic in a step.
type PanicError struct {
	Value any // of the panic
	Stack []byte
}

// Error has the value but not the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

func (w *Worker) protected(ctx context.Context) (did int, err error) {
	defer func() {
		if p := recover(); p != nil {
			did, err = 0, &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return w.opts.Step(ctx)
}

func (w *Worker) run(ctx context.Context, current *life) {
	defer close(current.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-current.stopping:
			return
		default:
		}
		did, err := w.RunOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return // the failure, if any, comes from this
		case err != nil:
			wait := w.backoff()
			w.log(ctx, err, wait)
			w.sleep(ctx, current, wait, nil)
		case did == 0:
			w.sleep(ctx, current, w.spread(w.opts.Every), w.waker.pending)
		}
	}
}

// log logs a failed run.
func (w *Worker) log(ctx context.Context, err error, wait time.Duration) {
	attrs := []slog.Attr{
		slog.String("worker", w.opts.Name), slog.String("error", err.Error()), slog.Int64("retryInMicros", wait.Microseconds()),
	}
	if panicked, ok := errors.AsType[*PanicError](err); ok {
		attrs = append(attrs, slog.String("stack", string(panicked.Stack)))
	}
	w.opts.Log.LogAttrs(ctx, slog.LevelError, "worker failed", attrs...)
}

// sleep waits for d, for wake if it is not nil, or for the end.
func (w *Worker) sleep(ctx context.Context, current *life, d time.Duration, wake <-chan struct{}) {
	timer := w.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-wake:
	case <-current.stopping:
	case <-ctx.Done():
	}
}

// backoff returns the wait after the failures so far.
func (w *Worker) backoff() time.Duration {
	wait := firstBackoff
	for range w.Stats().Failures - 1 {
		if wait >= w.opts.MaxBackoff {
			break
		}
		wait *= 2
	}
	return w.spread(min(wait, w.opts.MaxBackoff))
}

func (w *Worker) spread(d time.Duration) time.Duration {
	if w.opts.Random == nil {
		return d
	}
	return w.opts.Random.Jitter(d, spread)
}
