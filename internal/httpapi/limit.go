package httpapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/problem"
)

// places bounds the requests under way. Writes may take four fifths, so that
// reads are answered when writes pile up.
type places struct {
	all, writes     int64
	taken, writings atomic.Int64
}

func newPlaces(n int) *places {
	if n <= 0 {
		n = InFlightDefault
	}
	return &places{all: int64(n), writes: max(1, int64(n)*4/5)}
}

// enter takes a place; false where there is none for this class.
func (p *places) enter(c class) bool {
	if c == vital {
		return true
	}
	if p.taken.Add(1) > p.all {
		p.taken.Add(-1)
		return false
	}
	if c == write && p.writings.Add(1) > p.writes {
		p.writings.Add(-1)
		p.taken.Add(-1)
		return false
	}
	return true
}

func (p *places) leave(c class) {
	if c == vital {
		return
	}
	p.taken.Add(-1)
	if c == write {
		p.writings.Add(-1)
	}
}

// Rate is a token bucket: Burst requests at once, refilled by PerSecond.
type Rate struct {
	PerSecond int
	Burst     int
}

// AnonymousRateDefault limits orders without credentials, per address.
var AnonymousRateDefault = Rate{PerSecond: 20, Burst: 100}

// bucketsKept bounds how many addresses are remembered.
const bucketsKept = 50_000

// buckets holds one token bucket per address, or per /64 of IPv6, which is
// what one customer of a provider has. A token is worth its interval in time.
type buckets struct {
	interval time.Duration // in which one token comes back
	depth    time.Duration // what a full bucket is worth
	policy   string
	clock    env.Clock

	mu    sync.Mutex
	empty map[netip.Prefix]time.Duration // when, at the latest, the bucket is full again
}

func newBuckets(rate Rate, clock env.Clock) *buckets {
	if rate.PerSecond <= 0 || rate.Burst <= 0 {
		rate = AnonymousRateDefault
	}
	interval := time.Second / time.Duration(rate.PerSecond)
	depth := interval * time.Duration(rate.Burst)
	return &buckets{
		interval: interval, depth: depth, clock: clock, empty: map[netip.Prefix]time.Duration{},
		policy: fmt.Sprintf(`"address";q=%d;w=%d`, rate.Burst, seconds(depth)),
	}
}

// seconds rounds up, as headers count whole seconds.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// take takes a token, or says in headers and a problem when there will be one
// (draft-ietf-httpapi-ratelimit-headers-10).
func (b *buckets) take(w http.ResponseWriter, address netip.Addr) error {
	bits := 32
	if address.Is6() {
		bits = 64
	}
	key, err := address.Prefix(bits)
	if err != nil {
		key = netip.Prefix{} // strangers without an address share one bucket
	}
	wait := b.wait(key)
	if wait <= 0 {
		return nil
	}
	w.Header().Set("RateLimit-Policy", b.policy)
	w.Header().Set("RateLimit", fmt.Sprintf(`"address";r=0;t=%d`, seconds(wait)))
	return problem.New(problem.RateLimited, "There were too many orders without credentials from this address.").WithRetryAfter(wait)
}

// wait takes a token, or tells how long until there is one.
func (b *buckets) wait(key netip.Prefix) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Monotonic()
	full := max(b.empty[key], now) + b.interval
	if over := full - now - b.depth; over > 0 {
		return over
	}
	if len(b.empty) >= bucketsKept {
		b.forget(now)
	}
	b.empty[key] = full
	return 0
}

// forget drops buckets that are full again, and all where that frees none.
func (b *buckets) forget(now time.Duration) {
	for key, full := range b.empty {
		if full <= now {
			delete(b.empty, key)
		}
	}
	if len(b.empty) >= bucketsKept {
		clear(b.empty)
	}
}
