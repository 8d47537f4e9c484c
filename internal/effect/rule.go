package effect

import "time"

// Conditions.

func unwanted(_ *Policy, _ *Effect, in *Input) bool { return !in.Wanted }

func clean(e *Effect) bool { return !e.Possible() && !e.Doubt }

// inQuiet reports whether "not found" proves nothing yet.
func inQuiet(p *Policy, e *Effect, in *Input) bool {
	return !e.Until.IsZero() && in.Now.Before(e.Until.Add(p.Quiet))
}

// forgotten reports whether the processor may have forgotten our id before a call ends.
func forgotten(p *Policy, e *Effect, in *Input) bool {
	return !e.FirstAt.IsZero() && p.Life > 0 && !in.Now.Add(p.Timeout).Before(e.FirstAt.Add(p.Life))
}

// hidden reports whether a look-up may not show the first send any more.
func hidden(p *Policy, e *Effect, in *Input) bool {
	return !e.FirstAt.IsZero() && p.LookBack > 0 && !in.Now.Before(e.FirstAt.Add(p.LookBack))
}

// asksFirst reports whether a look-up precedes the next send.
func asksFirst(p *Policy, e *Effect, _ *Input) bool {
	return !p.Blind && (e.Doubt || !p.Safe && !p.Harmless || p.AskFirst && e.Sends == 0 || !p.Safe && !e.Possible())
}

// otherMayPay reports whether the failure of a transfer leaves open whether another one pays: after
// our consent, if it is not the one with the consent; before it, if two may exist, and the report is
// about one of them or comes too early to show both.
func otherMayPay(p *Policy, e *Effect, in *Input) bool {
	if e.Consent {
		return in.Other
	}
	two := e.Earlier && e.Last || e.Possible() && e.Gap
	return !p.Safe && two && (!in.All || inQuiet(p, e, in))
}

// settled reports whether no byte can leave any more.
func settled(_ *Policy, e *Effect, in *Input) bool { return !in.Now.Before(e.Until) }

// Changes.

func begin(p *Policy, e *Effect, in *Input) {
	e.Earlier, e.Last = e.Possible(), true
	e.Sends, e.Lookups, e.Doubt, e.Lost, e.NotFoundAt = e.Sends+1, 0, false, false, time.Time{}
	e.Until = in.Now.Add(p.Timeout)
	if e.FirstAt.IsZero() {
		e.FirstAt = in.Now
	}
}

// noEffect records that the last send has no effect.
func noEffect(e *Effect) {
	e.Last = false
	if !e.Earlier {
		e.FirstAt = time.Time{}
	}
}

// sendAgain queues it after a send that did not leave, or that the processor did not take.
func sendAgain(_ *Policy, e *Effect, in *Input) {
	noEffect(e)
	after := wait(SendAgainAfter, e.Sends-1, in)
	if in.On == Later {
		after = wait(LaterAfter, e.Laters, in)
		e.Laters++
	}
	e.Lookups, e.NextAt = 0, in.Now.Add(max(after, min(in.Wait, LongestLater)))
}

func soon(_ *Policy, e *Effect, in *Input) { e.NextAt = in.Now }

func lookedUp(_ *Policy, e *Effect, in *Input) {
	e.Lookups++
	e.NextAt = in.Now.Add(wait(LookUpAfter, e.Lookups, in))
}

// accept records a report of an effect that the database may lack.
func accept(_ *Policy, e *Effect, in *Input) {
	e.Sends = max(e.Sends, 1)
	if !e.Possible() {
		e.Last = true
	}
	if e.FirstAt.IsZero() {
		e.FirstAt = in.Now
	}
	e.Doubt, e.Again, e.NotFoundAt = false, false, time.Time{}
	if e.Lookups++; e.State != Accepted {
		e.Lookups = LookUpsSkipped
	}
	e.NextAt = in.Now.Add(wait(LookUpAfter, e.Lookups, in))
}

// doubt takes a restore: a send that the database does not show may have left until now.
func doubt(_ *Policy, e *Effect, in *Input) {
	e.Lost = e.Lost || e.Possible()
	e.Doubt, e.Gap = true, true
	if e.Until.Before(in.Now) {
		e.Until = in.Now
	}
	e.NextAt = in.Now
}
