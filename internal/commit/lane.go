package commit

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// meanWeight: the last batch counts for a quarter in the mean duration and the mean size of batches.
const meanWeight = 4

// sizeRecent is the age at which the mean size of a lane's batches counts no more.
const sizeRecent = 100 * time.Millisecond

// lane commits one batch after another.
type lane[K comparable, T any] struct {
	b *Batcher[K, T]

	mu                      sync.Mutex
	ready                   *sync.Cond
	urgent                  []*ticket[T]
	interactive, background queue[K, T]
	running, closing        bool
	ended                   chan struct{}

	busy  bool          // a batch is being committed
	began time.Duration // its start, on the monotonic clock
	mean  time.Duration // mean duration of recent batches
	sizes int           // mean number of interactive operations in recent batches, times meanWeight
}

func newLane[K comparable, T any](b *Batcher[K, T]) *lane[K, T] {
	l := &lane[K, T]{b: b, interactive: newQueue[K, T](), background: newQueue[K, T]()}
	l.ready = sync.NewCond(&l.mu)
	return l
}

func (l *lane[K, T]) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running || l.closing {
		return
	}
	l.running, l.ended = true, make(chan struct{})
	go l.loop()
}

func (l *lane[K, T]) stop() {
	l.mu.Lock()
	l.closing = true
	running, ended := l.running, l.ended
	l.ready.Signal()
	l.mu.Unlock()
	if running {
		<-ended
	}
}

func (l *lane[K, T]) isClosing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closing
}

// enqueue queues an operation; queued is false if the lane has no goroutine, and the caller
// must commit.
func (l *lane[K, T]) enqueue(t *ticket[T], class Class) (queued bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closing && (class == Interactive || class == Claim):
		return false, ErrClosing
	case l.closing || !l.running:
		return false, nil
	case class == Interactive && l.interactive.waiting >= l.b.o.MaxQueued:
		return false, ErrFull
	}
	switch class {
	case Urgent:
		l.urgent = append(l.urgent, t)
	case Interactive:
		l.interactive.add(l.b.o.Key(t.item), t)
	default:
		l.background.add(l.b.o.Key(t.item), t)
	}
	l.ready.Signal()
	return true, nil
}

func (l *lane[K, T]) loop() {
	defer close(l.ended)
	clock := l.b.o.Clock
	batch := make([]*ticket[T], 0, l.b.o.MaxBatch+l.b.o.MaxBackground)
	for {
		batch = l.take(batch[:0])
		if len(batch) == 0 {
			return
		}
		l.b.commit(context.Background(), l, batch)
		clear(batch)
		// The callers that were just answered, and those about to enqueue, run first: the
		// next batch is larger, and a tenth more requests are committed per second.
		runtime.Gosched()

		l.mu.Lock()
		l.mean += (clock.Monotonic() - l.began - l.mean) / meanWeight
		l.busy = false
		l.mu.Unlock()
	}
}

// take waits for operations and takes a batch, which is empty if the lane is closing and
// nothing waits.
func (l *lane[K, T]) take(batch []*ticket[T]) []*ticket[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for l.waiting() == 0 && !l.closing {
			l.ready.Wait()
		}
		background := l.b.o.MaxBatch
		if l.interactive.waiting > 0 {
			background = l.b.o.MaxBackground
		}
		batch = append(batch, l.urgent...)
		l.urgent = nil
		size := l.interactive.waiting
		batch = l.interactive.share(batch, l.b.o.MaxBatch)
		size -= l.interactive.waiting
		batch = l.background.share(batch, background)
		// Callers whose context has ended already got an error.
		batch = slices.DeleteFunc(batch, func(t *ticket[T]) bool { return t.ctx.Err() != nil })
		if len(batch) > 0 || l.closing && l.waiting() == 0 {
			l.busy, l.began = len(batch) > 0, l.b.o.Clock.Monotonic()
			l.sizes += size - l.sizes/meanWeight
			return batch
		}
	}
}

// takeUrgent takes the urgent operations that wait.
func (l *lane[K, T]) takeUrgent() []*ticket[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.urgent
	l.urgent = nil
	return list
}

// waiting counts the operations that wait; the caller holds the lock.
func (l *lane[K, T]) waiting() int {
	return len(l.urgent) + l.interactive.waiting + l.background.waiting
}

// recentSize is the mean number of interactive operations in recent batches.
func (l *lane[K, T]) recentSize() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.busy && l.b.o.Clock.Monotonic()-l.began >= sizeRecent {
		l.sizes = 0
	}
	return l.sizes / meanWeight
}

// stalled is the age of a batch at which its lane counts as blocked: the database or its
// disk hangs.
const stalled = 5 * time.Second

func (l *lane[K, T]) queueDelay(key K) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var age time.Duration // of the batch that is being committed
	if l.busy {
		age = l.b.o.Clock.Monotonic() - l.began
	}
	if age >= stalled {
		return age
	}
	line := l.interactive.lines[key]
	if len(line) == 0 {
		return 0
	}
	// The operation waits for the earlier ones of its key, of which each batch takes a share,
	// and at most for all waiting operations.
	share := max(1, l.b.o.MaxBatch/len(l.interactive.ring))
	batches := min(len(line)/share, l.interactive.waiting/l.b.o.MaxBatch)
	if batches == 0 {
		return 0
	}
	return time.Duration(batches) * max(l.mean, age)
}
