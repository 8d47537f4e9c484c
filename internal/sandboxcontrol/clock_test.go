package sandboxcontrol_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/sandboxcontrol"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

const decade = 10 * 365 * 24 * time.Hour

// clock is a gateway's clock on a database.
type clock struct {
	*sandboxcontrol.Clock

	system *env.SystemClock
	steps  int
}

func newClock(s *store.Store) *clock {
	c := &clock{system: env.System(env.OutboundOptions{}).Clock.(*env.SystemClock)}
	c.Clock = sandboxcontrol.NewClock(s, c.system, func() { c.steps++ })
	return c
}

// The sandbox's time only moves forward, no matter how far it has been moved.
func TestClockNeverRunsOver(t *testing.T) {
	w, _ := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o db.Options) {
		c := newClock(storetest.Open(t, o))
		var last time.Duration
		refused := 0
		for range 40 {
			offset, err := c.Advance(t.Context(), decade)
			if problem.Is(err, problem.ValidationFailed) {
				refused++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if offset <= last || c.system.Offset() != offset {
				t.Fatalf("the clock went from %v to %v, and runs %v ahead", last, offset, c.system.Offset())
			}
			last = offset
		}
		if refused != 30 || last != 10*decade || c.steps != 10 {
			t.Errorf("%d steps to %v, %d refused", c.steps, last, refused)
		}
	})
}

// A gateway follows a clock that another one moved, and reports each step
// once.
func TestClockFollows(t *testing.T) {
	w, _ := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o db.Options) {
		s := storetest.Open(t, o)
		one, two := newClock(s), newClock(s)
		follow := func(want time.Duration, steps int) {
			t.Helper()
			if err := two.Follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			if two.system.Offset() != want || two.steps != steps {
				t.Errorf("%v ahead after %d steps, want %v after %d", two.system.Offset(), two.steps, want, steps)
			}
		}
		follow(0, 0)
		if _, err := one.Advance(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		follow(time.Hour, 1)
		follow(time.Hour, 1)
		if offset, err := two.Advance(t.Context(), time.Minute); err != nil || offset != time.Hour+time.Minute {
			t.Errorf("%v, %v", offset, err)
		}
	})
}
