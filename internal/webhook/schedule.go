package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is the longest wait that a receiver may ask for.
const maxRetryAfter = 24 * time.Hour

// waitSpread is by how many per cent a wait may be shorter or longer.
const waitSpread = 10

// waits is the wait before the next attempt, by the number of attempts done.
var waits = [...]time.Duration{
	0,
	5 * time.Second,
	30 * time.Second,
	5 * time.Minute,
	30 * time.Minute,
	2 * time.Hour,
	5 * time.Hour,
	10 * time.Hour,
	14 * time.Hour,
	20 * time.Hour,
	24 * time.Hour,
}

// MaxAttempts is the number of attempts after which a delivery is given up.
const MaxAttempts = len(waits)

// Schedule decides when to try again: at once, then after 5 s, 30 s, 5 min, 30
// min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, each counted from the attempt before.
type Schedule struct {
	// Jitter spreads a wait by up to some per cent; nil leaves it exact.
	// It is [env.Random]'s method.
	Jitter func(d time.Duration, percent int) time.Duration
}

// Next returns how long to wait after attemptsDone attempts, or that they are
// exhausted. The wait is within 10 % of the schedule's. A longer retryAfter,
// requested by the receiver in the last attempt, replaces it, up to 24 hours; a
// shorter one has no effect.
func (s Schedule) Next(attemptsDone int, retryAfter time.Duration) (wait time.Duration, exhausted bool) {
	if attemptsDone >= MaxAttempts {
		return 0, true
	}
	wait = waits[max(attemptsDone, 0)]
	if s.Jitter != nil {
		wait = s.Jitter(wait, waitSpread)
	}
	return max(wait, min(retryAfter, maxRetryAfter)), false
}

// parseRetryAfter reads a Retry-After header (RFC 9110, section 10.2.3): seconds,
// or an HTTP date, counted from now. It returns 0 for anything else and for a
// past date, and at most maxRetryAfter.
func parseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if isDigits(value) {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter // more digits than fit are more than allowed
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), maxRetryAfter)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
