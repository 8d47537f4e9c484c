// Package loop runs steps: tick, wake, lease, back off, count, stop.
//
// All of a loop's work is in its [Step], which a simulation runs by
// [Loop.RunOnce] without a goroutine. A Loop adds when to run it: again at
// once while there is work, then when woken or after a while, and later and
// later when it fails.
package loop

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

// Step does a bounded piece of work and tells how much; 0 means that nothing
// is left to do now.
type Step func(ctx context.Context) (did int, err error)

const (
	// firstBackoff is the wait after one failure; it doubles with each more.
	firstBackoff = 100 * time.Millisecond
	// spread is by how many per cent waits vary, so that nodes and loops
	// that began together do not stay in step.
	spread = 10
)

// Options make a loop. Name, Step, Clock and Log are needed.
type Options struct {
	// Name says in logs and metrics which loop this is.
	Name string
	Step Step
	// Every is the longest wait between two runs without a wake, give or take
	// 10 %; 1 s unless set.
	Every time.Duration
	// MaxBackoff is the longest wait after failures; 30 s unless set.
	MaxBackoff time.Duration
	Clock      env.Clock
	// Random spreads the waits; without it they are exact.
	Random env.Random
	// Log receives one line per failed run.
	Log *slog.Logger
}

// Stats is what a loop has done since it was made.
type Stats struct {
	Runs   int64 // how often the step ran
	Did    int64 // the sum of what the step said it did
	Errors int64 // how often it failed or panicked
	// Failures is how often it has failed in a row, 0 when all is well.
	Failures int
	// LastError is the latest failure, "" if there was none.
	LastError string
	// LastRun is when the step last ended, UTC; zero before the first run.
	LastRun time.Time
}

// Loop runs one step over and over, never twice at once.
type Loop struct {
	opts Options
	wake chan struct{} // holds one: wakes coalesce

	step  sync.Mutex // held while the step runs
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

// New returns a loop that is not yet started.
func New(opts Options) *Loop {
	if opts.Every <= 0 {
		opts.Every = time.Second
	}
	if opts.MaxBackoff <= 0 {
		opts.MaxBackoff = 30 * time.Second
	}
	return &Loop{opts: opts, wake: make(chan struct{}, 1)}
}

// Name returns the loop's name.
func (l *Loop) Name() string { return l.opts.Name }

// Start begins to run the step in a goroutine, until Stop is called or ctx
// ends. The step gets ctx, so ending it cuts a running step short. Starting a
// running loop does nothing.
func (l *Loop) Start(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life != nil {
		select {
		case <-l.life.done: // its context ended
		default:
			return
		}
	}
	current := &life{stopping: make(chan struct{}), done: make(chan struct{})}
	l.life = current
	go l.run(ctx, current)
}

// Stop lets a running step finish, begins no other, and returns when the loop
// is at rest. It may be called before Start, twice, and from several
// goroutines, but not from the step itself.
func (l *Loop) Stop() {
	l.mu.Lock()
	current := l.life
	l.mu.Unlock()
	if current == nil {
		return
	}
	current.once.Do(func() { close(current.stopping) })
	<-current.done
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life == current {
		l.life = nil
	}
}

// Wake makes the loop run its step soon: there is work. It never blocks, and
// many wakes make one run. A wake during a run makes it run once more; a wake
// does not shorten the wait after a failure.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Stats returns what the loop has done so far.
func (l *Loop) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// RunOnce runs the step once, here and now, counts it and returns what it
// returned. A panic becomes a [*PanicError].
func (l *Loop) RunOnce(ctx context.Context) (did int, err error) {
	l.step.Lock()
	defer l.step.Unlock()
	did, err = l.protected(ctx)

	now := l.opts.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Runs++
	l.stats.Did += int64(did)
	l.stats.LastRun = now
	if err == nil {
		l.stats.Failures = 0
		return did, nil
	}
	l.stats.Errors++
	l.stats.Failures++
	l.stats.LastError = err.Error()
	return did, fmt.Errorf("loop %s: %w", l.opts.Name, err)
}

// PanicError is what a panic in a step becomes.
type PanicError struct {
	Value any    // what the step panicked with
	Stack []byte // where
}

// Error tells the value, and not the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

func (l *Loop) protected(ctx context.Context) (did int, err error) {
	defer func() {
		if p := recover(); p != nil {
			did, err = 0, &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return l.opts.Step(ctx)
}

func (l *Loop) run(ctx context.Context, current *life) {
	defer close(current.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-current.stopping:
			return
		default:
		}
		did, err := l.RunOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return // whatever failed, failed because of this
		case err != nil:
			wait := l.backoff()
			l.log(ctx, err, wait)
			l.sleep(ctx, current, wait, nil)
		case did == 0:
			l.sleep(ctx, current, l.spread(l.opts.Every), l.wake)
		}
	}
}

// log writes the one line of a failed run.
func (l *Loop) log(ctx context.Context, err error, wait time.Duration) {
	attrs := []slog.Attr{
		slog.String("loop", l.opts.Name), slog.String("error", err.Error()), slog.Duration("retry_in", wait),
	}
	if panicked, ok := errors.AsType[*PanicError](err); ok {
		attrs = append(attrs, slog.String("stack", string(panicked.Stack)))
	}
	l.opts.Log.LogAttrs(ctx, slog.LevelError, "step failed", attrs...)
}

// sleep waits for d, for wake if that is given, or for the end.
func (l *Loop) sleep(ctx context.Context, current *life, d time.Duration, wake <-chan struct{}) {
	timer := l.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-wake:
	case <-current.stopping:
	case <-ctx.Done():
	}
}

// backoff returns how long to wait after the failures so far.
func (l *Loop) backoff() time.Duration {
	wait := firstBackoff
	for range l.Stats().Failures - 1 {
		if wait >= l.opts.MaxBackoff {
			break
		}
		wait *= 2
	}
	return l.spread(min(wait, l.opts.MaxBackoff))
}

func (l *Loop) spread(d time.Duration) time.Duration {
	if l.opts.Random == nil {
		return d
	}
	return l.opts.Random.Jitter(d, spread)
}
