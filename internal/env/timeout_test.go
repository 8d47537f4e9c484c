package env_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// The context of WithTimeout behaves like that of the context package, whether its end is
// observed by Done, by Err, by a context made from it, or by Wait.
func TestTimeout(t *testing.T) {
	t.Parallel()
	ends := map[string]struct {
		d    time.Duration
		end  func(cancel, cancelParent context.CancelFunc)
		want error
	}{
		"time":    {1, func(_, _ context.CancelFunc) {}, context.DeadlineExceeded},
		"cancel":  {time.Hour, func(cancel, _ context.CancelFunc) { cancel(); cancel() }, context.Canceled},
		"parent":  {time.Hour, func(_, cancelParent context.CancelFunc) { cancelParent() }, context.Canceled},
		"no time": {0, func(_, _ context.CancelFunc) {}, context.DeadlineExceeded},
	}
	observers := map[string]func(ctx context.Context) func() error{
		"Done": func(ctx context.Context) func() error {
			done := ctx.Done()
			return func() error { <-done; return ctx.Err() }
		},
		"Done, later": func(ctx context.Context) func() error {
			return func() error { <-ctx.Done(); return ctx.Err() }
		},
		"Err": func(ctx context.Context) func() error {
			return func() error {
				for ctx.Err() == nil {
				}
				return ctx.Err()
			}
		},
		"child": func(ctx context.Context) func() error {
			child, cancel := context.WithCancel(ctx)
			return func() error {
				defer cancel()
				<-child.Done()
				return child.Err()
			}
		},
		"Wait": func(ctx context.Context) func() error {
			return func() error {
				if ctx.Err() == context.Canceled {
					return ctx.Err() // Wait does not observe it
				}
				return env.Wait(ctx, nil)
			}
		},
	}
	for end, e := range ends {
		for name, observe := range observers {
			parent, cancelParent := context.WithCancel(t.Context())
			ctx, cancel := env.NewSystemClock().WithTimeout(parent, e.d)
			if at, ok := ctx.Deadline(); !ok || at.IsZero() {
				t.Error("no deadline")
			}
			if e.d == time.Hour && ctx.Err() != nil {
				t.Errorf("%s: ended early: %v", end, ctx.Err())
			}
			observed := observe(ctx)
			e.end(cancel, cancelParent)
			if err := observed(); !errors.Is(err, e.want) {
				t.Errorf("%s, observed by %s: %v, want %v", end, name, err, e.want)
			}
			cancel()
			cancelParent()
		}
	}
}

// A context made from one of WithTimeout has its values, and ends with it without a
// goroutine of its own.
func TestTimeoutValues(t *testing.T) {
	type key struct{}
	ctx, cancel := env.NewSystemClock().WithTimeout(context.WithValue(t.Context(), key{}, "v"), time.Hour)
	defer cancel()
	before := ctx.Value(key{})
	goroutines := runtime.NumGoroutine()
	var children []context.Context
	for range 100 {
		child, cancelChild := context.WithCancel(ctx)
		t.Cleanup(cancelChild)
		children = append(children, child)
	}
	if n := runtime.NumGoroutine() - goroutines; n >= len(children)/2 { // other tests may start some
		t.Errorf("%d goroutines for %d contexts", n, len(children))
	}
	if after := ctx.Value(key{}); before != "v" || after != "v" || children[0].Value(key{}) != "v" {
		t.Errorf("values %v and %v", before, after)
	}
	cancel()
	for _, child := range children {
		<-child.Done()
	}
}

// An earlier end of the parent is the deadline.
func TestTimeoutDeadlineOfParent(t *testing.T) {
	t.Parallel()
	parent, cancelParent := context.WithTimeout(t.Context(), time.Minute)
	defer cancelParent()
	ctx, cancel := env.NewSystemClock().WithTimeout(parent, time.Hour)
	defer cancel()
	want, _ := parent.Deadline()
	if got, _ := ctx.Deadline(); !got.Equal(want) {
		t.Errorf("deadline %v, want %v", got, want)
	}
}

// A wait that ends before it is done always returns an error, also at the instant at which
// the context that Done made, with a timer of its own, has not ended yet.
func TestWaitNeverEndsWithoutAnError(t *testing.T) {
	t.Parallel()
	for i := range 3000 {
		parent, cancelParent := context.WithCancel(t.Context())
		ctx, cancel := env.System(env.OutboundOptions{}).Clock.WithTimeout(parent, time.Duration(i%50)*time.Microsecond)
		ctx.Done()
		if i%2 == 0 {
			go cancelParent()
		}
		if err := env.Wait(ctx, nil); err == nil {
			t.Fatalf("wait %d ended without an error", i)
		}
		cancel()
		cancelParent()
	}
}

func TestWaitForWhatIsDone(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	close(done)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	timed, cancelTimed := env.NewSystemClock().WithTimeout(ended, 0)
	defer cancelTimed()
	for range 100 { // select chooses at random
		if err := errors.Join(env.Wait(ended, done), env.Wait(timed, done)); err != nil {
			t.Fatal(err)
		}
	}
	running, cancelRunning := env.NewSystemClock().WithTimeout(t.Context(), time.Hour)
	defer cancelRunning()
	later := make(chan struct{})
	go close(later)
	if err := env.Wait(running, later); err != nil {
		t.Error(err)
	}
}
