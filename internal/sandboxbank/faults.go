package sandboxbank

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

const (
	maxFaultCount = 1_000_000
	// longestDelay bounds the wait of an order with the fault Delayed.
	longestDelay = 30 * time.Minute
)

// randomKinds are the kinds that a profile draws from by default.
var randomKinds = append(slices.Clone(bankapi.FaultKinds), bankapi.ServerErrorBefore, bankapi.Delayed)

// FaultProfile makes calls misbehave at random, the same way for the same
// seed and order of calls. The zero value does nothing.
type FaultProfile struct {
	Seed uint64
	// PerMille is how many calls of a thousand misbehave.
	PerMille int
	// Operations are those that do; none means all.
	Operations []bankapi.Operation
	// Kinds are drawn from; none means all, those that cannot be armed included.
	Kinds []bankapi.FaultKind
}

// faults decides which calls misbehave. Armed faults are in memory only: a
// restart clears them.
type faults struct {
	charges     atomic.Int64 // armed faults of the operation charge
	credentials atomic.Int64 // calls that are still to be answered 401

	mu      sync.Mutex
	armed   []bankapi.Fault // in order of arming
	fired   map[bankapi.Fault]int
	profile FaultProfile
	random  env.Random
}

func newFaults(profile FaultProfile) *faults {
	if len(profile.Operations) == 0 {
		profile.Operations = bankapi.Operations
	}
	if len(profile.Kinds) == 0 {
		profile.Kinds = randomKinds
	}
	return &faults{profile: profile, random: env.SeededRandom(profile.Seed), fired: make(map[bankapi.Fault]int)}
}

// arm returns false if there is no such operation or kind, or the count is not
// between 1 and 1,000,000.
func (f *faults) arm(fault bankapi.Fault) bool {
	if fault.Count < 1 || fault.Count > maxFaultCount {
		return false
	}
	if fault.Operation == bankapi.OpCredentials && fault.Kind == bankapi.Refuse {
		f.credentials.Add(int64(fault.Count))
		return true
	}
	if !slices.Contains(bankapi.Operations, fault.Operation) || !armable(fault) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, fault)
	if fault.Operation == bankapi.OpCharge {
		f.charges.Add(int64(fault.Count))
	}
	return true
}

func armable(fault bankapi.Fault) bool {
	return slices.Contains(bankapi.FaultKinds, fault.Kind) || fault.Kind == bankapi.Registering && fault.Operation == bankapi.OpCharge
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = nil
	f.charges.Store(0)
	f.credentials.Store(0)
}

// refuseCredentials reports whether the next call of an account is answered 401.
func (f *faults) refuseCredentials() bool {
	for {
		left := f.credentials.Load()
		if left == 0 {
			return false
		}
		if f.credentials.CompareAndSwap(left, left-1) {
			return true
		}
	}
}

// draw takes the fault of the next call of an operation: the first that was
// armed for it, else one of the profile's, else none.
func (f *faults) draw(op bankapi.Operation) bankapi.FaultKind {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind := f.take(op)
	if kind == "" {
		kind = f.roll(op)
	}
	if kind != "" {
		f.fired[bankapi.Fault{Operation: op, Kind: kind}]++
	}
	return kind
}

func (f *faults) take(op bankapi.Operation) bankapi.FaultKind {
	for i := range f.armed {
		if f.armed[i].Operation != op {
			continue
		}
		kind := f.armed[i].Kind
		if f.armed[i].Count--; f.armed[i].Count == 0 {
			f.armed = slices.Delete(f.armed, i, i+1)
		}
		if op == bankapi.OpCharge {
			f.charges.Add(-1)
		}
		return kind
	}
	return ""
}

func (f *faults) roll(op bankapi.Operation) bankapi.FaultKind {
	if f.profile.PerMille <= 0 || !slices.Contains(f.profile.Operations, op) ||
		f.random.Int64N(1000) >= int64(f.profile.PerMille) {
		return ""
	}
	return f.profile.Kinds[f.random.Int64N(int64(len(f.profile.Kinds)))]
}

// delay draws how long a delayed order waits.
func (f *faults) delay() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Second + time.Duration(f.random.Int64N(int64(longestDelay-time.Second)))
}

// OfflineCharges reports whether charges may be generated without calling the
// bank: not while a fault could affect the call.
func (b *Bank) OfflineCharges() bool {
	f := b.faults
	return f.charges.Load() == 0 &&
		(f.profile.PerMille <= 0 || !slices.Contains(f.profile.Operations, bankapi.OpCharge))
}

// FaultsFired counts the calls that misbehaved by operation and kind; Count is
// 0 in the keys.
func (b *Bank) FaultsFired() map[bankapi.Fault]int {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	fired := make(map[bankapi.Fault]int, len(b.faults.fired))
	maps.Copy(fired, b.faults.fired)
	return fired
}
