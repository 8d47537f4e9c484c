package effect

import (
	"slices"
	"time"
)

// Row is one row of the table: for an effect that is in one of From, on one of On, if Cond holds.
// The first row that fits counts.
type Row struct {
	Name string
	From []State
	On   []Event
	If   string // Cond in words
	Cond func(p *Policy, e *Effect, in *Input) bool
	To   State // "": unchanged
	Do   func(p *Policy, e *Effect, in *Input)
	Action
	Case Reason
	Then string // Do in words
}

func (r *Row) fits(p *Policy, e *Effect, in *Input) bool {
	return slices.Contains(r.From, e.State) && slices.Contains(r.On, in.On) && !stale(e, in) && (r.Cond == nil || r.Cond(p, e, in))
}

// stale reports whether an answer is about an earlier send than the last one. Reports are proofs,
// and are never stale.
func stale(e *Effect, in *Input) bool {
	switch in.On {
	case Refused, NotSent, Later, Known, NoResult:
		return in.Send != e.Sends
	default:
		return false
	}
}

var live = []State{Queued, Asking, Sending, Unknown, Accepted, Review}

// Table is the state machine. docs/effects.md shows it, and explains its conditions.
var Table = slices.Concat(rowsToSend, rowsSent, rowsUnknown, rowsOfReports, rowsOfPeople)

// rowsToSend: it is queued, or looked up before it is sent.
var rowsToSend = []Row{
	{Name: "Q1", From: []State{Queued}, On: []Event{Due}, If: "not wanted; nothing may exist", Cond: func(_ *Policy, e *Effect, in *Input) bool { return !in.Wanted && clean(e) }, To: Done, Action: Release},
	{Name: "Q2", From: []State{Queued}, On: []Event{Due}, If: "not wanted", Cond: unwanted, To: Unknown, Action: Ask},
	{Name: "Q3", From: []State{Queued}, On: []Event{Due}, If: "a send may exist; forgotten; safe only by our id", Cond: func(p *Policy, e *Effect, in *Input) bool {
		return p.Safe && !p.Blind && e.Possible() && forgotten(p, e, in)
	}, To: Review, Case: TooOld},
	{Name: "Q4", From: []State{Queued}, On: []Event{Due}, If: "must ask first", Cond: asksFirst, To: Asking, Action: Ask},
	{Name: "Q5", From: []State{Queued}, On: []Event{Due}, To: Sending, Do: begin, Action: Send, Then: "number + 1; until = now + time-out"},

	{Name: "A1", From: []State{Asking}, On: []Event{NotFound}, If: "doubt, or a send may exist; within the quiet period", Cond: func(p *Policy, e *Effect, in *Input) bool {
		return (e.Doubt || e.Possible()) && inQuiet(p, e, in)
	}, To: Queued, Do: func(p *Policy, e *Effect, _ *Input) { e.NextAt = e.Until.Add(p.Quiet) }, Then: "due at its end"},
	{Name: "A2", From: []State{Asking}, On: []Event{NotFound}, If: "not wanted any more", Cond: unwanted, To: Queued, Do: func(p *Policy, e *Effect, in *Input) { e.Doubt = false; soon(p, e, in) }, Then: "no doubt; due now"},
	{Name: "A3", From: []State{Asking}, On: []Event{NotFound}, To: Sending, Do: begin, Action: Send, Then: "number + 1; no doubt; until = now + time-out"},
	{Name: "A4", From: []State{Asking}, On: []Event{NoAnswer, Died}, To: Queued, Do: lookedUp, Then: "due by the schedule"},
}

// rowsSent: a send has ended.
var rowsSent = []Row{
	{Name: "S1", From: []State{Sending, Unknown}, On: []Event{Refused}, If: "no other send may exist, or the second refusal; no consent", Cond: func(_ *Policy, e *Effect, _ *Input) bool {
		return (!e.Earlier || e.Again) && !e.Consent
	}, To: Done, Do: func(_ *Policy, e *Effect, _ *Input) { noEffect(e) }, Action: Release},
	{Name: "S2", From: []State{Sending, Unknown}, On: []Event{Refused}, To: Unknown, Do: func(p *Policy, e *Effect, in *Input) {
		noEffect(e)
		e.Again, e.Lookups = true, 0
		soon(p, e, in)
	}, Then: "look up now"},
	{Name: "S3", From: []State{Sending, Unknown}, On: []Event{NotSent}, If: "nothing may exist; another account may be tried", Cond: func(_ *Policy, e *Effect, in *Input) bool {
		return in.Moves && !e.Earlier && !e.Consent
	}, To: Done, Do: func(_ *Policy, e *Effect, _ *Input) { noEffect(e) }, Action: Release, Then: "the noun tries the next account"},
	{Name: "S4", From: []State{Sending, Unknown}, On: []Event{NotSent, Later}, To: Queued, Do: sendAgain, Then: "due by the schedule"},
	{Name: "S5", From: []State{Sending, Unknown}, On: []Event{Known}, To: Unknown, Do: func(p *Policy, e *Effect, in *Input) {
		e.Earlier, e.Last, e.InUse, e.Lookups = true, false, true, 0
		soon(p, e, in)
	}, Then: "our id is in use; look up now"},
	{Name: "S6", From: []State{Sending}, On: []Event{NoResult, Died}, To: Unknown, Do: func(_ *Policy, e *Effect, in *Input) {
		e.Again, e.Lookups, e.NextAt = false, 0, in.Now.Add(LookUpAfter[0])
	}, Then: "look up by the schedule"},
}

// rowsUnknown: it is looked up, and not sent.
var rowsUnknown = []Row{
	{Name: "U1", From: []State{Unknown}, On: []Event{Due}, If: "it cannot be looked up", Cond: func(p *Policy, _ *Effect, in *Input) bool { return p.Blind && in.Wanted }, To: Sending, Do: begin, Action: Send},
	{Name: "U2", From: []State{Unknown, Accepted}, On: []Event{Due}, Action: Ask},
	{Name: "U3", From: []State{Unknown}, On: []Event{NotFound}, If: "our consent was given: the processor has it", Cond: func(_ *Policy, e *Effect, _ *Input) bool { return e.Consent }, Do: lookedUp},
	{Name: "U4", From: []State{Unknown}, On: []Event{NotFound, NoAnswer}, If: "harmless, safe, wanted; no refusal, id not in use, not forgotten", Cond: func(p *Policy, e *Effect, in *Input) bool {
		return p.Harmless && p.Safe && in.Wanted && !e.Doubt && !e.Again && !e.InUse && !forgotten(p, e, in)
	}, To: Queued, Do: lookedUp, Then: "repeated by the schedule"},
	{Name: "U5", From: []State{Unknown}, On: []Event{NotFound}, If: "within the quiet period", Cond: inQuiet, Do: func(p *Policy, e *Effect, in *Input) {
		lookedUp(p, e, in)
		if quiet := e.Until.Add(p.Quiet); e.NextAt.After(quiet) {
			e.NextAt = quiet
		}
	}, Then: "look up by the schedule, at the latest at its end"},
	{Name: "U6", From: []State{Unknown}, On: []Event{NotFound}, If: "not wanted; visible", Cond: func(p *Policy, e *Effect, in *Input) bool { return !in.Wanted && !hidden(p, e, in) }, To: Done, Action: Release},
	{Name: "U7", From: []State{Unknown}, On: []Event{NotFound}, If: "a send may exist, id not in use; the first of two", Cond: func(p *Policy, e *Effect, in *Input) bool {
		return e.Possible() && !e.InUse && p.Confirm > 0 && (e.NotFoundAt.IsZero() || in.Now.Before(e.NotFoundAt.Add(p.Confirm)))
	}, Do: func(p *Policy, e *Effect, in *Input) {
		if e.NotFoundAt.IsZero() {
			e.NotFoundAt = in.Now
		}
		e.Lookups, e.NextAt = e.Lookups+1, e.NotFoundAt.Add(p.Confirm)
	}, Then: "look up again"},
	{Name: "U8", From: []State{Unknown}, On: []Event{NotFound}, If: "harmless; unsafe, and counted once only", Cond: func(p *Policy, _ *Effect, _ *Input) bool {
		return p.Harmless && !p.Safe && p.Confirm == 0
	}, Do: lookedUp, Then: "look up until the order ends"},
	{Name: "U9", From: []State{Unknown}, On: []Event{NotFound}, If: "money; unsafe; the processor is not proved to ask", Cond: func(p *Policy, _ *Effect, _ *Input) bool {
		return !p.Harmless && !p.Safe && !p.Asks
	}, To: Review, Case: NotIdempotent},
	{Name: "U10", From: []State{Unknown}, On: []Event{NotFound}, If: "money; our id is in use", Cond: func(p *Policy, e *Effect, _ *Input) bool { return !p.Harmless && e.InUse }, To: Review, Case: IDInUse},
	{Name: "U11", From: []State{Unknown}, On: []Event{NotFound}, If: "forgotten, or not visible any more", Cond: func(p *Policy, e *Effect, in *Input) bool {
		return p.Safe && forgotten(p, e, in) || hidden(p, e, in)
	}, To: Review, Case: TooOld},
	{Name: "U12", From: []State{Unknown}, On: []Event{NotFound}, To: Queued, Do: func(p *Policy, e *Effect, in *Input) {
		e.InUse, e.NotFoundAt, e.Doubt = false, time.Time{}, false
		soon(p, e, in)
	}, Then: "send again now, same id, same bytes"},
	{Name: "U13", From: []State{Unknown}, On: []Event{NoAnswer, Died}, Do: lookedUp, Then: "look up by the schedule"},
	{Name: "U14", From: []State{Accepted}, On: []Event{NotFound, NoAnswer, Died}, Do: lookedUp, Then: "proves nothing; look up by the schedule"},
}

// rowsOfReports: a proof counts in any state.
var rowsOfReports = []Row{
	{Name: "P1", From: live, On: []Event{ReportPaid}, To: Done, Action: Book},
	{Name: "P2", From: []State{Sending, Review}, On: []Event{ReportFailed}, If: "another transfer may pay", Cond: otherMayPay, Then: "the end of this send, or the review, decides"},
	{Name: "P3", From: []State{Queued, Asking, Unknown, Accepted}, On: []Event{ReportFailed}, If: "another transfer may pay", Cond: otherMayPay, To: Unknown, Do: soon, Then: "look up all of them now"},
	{Name: "P4", From: live, On: []Event{ReportFailed}, To: Done, Action: Release},
	{Name: "P5", From: live, On: []Event{ReportAccepted}, To: Accepted, Do: accept, Then: "look up by the schedule"},
	{Name: "P6", From: []State{Done}, On: []Event{ReportPaid}, If: "it was released", Cond: func(_ *Policy, e *Effect, _ *Input) bool { return e.Released() }, Action: Contradict},
	{Name: "P7", From: []State{Done}, On: []Event{ReportFailed}, If: "it was paid, by no other transfer", Cond: func(_ *Policy, e *Effect, in *Input) bool { return !e.Released() && !in.Other }, Action: Contradict},
}

// rowsOfPeople: a decision, a restore, a consent. Each effect that has not ended gets a restore once.
var rowsOfPeople = []Row{
	{Name: "D1", From: []State{Queued}, On: []Event{Withdraw}, If: "nothing may exist", Cond: func(_ *Policy, e *Effect, _ *Input) bool { return clean(e) }, To: Done, Action: Release},
	{Name: "D2", From: []State{Unknown, Accepted, Review}, On: []Event{DeclarePaid}, If: "no byte can leave any more", Cond: settled, To: Done, Action: Book},
	{Name: "D3", From: []State{Unknown, Accepted, Review}, On: []Event{DeclareFailed}, If: "no byte can leave any more", Cond: settled, To: Done, Action: Release},
	{Name: "D4", From: []State{Unknown, Accepted, Review}, On: []Event{DeclareAbsent}, If: "no byte can leave any more", Cond: settled, To: Queued, Do: func(p *Policy, e *Effect, in *Input) {
		e.InUse, e.NotFoundAt, e.FirstAt, e.Lookups = false, time.Time{}, time.Time{}, 0
		soon(p, e, in)
	}, Then: "its id counts as new"},
	{Name: "D5", From: States, On: []Event{Withdraw, DeclarePaid, DeclareFailed, DeclareAbsent}, Action: Refuse},

	{Name: "R1", From: []State{Queued, Asking}, On: []Event{Restored}, To: Queued, Do: doubt, Then: "doubt; the quiet period begins anew"},
	{Name: "R2", From: []State{Sending}, On: []Event{Restored}, To: Unknown, Do: func(p *Policy, e *Effect, in *Input) {
		e.Last, e.Again = true, false
		doubt(p, e, in)
	}, Then: "doubt; the quiet period begins anew"},
	{Name: "R3", From: []State{Unknown, Accepted, Review}, On: []Event{Restored}, Do: doubt, Then: "doubt; the quiet period begins anew"},

	{Name: "C1", From: []State{Sending, Unknown, Accepted}, On: []Event{Consented}, If: "of a send in this past; the first one", Cond: func(_ *Policy, e *Effect, _ *Input) bool { return !e.Lost && !e.Consent }, Do: func(_ *Policy, e *Effect, _ *Input) { e.Consent = true }},
	{Name: "C2", From: States, On: []Event{Consented}, Action: Refuse},
}
