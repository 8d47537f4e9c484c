package sandboxbank

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

const (
	// completeAfter is how long an order stays in process, unless it is forced.
	completeAfter = time.Second
	// stepLimit bounds how many timers of a kind one Step fires.
	stepLimit = 256
	// longestNap bounds how long Run sleeps: a timer does not notice that the wall
	// clock was moved.
	longestNap = time.Minute
	// diskPause is how long Run waits before it tries a failed disk again.
	diskPause = time.Second
)

// Step fires the timers that are due at now, the time of the clock in the
// options: orders complete or arrive, then questions are asked and notices sent. It
// does a bounded amount of work and returns how much; 0 means that nothing is due. A
// notice that is not accepted is not an error: it is sent again.
func (b *Bank) Step(ctx context.Context, now time.Time) (did int, err error) {
	if err := b.journal.retry(); err != nil {
		return 0, err
	}
	b.mu.Lock()
	now = now.Add(b.ledger.offset)
	moved, err := b.moveOrders(now)
	due, asked := b.dueNotices(now), b.dueQuestions(now)
	seen := b.journal.latest()
	b.mu.Unlock()
	if err == nil { // a notice or question must not report a change that a crash could still lose
		err = b.journal.wait(seen)
	}
	if err != nil {
		b.requeue(due, asked)
		return moved, err
	}
	if err := b.askAll(ctx, now, asked); err != nil {
		b.requeue(due, nil)
		return moved, err
	}
	if moved += len(asked); len(due) == 0 {
		return moved, ctx.Err()
	}
	b.deliver(ctx, due)
	return moved + len(due), b.recordDeliveries(now, due)
}

// moveOrders fires the timers of orders and cards; the lock is held.
func (b *Bank) moveOrders(now time.Time) (moved int, err error) {
	for moved < stepLimit {
		t, ok := popDue(&b.timers, now)
		if !ok {
			return moved, nil
		}
		moved++
		if c := b.ledger.charges[t.charge]; c != nil && c.analysis != nil {
			err = b.endAnalysis(now, c)
		} else if delayed := b.ledger.delayed[t.order]; delayed != nil && !delayed.Due.After(now) {
			err = b.accept(now, delayed.Order, "")
		} else if o := b.ledger.orders[t.order]; o != nil && o.state == bankapi.OrderProcessing && b.mayPay(o) {
			err = b.changeOrder(now, o, orderChanged{State: bankapi.OrderPaid})
		}
		if err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// NextDue is when the next timer fires, by the clock in the options; ok is
// false if there is none. It may lie in the past.
func (b *Bank) NextDue() (due time.Time, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.timers) > 0 {
		due, ok = b.timers[0].due, true
	}
	if len(b.questions) > 0 && (!ok || b.questions[0].due.Before(due)) {
		due, ok = b.questions[0].due, true
	}
	if len(b.noticeTimers) > 0 && len(b.addresses()) > 0 {
		next := b.noticeTimers[0].due
		if next.Before(b.notifier.pausedUntil) {
			next = b.notifier.pausedUntil
		}
		if !ok || next.Before(due) {
			due, ok = next, true
		}
	}
	return due.Add(-b.ledger.offset), ok
}

// Run fires timers as they become due until ctx ends. It is for a program without
// its own loop around Step. A full or failing disk does not end it: the bank
// waits until its journal can be written.
func (b *Bank) Run(ctx context.Context) error {
	if b.contracts != nil {
		defer b.contracts.run(ctx)()
	}
	for ctx.Err() == nil {
		now := b.opts.Clock.Now()
		did, err := b.Step(ctx, now)
		if errors.Is(err, errDisk) {
			b.opts.Log.ErrorContext(ctx, "journal cannot be written; waiting for the disk", "error", err)
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
