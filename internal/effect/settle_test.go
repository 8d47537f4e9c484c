package effect

import (
	"slices"
	"strings"
)

// settle lets the faults stop: all answers are true, no process dies, people decide. It returns the
// last world, and how it was reached.
func (s *setup) settle(w world) (end world, trace string) {
	more := *s
	more.maxSends += 4
	asked := false
	for range 80 {
		if States[w.r.state] == Done && w.c.phase == idle && w.z.phase == idle {
			return w, trace
		}
		w.snapped, w.restored, w.z = true, true, call{} // no more of that
		pick, best := next{}, len(settling)
		for _, n := range more.moves(w) {
			if rank := rankOf(&w, &n, asked); rank < best {
				pick, best = n, rank
			}
		}
		if best == len(settling) {
			return w, trace + "\n\tno move"
		}
		asked = pick.what == "look-up" || pick.what == "answer" || asked && pick.what != "tick"
		w = pick.w
		trace += "\n\t" + pick.String()
	}
	return w, trace
}

// settling are the moves of settle, the first ones first. The schedules let time pass between two
// tries.
var settling = []string{
	"answer", "executed", "no byte left", "look-up", "bank executes", "bank pays", "bank asks", "people", "list read", "a person ends",
	"requested again", "tick", "claim", "tick",
}

// rankOf is the index in settling of a move of w; its length if it is none of settle.
func rankOf(w *world, n *next, asked bool) int {
	truth := w.truth()
	if truth == "" {
		truth = NotFound
	}
	what := n.what
	switch {
	case what == "tick" && !asked:
		return len(settling) - 1
	case n.on == Died, strings.HasSuffix(what, "without it"), what == "look-up" && n.on != truth:
		return len(settling)
	case n.answer == Known && w.items[0].st >= processing, n.answer == NoResult, n.answer == Later, n.answer == Refused:
		return len(settling)
	case n.answer != "":
		what = "executed"
	}
	i := slices.IndexFunc(settling, func(prefix string) bool { return strings.HasPrefix(what, prefix) })
	if i < 0 {
		return len(settling)
	}
	return i
}
