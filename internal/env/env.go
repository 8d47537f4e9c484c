// Package env provides the clock, ids, randomness and outbound connections, which a
// simulation replaces.
//
// No other package of the gateway reads the time, draws a random number or opens a
// connection. So a test that replaces Env controls all nondeterminism, and a seed
// repeats a run.
package env

import (
	"net/http"
	"time"
)

// Env is the environment of a process. It is passed by value; its parts are safe
// for concurrent use.
type Env struct {
	// Clock is time and timers.
	Clock Clock
	// IDs generates the ids of all rows.
	IDs *IDs
	// Random is the only source of randomness: secrets, nonces, jitter.
	Random Random
	// Webhooks sends requests to URLs from merchants. It refuses networks that are
	// not public: see [Outbound.Webhooks].
	Webhooks http.RoundTripper
	// Processor sends requests to URLs that the operator configured.
	Processor http.RoundTripper
	// OnFailpoint is called at each failpoint; nil in the product. See
	// [Env.Inject] and [Env.InjectCommit].
	OnFailpoint func(Failpoint) error
}

// System returns the real environment. Its clock is a [*SystemClock].
func System(opts OutboundOptions) Env {
	random := SystemRandom()
	outbound := NewOutbound(opts)
	return Env{
		Clock:     NewSystemClock(),
		IDs:       NewIDs(random),
		Random:    random,
		Webhooks:  outbound.Webhooks(),
		Processor: outbound.Processor(),
	}
}

// Virtual returns an environment with a virtual clock that starts at start, and
// randomness from seed. It has no network: the caller sets Webhooks and Processor.
func Virtual(start time.Time, seed uint64) (Env, *VirtualClock) {
	clock := NewVirtualClock(start)
	random := SeededRandom(seed)
	return Env{Clock: clock, IDs: NewIDs(random), Random: random}, clock
}
