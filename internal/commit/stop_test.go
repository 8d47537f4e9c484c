package commit_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/commit"
)

// Operations that were accepted before Stop are committed before Stop returns.
func TestStopCommitsWhatIsQueued(t *testing.T) {
	t.Parallel()
	d := &database{entered: make(chan struct{}), proceed: make(chan struct{})}
	b := commit.New(options(d))
	b.Start()
	var wait sync.WaitGroup
	wait.Go(func() { _ = b.Do(t.Context(), op{"a", "first", commit.Interactive}) })
	<-d.entered
	ctx, cancel := context.WithCancel(t.Context())
	queued := []op{{"a", "request", commit.Interactive}, {"b", "result", commit.Background}, {"c", "claim", commit.Claim}}
	errs := make([]error, len(queued))
	for i, v := range queued {
		wait.Go(func() { errs[i] = b.Do(ctx, v) })
		for b.Lanes()[0].Waiting != i+1 {
			runtime.Gosched()
		}
	}
	stopped := make(chan struct{})
	go func() {
		b.Stop()
		close(stopped)
	}()
	ended, end := context.WithCancel(t.Context())
	end()
	for !errors.Is(b.Do(ended, op{"d", "late", commit.Interactive}), commit.ErrClosing) { // until Stop has begun
		runtime.Gosched()
	}
	go func() {
		for range d.entered {
			d.proceed <- struct{}{}
		}
	}()
	d.proceed <- struct{}{}
	<-stopped
	cancel() // an operation that was dropped would wait forever
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Errorf("queued operations: %v", err)
	}
	for _, v := range queued {
		if !d.has(v.name) {
			t.Errorf("%s is not committed: batches %v", v.name, d.batches)
		}
	}
}

// has reports whether an operation was committed.
func (d *database) has(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(slices.Concat(d.batches...), name)
}
