// Package jobs is one file per duty; listing the folder tells everything that
// happens unasked.
//
// Each duty is a step that a loop runs. It claims what is due for this
// process, calls out, and hands the answer to a flow; it decides nothing.
package jobs

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/loop"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/webhook"
)

// How often a duty looks by itself: what is due at a time, or was left by
// another process, wakes nobody.
const (
	everySecond  = time.Second
	collectEvery = 5 * time.Second
)

// How long a duty that fails, as all do while the database is away, waits
// before it looks again: so long may it stand still when all is well again.
// Without its heartbeat a process can do nothing.
const (
	beatBackoff = time.Second
	dutyBackoff = 5 * time.Second
)

// Places for calls under way at once.
const (
	submitPlaces  = 64
	resolvePlaces = 32
	noticePlaces  = 256 // in hand; askPlaces ask at once, the others wait for a commit
	askPlaces     = 64
	deliverPlaces = 256
	// receiverPlaces is for one receiver, receiverPlacesMost for one that keeps
	// up with them.
	receiverPlaces     = 8
	receiverPlacesMost = 64
)

// The lease: a process beats every second, must not send leaseTime after its
// last beat, and is given up when its beat has stood still for deadAfter. What
// lies between is for a call that is just leaving.
const (
	leaseTime = 2500 * time.Millisecond
	deadAfter = 3 * time.Second
)

// Marker keeps the installation's beat outside the database, where a restored
// backup cannot turn it back.
type Marker interface {
	Read() (beat int64, err error)
	Write(beat int64) error
}

// Options assemble the jobs.
type Options struct {
	Flow       *flow.Flow
	Store      *store.Store
	Env        env.Env
	Processors processor.Registry
	Log        *slog.Logger
	Marker     Marker
	// Retention is for how long deliveries are kept after their end; 0 keeps
	// them for ever.
	Retention time.Duration
	// Inline runs each call where it is claimed instead of beside the step:
	// for tests and simulation, in which nothing happens at the same time.
	Inline bool
	// RecordOnce leaves a result that cannot be recorded unrecorded, instead of
	// waiting for the next try: for tests in which nobody advances the clock.
	RecordOnce bool
}

// Jobs are all duties and their loops.
type Jobs struct {
	Options
	lease     *loop.Lease
	sender    *webhook.Sender
	schedule  webhook.Schedule
	receivers *webhook.Limiter
	queue     *deliveryQueue
	breakers  *breakers
	pace      *pace
	notices   noticeHand
	secrets   secretCache
	seen      map[payment.ID]seenNode
	// unconfirmed counts, by change, how often one that is listed was asked
	// about in vain.
	unconfirmed map[string]int
	removal     removal
	turns       [dutyCount]payment.ID // the merchant that each duty served last

	submitting, resolving, noticing, delivering *pool
	asking                                      chan struct{} // a place each for those who ask about a notice
	loops                                       [dutyCount]*loop.Loop
}

// duty numbers the loops.
type duty int

const (
	dutyKeepAlive duty = iota
	dutySubmit
	dutyResolve
	dutyNotices
	dutyExpire
	dutyDeliver
	dutyCollect
	dutyRemove
	dutyAnalyze
	dutyCount
)

// New assembles the jobs; nothing runs yet.
func New(o Options) *Jobs {
	j := &Jobs{
		Options: o, lease: loop.NewLease(o.Env.Clock, leaseTime),
		sender:    &webhook.Sender{Transport: o.Env.Webhooks, Clock: env.Unshifted(o.Env.Clock)},
		schedule:  webhook.Schedule{Jitter: o.Env.Random.Jitter},
		receivers: webhook.NewLimiter(o.Env.Clock, receiverPlaces, receiverPlacesMost),
		queue:     newDeliveryQueue(),
		breakers:  newBreakers(o.Env.Clock),
		pace:      &pace{env: o.Env, crowded: o.Flow.Crowded},
		seen:      map[payment.ID]seenNode{}, unconfirmed: map[string]int{},
	}
	j.submitting = j.newPool(submitPlaces, dutySubmit)
	j.resolving = j.newPool(resolvePlaces, dutyResolve)
	j.noticing = j.newPool(noticePlaces, dutyNotices)
	j.asking = make(chan struct{}, askPlaces)
	j.delivering = j.newPool(deliverPlaces, dutyDeliver)
	for d, l := range map[duty]struct {
		name  string
		step  loop.Step
		every time.Duration
	}{
		dutyKeepAlive: {"keep-alive", j.KeepAlive, everySecond},
		dutySubmit:    {"submit-payouts", j.SubmitPayouts, everySecond},
		dutyResolve:   {"resolve-payouts", j.ResolvePayouts, everySecond},
		dutyNotices:   {"apply-notices", j.ApplyNotices, everySecond},
		dutyExpire:    {"expire-payins", j.ExpirePayins, everySecond},
		dutyDeliver:   {"deliver-webhooks", j.DeliverWebhooks, everySecond},
		dutyCollect:   {"collect-payments", j.CollectPayments, collectEvery},
		dutyRemove:    {"remove-deliveries", j.RemoveDeliveries, everySecond},
		dutyAnalyze:   {"analyze-tables", j.AnalyzeTables, everySecond},
	} {
		backoff := dutyBackoff
		if d == dutyKeepAlive {
			backoff = beatBackoff
		}
		j.loops[d] = loop.New(loop.Options{
			Name: l.name, Step: l.step, Every: l.every, MaxBackoff: backoff, Clock: o.Env.Clock, Random: o.Env.Random, Log: o.Log,
		})
	}
	return j
}

// Loops lists the loops in the order in which they start: first the one that
// makes this process one that may claim.
func (j *Jobs) Loops() []*loop.Loop { return j.loops[:] }

// Wake wakes the duty that has got work.
func (j *Jobs) Wake(w flow.Wake) {
	if d, ok := map[flow.Wake]duty{
		flow.WakeSubmit: dutySubmit, flow.WakeResolve: dutyResolve, flow.WakeNotices: dutyNotices,
		flow.WakeExpire: dutyExpire, flow.WakeDeliver: dutyDeliver, flow.WakeCollect: dutyCollect,
	}[w]; ok {
		j.loops[d].Wake()
	}
}

// WakeAll wakes every duty, as after a step of the sandbox's clock.
func (j *Jobs) WakeAll() {
	for _, l := range j.loops {
		l.Wake()
	}
}

// Wait returns when no call is under way any more.
func (j *Jobs) Wait() {
	for _, p := range []*pool{j.submitting, j.resolving, j.noticing, j.delivering} {
		p.calls.Wait()
	}
}

// inTurn orders merchants so that a duty begins behind the one it served last:
// when places run out, those who got none are the first next time.
func inTurn[T any](j *Jobs, d duty, list []T, merchant func(T) payment.ID) []T {
	first := slices.IndexFunc(list, func(v T) bool {
		id := merchant(v)
		return bytes.Compare(id[:], j.turns[d][:]) > 0
	})
	if first <= 0 {
		return list
	}
	return slices.Concat(list[first:], list[:first])
}

func dueMerchant(d store.Due) payment.ID { return d.Merchant }

// backlog says whether a claim is worth its commit, which costs the same for
// one row as for many: while more is due than can be taken, a quarter of the
// places must be free.
type backlog struct{ more bool }

func (b *backlog) worth(free, places int) bool { return free > 0 && (!b.more || free*4 >= places) }

// note is told how many rows a claim asked for, and got.
func (b *backlog) note(asked, got int) { b.more = got == asked }

// pool bounds calls under way. A step starts calls and does not wait for them,
// so that a slow one delays nobody; each that ends wakes the duty again, unless
// it is told not to.
type pool struct {
	inline bool
	places chan struct{}
	calls  sync.WaitGroup
	ended  func()
}

func (j *Jobs) newPool(places int, d duty) *pool {
	return &pool{inline: j.Inline, places: make(chan struct{}, places), ended: func() { j.loops[d].Wake() }}
}

// free is how many calls may be started.
func (p *pool) free() int { return cap(p.places) - len(p.places) }

// reserve keeps up to n places for calls to be started by runKept, and says how
// many: it waits for none.
func (p *pool) reserve(n int) (kept int) {
	for ; kept < n; kept++ {
		select {
		case p.places <- struct{}{}:
		default:
			return kept
		}
	}
	return kept
}

// giveBack frees n places that were kept.
func (p *pool) giveBack(n int) {
	for range n {
		<-p.places
	}
}

// run starts a call; the caller has seen a free place.
func (p *pool) run(call func()) { p.runThen(call, wake) }

// runKept starts a call for which a place was kept.
func (p *pool) runKept(call func()) { p.start(call, wake) }

// runThen starts a call, and runs what follows when its place is free again;
// that says whether to wake the duty.
func (p *pool) runThen(call func(), follows func() (wake bool)) {
	p.places <- struct{}{}
	p.start(call, follows)
}

func wake() bool { return true }

func (p *pool) start(call func(), follows func() (wake bool)) {
	kept := func() {
		defer p.giveBack(1)
		call()
	}
	if p.inline {
		kept()
		follows()
		return
	}
	p.calls.Go(func() {
		kept()
		if follows() {
			p.ended()
		}
	})
}

// Waits between tries to record how a call ended.
const (
	recordWaitMin = 100 * time.Millisecond
	recordWaitMax = 5 * time.Second
)

// record writes how a call ended, and again until it is written: the row stays
// this process's until then. It gives up when the duties stop; what was in hand
// is then free for others, who ask before they send.
func (j *Jobs) record(ctx context.Context, what string, write func(context.Context) error) {
	for wait := recordWaitMin; ; wait = min(2*wait, recordWaitMax) {
		err := write(context.WithoutCancel(ctx))
		if err == nil {
			return
		}
		j.Log.ErrorContext(ctx, what+" not recorded", "error", err)
		if j.RecordOnce {
			return
		}
		timer := j.Env.Clock.NewTimer(j.Env.Random.Jitter(wait, 20))
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// guarded calls out; a panic of what it calls becomes failed's concern.
func guarded[T any](call func() T, failed func(cause error) T) (answer T) {
	defer func() {
		if v := recover(); v != nil {
			answer = failed(fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	return call()
}

// Lease is this process's claim to be alive; see flow.Guard.
func (j *Jobs) Lease() *loop.Lease { return j.lease }
