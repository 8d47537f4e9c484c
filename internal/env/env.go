// Package env is clock, ids, randomness and outbound connections: what a simulation replaces.
//
// Nothing else in the gateway reads the time, draws a random number or opens
// a connection. So a test that hands out a Env of its own decides all that
// happens, and a run is repeated by its seed.
package env

import (
	"net/http"
	"time"
)

// Env is the environment of a process. It is passed by value; its parts are safe
// for concurrent use.
type Env struct {
	// Clock tells the time and wakes sleepers.
	Clock Clock
	// IDs makes the ids of everything stored.
	IDs *IDs
	// Random is the only source of chance: secrets, nonces, jitter.
	Random Random
	// Webhooks carries requests to addresses that merchants named. It refuses
	// networks that are not public: see [Outbound.Webhooks].
	Webhooks http.RoundTripper
	// Processor carries requests to addresses that the operator configured.
	Processor http.RoundTripper
	// OnFailpoint is called at each failpoint; nil in the product. See
	// [Env.Inject] and [Env.InjectCommit].
	OnFailpoint func(Failpoint) error
	// Strained says whether the process has more to do than processors to do it
	// with; nil where it never is. See [Env.Spare].
	Strained func() bool
}

// Spare says whether there is time for work that can wait, while requests that
// cannot are answered.
func (w *Env) Spare() bool { return w.Strained == nil || !w.Strained() }

// System returns the real environment. Its clock is a [*SystemClock].
func System(opts OutboundOptions) Env {
	random := SystemRandom()
	outbound := NewOutbound(opts)
	clock := NewSystemClock()
	return Env{
		Clock:     clock,
		IDs:       NewIDs(random),
		Random:    random,
		Webhooks:  outbound.Webhooks(),
		Processor: outbound.Processor(),
		Strained:  newStrain(clock).Strained,
	}
}

// Virtual returns an environment in which time stands still at start until the
// returned clock is advanced, and chance follows from seed. It reaches nobody:
// the caller sets Webhooks and Processor.
func Virtual(start time.Time, seed uint64) (Env, *VirtualClock) {
	clock := NewVirtualClock(start)
	random := SeededRandom(seed)
	return Env{Clock: clock, IDs: NewIDs(random), Random: random}, clock
}
