package effect

// restoreMoves are a backup, its restore, and the end of the wait after it.
func (s *setup) restoreMoves(w world) (list []next) {
	if !w.snapped {
		v := w
		v.snap, v.snapped, v.snapWanted = w.r, true, w.wanted
		list = append(list, next{w: v, what: "backup"})
		if v.snap = (order{}); w.r.sends == 0 && w.r.state == 0 {
			list = append(list, next{w: v, what: "backup from before the request"})
		}
	}
	if w.snapped && !w.restored && !(s.calm && w.inFlight()) {
		list = append(list, s.restored(w))
	}
	if w.frozen && w.thaw == 0 {
		list = append(list, s.thaws(w)...)
	}
	return list
}

// restored is the world after the backup was restored.
func (s *setup) restored(w world) next {
	v := w
	v.r, v.restored, v.wanted, v.snap = w.snap, true, w.snapWanted, order{}
	v.z, v.c = call{}, call{}
	if s.restore == "failover" && w.c.phase >= toSend {
		v.z = w.c
		v.z.old = true
	}
	if s.restore != "unmarked" {
		v.frozen, v.thaw = true, s.b.quiet
	}
	switch claimed := States[v.r.state] == Asking || States[v.r.state] == Sending; {
	case !v.r.exists:
		return next{w: v, what: "restored: no row"}
	case s.restore != "unmarked" && !s.noDoubt:
		return s.step(v, Input{On: Restored}, "restored")
	case claimed: // the claims of dead processes are released
		return s.step(v, Input{On: Died}, "restored, unmarked")
	default:
		return next{w: v, what: "restored, unmarked"}
	}
}

// thaws are the worlds after the sends of the account go on.
func (s *setup) thaws(w world) (list []next) {
	w.frozen = false
	truth, lag := w.truth(), false
	for _, it := range w.items {
		lag = lag || it.st == underWay || it.st != absent && it.young > 0
	}
	incomplete := next{w: w, what: "list read, without it"}
	switch {
	case !s.list:
		return []next{{w: w, what: "a person ends the wait"}}
	case truth == "" || w.r.exists && States[w.r.state] == Done:
		return []next{{w: w, what: "list read"}}
	case w.r.exists:
		list = append(list, s.step(w, Input{On: truth, All: true}, "list read"))
	default: // the found transfer is booked, and becomes that of the repeated request
		w.r = orderOf(Effect{State: Accepted, Sends: 1, Last: true, Gap: true, FirstAt: base, Until: base})
		list = append(list, next{w: w, what: "list read: found; requested again"})
	}
	if lag {
		list = append(list, incomplete)
	}
	return list
}
