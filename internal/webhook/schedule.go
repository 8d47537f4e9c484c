package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter is the longest wait that a receiver may ask for.
const MaxRetryAfter = 24 * time.Hour

// waitSpread is by how many per cent a wait may be shorter or longer.
const waitSpread = 10

// waits holds, by the number of attempts done, the wait before the next.
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

// MaxAttempts is how often a delivery is tried before it is given up.
const MaxAttempts = len(waits)

// Schedule decides when to try again: at once, then after 5 s, 30 s, 5 min,
// 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, each counted from the attempt
// before. The first attempt and the last are the same code.
type Schedule struct {
	// Jitter spreads a wait by up to some per cent; nil leaves it exact.
	// It is [env.Random]'s method.
	Jitter func(d time.Duration, percent int) time.Duration
}

// Next returns how long to wait after attemptsDone attempts, or that they are
// exhausted. The wait is within 10 % of the schedule's, or retryAfter if that
// is longer, which is what the receiver asked for in the last attempt; no
// asking makes it come sooner, nor wait beyond 24 hours.
func (s Schedule) Next(attemptsDone int, retryAfter time.Duration) (wait time.Duration, exhausted bool) {
	if attemptsDone >= MaxAttempts {
		return 0, true
	}
	wait = waits[max(attemptsDone, 0)]
	if s.Jitter != nil {
		wait = s.Jitter(wait, waitSpread)
	}
	return max(wait, min(retryAfter, MaxRetryAfter)), false
}

// parseRetryAfter reads a Retry-After header (RFC 9110, section 10.2.3):
// seconds or an HTTP date, which counts from now. It returns 0 for what is
// neither, or past, and at most MaxRetryAfter.
func parseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if isDigits(value) {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(MaxRetryAfter/time.Second) {
			return MaxRetryAfter // more than fits is more than allowed
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), MaxRetryAfter)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
