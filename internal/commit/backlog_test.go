package commit_test

import (
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/env"
)

// TestBacklogged: large batches are a backlog while they are recent, small ones are none,
// however many there are. Results of workers do not count.
func TestBacklogged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		class commit.Class
		size  int // of each batch
		want  bool
	}{
		{"large batches", commit.Interactive, 40, true},
		{"small batches", commit.Interactive, 15, false},
		{"results of workers", commit.Background, 40, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &database{entered: make(chan struct{}), proceed: make(chan struct{})}
			o := options(d)
			_, clock := env.Virtual(time.Unix(0, 0), 1)
			o.Clock, o.MaxBatch, o.MaxQueued = clock, 64, 64
			b := commit.New(o)
			b.Start()
			var wait sync.WaitGroup
			if b.Backlogged() {
				t.Error("backlogged before the first operation")
			}
			do := func(n int) {
				for i := range n {
					wait.Go(func() { _ = b.Do(t.Context(), op{"a", strconv.Itoa(i), tt.class}) })
				}
			}
			do(1)
			<-d.entered
			for range 8 {
				do(tt.size)
				for b.Lanes()[0].Waiting != tt.size {
					runtime.Gosched()
				}
				d.proceed <- struct{}{}
				<-d.entered
				clock.Advance(time.Second) // a slow disk
			}
			if got := b.Backlogged(); got != tt.want {
				t.Errorf("during a batch: %t, want %t", got, tt.want)
			}
			d.proceed <- struct{}{}
			wait.Wait()
			b.Stop()
			clock.Advance(100 * time.Millisecond)
			if b.Backlogged() {
				t.Error("backlogged although there has been no batch")
			}
		})
	}
}
