// Package commit implements group commit: it collects waiting operations and makes them
// durable together. It is generic, without any knowledge of payments.
//
// Operations with the same key go through the same lane, which commits one batch after
// another without a timer: operations that arrive during one commit are in the next. A
// batch takes a fair share of each key's operations.
package commit

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

// Class is how an operation is scheduled.
type Class int

// The classes.
const (
	Interactive Class = iota // a client waits for the answer
	Background               // a worker records a result: has a share of each batch; accepted while closing
	Claim                    // a worker claims work: refused while closing; commits at once if Concurrent, else like Background
	Urgent                   // in the next batch, before all waiting operations
)

// Failure is how a failed commit is handled.
type Failure int

// The failures.
const (
	OneByOne Failure = iota // one operation may be at fault: each is committed alone
	Unknown                 // the batch may have been committed: the same batch runs again
	Fatal                   // every operation of the batch fails
)

var (
	// ErrClosing means that the batcher is shutting down.
	ErrClosing = errors.New("commit: closing")
	// ErrFull means that MaxQueued interactive operations are already waiting.
	ErrFull = errors.New("commit: queue is full")
)

// Options configure a Batcher. All functions are required.
type Options[K comparable, T any] struct {
	// Commit makes a batch durable, all of it or nothing. It may be called again with the
	// same operations. refused has one element per operation, initially nil, for the
	// operation's own refusal, which affects no other.
	Commit func(ctx context.Context, batch []T, refused []error) error
	// Classify returns how an error of Commit is handled.
	Classify func(error) Failure
	Class    func(T) Class
	// Key is the unit of fairness. Operations of one key and class keep their order.
	Key func(T) K
	// Lane is the lane of a key, from 0 to Lanes-1.
	Lane  func(K) int
	Lanes int
	// Concurrent makes callers commit Claim and Urgent operations themselves, at once,
	// concurrently with the lanes: for a database with concurrent writers.
	Concurrent bool

	MaxBatch      int           // interactive operations in a batch; background ones in a batch without interactive ones
	MaxBackground int           // background operations in a batch with interactive ones
	MaxQueued     int           // interactive operations that may wait in a lane
	Retries       int           // further runs of a batch after an unknown commit
	RetryWait     time.Duration // before the first of them; doubles each time
	Clock         env.Clock
	Log           *slog.Logger
}

// Batcher commits operations of type T in groups. It is safe for concurrent use.
type Batcher[K comparable, T any] struct {
	o       Options[K, T]
	lanes   []*lane[K, T]
	tickets sync.Pool
}

// New returns a Batcher. Until Start each caller commits its own operation alone.
func New[K comparable, T any](o Options[K, T]) *Batcher[K, T] {
	b := &Batcher[K, T]{o: o}
	b.tickets.New = func() any { return &ticket[T]{done: make(chan struct{}, 1)} }
	for range o.Lanes {
		b.lanes = append(b.lanes, newLane(b))
	}
	return b
}

// Start starts the goroutine of each lane.
func (b *Batcher[K, T]) Start() {
	for _, l := range b.lanes {
		l.start()
	}
}

// Stop commits the queued operations, and waits for that. Later interactive operations and
// claims are refused with ErrClosing; results of workers are still committed, each by its
// caller.
func (b *Batcher[K, T]) Stop() {
	for _, l := range b.lanes {
		l.stop()
	}
}

// ticket is an operation that waits for its commit.
type ticket[T any] struct {
	ctx  context.Context
	item T
	err  error
	done chan struct{}
}

// Do commits an operation with others. It returns nil when the operation is durable,
// else its refusal or the error of its commit. If ctx ends first, Do returns its error,
// and the operation may or may not be committed: it must not be read, as its commit may be
// running.
func (b *Batcher[K, T]) Do(ctx context.Context, item T) error {
	class := b.o.Class(item)
	l := b.lanes[b.o.Lane(b.o.Key(item))]
	t := b.tickets.Get().(*ticket[T])
	t.ctx, t.item, t.err = ctx, item, nil
	queued := false
	if b.o.Concurrent && (class == Claim || class == Urgent) {
		if class == Claim && l.isClosing() {
			return ErrClosing
		}
	} else {
		var err error
		if queued, err = l.enqueue(t, class); err != nil {
			return err
		}
	}
	if !queued {
		b.commit(context.WithoutCancel(ctx), nil, []*ticket[T]{t})
	}
	if err := env.Wait(ctx, t.done); err != nil {
		return err // the lane may still use t: it is left to the collector
	}
	err := t.err
	var none T
	t.ctx, t.item = nil, none
	b.tickets.Put(t)
	return err
}

// All commits operations as one batch of their own, in the caller's goroutine,
// and returns the error of each.
func (b *Batcher[K, T]) All(ctx context.Context, items []T) []error {
	batch := make([]*ticket[T], len(items))
	for i, item := range items {
		batch[i] = &ticket[T]{ctx: ctx, item: item, done: make(chan struct{}, 1)}
	}
	if len(batch) > 0 {
		b.commit(context.WithoutCancel(ctx), nil, batch)
	}
	errs := make([]error, len(items))
	for i, t := range batch {
		errs[i] = t.err
	}
	return errs
}

// commit makes a batch durable and completes its tickets. If a batch fails, its operations
// run again one by one, because one of them may be the cause; urgent operations of the
// lane do not wait for that.
func (b *Batcher[K, T]) commit(ctx context.Context, l *lane[K, T], batch []*ticket[T]) {
	err := b.try(ctx, batch)
	if err != nil && len(batch) > 1 && b.o.Classify(err) == OneByOne {
		b.o.Log.WarnContext(ctx, "batch failed: its operations are committed one by one", "operations", len(batch), "cause", err)
		for i := range batch {
			if l != nil {
				if urgent := l.takeUrgent(); len(urgent) > 0 {
					b.commit(ctx, nil, urgent)
				}
			}
			b.commit(ctx, nil, batch[i:i+1])
		}
		return
	}
	for _, t := range batch {
		if err != nil {
			t.err = err
		}
		t.done <- struct{}{}
	}
}

// try commits a batch, and repeats it while the outcome is unknown. A batch of urgent
// operations only is not repeated: a late heartbeat is useless.
func (b *Batcher[K, T]) try(ctx context.Context, batch []*ticket[T]) error {
	items, refused := make([]T, len(batch)), make([]error, len(batch))
	retries := 0
	for i, t := range batch {
		items[i] = t.item
		if b.o.Class(t.item) != Urgent {
			retries = b.o.Retries
		}
	}
	for n := 0; ; n++ {
		clear(refused)
		err := b.protected(ctx, items, refused)
		if n == retries || err == nil || b.o.Classify(err) != Unknown {
			for i, t := range batch {
				t.err = refused[i]
			}
			return err
		}
		<-b.o.Clock.NewTimer(b.o.RetryWait << n).C()
	}
}

// protected converts a panic of Commit into an error.
func (b *Batcher[K, T]) protected(ctx context.Context, items []T, refused []error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("commit: panic: %v\n%s", v, debug.Stack())
		}
	}()
	return b.o.Commit(ctx, items, refused)
}

// LaneStats is the load of a lane.
type LaneStats struct {
	Waiting int           // operations whose batch has not begun
	Batch   time.Duration // mean duration of recent batches
}

// Lanes returns the load of each lane.
func (b *Batcher[K, T]) Lanes() []LaneStats {
	list := make([]LaneStats, len(b.lanes))
	for i, l := range b.lanes {
		l.mu.Lock()
		list[i] = LaneStats{l.waiting(), l.mean}
		l.mu.Unlock()
	}
	return list
}

// backlog is the number of interactive operations per batch, of all lanes together, from
// which on the Batcher is backlogged.
const backlog = 16

// Backlogged reports whether interactive operations arrive faster than they could be
// committed a few at a time, so that recent batches are large.
func (b *Batcher[K, T]) Backlogged() bool {
	size := 0
	for _, l := range b.lanes {
		size += l.recentSize()
	}
	return size >= backlog
}

// QueueDelay estimates the time until the batch of a new interactive operation of a key
// begins; 0 if that is the next batch.
func (b *Batcher[K, T]) QueueDelay(key K) time.Duration {
	return b.lanes[b.o.Lane(key)].queueDelay(key)
}
