package sim

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/porteira/porteira/test/sim/checker"
)

// stepper is a goroutine that runs steps of a process until a step kills it. It is reused,
// because its stack has grown.
type stepper struct {
	work  chan func()
	ended chan any
}

var errDied = errors.New("sim: the process died")

func (w *stepper) run() {
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

// step runs a part of a process's work in a separate goroutine, so that the process can die
// in the middle. Only deferred functions still run: they roll back transactions, as a
// database does when a connection ends.
func (s *simulation) step(n *node, work func()) (finished bool) {
	var w *stepper
	if last := len(s.idle) - 1; last >= 0 {
		w, s.idle = s.idle[last], s.idle[:last]
	} else {
		w = &stepper{work: make(chan func()), ended: make(chan any)}
		go w.run()
	}
	w.work <- work
	switch cause := (<-w.ended).(type) {
	case nil:
		s.idle = append(s.idle, w)
		return true
	case error: // the goroutine has ended
		if !errors.Is(cause, errDied) {
			s.violate(checker.NoFailure, "", "", fmt.Sprintf("panic in %s: %v", n.name, cause))
		}
	}
	return false
}
