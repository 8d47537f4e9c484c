package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// Lease is this process's proof that it is alive. Others may take over its work
// after they have seen no heartbeat for deadAfter, so it checks the lease before it sends
// anything that must not be sent twice. After a pause (SIGSTOP, a sleeping machine) the
// lease has expired, and nothing is sent.
type Lease struct {
	clock env.Clock
	ttl   time.Duration

	mu      sync.Mutex
	until   time.Duration // by the monotonic clock
	valid   bool
	renewed chan struct{} // closed by the next Renew; nil without waiters
}

// NewLease returns a lease that is not valid until the first Renew. ttl must be shorter
// than the time after which others take over; the difference is the margin for a request
// in flight.
func NewLease(clock env.Clock, ttl time.Duration) *Lease {
	return &Lease{clock: clock, ttl: ttl}
}

// Renew writes a heartbeat and, if that succeeds, extends the lease, measured from
// before the write. After a failed write the lease keeps its old end.
func (l *Lease) Renew(ctx context.Context, write func(context.Context) error) error {
	began := l.clock.Monotonic()
	if err := write(ctx); err != nil {
		return fmt.Errorf("renew lease: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := began + l.ttl; !l.valid || until > l.until {
		l.until, l.valid = until, true
	}
	if l.renewed != nil {
		close(l.renewed)
		l.renewed = nil
	}
	return nil
}

// Await waits until the lease is valid or ctx ends, and reports whether it is valid. A
// lease can expire and be renewed if heartbeats are slow.
func (l *Lease) Await(ctx context.Context) bool {
	for !l.Valid() {
		l.mu.Lock()
		if l.renewed == nil {
			l.renewed = make(chan struct{})
		}
		renewed := l.renewed
		l.mu.Unlock()
		if l.Valid() { // renewed since the check
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

// Valid reports whether the lease is valid now.
func (l *Lease) Valid() bool { return l.Remaining() > 0 }

// Remaining returns the remaining time of the lease, 0 if it has expired. Use it as the
// timeout of work that must end within the lease.
func (l *Lease) Remaining() time.Duration {
	now := l.clock.Monotonic()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.valid {
		return 0
	}
	return max(l.until-now, 0)
}

// Drop ends the lease, for a clean shutdown.
func (l *Lease) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.valid = false
}
