package outgoing

import (
	"context"
	"time"
)

// While requests are committed, the runs that claim payouts are throttleInterval apart:
// a claim costs a commit, for one payout or for many. After a run that claimed a payout
// which had waited for throttleLimit, the next run begins at once (docs/decisions/0011).
const (
	throttleInterval = 100 * time.Millisecond
	throttleLimit    = 5 * time.Second
)

// throttle describes the latest run.
type throttle struct {
	began    time.Duration // on the monotonic clock
	requests int64         // of all clients, committed before it began
	late     bool          // it claimed a payout that had waited for throttleLimit or longer
}

// throttle begins a run; it waits first if requests were committed since the latest one.
func (e *Executor) throttle(ctx context.Context) {
	t := &e.sendThrottle
	left := t.began + throttleInterval - e.Env.Clock.Monotonic()
	if left > 0 && !t.late && e.Writer.Requests() != t.requests {
		timer := e.Env.Clock.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-ctx.Done():
		}
	}
	*t = throttle{began: e.Env.Clock.Monotonic(), requests: e.Writer.Requests()}
}

// claimed records that payouts due since a time were claimed.
func (t *throttle) claimed(since, now time.Time) { t.late = t.late || now.Sub(since) >= throttleLimit }
