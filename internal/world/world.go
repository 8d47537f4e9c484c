// Package world is what a simulation replaces: clock, ids, randomness, the one outbound dialer.
//
// Nothing else in the gateway reads the time, draws a random number or opens
// a connection. So a test that hands out a World of its own decides all that
// happens, and a run is repeated by its seed.
package world

import (
	"net/http"
	"time"
)

// World bundles the outside that a program is given. It is handed on by value;
// its parts are safe for concurrent use.
type World struct {
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
	// OnMoment is told of each moment that the program reaches; nil in the
	// product. See [World.Reach] and [World.Commit].
	OnMoment func(Moment) error
	// Strained says whether the process has more to do than processors to do it
	// with; nil where it never is. See [World.Spare].
	Strained func() bool
}

// Spare says whether there is time for work that can wait, while requests that
// cannot are answered.
func (w *World) Spare() bool { return w.Strained == nil || !w.Strained() }

// System returns the real world. Its clock is a [*SystemClock].
func System(opts OutboundOptions) World {
	random := SystemRandom()
	outbound := NewOutbound(opts)
	clock := NewSystemClock()
	return World{
		Clock:     clock,
		IDs:       NewIDs(random),
		Random:    random,
		Webhooks:  outbound.Webhooks(),
		Processor: outbound.Processor(),
		Strained:  newStrain(clock).Strained,
	}
}

// Virtual returns a world in which time stands still at start until the
// returned clock is advanced, and chance follows from seed. It reaches nobody:
// the caller sets Webhooks and Processor.
func Virtual(start time.Time, seed uint64) (World, *VirtualClock) {
	clock := NewVirtualClock(start)
	random := SeededRandom(seed)
	return World{Clock: clock, IDs: NewIDs(random), Random: random}, clock
}
