package httpapi

import (
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// CredentialLimits bound the requests of one credential.
type CredentialLimits struct {
	Rate
	// InFlight is the maximum number of requests at once; 0 is no limit.
	InFlight int
}

// inFlightWait is the Retry-After of a request beyond InFlight.
const inFlightWait = time.Second

// credentialRate limits the requests of each credential. Its memory is bounded: only valid
// credentials have a bucket.
type credentialRate struct {
	*buckets[string]

	limits CredentialLimits // of merchants without limits of their own
	quota  *quota           // of limits
	// items are those of refused batches. Their buckets have the rate of the credential, and are
	// apart, so that an invalid file refuses no other request.
	items *buckets[string]

	mu       sync.Mutex
	quotas   map[Rate]*quota
	inFlight map[string]int // absent for 0
}

// quotasMax bounds the cache of quotas.
const quotasMax = 1000

func newCredentialRate(limits CredentialLimits, clock env.Clock) *credentialRate {
	return &credentialRate{
		buckets: newBuckets[string](clock), limits: limits, quota: newQuota("credential", limits.Rate), items: newBuckets[string](clock),
		quotas: map[Rate]*quota{}, inFlight: map[string]int{},
	}
}

// limitsOf are the limits of a merchant's credentials: its own, else those of this gateway.
func (r *credentialRate) limitsOf(m *store.Merchant) CredentialLimits {
	of, own := r.limits, &m.Limits.Requests
	if own.Rate != nil {
		of.PerSecond, of.Burst = int(*own.Rate), 2*int(*own.Rate)
	}
	if own.Burst != nil {
		of.Burst = int(*own.Burst)
	}
	if own.InFlight != nil {
		of.InFlight = int(*own.InFlight)
	}
	return of
}

// quotaOf is the quota of a rate; nil for none.
func (r *credentialRate) quotaOf(rate Rate) *quota {
	if rate == r.limits.Rate {
		return r.quota
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	q, ok := r.quotas[rate]
	if !ok {
		if len(r.quotas) >= quotasMax {
			clear(r.quotas)
		}
		q = newQuota("credential", rate)
		r.quotas[rate] = q
	}
	return q
}

// admit counts a request of the caller's credential, and sets its headers. An error is a
// problem of kind rate_limited; else the caller must call leave after the request.
func (r *credentialRate) admit(c *call) error {
	limits := r.limitsOf(&c.merchant)
	if !r.enter(c, limits.InFlight) {
		return problem.New(problem.RateLimited, "Too many requests of this credential are in flight.").
			WithQuota(problem.Quota{Name: "in-flight", Most: limits.InFlight}, inFlightWait)
	}
	if q := r.quotaOf(limits.Rate); q != nil {
		if wait := r.take(c.w, c.credential.KeyID, q); wait > 0 {
			r.leave(c)
			return problem.New(problem.RateLimited, "Too many requests of this credential.").WithRetryAfter(wait)
		}
	}
	return nil
}

// itemQuota is the rate of items of refused batches; nil for no limit.
func (r *credentialRate) itemQuota(c *call) *quota {
	return newQuota("refused-items", r.limitsOf(&c.merchant).Rate)
}

// admitBatch returns an error of kind rate_limited while the credential's refused batches had
// too many items.
func (r *credentialRate) admitBatch(c *call) error {
	q := r.itemQuota(c)
	if q == nil {
		return nil
	}
	wait := r.items.lacks(c.credential.KeyID, q)
	if wait == 0 {
		return nil
	}
	q.show(c.w, 0, wait)
	return problem.New(problem.RateLimited, "Earlier batches of this credential were refused, and their items are counted.").WithRetryAfter(wait)
}

// refuseBatch counts n items of a batch that was refused.
func (r *credentialRate) refuseBatch(c *call, n int) {
	if q := r.itemQuota(c); q != nil {
		r.items.spend(c.credential.KeyID, q, n)
	}
}

// enter counts a request in flight if most is above 0; false if there are as many already.
func (r *credentialRate) enter(c *call, most int) bool {
	if most <= 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inFlight[c.credential.KeyID] >= most {
		return false
	}
	r.inFlight[c.credential.KeyID]++
	c.counted = true
	return true
}

// leave ends a request that admit has counted.
func (r *credentialRate) leave(c *call) {
	if !c.counted {
		return
	}
	c.counted = false
	key := c.credential.KeyID
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inFlight[key]--; r.inFlight[key] <= 0 {
		delete(r.inFlight, key)
	}
}
