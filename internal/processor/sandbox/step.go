package sandbox

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/processor"
)

const (
	// settleAfter is how long an order stays in process, unless it is forced.
	settleAfter = time.Second
	// stepLimit bounds how much one Step does.
	stepLimit = 256
	// longestNap bounds how long Run sleeps: the wall clock may be moved, and
	// a timer does not notice.
	longestNap = time.Minute
	// diskPause is how long Run waits for a disk that takes nothing.
	diskPause = time.Second
)

// Step does what is due at now, which is the time of the clock that the bank
// was given: orders complete or arrive, then notices go out. It does a bounded
// piece of work and tells how much; 0 means that nothing is due. That a notice
// is not accepted is no error: it is sent again.
func (b *Bank) Step(ctx context.Context, now time.Time) (did int, err error) {
	if err := b.journal.settle(); err != nil {
		return 0, err
	}
	b.mu.Lock()
	now = now.Add(b.books.offset)
	moved, err := b.moveOrders(now)
	letters := b.collectMail(now)
	seen := b.journal.latest()
	b.mu.Unlock()
	if err != nil {
		b.keep(letters)
		return moved, err
	}
	// Nobody may learn of what could still be lost.
	if err := b.journal.wait(seen); err != nil {
		b.keep(letters)
		return moved, err
	}
	if len(letters) == 0 {
		return moved, ctx.Err()
	}
	b.deliver(ctx, letters)
	return moved + len(letters), b.settleMail(now, letters)
}

// keep files letters again that could not be sent yet.
func (b *Bank) keep(letters []letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range letters {
		b.push(&b.mail, letters[i].duty)
	}
}

// moveOrders completes or takes orders that are due; the lock is held.
func (b *Bank) moveOrders(now time.Time) (moved int, err error) {
	for moved < stepLimit {
		d, ok := popDue(&b.work, now)
		if !ok {
			return moved, nil
		}
		moved++
		if c := b.books.charges[d.charge]; c != nil && c.analysis != nil {
			err = b.endAnalysis(now, c)
		} else if waiting := b.books.delayed[d.order]; waiting != nil && !waiting.Due.After(now) {
			err = b.arrive(now, waiting)
		} else if o := b.books.orders[d.order]; o != nil && o.state == processor.TransferProcessing {
			err = b.endOrder(now, o, orderEnd{State: processor.TransferPaid})
		}
		if err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// NextDue tells when Step has something to do next, by the clock that the bank
// was given; ok is false while nothing waits. It may lie in the past.
func (b *Bank) NextDue() (due time.Time, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.work) > 0 {
		due, ok = b.work[0].due, true
	}
	if len(b.mail) > 0 && len(b.addresses()) > 0 {
		next := b.mail[0].due
		if next.Before(b.post.pausedUntil) {
			next = b.post.pausedUntil
		}
		if !ok || next.Before(due) {
			due, ok = next, true
		}
	}
	return due.Add(-b.books.offset), ok
}

// Run does what falls due, when it falls due, until ctx ends. It is for a
// program that has no loop of its own around Step. A disk that is full or fails
// does not end it: the books wait until they can be written.
func (b *Bank) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		now := b.opts.Clock.Now()
		did, err := b.Step(ctx, now)
		if errors.Is(err, errDisk) {
			b.opts.Log.ErrorContext(ctx, "the bank waits for its disk", "error", err)
			b.pause(ctx, diskPause)
			continue
		}
		if err != nil {
			return err
		}
		if did > 0 {
			continue
		}
		nap := longestNap
		if due, ok := b.NextDue(); ok {
			nap = min(nap, max(due.Sub(now), 0))
		}
		b.nap(ctx, nap)
	}
	return ctx.Err()
}

func (b *Bank) nap(ctx context.Context, d time.Duration) {
	timer := b.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-b.wake:
	case <-timer.C():
	}
}
