package worker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	quiet = slog.New(slog.NewJSONHandler(io.Discard, nil))
)

// scripted is a step whose runs a test allows one by one.
type scripted struct {
	ran     chan struct{}
	answers chan answer
}

type answer struct {
	did int
	err error
}

func newScripted() *scripted {
	return &scripted{ran: make(chan struct{}), answers: make(chan answer)}
}

func (s *scripted) step(context.Context) (int, error) {
	s.ran <- struct{}{}
	a := <-s.answers
	return a.did, a.err
}

// run waits for the step to run and sets its result.
func (s *scripted) run(did int, err error) {
	<-s.ran
	s.answers <- answer{did, err}
}

func (s *scripted) mustRest(t *testing.T) {
	t.Helper()
	select {
	case <-s.ran:
		t.Fatal("the step ran when it should rest")
	default:
	}
}

func TestWorkerRunsWhileThereIsWork(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	s := newScripted()
	l := worker.New(worker.Options{Name: "work", Step: s.step, Every: time.Minute, Clock: clock, Log: quiet})
	l.Start(t.Context())
	l.Start(t.Context()) // does nothing
	s.run(3, nil)
	s.run(2, nil)
	s.run(0, nil)
	clock.BlockUntil(1) // asleep
	clock.Advance(time.Minute - 1)
	s.mustRest(t)
	clock.Advance(1)
	s.run(0, nil)
	clock.BlockUntil(1)
	stats := l.Stats()
	if stats.Runs != 4 || stats.Did != 5 || stats.Errors != 0 || stats.LastError != "" {
		t.Errorf("stats = %+v", stats)
	}
	if want := epoch.Add(time.Minute); !stats.LastRun.Equal(want) {
		t.Errorf("last run %v, want %v", stats.LastRun, want)
	}
	l.Stop()
	if _, waits := clock.Next(); waits {
		t.Error("a stopped worker left its timer")
	}
}

func TestWorkerWakes(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	s := newScripted()
	l := worker.New(worker.Options{Name: "wakes", Step: s.step, Every: time.Hour, Clock: clock, Log: quiet})
	l.Wake() // before the start: kept
	l.Start(t.Context())
	defer l.Stop()
	s.run(0, nil)
	s.run(0, nil) // the wake from before
	clock.BlockUntil(1)
	l.Wake()
	<-s.ran // running
	for range 100 {
		l.Wake() // work came in during the run
	}
	s.answers <- answer{}
	s.run(0, nil) // once more, not a hundred times
	clock.BlockUntil(1)
	s.mustRest(t)
	if runs := l.Stats().Runs; runs != 4 {
		t.Errorf("%d runs, want 4", runs)
	}
}

func TestWorkerBacksOff(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	var lines syncBuffer
	log := slog.New(slog.NewJSONHandler(&lines, nil))
	s := newScripted()
	l := worker.New(worker.Options{
		Name: "fails", Step: s.step, Every: time.Hour, MaxBackoff: time.Second, Clock: clock, Log: log,
	})
	l.Start(t.Context())
	defer l.Stop()
	failure := errors.New("no such table")
	waits := []time.Duration{100, 200, 400, 800, 1000, 1000, 1000}
	for _, wait := range waits {
		wait *= time.Millisecond
		s.run(0, failure)
		clock.BlockUntil(1)
		l.Wake() // does not cut it short
		clock.Advance(wait - 1)
		s.mustRest(t)
		clock.Advance(1)
	}
	s.run(0, nil) // well again
	s.run(0, failure)
	clock.BlockUntil(1)
	if next, _ := clock.Next(); next != 100*time.Millisecond {
		t.Errorf("the first wait after a success is %v", next)
	}
	stats := l.Stats()
	if stats.Errors != int64(len(waits)+1) || stats.Failures != 1 || stats.LastError != failure.Error() {
		t.Errorf("stats = %+v", stats)
	}
	if n := strings.Count(lines.String(), "\n"); n != len(waits)+1 {
		t.Errorf("%d log lines for %d failures", n, len(waits)+1)
	}
	if !strings.Contains(lines.String(), `"worker":"fails"`) {
		t.Errorf("log = %s", lines.String())
	}
}

func TestWorkerSurvivesPanic(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	var lines syncBuffer
	first := true
	l := worker.New(worker.Options{
		Name: "panics", Every: time.Hour, Clock: clock, Log: slog.New(slog.NewJSONHandler(&lines, nil)),
		Step: func(context.Context) (int, error) {
			if first {
				first = false
				panic("index out of range")
			}
			return 0, nil
		},
	})
	l.Start(t.Context())
	defer l.Stop()
	clock.BlockUntil(1)
	if s := l.Stats(); s.Runs != 1 || s.Errors != 1 || s.LastError != "panic: index out of range" {
		t.Errorf("stats = %+v", s)
	}
	log := lines.String()
	if strings.Count(log, "\n") != 1 || !strings.Contains(log, "worker_test.go") || !strings.Contains(log, "index out") {
		t.Errorf("log = %s", log)
	}
	clock.Advance(100 * time.Millisecond)
	clock.BlockUntil(1)
	if s := l.Stats(); s.Runs != 2 || s.Failures != 0 {
		t.Errorf("the worker did not go on: %+v", s)
	}
}

func TestRunOnce(t *testing.T) {
	t.Parallel()
	answers := []answer{{did: 7}, {did: 2, err: io.ErrUnexpectedEOF}, {}}
	l := worker.New(worker.Options{
		Name: "once", Clock: env.NewVirtualClock(epoch), Log: quiet,
		Step: func(context.Context) (int, error) {
			if len(answers) == 0 {
				panic("no more")
			}
			a := answers[0]
			answers = answers[1:]
			return a.did, a.err
		},
	})
	for _, want := range answers {
		if did, err := l.RunOnce(t.Context()); did != want.did || !errors.Is(err, want.err) {
			t.Errorf("RunOnce = %d, %v, want %+v", did, err, want)
		}
	}
	var panicked *worker.PanicError
	if _, err := l.RunOnce(t.Context()); !errors.As(err, &panicked) || len(panicked.Stack) == 0 {
		t.Errorf("a panic gave %v", err)
	}
	if s := l.Stats(); s.Runs != 4 || s.Did != 9 || s.Errors != 2 || s.Failures != 1 {
		t.Errorf("stats = %+v", s)
	}
}

func TestWorkerStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := env.NewVirtualClock(epoch)
		s := newScripted()
		l := worker.New(worker.Options{Name: "stops", Step: s.step, Clock: clock, Log: quiet})
		l.Stop() // before the start
		for range 2 {
			l.Start(t.Context())
			<-s.ran
			var callers sync.WaitGroup
			var stopped atomic.Int64
			for range 3 {
				callers.Go(func() { l.Stop(); stopped.Add(1) })
			}
			synctest.Wait() // all three wait for the step
			if stopped.Load() != 0 {
				t.Fatal("Stop did not wait for the running step")
			}
			s.answers <- answer{did: 1} // there would be more to do
			callers.Wait()
			l.Stop()
			s.mustRest(t)
		}
		if runs := l.Stats().Runs; runs != 2 {
			t.Errorf("%d runs, want 2", runs)
		}
	})
}

func TestWorkerContextEnds(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	var lines syncBuffer
	l := worker.New(worker.Options{
		Name: "ends", Clock: clock, Log: slog.New(slog.NewJSONHandler(&lines, nil)),
		Step: func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() },
	})
	ctx, cancel := context.WithCancel(t.Context())
	l.Start(ctx)
	cancel()
	l.Stop()
	if lines.String() != "" {
		t.Errorf("the end of the program is logged as a failure: %s", lines.String())
	}
}

func TestWorkerSpreadsWaits(t *testing.T) {
	t.Parallel()
	w, clock := env.Virtual(epoch, 1)
	l := worker.New(worker.Options{
		Name: "spread", Every: time.Minute, Clock: clock, Random: w.Random, Log: quiet,
		Step: func(context.Context) (int, error) { return 0, nil },
	})
	l.Start(t.Context())
	defer l.Stop()
	seen := make(map[time.Duration]bool)
	for range 20 {
		clock.BlockUntil(1)
		next, _ := clock.Next()
		if next < 54*time.Second || next > 66*time.Second {
			t.Fatalf("waits %v", next)
		}
		seen[next] = true
		clock.Advance(next)
	}
	if len(seen) < 15 {
		t.Errorf("only %d different waits of 20", len(seen))
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	var runs atomic.Int64
	make1 := func(name string) *worker.Worker {
		return worker.New(worker.Options{Name: name, Every: time.Hour, Clock: clock, Log: quiet,
			Step: func(context.Context) (int, error) { runs.Add(1); return 0, nil }})
	}
	group := worker.NewGroup(make1("a"), make1("b"), make1("c"))
	group.Start(t.Context())
	clock.BlockUntil(3)
	if runs.Load() != 3 {
		t.Errorf("%d runs, want 3", runs.Load())
	}
	group.Stop()
	for _, l := range group.Workers() {
		l.Wake()
	}
	if runs.Load() != 3 {
		t.Error("a stopped group runs")
	}
	var names []string
	for _, l := range group.Workers() {
		names = append(names, l.Name())
	}
	if strings.Join(names, "") != "abc" {
		t.Errorf("workers %v", names)
	}
}

// syncBuffer is a buffer that a worker writes while a test reads.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
