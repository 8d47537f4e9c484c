package bench

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// noEnd is the end of a run without one.
const noEnd = time.Duration(math.MaxInt64)

// window is the measured time [from, to) on the monotonic clock.
type window struct{ from, to time.Duration }

func (w *window) contains(at time.Duration) bool { return at >= w.from && at < w.to }

// schedule is the time at which each request is due. It is safe for concurrent use.
type schedule struct {
	clock  env.Clock
	rate   int // per second; 0: as soon as a worker is free
	limit  int64
	start  time.Duration
	window window
	next   atomic.Int64
	unsent atomic.Int64
}

// newSchedule starts a schedule now. A duration or limit of 0 means no end.
func newSchedule(clock env.Clock, rate int, warmup, duration time.Duration, limit int) *schedule {
	p := &schedule{clock: clock, rate: rate, limit: int64(limit), start: clock.Monotonic()}
	p.window = window{p.start + warmup, noEnd}
	if duration > 0 {
		p.window.to = p.window.from + duration
	}
	return p
}

// take sleeps until the next request is due, and returns its due time; ok is false at
// the end. In an open loop a late worker gets a due time in the past: the latency
// counts from there, which avoids coordinated omission.
func (p *schedule) take(ctx context.Context, sleep func(context.Context, time.Duration) bool) (due time.Duration, ok bool) {
	n := p.next.Add(1) - 1
	if p.limit > 0 && n >= p.limit || ctx.Err() != nil {
		return 0, false
	}
	now := p.clock.Monotonic()
	if p.rate == 0 {
		return now, now < p.window.to
	}
	if due = p.start + p.offset(n); due >= p.window.to || now >= p.window.to {
		p.countUnsent(n, due)
		return 0, false
	}
	return due, due <= now || sleep(ctx, due-now)
}

// countUnsent counts a request that was due within the measured time but found no free
// worker before its end. The first such request counts all later ones too.
func (p *schedule) countUnsent(n int64, due time.Duration) {
	if due < p.window.to {
		first := p.unsent.CompareAndSwap(0, 1)
		if first {
			last := int64((p.window.to - p.start - 1) * time.Duration(p.rate) / time.Second)
			p.unsent.Store(last - n + 1)
		}
	}
}

// offset is the due time of request n of an open loop, from the start.
func (p *schedule) offset(n int64) time.Duration {
	rate := int64(p.rate)
	return time.Duration(n/rate)*time.Second + time.Duration(n%rate)*time.Second/time.Duration(rate)
}

// wait waits for d; false if ctx ended first.
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
