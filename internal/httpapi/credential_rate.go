package httpapi

import (
	"strconv"
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

	quota       *quota // nil for none
	inFlightMax int
	policy      string // about inFlightMax, in the header RateLimit-Policy

	counts   sync.Mutex
	inFlight map[string]int // absent for 0
}

func newCredentialRate(limits CredentialLimits, clock env.Clock) *credentialRate {
	r := &credentialRate{
		buckets: newBuckets[string](clock), quota: newQuota("credential", limits.Rate), inFlightMax: limits.InFlight, inFlight: map[string]int{},
	}
	if r.inFlightMax > 0 {
		r.policy = `"in-flight";q=` + strconv.Itoa(r.inFlightMax) + `;qu="concurrent-requests"`
	}
	return r
}

// quotaOf is the quota of a merchant's credentials.
func (r *credentialRate) quotaOf(*store.Merchant) *quota { return r.quota }

// admit counts a request of the caller's credential, and sets its headers. An error is a
// problem of kind rate_limited; else the caller must call leave after the request.
func (r *credentialRate) admit(c *call) error {
	key := c.credential.KeyID
	if !r.enter(key) {
		c.w.Header().Set("RateLimit-Policy", r.policy)
		c.w.Header().Set("RateLimit", `"in-flight";r=0;t=`+strconv.FormatInt(seconds(inFlightWait), 10))
		return problem.New(problem.RateLimited, "Too many requests of this credential are in flight.").WithRetryAfter(inFlightWait)
	}
	if q := r.quotaOf(&c.merchant); q != nil {
		if wait := r.take(c.w, key, q); wait > 0 {
			r.leave(key)
			return problem.New(problem.RateLimited, "Too many requests of this credential.").WithRetryAfter(wait)
		}
	}
	return nil
}

// enter counts a request in flight; false if there are too many.
func (r *credentialRate) enter(key string) bool {
	if r.inFlightMax <= 0 {
		return true
	}
	r.counts.Lock()
	defer r.counts.Unlock()
	if r.inFlight[key] >= r.inFlightMax {
		return false
	}
	r.inFlight[key]++
	return true
}

// leave ends a request that admit has counted.
func (r *credentialRate) leave(key string) {
	if r.inFlightMax <= 0 {
		return
	}
	r.counts.Lock()
	defer r.counts.Unlock()
	if r.inFlight[key]--; r.inFlight[key] <= 0 {
		delete(r.inFlight, key)
	}
}
