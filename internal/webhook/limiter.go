package webhook

import (
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
)

const (
	defaultConcurrency = 4
	// sickAfter is after how many failures in a row an endpoint counts as sick.
	sickAfter = 5
	// firstPause doubles with each further failure, up to maxPause: short
	// enough that a receiver that is back gets its backlog within minutes.
	firstPause = time.Second
	maxPause   = time.Minute
	// maxRemembered bounds how many sick endpoints are remembered; the pause
	// of those beyond it is forgotten, which costs an attempt and no more.
	maxRemembered = 10_000
)

// Limiter keeps one receiver from occupying all senders. Each endpoint gets a
// few attempts at once; one that takes them while more wait gets one more with
// each, up to a bound, and half as many with each that fails. One that failed
// five times in a row is sick: it gets one attempt at a time, with a growing
// pause between them, until one succeeds. Its memory is bounded by the attempts
// under way and 10,000 sick endpoints.
type Limiter struct {
	clock       env.Clock
	least, most int // attempts at once

	mu        sync.Mutex
	endpoints map[string]*endpoint
}

// endpoint is forgotten once nothing is under way and nothing has failed.
type endpoint struct {
	running  int
	allowed  int
	wanted   bool          // more than allowed, since the last attempt ended
	failures int           // in a row
	resume   time.Duration // by the monotonic clock: no attempt before
}

// NewLimiter returns a limiter that lets each endpoint have least attempts at
// once, 4 if that is not positive, and up to most where it keeps up with them.
func NewLimiter(clock env.Clock, least, most int) *Limiter {
	if least <= 0 {
		least = defaultConcurrency
	}
	return &Limiter{clock: clock, least: least, most: max(least, most), endpoints: make(map[string]*endpoint)}
}

// Acquire asks for an attempt at an endpoint, without waiting. If it may go
// ahead, ok is true and release must be called once, telling whether the
// receiver did its part (an answer of 2xx or 410). If not, the delivery is to
// be put off, which is no attempt, by wait; a wait of 0 means until one of the
// endpoint's attempts ends. See [EndpointKey] for the key.
func (l *Limiter) Acquire(key string) (release func(healthy bool), wait time.Duration, ok bool) {
	now := l.clock.Monotonic()
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.endpoints[key]
	if e == nil {
		e = &endpoint{allowed: l.least}
		l.endpoints[key] = e
	}
	allowed := e.allowed
	if e.failures >= sickAfter {
		if now < e.resume {
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
// that began before an endpoint's pause failed of what the pause is for: they do
// not lengthen it, or one restart of a receiver with many attempts in flight
// would cost it the longest pause.
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
	case e.failures < sickAfter || began >= e.resume:
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

// pause returns how long a sick endpoint rests after so many failures.
func pause(failures int) time.Duration {
	if failures < sickAfter {
		return 0
	}
	doublings := min(failures-sickAfter, 10)
	return min(firstPause<<doublings, maxPause)
}
