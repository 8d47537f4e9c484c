package simulate

import (
	"container/heap"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
)

// Options say what to simulate.
type Options struct {
	// Seed decides everything that happens.
	Seed uint64
	// Database is a path of an SQLite file or a postgres:// URL: empty, and
	// migrated by [Prepare].
	Database string
	// Journal is the path of the bank's journal, which is not there yet.
	Journal string
	// Orders is how many orders merchants place; 0 takes [OrdersDefault].
	Orders int
	// Trace, if not nil, is given each line of the trace.
	Trace func(line string)
}

// OrdersDefault is how many orders a run has.
const OrdersDefault = 200

// Limits of a run.
const (
	// depthMax is how many steps may be under way at once, each begun while
	// the one before waits for somebody.
	depthMax = 3
	// settleWithin is how long, in simulated time, everything may take to
	// become final once faults have stopped.
	settleWithin = 60 * 24 * time.Hour
	// stepsMax ends a run that goes round in circles.
	stepsMax = 200_000
)

// epoch is when simulations begin: some days before a change of year.
var epoch = time.Date(2026, 12, 28, 21, 30, 0, 0, time.UTC)

// simulation is one run: a world of merchants, payers, a bank, receivers and
// one or two gateway processes on one database, in which one thing happens
// after another.
type simulation struct {
	ctx     context.Context
	options Options
	random  env.Random
	clock   *env.VirtualClock
	source  env.Env // whose ids and chance the gateways draw from
	queue   events
	serial  uint64
	depth   int
	steps   int

	plan      plan
	calm      bool // no faults any more
	keys      *store.Keyring
	nodes     []*node
	bank      *bankSite
	merchants []*merchant
	mailboxes map[string]*receiver // by host
	raw       *sql.DB              // the checker's own connection
	gateway   *gatewayBook
	books     books
	cells     coverage
	marker    marker
	trace     trace
	result    Result
	idle      []*worker
	broken    []violation
	answers   map[string][]byte // of look-ups, a while ago
	turns     map[string]int    // of faults, by whom they concern and in which state
}

// event is something that happens at a time.
type event struct {
	at     time.Duration // by the virtual clock's monotonic time
	rank   int64         // random: of events at one time, any may come first
	serial uint64
	node   *node // whose process it belongs to; nil for the rest of the world
	life   int   // of the node
	do     func()
}

type events []*event

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (q events) Len() int { return len(q) }

// Less puts what is due first in front.
func (q events) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	if q[i].rank != q[j].rank {
		return q[i].rank < q[j].rank
	}
	return q[i].serial < q[j].serial
}

// Swap exchanges two events.
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds an event.
func (q *events) Push(x any) { *q = append(*q, x.(*event)) }

// Pop takes the last event off.
func (q *events) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}

// after lets do happen d from now, in the world outside the gateways.
func (s *simulation) after(d time.Duration, do func()) { s.push(d, nil, do) }

func (s *simulation) push(d time.Duration, n *node, do func()) {
	s.serial++
	// Clocks show whole microseconds: what is due is due when it can be seen.
	at := (s.clock.Monotonic() + max(d, 0) + time.Microsecond - 1).Truncate(time.Microsecond)
	e := &event{at: at, rank: s.random.Int64N(1 << 30), serial: s.serial, node: n, do: do}
	if n != nil {
		e.life = n.life
	}
	heap.Push(&s.queue, e)
}

// runUntil lets everything happen that is due until then.
func (s *simulation) runUntil(target time.Duration) {
	for len(s.queue) > 0 && s.queue[0].at <= target && len(s.broken) == 0 {
		e := heap.Pop(&s.queue).(*event)
		s.clock.Advance(e.at - s.clock.Monotonic())
		s.happen(e)
	}
	s.clock.Advance(target - s.clock.Monotonic())
}

func (s *simulation) happen(e *event) {
	if n := e.node; n != nil {
		if e.life != n.life {
			return // it was to happen in a process that is dead
		}
		if n.frozenUntil > s.clock.Monotonic() {
			e.at = n.frozenUntil
			heap.Push(&s.queue, e)
			return
		}
	}
	if s.steps++; s.steps > stepsMax {
		s.violate("I11", "", "", fmt.Sprintf("%d steps, and no end", s.steps))
		return
	}
	e.do()
}

// elapse lets d pass for whoever waits, while everybody else goes on; deep down
// it is only the clock that moves.
func (s *simulation) elapse(d time.Duration) {
	target := s.clock.Monotonic() + d
	if s.depth >= depthMax {
		s.clock.Advance(d)
		return
	}
	s.depth++
	s.runUntil(target)
	s.depth--
}

// step runs a piece of a process's work in a goroutine of its own, so that the
// process can die in the middle of it: what is deferred runs, as the database
// rolls back when a connection ends, and nothing else.
func (s *simulation) step(n *node, work func()) (finished bool) {
	var w *worker
	if last := len(s.idle) - 1; last >= 0 {
		w, s.idle = s.idle[last], s.idle[:last]
	} else {
		w = &worker{work: make(chan func()), ended: make(chan any)}
		go w.run()
	}
	w.work <- work
	switch cause := (<-w.ended).(type) {
	case nil:
		s.idle = append(s.idle, w)
		return true
	case error: // the goroutine is gone
		if !errors.Is(cause, errDied) {
			s.violate("A5", "", "", fmt.Sprintf("panic in %s: %v", n.name, cause))
		}
	}
	return false
}

// worker is a goroutine that runs one step after the other, until one kills it:
// a stack that has grown is of use to the next.
type worker struct {
	work  chan func()
	ended chan any
}

var errDied = errors.New("simulate: died")

func (w *worker) run() {
	finished := false
	defer func() {
		if cause := recover(); cause != nil {
			w.ended <- fmt.Errorf("%v\n%s", cause, debug.Stack())
		} else if !finished {
			w.ended <- errDied
		}
	}()
	for work := range w.work {
		work()
		w.ended <- nil
	}
	finished = true
}

// check holds the gateway's books against the rules; it is called after each
// commit.
func (s *simulation) check() {
	found, err := s.gateway.read(s.ctx)
	if err != nil {
		s.violate("", "", "", "the books cannot be read: "+err.Error())
	}
	s.broken = append(s.broken, found...)
}

func (s *simulation) violate(invariant, merchant, order, text string) {
	s.broken = append(s.broken, violation{invariant, merchant, order, text})
}

// chance is true so many times of a thousand.
func (s *simulation) chance(perMille int) bool { return s.random.Int64N(1000) < int64(perMille) }

// between draws a duration.
func (s *simulation) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Int64N(int64(most-least)+1))
}

// number draws from 0 to n-1.
func (s *simulation) number(n int) int { return int(s.random.Int64N(int64(n))) }

func pick[T any](s *simulation, list []T) T { return list[s.number(len(list))] }
