// Package effect decides what to do about one thing that a processor is asked to do: a transfer, a
// part of a refund, an answer to a dispute, a charge, the cancellation of a charge.
//
// [Table] is the whole state machine, which docs/effects.md shows. [Step] takes an event by the
// first row that fits, and returns the next [Action] of the executor. What differs between
// processors and between nouns is in the [Policy].
//
// The search of its tests visits everything that an effect, two processes and a processor can do
// together: at most one execution, no release of money that may be paid, and an end once faults stop.
package effect

import "time"

// State is where an effect is.
type State string

// The states.
const (
	Queued   State = "queued"        // to be sent when it is due
	Asking   State = "asking"        // claimed: a look-up precedes the send
	Sending  State = "sending"       // claimed: the intent is durable, and a byte may leave until Until
	Unknown  State = "unknown"       // the outcome must be looked up
	Accepted State = "accepted"      // the processor has it and reports its end, which is looked up too
	Review   State = "manual_review" // a report still counts
	Done     State = "done"          // ended
)

// States are all states, in the order of the table.
var States = []State{Queued, Asking, Sending, Unknown, Accepted, Review, Done}

// Event is what has happened.
type Event string

// The events.
const (
	Due Event = "due" // a worker claims it

	// A send ended, and its answer proves nothing about the outcome of the order.
	Refused  Event = "refused"   // no effect, because of its contents
	NotSent  Event = "not_sent"  // no byte has left
	Later    Event = "later"     // no effect, for a cause that passes
	Known    Event = "known"     // no effect, because the processor has our id
	NoResult Event = "no_result" // anything may have happened
	Died     Event = "died"      // the process that had claimed it

	// A report, by an answer, a look-up, a notice or a list.
	ReportAccepted Event = "accepted"
	ReportPaid     Event = "paid"
	ReportFailed   Event = "failed"

	// A look-up ended without a report.
	NotFound Event = "not_found"
	NoAnswer Event = "no_answer"

	Withdraw      Event = "withdraw"       // a merchant cancels it, or an operator gives it up
	DeclarePaid   Event = "declare_paid"   // operators have proof that it was paid
	DeclareFailed Event = "declare_failed" // operators have proof that it was not paid, and will not be
	DeclareAbsent Event = "declare_absent" // operators have proof that the processor does not have it
	Restored      Event = "restored"       // the database is an older copy, which may lack sends
	Consented     Event = "consented"      // our consent to one transfer of it is durable
)

// Events are all events, in the order of the table.
var Events = []Event{
	Due, Refused, NotSent, Later, Known, NoResult, Died, ReportAccepted, ReportPaid, ReportFailed, NotFound, NoAnswer,
	Withdraw, DeclarePaid, DeclareFailed, DeclareAbsent, Restored, Consented,
}

// Action is what the executor does in the commit of a step, or after it.
type Action string

// The actions.
const (
	None       Action = ""
	Ask        Action = "ask"        // look it up, in the process that has claimed it
	Send       Action = "send"       // call the processor, in the process that has claimed it
	Book       Action = "book"       // book that it was paid
	Release    Action = "release"    // book that it had no effect
	Contradict Action = "contradict" // open a case: two proofs contradict, so no money moves
	Refuse     Action = "refuse"     // the request is not possible now
)

// Reason is why an effect needs manual review.
type Reason string

// The reasons.
const (
	NoReason      Reason = ""
	NotIdempotent Reason = "not_idempotent" // a repeat may be a second effect
	IDInUse       Reason = "id_in_use"      // the processor says that it has our id, and does not find it
	TooOld        Reason = "too_old"        // the processor may have forgotten our id
)

// Policy is what a processor guarantees for an effect of this kind, and what its noun allows.
type Policy struct {
	Safe     bool          // a repeat under our id has no second effect
	Life     time.Duration // how long after the first send the processor knows our id; 0: forever
	LookBack time.Duration // how long after the first send a look-up finds it; 0: forever
	Quiet    time.Duration // how long after a send "not found" proves nothing
	Confirm  time.Duration // "not found" counts twice, this far apart; 0: once
	Timeout  time.Duration // of one call
	AskFirst bool          // a look-up precedes the first send
	Asks     bool          // the processor asks for our consent, and is proved to

	// Harmless: a second effect moves no money by itself, as that of a charge. It is repeated at once
	// if that is safe, and after two "not found" even if it is not.
	Harmless bool
	// Blind: it cannot be looked up, and a repeat is always safe, as that of a cancellation.
	Blind bool
}

// Effect is the stored state of one effect. Times are UTC, zero if they do not apply.
type Effect struct {
	State  State
	Result Event // of Done: the event that ended it

	Earlier bool // a send before the last one may have, or have had, an effect
	Last    bool // the last one may
	Doubt   bool // it may have been sent in a past that the database lacks, and was not looked up since
	Gap     bool // it was there when the database was restored
	Lost    bool // its last send is from before that: our consent to it may be lost
	Again   bool // a send was refused since the last one without a result
	InUse   bool // the processor said that it has our id
	Consent bool // we have given our consent to one transfer of it

	Sends   int // in all
	Laters  int // sends that the processor did not take
	Lookups int // since the last send, or since its outcome became unknown

	FirstAt    time.Time // the first send that may have arrived
	Until      time.Time // no byte of the last send leaves after it
	NotFoundAt time.Time // the first of two "not found"
	NextAt     time.Time // when it is due
}

// Input is an event with what is known when it is decided.
type Input struct {
	On     Event
	Now    time.Time     // UTC
	Send   int           // the number of the send that an answer is about
	Wanted bool          // the order still needs it
	Moves  bool          // another account may be tried, if this one has and will have nothing
	All    bool          // the report is about everything under our id, not about one transfer
	Other  bool          // it is about another transfer than the one with our consent
	Wait   time.Duration // the shortest one until the next send
	Jitter int64         // of each wait, in thousandths of it
}

// Possible reports whether a send may have, or have had, an effect.
func (e *Effect) Possible() bool { return e.Earlier || e.Last }

// Live reports whether the effect has not ended.
func (e *Effect) Live() bool { return e.State != Done }

// Released reports whether the effect has ended, and was not paid.
func (e *Effect) Released() bool {
	return e.State == Done && e.Result != ReportPaid && e.Result != DeclarePaid
}

// Out is what a step decides besides the new state of the effect.
type Out struct {
	Action Action
	Case   Reason // of the case to open
	Row    string // the row of the table; "" if the event changed nothing
}

// Step takes an event. An event without a row changes nothing: reports arrive twice, late and out of
// order.
func Step(p Policy, e Effect, in Input) (Effect, Out) { return step(Table, p, e, in) }

func step(table []Row, p Policy, e Effect, in Input) (Effect, Out) {
	for i := range table {
		r := &table[i]
		if !r.fits(&p, &e, &in) {
			continue
		}
		if r.Do != nil {
			r.Do(&p, &e, &in)
		}
		if r.To != "" {
			e.State = r.To
		}
		if r.To == Done {
			e.Result = in.On
		}
		if r.Action == Ask || r.Action == Send || e.State == Review || e.State == Done {
			e.NextAt = time.Time{} // claimed, parked or ended
		}
		return e, Out{Action: r.Action, Case: r.Case, Row: r.Name}
	}
	return e, Out{}
}

// FlagAgain is the bit of Again in [Effect.Flags].
const FlagAgain = 1 << 5

func (e *Effect) flags() [8]*bool {
	return [8]*bool{&e.Earlier, &e.Last, &e.Doubt, &e.Gap, &e.Lost, &e.Again, &e.InUse, &e.Consent}
}

// Flags are the boolean fields as the bits of one stored number: the first one is 1.
func (e *Effect) Flags() (bits int64) {
	for i, set := range e.flags() {
		if *set {
			bits |= 1 << i
		}
	}
	return bits
}

// SetFlags sets the boolean fields from their bits.
func (e *Effect) SetFlags(bits int64) {
	for i, set := range e.flags() {
		*set = bits&(1<<i) != 0
	}
}
