package httpapi

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/problem"
)

// Limits of wrong secrets.
const (
	wrongOfKey     = 20  // for one key from one address
	wrongOfAddress = 100 // from one address, for all keys
	wrongWindow    = 5 * time.Minute
	wrongBlock     = 5 * time.Minute
)

// loginsMax bounds the pairs of key and address, and the addresses, of which wrong secrets
// are counted. More are not: a secret cannot be guessed from many addresses either.
const loginsMax = 20_000

// loginsSweep is the shortest time between two searches for entries that have ended.
const loginsSweep = time.Second

// blockedReadsMax bounds the secrets of blocked sources that are verified in the database at once.
const blockedReadsMax = 16

// loginThrottle counts wrong secrets, and blocks who sends too many of them: more are refused alike. An address is a source, as for
// the rate of anonymous orders.
type loginThrottle struct {
	clock env.Clock

	mu        sync.Mutex
	addresses map[source]*wrong
	pairs     map[keyFrom]*wrong
	sweptAt   time.Duration // on the monotonic clock

	reads chan struct{} // sent to while the secret of a blocked source is verified
}

// keyFrom is a key that is sent from an address.
type keyFrom struct {
	key  string
	from source
}

// wrong is the wrong secrets of a key or an address, on the monotonic clock.
type wrong struct {
	times        []time.Duration // in the window, oldest first
	blockedUntil time.Duration
}

func newLoginThrottle(clock env.Clock) *loginThrottle {
	return &loginThrottle{clock: clock, addresses: map[source]*wrong{}, pairs: map[keyFrom]*wrong{}, reads: make(chan struct{}, blockedReadsMax)}
}

// loginKey is a key as loginThrottle counts it: ids that no credential has are one.
func loginKey(key string) string {
	if isKeyID(key) {
		return key
	}
	return unknownKey
}

// enter reports whether the secret of a blocked source may be verified now. If so, the caller
// must call leave afterwards.
func (l *loginThrottle) enter() bool {
	select {
	case l.reads <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *loginThrottle) leave() { <-l.reads }

// refuse returns a problem of kind rate_limited, and sets its headers.
func (l *loginThrottle) refuse(c *call, wait time.Duration, of *quota) error {
	c.blocked = true
	of.show(c.w, 0, wait)
	return problem.New(problem.RateLimited, "Too many wrong credentials from this IP address. A request with valid credentials is served.").WithRetryAfter(wait)
}

// blocked is the time for which wrong secrets are not counted but refused with 429, 0 if they are
// counted, and the limit that was reached.
func (l *loginThrottle) blocked(key string, sources []source) (wait time.Duration, of *quota) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.addresses)+len(l.pairs) == 0 { // as nearly always: the clock need not be read
		return 0, nil
	}
	now := l.clock.Monotonic()
	for _, from := range sources {
		if v := l.pairs[keyFrom{loginKey(key), from}].blocked(now); v > wait {
			wait, of = v, keyQuota
		}
		if v := l.addresses[from].blocked(now); v > wait {
			wait, of = v, addressQuota
		}
	}
	return wait, of
}

// What headers say about wrong secrets.
var (
	keyQuota     = &quota{name: "log-in", policy: fmt.Sprintf(`"log-in";q=%d;w=%d`, wrongOfKey, wrongWindow/time.Second)}
	addressQuota = &quota{name: "log-in", policy: fmt.Sprintf(`"log-in";q=%d;w=%d`, wrongOfAddress, wrongWindow/time.Second)}
)

// blocked is the time for which requests are refused; 0 if they are not.
func (w *wrong) blocked(now time.Duration) time.Duration {
	if w == nil {
		return 0
	}
	return max(0, w.blockedUntil-now)
}

// fail counts a wrong secret.
func (l *loginThrottle) fail(key string, sources []source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Monotonic()
	if (len(l.addresses) >= loginsMax || len(l.pairs) >= loginsMax) && (l.sweptAt == 0 || now-l.sweptAt >= loginsSweep) {
		l.sweptAt = now
		sweep(l.addresses, now)
		sweep(l.pairs, now)
	}
	for _, from := range sources {
		count(l.addresses, from, wrongOfAddress, now)
		count(l.pairs, keyFrom{loginKey(key), from}, wrongOfKey, now)
	}
}

// count counts a wrong secret, and blocks at the limit.
func count[K comparable](list map[K]*wrong, key K, limit int, now time.Duration) {
	w := list[key]
	if w == nil {
		if len(list) >= loginsMax {
			return
		}
		w = &wrong{}
		list[key] = w
	}
	w.times = append(slices.DeleteFunc(w.times, func(at time.Duration) bool { return now-at >= wrongWindow }), now)
	if len(w.times) >= limit {
		w.times, w.blockedUntil = nil, now+wrongBlock
	}
}

// sweep drops entries without a block and without a wrong secret in the window.
func sweep[K comparable](list map[K]*wrong, now time.Duration) {
	for key, w := range list {
		if w.blockedUntil <= now && (len(w.times) == 0 || now-w.times[len(w.times)-1] >= wrongWindow) {
			delete(list, key)
		}
	}
}
