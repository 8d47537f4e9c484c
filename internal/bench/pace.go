package bench

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// forever is later than any run ends.
const forever = time.Duration(math.MaxInt64)

// window is the measured time, by the monotonic clock: from inclusive, to
// exclusive.
type window struct{ from, to time.Duration }

func (w *window) holds(at time.Duration) bool { return at >= w.from && at < w.to }

// pace says when each request begins. It is safe for concurrent use.
type pace struct {
	clock  env.Clock
	rate   int // per second; 0: as soon as somebody is free
	limit  int64
	start  time.Duration
	window window
	next   atomic.Int64
	unsent atomic.Int64
}

// newPace begins now. duration 0 has no end, nor has limit 0.
func newPace(clock env.Clock, rate int, warmup, duration time.Duration, limit int) *pace {
	p := &pace{clock: clock, rate: rate, limit: int64(limit), start: clock.Monotonic()}
	p.window = window{p.start + warmup, forever}
	if duration > 0 {
		p.window.to = p.window.from + duration
	}
	return p
}

// take waits for the next request's turn, by sleep, and returns when it was
// due; ok is false where the run is over. In an open loop whoever comes late gets a
// moment that has passed: the latency counts from there (coordinated omission,
// Gil Tene).
func (p *pace) take(ctx context.Context, sleep func(context.Context, time.Duration) bool) (due time.Duration, ok bool) {
	n := p.next.Add(1) - 1
	if p.limit > 0 && n >= p.limit || ctx.Err() != nil {
		return 0, false
	}
	now := p.clock.Monotonic()
	if p.rate == 0 {
		return now, now < p.window.to
	}
	if due = p.start + p.offset(n); due >= p.window.to || now >= p.window.to {
		p.late(n, due)
		return 0, false
	}
	return due, due <= now || sleep(ctx, due-now)
}

// late counts a request that was due within the measured time, and for which
// nobody was free before that was over; the first such request counts those
// behind it that nobody came for.
func (p *pace) late(n int64, due time.Duration) {
	if due < p.window.to {
		first := p.unsent.CompareAndSwap(0, 1)
		if first {
			last := int64((p.window.to - p.start - 1) * time.Duration(p.rate) / time.Second)
			p.unsent.Store(last - n + 1)
		}
	}
}

// offset is when request n of an open loop is due, from the start.
func (p *pace) offset(n int64) time.Duration {
	rate := int64(p.rate)
	return time.Duration(n/rate)*time.Second + time.Duration(n%rate)*time.Second/time.Duration(rate)
}

// wait passes time; false if ctx ended first.
func wait(ctx context.Context, clock env.Clock, d time.Duration) bool {
	timer := clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
