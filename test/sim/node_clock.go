package sim

import (
	"time"

	"github.com/porteira/porteira/internal/env"
)

// nodeClock is a process's clock. All processes share one time, but each wall clock may have
// an offset. While a process waits for a timer, the others run.
type nodeClock struct {
	*env.VirtualClock

	node *node
	life int
}

// Now implements [env.Clock].
func (c *nodeClock) Now() time.Time { return c.VirtualClock.Now().Add(c.node.clockOffset) }

// NewTimer implements [env.Clock]. It advances the time itself.
func (c *nodeClock) NewTimer(d time.Duration) env.Timer {
	c.node.elapse(c.life, d)
	fired := make(chan time.Time, 1)
	fired <- c.Now()
	return firedTimer(fired)
}

// firedTimer is a timer that has fired.
type firedTimer chan time.Time

// C implements [env.Timer].
func (t firedTimer) C() <-chan time.Time { return t }

// Stop implements [env.Timer].
func (t firedTimer) Stop() bool { return false }
