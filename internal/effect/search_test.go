package effect

import (
	"fmt"
	"slices"
	"time"
)

// The search visits, breadth first, each world that one effect, its processes and its bank can
// reach. Times are ticks relative to now, so the worlds are finite.

// bank is what a bank does. Times are ticks.
type bank struct {
	safe   bool // our id is idempotent for life ticks; 0: forever
	life   int8
	quiet  int8 // a request is executed, or lost, at most so long after its byte left; look-ups lag as long
	back   int8 // look-ups show an item for so long after it arrived; 0: forever
	asks   bool // it executes a transfer only with our consent
	refuse bool // it may refuse
}

// setup is one search.
type setup struct {
	name   string
	p      Policy
	b      bank
	wanted bool // the order may end meanwhile
	// restore: "" none; "marked": detected at once; "unmarked": never detected; "failover": detected,
	// and the processes go on.
	restore      string
	list         bool // after a restore the sends wait until the bank's list was read; else until somebody ends the wait
	guardless    bool // the guard does not compare the history
	anyHistory   bool // an answer is recorded whatever its history
	anyNumber    bool // an answer is recorded as that of the last send
	noDoubt      bool // a restore does not mark the rows
	calm         bool // a restore happens only when nothing is in flight at the bank
	maxSends     int8
	canMove      bool
	withdraw     bool
	secondIsFine bool

	table []Row // instead of Table
	index [][][]Row
	used  map[string]bool
}

const none = -128

// order is the stored state of the effect.
type order struct {
	exists                                                 bool
	state, result                                          int8
	earlier, last, doubt, gap, lost, again, inUse, consent bool
	sends                                                  int8
	first, until, notFound                                 int8 // ticks relative to now; none
}

// item is what the bank has.
type item struct {
	st    int8
	young int8 // ticks for which it may be under way, and look-ups may lack it
	age   int8
	ours  bool // our consent was given
}

// States of an item.
const (
	absent int8 = iota
	underWay
	asking
	processing
	paid
	failed
)

// call is a call of a process.
type call struct {
	phase    int8
	send     int8
	deadline int8
	answer   int8 // of phase answered: index of Events
	old      bool // of a past history
}

// Phases of a call.
const (
	idle int8 = iota
	toLookUp
	toSend
	answered
)

// Violations.
const (
	fine int8 = iota
	releasedPaid
	contradiction
	leftDone
	thirdRequest
	executedTwice
	tooManyWorlds
)

var violations = []string{"", "released, and it may be paid", "contradiction", "left done", "third request executed", "executed twice", "too many worlds"}

// world has no padding and no pointer, so that it is hashed quickly.
type world struct {
	r          order
	c, z       call // of the process that has the claim, and of one that was declared dead
	items      [2]item
	snap       order
	snapped    bool
	restored   bool
	frozen     bool
	thaw       int8 // ticks until the list can be complete
	wanted     bool
	snapWanted bool
	violation  int8
}

func indexOf[T comparable](list []T, v T) int8 { return int8(slices.Index(list, v)) }

var base = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func when(t int8) time.Time {
	if t == none {
		return time.Time{}
	}
	return base.Add(time.Duration(t) * time.Second)
}

func ticks(t time.Time) int8 {
	if t.IsZero() {
		return none
	}
	return ticksOf(t.Sub(base))
}

func ticksOf(d time.Duration) int8 { return int8(d / time.Second) }

func (r *order) effect() Effect {
	e := Effect{
		State: States[r.state], Earlier: r.earlier, Last: r.last, Doubt: r.doubt, Gap: r.gap, Lost: r.lost, Again: r.again, InUse: r.inUse, Consent: r.consent,
		Sends: int(r.sends), FirstAt: when(r.first), Until: when(r.until), NotFoundAt: when(r.notFound),
	}
	if r.result >= 0 {
		e.Result = Events[r.result]
	}
	return e
}

func orderOf(e Effect) order {
	return order{
		exists: true, state: indexOf(States, e.State), result: indexOf(Events, e.Result), earlier: e.Earlier, last: e.Last, doubt: e.Doubt, gap: e.Gap,
		lost: e.Lost, again: e.Again, inUse: e.InUse, consent: e.Consent, sends: int8(e.Sends), first: ticks(e.FirstAt), until: ticks(e.Until), notFound: ticks(e.NotFoundAt),
	}
}

// forget makes times equal that are so long ago that they do not matter.
func (s *setup) forget(r *order) {
	low := func(v *int8, least int8) {
		if *v != none && *v < least {
			*v = least
		}
	}
	low(&r.first, -max(ticksOf(s.p.Life), ticksOf(s.p.LookBack))-1)
	low(&r.until, -ticksOf(s.p.Quiet)-1)
	low(&r.notFound, -ticksOf(s.p.Confirm)-1)
}

// next is a world that follows another one, and how.
type next struct {
	w      world
	what   string
	answer Event // of the bank
	on     Event // with the step that it caused
	out    Out
}

func (n *next) String() string {
	text := n.what
	if n.answer != "" {
		text += ", answer " + string(n.answer)
	}
	if n.on != "" {
		text += fmt.Sprintf(": %s -> %s [%s %s%s]", n.on, States[n.w.r.state], n.out.Row, n.out.Action, n.out.Case)
	}
	return text
}

func (s *setup) stepOf(e Effect, in Input) (Effect, Out) {
	if s.index == nil {
		if s.table == nil {
			s.table = Table
		}
		s.index = make([][][]Row, len(States))
		for i, state := range States {
			for _, on := range Events {
				s.index[i] = append(s.index[i], rowsOf(s.table, state, on))
			}
		}
	}
	in.Now = base
	return step(s.index[indexOf(States, e.State)][indexOf(Events, in.On)], s.p, e, in)
}

// step lets the effect of a world take an event.
func (s *setup) step(w world, in Input, what string) next {
	e := w.r.effect()
	in.Wanted, in.Moves = w.wanted, s.canMove
	if s.anyNumber {
		in.Send = e.Sends
	}
	after, out := s.stepOf(e, in)
	if s.used != nil {
		s.used[out.Row] = true
	}
	w.r = orderOf(after)
	s.forget(&w.r)
	switch out.Action {
	case Ask:
		w.c = call{phase: toLookUp, send: w.r.sends}
	case Send:
		w.c = call{phase: toSend, send: w.r.sends, deadline: ticksOf(s.p.Timeout)}
	case Release:
		for _, it := range w.items {
			if it.st == underWay && !s.b.asks || (it.st == underWay || it.st == asking) && s.b.asks && s.canConsent(&w) || it.st == processing || it.st == paid {
				w.violation = releasedPaid
			}
		}
	case Contradict:
		w.violation = contradiction
	}
	if e.State == Done && after.State != Done {
		w.violation = leftDone
	}
	return next{w: w, what: what, on: in.On, out: out}
}

func (s *setup) canConsent(w *world) bool {
	_, out := s.stepOf(w.r.effect(), Input{On: Consented, Wanted: true})
	return out.Action != Refuse
}

// executions counts the transfers that have left or are leaving.
func (w *world) executions() (n int) {
	for _, it := range w.items {
		if it.st == processing || it.st == paid {
			n++
		}
	}
	return n
}

func (w *world) inFlight() bool {
	return w.c.phase >= toSend || w.z.phase >= toSend ||
		slices.ContainsFunc(w.items[:], func(it item) bool { return it.st == underWay || it.st == asking || it.st != absent && it.young > 0 })
}

func (s *setup) start() world { return world{r: orderOf(Effect{State: Queued}), wanted: true} }

// found is the worlds of a search: all, or those before the first violation, which is the last one.
type found struct {
	s      *setup
	worlds []world
	parent []int32
	bad    bool
}

// search visits up to limit worlds. complete means that more of them is a violation.
func (s *setup) search(limit int, complete bool) *found {
	if s.maxSends == 0 {
		s.maxSends = 2
	}
	f := &found{s: s, worlds: []world{s.start()}, parent: []int32{-1}}
	seen := map[world]struct{}{s.start(): {}}
	for i := 0; i < len(f.worlds); i++ {
		for _, n := range s.moves(f.worlds[i]) {
			if n.w.executions() > 1 && !s.secondIsFine {
				n.w.violation = executedTwice
			}
			if _, ok := seen[n.w]; ok {
				continue
			}
			f.bad = n.w.violation != fine
			if !f.bad && len(f.worlds) == limit {
				if f.bad = complete; f.bad {
					f.worlds[len(f.worlds)-1].violation = tooManyWorlds
				}
				return f
			}
			seen[n.w] = struct{}{}
			f.worlds, f.parent = append(f.worlds, n.w), append(f.parent, int32(i))
			if f.bad {
				return f
			}
		}
	}
	return f
}

// violation is the violation of the last world; "" if there is none.
func (f *found) violation() string {
	if !f.bad {
		return ""
	}
	return violations[f.worlds[len(f.worlds)-1].violation]
}

// trace is how the last world is reached.
func (f *found) trace() (text string) {
	for i := int32(len(f.worlds) - 1); f.parent[i] >= 0; i = f.parent[i] {
		moves := f.s.moves(f.worlds[f.parent[i]])
		j := slices.IndexFunc(moves, func(n next) bool {
			n.w.violation = f.worlds[i].violation // it may be that of the search
			return n.w == f.worlds[i]
		})
		if j < 0 {
			return "?" + text
		}
		text = "\n\t" + moves[j].String() + text
	}
	return text
}
