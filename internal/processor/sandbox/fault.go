package sandbox

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// Operation is a group of the bank's routes that can be made to misbehave.
type Operation string

// The operations.
const (
	OpCharge   Operation = "charge"
	OpTransfer Operation = "transfer"
	OpRefund   Operation = "refund"
	OpQuery    Operation = "query" // about one charge, transfer or refund
)

// Operations lists every operation.
var Operations = []Operation{OpCharge, OpTransfer, OpRefund, OpQuery}

// Kind is a way to misbehave.
type Kind string

// The kinds that can be asked for by route and by seed.
const (
	// Refuse answers with a definitive refusal; the id never has an effect.
	Refuse Kind = "refuse"
	// NotSent lets the adapter see a refused connection.
	NotSent Kind = "not_sent"
	// TimeoutBefore has no effect and never answers.
	TimeoutBefore Kind = "timeout_before"
	// TimeoutAfter has its effect and never answers.
	TimeoutAfter Kind = "timeout_after"
	// ServerErrorAfter has its effect and answers 500.
	ServerErrorAfter Kind = "server_error_after"
	// Late has its effect and answers after 3 s.
	Late Kind = "late"
	// Rubbish has its effect and answers half a JSON body.
	Rubbish Kind = "rubbish"
	// NotifyTwice sends each notice about the object twice, with one id.
	NotifyTwice Kind = "notify_twice"
	// NotifyReordered holds the object's first notice back for 3 s, so that
	// later ones overtake it.
	NotifyReordered Kind = "notify_reordered"
	// NotifyNever sends no notice about the object.
	NotifyNever Kind = "notify_never"
)

// The kinds that come by seed only.
const (
	// ServerErrorBefore has no effect and answers 503.
	ServerErrorBefore Kind = "server_error_before"
	// Delayed answers 504, and takes a transfer or refund 1 s to 30 min later.
	Delayed Kind = "delayed"
)

// Kinds lists the kinds that can be armed.
var Kinds = []Kind{
	Refuse, NotSent, TimeoutBefore, TimeoutAfter, ServerErrorAfter, Late, Rubbish,
	NotifyTwice, NotifyReordered, NotifyNever,
}

// seededKinds are those that a profile draws from.
var seededKinds = append(slices.Clone(Kinds), ServerErrorBefore, Delayed)

// notifies says whether the fault concerns notices and not the call.
func (k Kind) notifies() bool {
	return k == NotifyTwice || k == NotifyReordered || k == NotifyNever
}

// Fault makes the next Count calls of an operation misbehave.
type Fault struct {
	Operation Operation `json:"operation"`
	Kind      Kind      `json:"kind"`
	Count     int       `json:"count"`
}

// ErrFault says that there is no such operation or kind, or that the count is
// not between 1 and 1,000,000.
var ErrFault = errors.New("sandbox: no such fault")

const maxFaultCount = 1_000_000

// FaultProfile makes calls misbehave at random, the same way for the same
// seed and order of calls. The zero value does nothing.
type FaultProfile struct {
	Seed uint64
	// PerMille is how many calls of a thousand misbehave.
	PerMille int
	// Operations are those that do; none stands for all.
	Operations []Operation
	// Kinds are drawn from; none stands for all, those by seed only included.
	Kinds []Kind
}

// faults decides which calls misbehave. Armed faults live in memory only: a
// restart clears them.
type faults struct {
	charges atomic.Int64 // how many calls of charge are to misbehave by route

	mu      sync.Mutex
	armed   []Fault // in order of arming
	fired   map[Fault]int
	profile FaultProfile
	random  env.Random
}

func newFaults(profile FaultProfile) *faults {
	if len(profile.Operations) == 0 {
		profile.Operations = Operations
	}
	if len(profile.Kinds) == 0 {
		profile.Kinds = seededKinds
	}
	return &faults{profile: profile, random: env.SeededRandom(profile.Seed), fired: make(map[Fault]int)}
}

func (f *faults) arm(fault Fault) error {
	if !slices.Contains(Operations, fault.Operation) || !slices.Contains(Kinds, fault.Kind) ||
		fault.Count < 1 || fault.Count > maxFaultCount {
		return ErrFault
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, fault)
	if fault.Operation == OpCharge {
		f.charges.Add(int64(fault.Count))
	}
	return nil
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = nil
	f.charges.Store(0)
}

// draw takes the fault of the next call of op: the first that was armed for
// it, else one of the profile's, else none.
func (f *faults) draw(op Operation) Kind {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind := f.take(op)
	if kind == "" {
		kind = f.roll(op)
	}
	if kind != "" {
		f.fired[Fault{Operation: op, Kind: kind}]++
	}
	return kind
}

func (f *faults) take(op Operation) Kind {
	for i := range f.armed {
		if f.armed[i].Operation != op {
			continue
		}
		kind := f.armed[i].Kind
		if f.armed[i].Count--; f.armed[i].Count == 0 {
			f.armed = slices.Delete(f.armed, i, i+1)
		}
		if op == OpCharge {
			f.charges.Add(-1)
		}
		return kind
	}
	return ""
}

func (f *faults) roll(op Operation) Kind {
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

// mints says whether charges may be minted without a call: not while a call
// could misbehave.
func (f *faults) mints() bool {
	return f.charges.Load() == 0 &&
		(f.profile.PerMille <= 0 || !slices.Contains(f.profile.Operations, OpCharge))
}

// FaultsFired counts, by operation and kind (Count is 0 in the keys), the
// calls that misbehaved, so that a test knows that its fault came to pass.
func (b *Bank) FaultsFired() map[Fault]int {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	fired := make(map[Fault]int, len(b.faults.fired))
	maps.Copy(fired, b.faults.fired)
	return fired
}
