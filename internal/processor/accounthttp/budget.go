package accounthttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/porteira/porteira/internal/env"
)

const (
	// queryShare is the part of the budget that effects cannot use.
	queryShare = 0.2
	// pauseMax bounds a pause, even if Retry-After is longer: a look-up must not wait for long.
	pauseMax = 15 * time.Minute

	rateMin, rateMax = 0.01, 10_000 // requests per second
)

// errRate says what a rate must be.
var errRate = errors.New("must be 0.01 to 10000 requests per second, with at most two decimals")

var rateForm = regexp.MustCompile(`^[0-9]{1,5}(\.[0-9]{1,2})?$`)

// ParseRate parses a setting: requests per second, 0 if it is "". The error says what it
// must be.
func ParseRate(setting string) (float64, error) {
	if setting == "" {
		return 0, nil
	}
	r, err := strconv.ParseFloat(setting, 64)
	if err != nil || !rateForm.MatchString(setting) || !validRate(r) {
		return 0, errRate
	}
	return r, nil
}

func validRate(r float64) bool { return r >= rateMin && r <= rateMax }

// budget bounds the requests of an account. It is safe for concurrent use.
type budget struct {
	clock env.Clock

	mu     sync.Mutex
	paused time.Duration // until then, by the monotonic clock
	saves  bool          // requests of more than a second: a 429 that names its wait takes none
	// all requests, and effects alone; nil: no limit.
	all, effects *rate.Limiter
}

// newBudget returns a budget that saves up requests up to saved; 0 is those of one second.
func newBudget(clock env.Clock, perSecond float64, saved int) *budget {
	b := &budget{clock: clock}
	if perSecond > 0 {
		all := perSecond
		if saved > 0 {
			all, b.saves = float64(saved), true
		}
		b.all = rate.NewLimiter(rate.Limit(perSecond), burst(all))
		b.effects = rate.NewLimiter(rate.Limit(perSecond*(1-queryShare)), burst(all*(1-queryShare)))
	}
	return b
}

// burst is a number of requests, at least one.
func burst(requests float64) int { return max(1, int(math.Floor(requests))) }

// left is the number of requests that may be made at once; false if there is no limit.
func (b *budget) left() (requests int, limited bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		return 0, false
	}
	return max(0, int(b.all.TokensAt(b.now()))), true
}

// low reports whether less than half of the requests that can be saved up are left.
func (b *budget) low() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.saves && b.all != nil && b.all.TokensAt(b.now()) < float64(b.all.Burst())/2
}

// now is the monotonic time as a limiter wants it.
func (b *budget) now() time.Time { return time.Unix(0, 0).Add(b.clock.Monotonic()) }

// effect takes the budget of an effect; if there is none, it returns how long to wait, and
// why: errPaused or errBudget.
func (b *budget) effect() (wait time.Duration, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait := b.paused - b.clock.Monotonic(); wait > 0 {
		return wait, errPaused
	}
	if b.all == nil {
		return 0, nil
	}
	now := b.now()
	if wait := max(missing(b.all, now), missing(b.effects, now)); wait > 0 {
		return wait, errBudget
	}
	b.all.AllowN(now, 1)
	b.effects.AllowN(now, 1)
	return 0, nil
}

// missing is how long a limiter has nothing, rounded up.
func missing(l *rate.Limiter, now time.Time) time.Duration {
	tokens := l.TokensAt(now)
	if tokens >= 1 {
		return 0
	}
	wait := time.Duration((1 - tokens) / float64(l.Limit()) * float64(time.Second))
	return wait.Truncate(time.Millisecond) + time.Millisecond
}

// query takes the budget of a query, for which it waits until ctx ends.
func (b *budget) query(ctx context.Context) error {
	for {
		if err := b.sleep(ctx, b.pause()); err != nil {
			return err
		}
		if b.all != nil {
			now := b.now()
			reserved := b.all.ReserveN(now, 1)
			if err := b.sleep(ctx, reserved.DelayFrom(now)); err != nil {
				reserved.CancelAt(b.now())
				return err
			}
		}
		if b.pause() <= 0 { // none began in the meantime
			return nil
		}
	}
}

// pause is how long a pause lasts; not positive if there is none.
func (b *budget) pause() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.paused - b.clock.Monotonic()
}

func (b *budget) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := b.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("accounthttp: wait for budget: %w", ctx.Err())
	}
}

// observe adapts the budget to an answer, and returns the wait that it names; 0 if it names
// none. 429 empties the budget.
func (b *budget) observe(status int, h http.Header) time.Duration {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0
	}
	wait := retryAfter(h, b.clock.Now())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = max(b.paused, b.clock.Monotonic()+min(wait, pauseMax))
	if b.all != nil && status == http.StatusTooManyRequests && !(b.saves && wait > 0) {
		now := b.now()
		for _, l := range []*rate.Limiter{b.all, b.effects} {
			l.AllowN(now, max(0, int(l.TokensAt(now))))
		}
	}
	return wait
}

// retryAfterMax bounds what a processor may name, so that no sum overflows.
const retryAfterMax = 24 * time.Hour

// retryAfter reads Retry-After, or without it RateLimit-Reset: seconds, or a time, which the answer's own Date counts if it
// has one: the clocks may differ.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := cmp.Or(h.Get("Retry-After"), h.Get("RateLimit-Reset"))
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		if sent, err := http.ParseTime(h.Get("Date")); err == nil {
			now = sent
		}
		wait = at.Sub(now)
	}
	return min(max(wait, 0), retryAfterMax)
}
