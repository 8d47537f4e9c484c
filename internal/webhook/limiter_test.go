package webhook_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/webhook"
)

func TestLimiterConcurrency(t *testing.T) {
	t.Parallel()
	l := webhook.NewLimiter(env.NewVirtualClock(epoch), 4, 4)
	var releases []func(bool)
	for i := range 4 {
		release, _, ok := l.Acquire("a", true)
		if !ok {
			t.Fatalf("attempt %d was put off", i)
		}
		releases = append(releases, release)
	}
	if _, wait, ok := l.Acquire("a", true); ok || wait != 0 {
		t.Errorf("a fifth: %v, %v", wait, ok)
	}
	other, _, ok := l.Acquire("b", true)
	if !ok {
		t.Fatal("another endpoint was put off")
	}
	other(true)
	releases[0](true)
	releases[0](true) // counts once
	release, _, ok := l.Acquire("a", true)
	if !ok {
		t.Error("a free slot was not given")
	}
	if _, _, ok := l.Acquire("a", true); ok {
		t.Error("releasing twice freed two slots")
	}
	release(true)
	for _, release := range releases {
		release(true)
	}
	if l.Len() != 0 {
		t.Errorf("%d idle endpoints are remembered", l.Len())
	}
}

func TestLimiterRestsSickEndpoint(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	l := webhook.NewLimiter(clock, 4, 4)
	attempt := func(healthy bool) {
		t.Helper()
		release, _, ok := l.Acquire("a", true)
		if !ok {
			t.Fatal("put off")
		}
		release(healthy)
	}
	for range 5 {
		attempt(false)
	}
	for _, pause := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		pause *= time.Second
		if _, wait, ok := l.Acquire("a", true); ok || wait != pause {
			t.Fatalf("wait = %v, %v, want %v", wait, ok, pause)
		}
		clock.Advance(pause)
		release, _, ok := l.Acquire("a", true)
		if !ok {
			t.Fatal("put off after the pause")
		}
		if _, _, ok := l.Acquire("a", true); ok {
			t.Fatal("two attempts at once at an unhealthy endpoint")
		}
		release(false)
	}
	clock.Advance(time.Minute)
	attempt(true)
	for range 4 {
		if _, _, ok := l.Acquire("a", true); !ok {
			t.Error("a healed endpoint is still held back")
		}
	}
}

// Attempts in flight together fail together, as when a receiver restarts: they
// count as one failure, and only an attempt made after the pause lengthens it.
func TestLimiterCountsOneOutageOnce(t *testing.T) {
	t.Parallel()
	const inFlight = 40
	clock := env.NewVirtualClock(epoch)
	l := webhook.NewLimiter(clock, inFlight, inFlight)
	var releases []func(bool)
	for range inFlight {
		release, _, ok := l.Acquire("a", true)
		if !ok {
			t.Fatal("put off")
		}
		releases = append(releases, release)
	}
	for _, release := range releases[:inFlight-1] {
		release(false)
	}
	if _, wait, ok := l.Acquire("a", true); ok || wait != time.Second {
		t.Fatalf("after one outage wait = %v, %v, want 1s", wait, ok)
	}
	clock.Advance(time.Second)
	releases[inFlight-1](false) // it had begun before the pause, too
	probe, wait, ok := l.Acquire("a", true)
	if !ok {
		t.Fatalf("put off by %v after the pause", wait)
	}
	probe(false)
	if _, wait, ok := l.Acquire("a", true); ok || wait != 2*time.Second {
		t.Errorf("after a failed probe wait = %v, %v, want 2s", wait, ok)
	}
	own, wait, ok := l.Acquire("a", false)
	if !ok {
		t.Fatalf("put off by %v, although its pauses are kept elsewhere", wait)
	}
	if _, _, ok := l.Acquire("a", false); ok {
		t.Error("two attempts at once at an unhealthy endpoint")
	}
	own(false)
}

// TestLimiterBounds drives a limiter at random and expects that no endpoint
// exceeds its share, that idle and healthy ones are forgotten, and that a
// rescheduled attempt is allowed after the returned wait.
func TestLimiterBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		clock := env.NewVirtualClock(epoch)
		l := webhook.NewLimiter(clock, 2, 2)
		running := map[string][]func(bool){}
		keys := rapid.SampledFrom([]string{"a", "b", "c"})
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			key := keys.Draw(t, "key")
			switch {
			case rapid.Bool().Draw(t, "acquire"):
				release, wait, ok := l.Acquire(key, true)
				if !ok && wait > 0 && len(running[key]) == 0 {
					clock.Advance(wait)
					release, _, ok = l.Acquire(key, true)
				}
				if ok {
					running[key] = append(running[key], release)
				} else if len(running[key]) == 0 {
					t.Fatal("nothing runs, and still it is put off")
				}
			case len(running[key]) > 0:
				running[key][0](rapid.Bool().Draw(t, "healthy"))
				running[key] = running[key][1:]
			}
			if len(running[key]) > 2 {
				t.Fatalf("%d attempts at once", len(running[key]))
			}
		}
		for _, releases := range running {
			for _, release := range releases {
				release(true)
			}
		}
		if l.Len() > 3 {
			t.Fatalf("%d endpoints remembered", l.Len())
		}
	})
}

// TestLimiterTogether has many goroutines attempt at a few endpoints at once;
// some fail.
func TestLimiterTogether(t *testing.T) {
	t.Parallel()
	const slots = 3
	clock := env.NewVirtualClock(epoch)
	l := webhook.NewLimiter(clock, slots, slots)
	var running, granted [4]atomic.Int64
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			for attempt := range 500 {
				n := (worker + attempt) % len(running)
				release, wait, ok := l.Acquire(fmt.Sprint(n), true)
				if !ok {
					clock.Advance(wait)
					continue
				}
				granted[n].Add(1)
				if now := running[n].Add(1); now > slots {
					t.Errorf("%d attempts at once", now)
				}
				runtime.Gosched()
				running[n].Add(-1)
				release(attempt%3 > 0)
			}
		})
	}
	all.Wait()
	for n := range granted {
		if granted[n].Load() == 0 {
			t.Errorf("endpoint %d got no attempt", n)
		}
	}
	if l.Len() > len(running) {
		t.Errorf("%d endpoints remembered", l.Len())
	}
}

func TestLimiterMemory(t *testing.T) {
	t.Parallel()
	l := webhook.NewLimiter(env.NewVirtualClock(epoch), 1, 1)
	for i := range 2 * webhook.MaxRemembered {
		release, _, ok := l.Acquire(fmt.Sprint(i), true)
		if !ok {
			t.Fatal("put off")
		}
		release(false)
	}
	if l.Len() > webhook.MaxRemembered {
		t.Errorf("%d endpoints remembered", l.Len())
	}
}

// A receiver that keeps up gets more attempts at once, one that fails fewer.
func TestLimiterFollowsItsReceiver(t *testing.T) {
	t.Parallel()
	l := webhook.NewLimiter(env.NewVirtualClock(epoch), 2, 5)
	var running []func(bool)
	fill := func(want int) {
		t.Helper()
		for {
			release, _, ok := l.Acquire("a", true)
			if !ok {
				break
			}
			running = append(running, release)
		}
		if len(running) != want {
			t.Fatalf("%d attempts at once; want %d", len(running), want)
		}
	}
	end := func(healthy bool) {
		running[0](healthy)
		running = running[1:]
	}
	fill(2)
	for _, want := range []int{3, 4, 5, 5, 5} {
		end(true)
		fill(want)
	}
	end(true)
	end(true) // nothing waited between the two
	fill(5)
	end(false) // two are allowed, and four run
	if _, _, ok := l.Acquire("a", true); ok {
		t.Error("a receiver that failed keeps its slots")
	}
	end(true)
	end(true)
	fill(3)
}
