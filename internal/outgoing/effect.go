package outgoing

import (
	"time"

	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// process is what an operation knows of its process and of the database, as of the last heartbeat.
type process struct {
	node           payment.ID
	epoch, history int64
}

func (e *Executor) process() process {
	return process{node: e.Node.ID(), epoch: e.Node.Epoch(), history: e.Node.History()}
}

// mayAct returns an error if the process must not claim work that has an effect: it was declared dead,
// or the database went back since its last heartbeat.
func (v process) mayAct(l *store.Loaded) error {
	if !l.NodeAlive(v.node) {
		return write.ErrNodeDead
	}
	if h := l.History(); h.Epoch < v.epoch || h.Number != v.history {
		return write.ErrRestored
	}
	return nil
}

// policyOf is the policy of an account's effects of one kind.
func policyOf(e processor.Effect) effect.Policy {
	return effect.Policy{
		Safe: e.Repeat.Safe(), Life: e.Life, LookBack: e.LookBack, Quiet: e.QuietPeriod, Confirm: e.Confirm, Timeout: e.Timeout, AskFirst: e.LookUpFirst,
	}
}

// answerEvent is the event of an answer to a send. This gateway's own budget is no answer.
func answerEvent(a *processor.TransferAnswer) effect.Event {
	switch {
	case a.Outcome == processor.Done:
		return reportEvent(&a.Report)
	case a.Outcome == processor.Refused:
		return effect.Refused
	case a.Outcome == processor.NotSent || isOurWait(a):
		return effect.NotSent
	case a.Outcome == processor.Later:
		return effect.Later
	case a.Outcome == processor.Known:
		return effect.Known
	default:
		return effect.NoResult
	}
}

// reportEvent is the event of a report.
func reportEvent(r *processor.TransferReport) effect.Event {
	switch {
	case r.Lookup == processor.NotFound:
		return effect.NotFound
	case r.Lookup != processor.Found:
		return effect.NoAnswer
	case r.State == processor.TransferPaid:
		return effect.ReportPaid
	case r.State == processor.TransferFailed:
		return effect.ReportFailed
	default:
		return effect.ReportAccepted
	}
}

// take lets an effect take an event. It stays claimed only if its process goes on with it.
func take(p effect.Policy, e *effect.Effect, claimedBy *payment.ID, in effect.Input) (out effect.Out) {
	fixClock(e, p.Timeout, in.Now)
	*e, out = effect.Step(p, *e, in)
	if !e.NextAt.IsZero() || e.State == effect.Review || e.State == effect.Done {
		*claimedBy = payment.ID{}
	}
	return out
}

// fixClock corrects times of a clock that was ahead: the last send has ended after its time-out from
// now, and a "not found" counts from the next one.
func fixClock(e *effect.Effect, timeout time.Duration, now time.Time) {
	if e.Until.After(now.Add(timeout + clockTolerance)) {
		e.Until = now.Add(timeout)
	}
	if e.NotFoundAt.After(now) {
		e.NotFoundAt = time.Time{}
	}
}

// takeRestore lets an effect take the cold start that began this history of the database, unless it
// was decided since: the database may be a copy that lacks sends of it. For a while after a proved
// restore that holds for new ones too: merchants repeat requests whose orders the backup lacks. A row
// that was created while a clock was ahead does not show when. decidedIn becomes this history.
func takeRestore(h store.History, e *effect.Effect, claimedBy *payment.ID, decidedIn *int64, createdAt, now time.Time) (took bool) {
	if *decidedIn == h.Number {
		return false
	}
	took = *decidedIn != 0 || createdAt.Before(h.RestoredAt) || createdAt.After(now) || !h.ProvedAt.IsZero() && now.Sub(h.ProvedAt) <= lookUpFirstFor
	if *decidedIn = h.Number; took {
		take(effect.Policy{Timeout: sendMax}, e, claimedBy, effect.Input{On: effect.Restored, Now: h.RestoredAt})
	}
	return took
}
