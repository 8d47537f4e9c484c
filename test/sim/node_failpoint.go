package sim

import (
	"errors"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// failpoint may crash the process, pause it, cut its connection to the database, or run
// other actions in the middle of its step.
func (n *node) failpoint(life int, f env.Failpoint) error {
	s := n.sim
	n.exitIfDead(life)
	switch f {
	case env.BeforeCommit:
		return n.maybeCut(f)
	case env.AfterCommit:
		s.result.Commits++
		s.checkCommit()
	}
	n.maybeCrash(life, f)
	if err := n.maybeCut(f); err != nil {
		return err
	}
	if s.faultsOff {
		return nil
	}
	if s.chance(s.plan.pause) {
		s.coverage.count("process", "pause "+string(f), "any")
		d := s.between(time.Second, 20*time.Second)
		n.pause(d)
		n.elapse(life, d)
	} else if s.chance(s.plan.interleave) {
		n.elapse(life, s.between(0, 300*time.Millisecond))
	}
	return nil
}

func (n *node) maybeCrash(life int, f env.Failpoint) {
	s := n.sim
	if s.faultsOff || s.result.Crashes >= s.plan.crashesMax || !s.chance(s.plan.crash) {
		return
	}
	s.coverage.count("process", "crash "+string(f), "any")
	s.trace.linef("%s dies at %s", n.name, f)
	n.crash()
	n.exitIfDead(life)
}

var errCut = errors.New("sim: the connection to the database broke")

// maybeCut breaks the connection to the database at a COMMIT, whose outcome is then unknown.
func (n *node) maybeCut(f env.Failpoint) error {
	s := n.sim
	if f != env.BeforeCommit && f != env.AfterCommit || s.faultsOff || !s.chance(s.plan.cut) {
		return nil
	}
	s.coverage.count("process", "cut "+string(f), "any")
	s.trace.linef("%s loses its database at %s", n.name, f)
	return errCut
}
