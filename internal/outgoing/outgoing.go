// Package outgoing is the one executor of effects that can take money from a merchant: intent,
// send, classify, look up, resolve.
//
// Before a byte leaves, a queued payout is claimed and the intent to send it is durable. The
// outcome of a send is done, refused, not sent, later, known (the processor has our id) or unknown.
// After known and unknown the payout is looked up. It is sent again, with the same id and bytes,
// only after "not found" beyond the processor's quiet period, and only if the processor is
// idempotent on our id, or asks for our consent (consent.go). Otherwise it gets a case.
//
// A payout is the merchant's order; a send is one attempt to submit it to the processor; a transfer
// is the processor's order. Package effect decides about the parts of refunds (refund.go); the steps of a
// payout are those of its table, docs/effects.md, with intent for sending.
//
// Answers to disputes (answer.go), which move no money, have the same steps, with one row each instead
// of a row per send.
//
// A report of the processor can end any step, because a database that was restored from a backup
// lacks the latest ones.
package outgoing

import (
	"log/slog"
	"time"

	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

// Calls in flight at once, per account of a processor and per merchant. So an account that hangs
// delays no other, nor does a merchant with a thousand payouts.
const (
	sendSlots         = 64
	lookUpSlots       = 32
	sendsPerMerchant  = 32
	lookUpPerMerchant = 32
)

// unsafeSlots bounds the calls in flight at an account where a repeat has a second effect. A
// process claims no more than that. If the process dies, the outcome of each call is unknown, even
// if no byte has left, and each may take two people.
const unsafeSlots = 4

// slotsOf is the size of the pool of calls with an effect; 0 is the default.
func slotsOf(e processor.Effect) int {
	if e.Slots == 0 && !e.Repeat.Safe() {
		return unsafeSlots
	}
	return e.Slots
}

// lookUpTimeout bounds one query to a processor.
const lookUpTimeout = 10 * time.Second

// Options configure an Executor.
type Options struct {
	Store      *store.Store
	Writer     *write.Writer
	Node       *cluster.Node
	Env        env.Env
	Processors processor.Accounts
	Log        *slog.Logger
	Recorder   worker.Recorder
	// SendWaker and LookUpWaker wake the two workers.
	SendWaker   *worker.Waker
	LookUpWaker *worker.Waker
	// AnswerWaker wakes the worker that sends answers to disputes.
	AnswerWaker *worker.Waker
	// Spawn starts a call; see [worker.Spawn].
	Spawn worker.Spawn
	// Links are the URLs of a pay-in's pages in the events of its refunds.
	Links transition.Links
}

// Executor sends payouts, parts of refunds and answers to disputes, and looks them up.
type Executor struct {
	Options

	// Breakers of each account: of calls with an effect, and of queries.
	sendBreakers, lookUpBreakers *worker.Breakers
	sends, lookUps               *worker.Pools
	sendTurn, lookUpTurn         worker.Turn[store.DueAt]
	sendThrottle                 *worker.Throttle
	refunds                      [2]refundCalls // by queue
	answers                      *worker.Pools  // calls about answers to disputes
	answerBreakers               *worker.Breakers
}

// New returns the executor.
func New(o Options) *Executor {
	return &Executor{
		Options: o, sendThrottle: worker.NewThrottle(o.Env.Clock, o.Writer.Backlogged), sendBreakers: worker.NewBreakers(o.Env.Clock), lookUpBreakers: worker.NewBreakers(o.Env.Clock),
		sends: worker.NewPools(sendSlots, o.SendWaker, o.Spawn), lookUps: worker.NewPools(lookUpSlots, o.LookUpWaker, o.Spawn),
		refunds: [...]refundCalls{
			store.ToSend:   {breakers: worker.NewBreakers(o.Env.Clock), pools: worker.NewPools(refundSlots, o.SendWaker, o.Spawn)},
			store.ToLookUp: {breakers: worker.NewBreakers(o.Env.Clock), pools: worker.NewPools(refundSlots, o.LookUpWaker, o.Spawn)},
		},
		answers: worker.NewPools(answerSlots, o.AnswerWaker, o.Spawn), answerBreakers: worker.NewBreakers(o.Env.Clock),
	}
}

// Wait returns when no call is in flight.
func (e *Executor) Wait() {
	e.sends.Wait()
	e.lookUps.Wait()
	e.refunds[store.ToSend].pools.Wait()
	e.refunds[store.ToLookUp].pools.Wait()
	e.answers.Wait()
}

// Finish ends the executor's work on a payout.
func Finish(p *payment.Payout) {
	p.Step, p.NextAt, p.ClaimedBy = payment.StepDone, time.Time{}, payment.ID{}
}

const (
	// waitBeforeCase is how long a payout or a part of a refund waits before a case is opened. The
	// wait of a payout begins with the first of its latest sends without an effect, that of a part
	// with its creation. The sends go on.
	waitBeforeCase = time.Hour
	// latersBeforeCase is the number of sends answered with Later after which a case is opened too:
	// if the clock was ahead at the first send, the hour ends much later.
	latersBeforeCase = 8
)

// idInUse is the evidence of a send that the processor answered with Known.
const idInUse = "id_in_use"

// lookUpsBeforeCase is the number of look-ups without a decision after which a case is opened. The
// look-ups go on.
const lookUpsBeforeCase = 9
