package sim

import (
	"errors"
	"time"

	"github.com/porteira/porteira/test/sim/checker"
)

// clockOffsets are errors of a wall clock.
var clockOffsets = []time.Duration{
	-time.Hour, -2 * time.Second, time.Second, 10 * time.Second, time.Hour, 3 * time.Hour, 20 * time.Hour, 26 * time.Hour, 14 * 24 * time.Hour,
}

// Times of a wall clock that is wrong.
const (
	clockWrongMax = 3 * time.Minute
	// pulledWithin is how long after a clock was set right work that it had put off may wait.
	// The gateway has a minute, and the simulation's heartbeats may be half a minute apart.
	pulledWithin = 90 * time.Second
	// aheadMin is the least error of a clock that counts as ahead.
	aheadMin = time.Minute
)

// setClock changes the wall clock of a process, and sets it right some time later.
func (n *node) setClock() {
	s := n.sim
	n.clockOffset = pick(s, clockOffsets)
	s.daysAhead = s.daysAhead || n.clockOffset >= 24*time.Hour
	s.trace.linef("%s has its clock off by %v", n.name, n.clockOffset)
	s.after(s.between(time.Second, clockWrongMax), func() {
		ahead := n.clockOffset >= time.Hour && s.heartbeatAhead()
		n.clockOffset = 0
		s.trace.linef("%s has its clock set right", n.name)
		life := n.life
		if ahead && n.up {
			s.coverage.count("process", "clock ahead, set right", "any")
			s.after(pulledWithin, func() {
				if n.life == life && n.pausedUntil <= s.clock.Monotonic() && s.clocksRight() {
					s.checkPutOff()
				}
			})
		}
	})
}

// heartbeatAhead reports whether a process has written a heartbeat while its clock was ahead. A process
// compares its clock at its heartbeats, so it does not notice a jump between two of them.
func (s *simulation) heartbeatAhead() bool {
	count := 0
	err := s.raw.QueryRowContext(s.ctx, "SELECT count(*) FROM nodes WHERE clock > $1", s.clock.Now().Add(aheadMin).UnixMicro()).Scan(&count)
	if err != nil {
		s.fail(err)
	}
	return count > 0
}

// clocksRight reports whether no wall clock is ahead.
func (s *simulation) clocksRight() bool {
	for _, n := range s.nodes {
		if n.clockOffset > 0 {
			return false
		}
	}
	return true
}

// waitsForHours is the number of attempts after which a notice waits for two hours in any case.
const waitsForHours = 8

// checkPutOff reports work that still waits because a clock that was ahead scheduled it.
func (s *simulation) checkPutOff() {
	ahead := s.clock.Now().Add(aheadMin).UnixMicro()
	rows, err := s.raw.QueryContext(s.ctx, `SELECT DISTINCT what FROM (
		SELECT 'payouts' AS what FROM payouts WHERE next_at > $1 AND updated_at > $1 AND step <> 'approval' UNION ALL
		SELECT 'refunds' FROM refund_parts WHERE next_at > $1 AND updated_at > $1 UNION ALL
		SELECT 'deliveries' FROM deliveries WHERE next_at > $1 AND updated_at > $1 UNION ALL
		SELECT 'notices' FROM notices WHERE next_at > $1 AND received_at > $1 AND next_at >= received_at AND attempts < $2 UNION ALL
		SELECT 'feeds' FROM feeds WHERE next_at > $1 AND updated_at > $1) AS late ORDER BY what`, ahead, waitsForHours)
	if err != nil {
		s.fail(err)
		return
	}
	for rows.Next() {
		var what string
		err = errors.Join(err, rows.Scan(&what))
		s.violate(checker.Progress, "", "", what+" are put off by a clock that was ahead and is right")
	}
	if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
		s.fail(err)
	}
}
