package httpapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/problem"
)

// Rate is the limit of a token bucket: Burst requests at once, PerSecond on
// average.
type Rate struct {
	PerSecond int
	Burst     int
}

// anonymousRateDefault limits orders without credentials, per IP address.
var anonymousRateDefault = Rate{PerSecond: 20, Burst: 100}

// bucketsMax bounds the memory for buckets.
const bucketsMax = 50_000

// buckets has one token bucket per IPv4 address or per /64 of IPv6, the network that a
// provider assigns to one customer. A bucket is the time at which it will be full; a token
// is one interval.
type buckets struct {
	interval time.Duration // between two new tokens
	depth    time.Duration // from empty to full
	policy   string
	clock    env.Clock

	mu     sync.Mutex
	fullAt map[netip.Prefix]time.Duration // on the monotonic clock; absent if full
}

func newBuckets(rate Rate, clock env.Clock) *buckets {
	if rate.PerSecond <= 0 || rate.Burst <= 0 {
		rate = anonymousRateDefault
	}
	interval := time.Second / time.Duration(rate.PerSecond)
	depth := interval * time.Duration(rate.Burst)
	return &buckets{
		interval: interval, depth: depth, clock: clock, fullAt: map[netip.Prefix]time.Duration{},
		policy: fmt.Sprintf(`"address";q=%d;w=%d`, rate.Burst, seconds(depth)),
	}
}

// seconds rounds up to seconds, for headers.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// take takes a token. If there is none, headers
// (draft-ietf-httpapi-ratelimit-headers-10) and a problem have the time until the next.
func (b *buckets) take(w http.ResponseWriter, address netip.Addr) error {
	key := env.CustomerNetwork(address) // requests without an address share one bucket
	wait := b.wait(key)
	if wait <= 0 {
		return nil
	}
	w.Header().Set("RateLimit-Policy", b.policy)
	w.Header().Set("RateLimit", fmt.Sprintf(`"address";r=0;t=%d`, seconds(wait)))
	return problem.New(problem.RateLimited, "Too many orders without credentials from this IP address.").WithRetryAfter(wait)
}

// wait takes a token and returns 0, or returns the time until there is one.
func (b *buckets) wait(key netip.Prefix) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Monotonic()
	full := max(b.fullAt[key], now) + b.interval
	if over := full - now - b.depth; over > 0 {
		return over
	}
	if len(b.fullAt) >= bucketsMax {
		b.evict(now)
	}
	b.fullAt[key] = full
	return 0
}

// evict drops buckets that are full again, or all if there are none.
func (b *buckets) evict(now time.Duration) {
	for key, full := range b.fullAt {
		if full <= now {
			delete(b.fullAt, key)
		}
	}
	if len(b.fullAt) >= bucketsMax {
		clear(b.fullAt)
	}
}
