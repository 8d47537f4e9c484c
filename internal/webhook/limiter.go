package webhook

import (
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
)

const (
	// unhealthyAfter is the number of failures in a row that makes an endpoint unhealthy.
	unhealthyAfter = 5
	// firstPause doubles with each further failure, up to maxPause: short enough that
	// a receiver gets its backlog within minutes of its recovery.
	firstPause = time.Second
	maxPause   = time.Minute
	// maxRemembered bounds the unhealthy endpoints remembered. Forgetting the pause of any
	// more costs one attempt each.
	maxRemembered = 10_000
)

// Limiter keeps one receiver from occupying all senders. Each endpoint gets a few
// concurrent attempts. While more deliveries wait, the limit grows by one with
// each success, up to a maximum, and halves with each failure. An endpoint that
// failed five times in a row is unhealthy: it gets one attempt at a time, with a
// growing pause between them, until one succeeds. Memory is bounded by the
// attempts in flight and 10,000 unhealthy endpoints.
type Limiter struct {
	clock       env.Clock
	least, most int // attempts at once

	mu        sync.Mutex
	endpoints map[string]*endpoint
}

// endpoint is forgotten once nothing is in flight and nothing has failed.
type endpoint struct {
	running  int
	allowed  int
	wanted   bool          // more than allowed, since the last attempt ended
	failures int           // in a row
	resume   time.Duration // by the monotonic clock: no attempt before
}

// NewLimiter returns a limiter that lets each endpoint have least concurrent
// attempts, and up to most if it keeps up with them.
func NewLimiter(clock env.Clock, least, most int) *Limiter {
	return &Limiter{clock: clock, least: least, most: max(least, most), endpoints: make(map[string]*endpoint)}
}

// Acquire requests an attempt at an endpoint, without waiting. If ok is true the
// attempt may start, and release must be called once, with whether the receiver
// answered 2xx or 410. If not, reschedule the delivery after
// wait, which does not count as an attempt; a wait of 0 means until one of the
// endpoint's attempts ends. An endpoint whose pauses the caller keeps gets none. See
// [EndpointKey] for the key.
func (l *Limiter) Acquire(key string, pauses bool) (release func(healthy bool), wait time.Duration, ok bool) {
	now := l.clock.Monotonic()
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.endpoints[key]
	if e == nil {
		e = &endpoint{allowed: l.least}
		l.endpoints[key] = e
	}
	allowed := e.allowed
	if e.failures >= unhealthyAfter {
		if pauses && now < e.resume {
			return nil, e.resume - now, false
		}
		allowed = 1
	}
	if e.running >= allowed {
		e.wanted = true
		return nil, 0, false
	}
	e.running++
	var once sync.Once
	return func(healthy bool) { once.Do(func() { l.release(key, e, now, healthy) }) }, 0, true
}

// release ends an attempt that began at a time of the monotonic clock. Attempts
// that began before an endpoint's pause failed for the same reason as the pause:
// they do not lengthen it. Otherwise one restart of a receiver with many attempts
// in flight would cost it the longest pause.
func (l *Limiter) release(key string, e *endpoint, began time.Duration, healthy bool) {
	now := l.clock.Monotonic()
	l.mu.Lock()
	defer l.mu.Unlock()
	e.running--
	switch {
	case healthy:
		e.failures = 0
		if e.wanted {
			e.allowed, e.wanted = min(e.allowed+1, l.most), false
		}
	case e.failures < unhealthyAfter || began >= e.resume:
		e.failures++
		e.allowed = max(e.allowed/2, l.least)
		e.resume = now + pause(e.failures)
	}
	if e.running > 0 {
		return
	}
	if e.failures == 0 || len(l.endpoints) > maxRemembered {
		delete(l.endpoints, key)
	}
}

// Len returns how many endpoints are busy or remembered as failing.
func (l *Limiter) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.endpoints)
}

// pause returns the pause of an unhealthy endpoint after so many failures.
func pause(failures int) time.Duration {
	if failures < unhealthyAfter {
		return 0
	}
	doublings := min(failures-unhealthyAfter, 10)
	return min(firstPause<<doublings, maxPause)
}
