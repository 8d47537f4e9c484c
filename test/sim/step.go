package sim

import (
	"container/heap"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/porteira/porteira/test/sim/checker"
)

// Each action runs in a goroutine, and each step of a process in another one for which it
// waits. Exactly one goroutine runs at a time: an action that waits for a time parks, and
// the scheduler resumes it in its turn.

// stepper is a goroutine that runs one function after another, until one of them ends it.
// It is reused, because its stack has grown.
type stepper struct{ jobs chan job }

type job struct {
	do   func()
	done chan ending
}

// ending is how a job ended, or that it parked.
type ending struct {
	stepper *stepper // nil if the goroutine has ended, or has parked
	cause   error
	parked  bool
}

var errDied = errors.New("sim: the process died")

func (w *stepper) run() {
	var j job
	defer func() {
		if cause := recover(); cause != nil {
			j.done <- ending{cause: fmt.Errorf("%v\n%s", cause, debug.Stack())}
		} else if j.do != nil {
			j.done <- ending{cause: errDied}
		}
	}()
	for j = range w.jobs {
		j.do()
		j.done <- ending{stepper: w}
	}
	j.do = nil
}

// begin begins a job in an idle goroutine.
func (s *simulation) begin(do func(), done chan ending) {
	var w *stepper
	if last := len(s.idle) - 1; last >= 0 {
		w, s.idle = s.idle[last], s.idle[:last]
	} else {
		w = &stepper{jobs: make(chan job)}
		go w.run()
	}
	w.jobs <- job{do, done}
}

// step runs a part of a process's work in a separate goroutine, so that the process can die
// in the middle. Only deferred functions still run: they roll back transactions, as a
// database does when a connection ends.
func (s *simulation) step(n *node, work func()) (finished bool) {
	done := make(chan ending, 1)
	s.begin(work, done)
	return s.ended(n.name, <-done)
}

// ended reports whether a job ran to its end.
func (s *simulation) ended(name string, e ending) bool {
	switch {
	case e.stepper != nil:
		s.idle = append(s.idle, e.stepper)
		return true
	case !errors.Is(e.cause, errDied):
		s.violate(checker.NoFailure, "", "", fmt.Sprintf("panic in %s: %v", name, e.cause))
	}
	return false
}

// act runs an action until it ends or parks.
func (s *simulation) act(do func()) { s.transfer(func() { s.begin(do, s.control) }) }

// transfer lets another goroutine run, until it ends its action or parks.
func (s *simulation) transfer(begin func()) {
	s.acting = true
	begin()
	e := <-s.control
	s.acting = false
	if !e.parked {
		s.ended("an action", e)
	}
}

// perform runs an action to its end, for the scheduler itself.
func (s *simulation) perform(do func()) {
	done := false
	s.after(0, func() {
		do()
		done = true
	})
	for !done && len(s.queue) > 0 && len(s.violations) == 0 {
		s.runUntil(s.queue[0].at)
	}
}

// elapse lets d pass in the middle of an action, while other actions run.
func (s *simulation) elapse(d time.Duration) { s.park(nil, d) }

// park is elapse in a node's process, which does not go on while the process is paused.
func (s *simulation) park(n *node, d time.Duration) {
	if !s.acting {
		s.runUntil(s.clock.Monotonic() + d)
		return
	}
	if s.closing {
		runtime.Goexit()
	}
	a := s.newAction(d, n, nil)
	a.resume = make(chan struct{})
	heap.Push(&s.queue, a)
	s.parked++
	s.control <- ending{parked: true}
	<-a.resume
	s.parked--
	if s.closing {
		runtime.Goexit()
	}
}

// endParked ends all goroutines.
func (s *simulation) endParked() {
	s.closing = true
	for _, a := range s.queue {
		if a.resume != nil {
			s.transfer(func() { a.resume <- struct{}{} })
		}
	}
	for _, w := range s.idle {
		close(w.jobs)
	}
}
