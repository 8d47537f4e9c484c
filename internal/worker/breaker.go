package worker

import (
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// An account that cannot be reached, or that lets calls time out, gets none for a while:
// payouts stay PENDING, and so can still be canceled.
const (
	breakerTrips   = 3 // calls in a row that failed
	breakerWaitMin = 2 * time.Second
	breakerWaitMax = time.Minute
	breakerProbe   = 10 * time.Second // for the answer to a probe
)

// Breakers is a circuit breaker per account of a processor. It is safe for concurrent
// use.
type Breakers struct {
	clock env.Clock
	mu    sync.Mutex
	state map[string]*breaker
}

type breaker struct {
	failures int
	until    time.Duration // by the monotonic clock
}

// NewBreakers returns closed breakers.
func NewBreakers(clock env.Clock) *Breakers {
	return &Breakers{clock: clock, state: map[string]*breaker{}}
}

// Allow bounds how many calls may be made to an account now: none while its breaker is
// open, one to probe it after that, else n.
func (b *Breakers) Allow(account string, n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state[account]
	switch {
	case s == nil || s.failures < breakerTrips:
		return n
	case b.clock.Monotonic() < s.until:
		return 0
	default:
		s.until = b.clock.Monotonic() + breakerProbe // one at a time
		return min(n, 1)
	}
}

// Record records whether a call to an account reached it and was answered in time.
func (b *Breakers) Record(account string, answered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if answered {
		delete(b.state, account)
		return
	}
	s := b.state[account]
	if s == nil {
		s = &breaker{}
		b.state[account] = s
	}
	s.failures++
	wait := breakerWaitMin << min(max(s.failures-breakerTrips, 0), 10)
	s.until = b.clock.Monotonic() + min(wait, breakerWaitMax)
}
