package outgoing

import (
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// An unreachable processor gets no payouts for a while: they stay PENDING, and so
// can still be canceled.
const (
	breakerTrips   = 3 // sends in a row that could not leave
	breakerWaitMin = 2 * time.Second
	breakerWaitMax = time.Minute
)

// breakers is a circuit breaker per processor.
type breakers struct {
	clock env.Clock
	mu    sync.Mutex
	state map[string]*breaker
}

type breaker struct {
	failures int
	until    time.Duration // by the monotonic clock
}

func newBreakers(clock env.Clock) *breakers {
	return &breakers{clock: clock, state: map[string]*breaker{}}
}

// allow bounds how many payouts may be sent to a processor now: none while its
// breaker is open, one to probe it after that, else n.
func (b *breakers) allow(processor string, n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state[processor]
	switch {
	case s == nil || s.failures < breakerTrips:
		return n
	case b.clock.Monotonic() < s.until:
		return 0
	default:
		return min(n, 1)
	}
}

// record records whether a processor could be reached.
func (b *breakers) record(processor string, reached bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reached {
		delete(b.state, processor)
		return
	}
	s := b.state[processor]
	if s == nil {
		s = &breaker{}
		b.state[processor] = s
	}
	s.failures++
	wait := breakerWaitMin << min(max(s.failures-breakerTrips, 0), 10)
	s.until = b.clock.Monotonic() + min(wait, breakerWaitMax)
}
