package loop

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// Lease is this process's claim to be alive. Others may take over its work
// once they have seen no heartbeat for the time to live, so before it sends
// anything that must not be sent twice it asks whether the claim still holds.
// A process that was stopped (SIGSTOP, a sleeping machine) thus learns on
// waking that it was given up, before it does harm.
type Lease struct {
	clock env.Clock
	ttl   time.Duration

	mu      sync.Mutex
	until   time.Duration // by the monotonic clock
	held    bool
	renewed chan struct{} // closed by the next Renew; nil while nobody waits for it
}

// NewLease returns a lease that is not held until the first Renew. The time to
// live must be shorter than what others wait before they take over; what lies
// between is the margin for a request already under way.
func NewLease(clock env.Clock, ttl time.Duration) *Lease {
	return &Lease{clock: clock, ttl: ttl}
}

// Renew writes a heartbeat and, if that succeeds, extends the lease. It counts
// from before the write, since that is the latest time that others can be sure
// to have seen. After a failed write the lease runs on to its old end.
func (l *Lease) Renew(ctx context.Context, write func(context.Context) error) error {
	began := l.clock.Monotonic()
	if err := write(ctx); err != nil {
		return fmt.Errorf("renew lease: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := began + l.ttl; !l.held || until > l.until {
		l.until, l.held = until, true
	}
	if l.renewed != nil {
		close(l.renewed)
		l.renewed = nil
	}
	return nil
}

// Await waits for a lease that ran out to be renewed, as one does for a moment
// where heartbeats are slow, and tells whether it is held. It returns when ctx
// ends.
func (l *Lease) Await(ctx context.Context) bool {
	for !l.Valid() {
		l.mu.Lock()
		if l.renewed == nil {
			l.renewed = make(chan struct{})
		}
		renewed := l.renewed
		l.mu.Unlock()
		if l.Valid() { // since we looked
			return true
		}
		select {
		case <-renewed:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Valid tells whether the lease is held now.
func (l *Lease) Valid() bool { return l.Remaining() > 0 }

// Remaining returns how long the lease is still held: what must end within the
// lease takes it as its time-out. It is 0 once the lease is lost.
func (l *Lease) Remaining() time.Duration {
	now := l.clock.Monotonic()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		return 0
	}
	return max(l.until-now, 0)
}

// Drop gives the lease up, as at a clean end.
func (l *Lease) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
}
