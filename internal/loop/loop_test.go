package loop_test

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
	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/loop"
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

// run waits for the step to run and lets it answer.
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

func TestLoopRunsWhileThereIsWork(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	s := newScripted()
	l := loop.New(loop.Options{Name: "work", Step: s.step, Every: time.Minute, Clock: clock, Log: quiet})
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
		t.Error("a stopped loop left its timer")
	}
}

func TestLoopWakes(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	s := newScripted()
	l := loop.New(loop.Options{Name: "wakes", Step: s.step, Every: time.Hour, Clock: clock, Log: quiet})
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

func TestLoopBacksOff(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	var lines syncBuffer
	log := slog.New(slog.NewJSONHandler(&lines, nil))
	s := newScripted()
	l := loop.New(loop.Options{
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
	if !strings.Contains(lines.String(), `"loop":"fails"`) {
		t.Errorf("log = %s", lines.String())
	}
}

func TestLoopSurvivesPanic(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	var lines syncBuffer
	first := true
	l := loop.New(loop.Options{
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
	if strings.Count(log, "\n") != 1 || !strings.Contains(log, "loop_test.go") || !strings.Contains(log, "index out") {
		t.Errorf("log = %s", log)
	}
	clock.Advance(100 * time.Millisecond)
	clock.BlockUntil(1)
	if s := l.Stats(); s.Runs != 2 || s.Failures != 0 {
		t.Errorf("the loop did not go on: %+v", s)
	}
}

func TestRunOnce(t *testing.T) {
	t.Parallel()
	answers := []answer{{did: 7}, {did: 2, err: io.ErrUnexpectedEOF}, {}}
	l := loop.New(loop.Options{
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
	var panicked *loop.PanicError
	if _, err := l.RunOnce(t.Context()); !errors.As(err, &panicked) || len(panicked.Stack) == 0 {
		t.Errorf("a panic gave %v", err)
	}
	if s := l.Stats(); s.Runs != 4 || s.Did != 9 || s.Errors != 2 || s.Failures != 1 {
		t.Errorf("stats = %+v", s)
	}
}

func TestLoopStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := env.NewVirtualClock(epoch)
		s := newScripted()
		l := loop.New(loop.Options{Name: "stops", Step: s.step, Clock: clock, Log: quiet})
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

func TestLoopContextEnds(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	var lines syncBuffer
	l := loop.New(loop.Options{
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

func TestLoopSpreadsWaits(t *testing.T) {
	t.Parallel()
	w, clock := env.Virtual(epoch, 1)
	l := loop.New(loop.Options{
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
	make1 := func(name string) *loop.Loop {
		return loop.New(loop.Options{Name: name, Every: time.Hour, Clock: clock, Log: quiet,
			Step: func(context.Context) (int, error) { runs.Add(1); return 0, nil }})
	}
	group := loop.NewGroup(make1("a"), make1("b"), make1("c"))
	group.Start(t.Context())
	clock.BlockUntil(3)
	if runs.Load() != 3 {
		t.Errorf("%d runs, want 3", runs.Load())
	}
	group.Stop()
	group.Wake()
	if runs.Load() != 3 {
		t.Error("a stopped group runs")
	}
	var names []string
	for _, l := range group.Loops() {
		names = append(names, l.Name())
	}
	if strings.Join(names, "") != "abc" {
		t.Errorf("loops %v", names)
	}
}

func TestLease(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	lease := loop.NewLease(clock, 5*time.Second)
	if lease.Valid() || lease.Remaining() != 0 {
		t.Fatal("held before the first heartbeat")
	}
	written := func(context.Context) error { return nil }
	slow := func(context.Context) error { clock.Advance(4 * time.Second); return nil }
	failed := func(context.Context) error { return errors.New("connection lost") }

	mustRenew := func(write func(context.Context) error) {
		t.Helper()
		if err := lease.Renew(t.Context(), write); err != nil {
			t.Fatal(err)
		}
	}
	mustRenew(written)
	clock.SetOffset(-24 * time.Hour) // the wall clock does not matter
	clock.Advance(5*time.Second - 1)
	if !lease.Valid() || lease.Remaining() != 1 {
		t.Error("lost too early")
	}
	clock.Advance(1)
	if lease.Valid() {
		t.Error("held past its time to live")
	}
	mustRenew(slow) // counts from before the write
	if lease.Remaining() != time.Second {
		t.Errorf("remaining = %v after a slow write", lease.Remaining())
	}
	if err := lease.Renew(t.Context(), failed); err == nil {
		t.Error("a failed heartbeat passed for one")
	}
	if lease.Remaining() != time.Second {
		t.Error("a failed heartbeat changed the lease")
	}
	lease.Drop()
	if lease.Valid() {
		t.Error("held after it was given up")
	}
}

// Who awaits a lease goes on with the heartbeat that renews it, and with none
// that came too late.
func TestLeaseIsAwaited(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	lease := loop.NewLease(clock, 5*time.Second)
	await := func(ctx context.Context) <-chan bool {
		held := make(chan bool, 1)
		go func() { held <- lease.Await(ctx) }()
		return held
	}
	beat := func(took time.Duration) {
		if err := lease.Renew(t.Context(), func(context.Context) error { clock.Advance(took); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	vain := await(ended)
	held := await(t.Context())
	beat(6 * time.Second) // it has run out by now
	cancel()
	if <-vain {
		t.Error("held by a heartbeat that came too late")
	}
	beat(time.Second)
	if !<-held || !<-await(t.Context()) {
		t.Error("not held after a heartbeat")
	}
}

// TestLeaseNeverOutlivesHeartbeat says that however heartbeats and pauses mix,
// the lease is held exactly within the time to live of a begun heartbeat.
func TestLeaseNeverOutlivesHeartbeat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const ttl = 10
		clock := env.NewVirtualClock(epoch)
		lease := loop.NewLease(clock, ttl)
		last := time.Duration(-ttl)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			pause := time.Duration(rapid.IntRange(0, 15).Draw(t, "pause"))
			if rapid.Bool().Draw(t, "beat") {
				began := clock.Monotonic()
				fails := rapid.Bool().Draw(t, "fails")
				_ = lease.Renew(context.Background(), func(context.Context) error {
					clock.Advance(pause)
					if fails {
						return errors.New("lost")
					}
					return nil
				})
				if !fails {
					last = began
				}
			} else {
				clock.Advance(pause)
			}
			if want := clock.Monotonic() < last+ttl; lease.Valid() != want {
				t.Fatalf("valid = %v at %d, last heartbeat %d", lease.Valid(), clock.Monotonic(), last)
			}
		}
	})
}

// syncBuffer is a buffer that a loop writes while a test reads.
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
