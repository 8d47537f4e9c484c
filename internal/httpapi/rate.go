package httpapi

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/problem"
)

// Rate is the limit of a token bucket: Burst requests at once, PerSecond on average. It is
// no limit if one of them is 0.
type Rate struct {
	PerSecond int
	Burst     int
}

// anonymousRateDefault limits orders without credentials, per IP address.
var anonymousRateDefault = Rate{PerSecond: 20, Burst: 100}

// anonymousTotalDefault limits orders without credentials in all.
var anonymousTotalDefault = Rate{PerSecond: 200, Burst: 1000}

// quota is a Rate, with what headers say about it (draft-ietf-httpapi-ratelimit-headers-10).
type quota struct {
	name     string
	interval time.Duration // between two new tokens
	depth    time.Duration // from empty to full
	policy   string        // the header RateLimit-Policy
}

// newQuota returns nil for no limit.
func newQuota(name string, rate Rate) *quota {
	if rate.PerSecond <= 0 || rate.Burst <= 0 {
		return nil
	}
	interval := time.Second / time.Duration(rate.PerSecond)
	depth := interval * time.Duration(rate.Burst)
	return &quota{name, interval, depth, fmt.Sprintf(`"%s";q=%d;w=%d`, name, rate.Burst, seconds(depth))}
}

// seconds rounds up to seconds, for headers.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// show sets the headers of a quota: left tokens, and more after a time.
func (q *quota) show(w http.ResponseWriter, left int, more time.Duration) {
	w.Header().Set("RateLimit-Policy", q.policy)
	w.Header().Set("RateLimit", `"`+q.name+`";r=`+strconv.Itoa(left)+`;t=`+strconv.FormatInt(seconds(more), 10))
}

// bucketsMax bounds the memory for buckets.
const bucketsMax = 50_000

// buckets has one token bucket per key. A bucket is the time at which it will be full; a
// token is one interval.
type buckets[K comparable] struct {
	clock env.Clock

	mu     sync.Mutex
	fullAt map[K]time.Duration // on the monotonic clock; absent if full
}

func newBuckets[K comparable](clock env.Clock) *buckets[K] {
	return &buckets[K]{clock: clock, fullAt: map[K]time.Duration{}}
}

// take takes a token, sets the headers, and returns 0, or returns the time until there is
// one.
func (b *buckets[K]) take(w http.ResponseWriter, key K, q *quota) (wait time.Duration) {
	full, wait := b.wait(key, q)
	if wait > 0 {
		q.show(w, 0, wait)
	} else {
		q.show(w, int((q.depth-full)/q.interval), full)
	}
	return wait
}

// wait takes a token and returns how long the bucket then needs to be full, or returns the
// time until there is a token.
func (b *buckets[K]) wait(key K, q *quota) (full, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Monotonic()
	at := max(b.fullAt[key], now) + q.interval
	if over := at - now - q.depth; over > 0 {
		return 0, over
	}
	if len(b.fullAt) >= bucketsMax {
		b.evict(now)
	}
	b.fullAt[key] = at
	return at - now, 0
}

// spend takes n tokens, also those that are not there yet.
func (b *buckets[K]) spend(key K, q *quota, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Monotonic()
	if len(b.fullAt) >= bucketsMax {
		b.evict(now)
	}
	b.fullAt[key] = max(b.fullAt[key], now) + time.Duration(n)*q.interval
}

// lacks returns the time until there is a token; 0 if there is one.
func (b *buckets[K]) lacks(key K, q *quota) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, b.fullAt[key]+q.interval-b.clock.Monotonic()-q.depth)
}

// evict drops buckets that are full again, or all if there are none.
func (b *buckets[K]) evict(now time.Duration) {
	for key, full := range b.fullAt {
		if full <= now {
			delete(b.fullAt, key)
		}
	}
	if len(b.fullAt) >= bucketsMax {
		clear(b.fullAt)
	}
}

// anonymousRate limits orders without credentials: per IPv4 address or per /64 of IPv6, the
// network that a provider assigns to one customer, and in all.
type anonymousRate struct {
	*buckets[source]

	quota *quota
	all   *buckets[struct{}]
	total *quota
}

func newAnonymousRate(rate, total Rate, clock env.Clock) anonymousRate {
	if rate.PerSecond <= 0 || rate.Burst <= 0 {
		rate = anonymousRateDefault
	}
	if total.PerSecond <= 0 || total.Burst <= 0 {
		total = anonymousTotalDefault
	}
	return anonymousRate{newBuckets[source](clock), newQuota("address", rate), newBuckets[struct{}](clock), newQuota("public", total)}
}

// take takes a token of the address, then one of all. The headers are about the address, unless
// the rate in all is exceeded.
func (r anonymousRate) take(w http.ResponseWriter, sources []source) error {
	for _, from := range sources {
		if wait := r.buckets.take(w, from, r.quota); wait > 0 {
			return problem.New(problem.RateLimited, "Too many orders without credentials from this IP address.").WithRetryAfter(wait)
		}
	}
	if _, wait := r.all.wait(struct{}{}, r.total); wait > 0 {
		r.total.show(w, 0, wait)
		return problem.New(problem.RateLimited, "Too many orders without credentials.").WithRetryAfter(wait)
	}
	return nil
}
