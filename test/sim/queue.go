package sim

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/porteira/porteira/test/sim/checker"
)

// action is a scheduled function.
type action struct {
	at     time.Duration // by the virtual clock's monotonic time
	rank   int64         // random order of actions at the same time
	serial uint64
	node   *node // of the process; nil outside the gateway
	life   int   // of the node
	do     func()
	resume chan struct{} // of a goroutine that has parked, instead of do
}

type queue []*action

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (q queue) Len() int { return len(q) }

// Less orders actions by time.
func (q queue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	if q[i].rank != q[j].rank {
		return q[i].rank < q[j].rank
	}
	return q[i].serial < q[j].serial
}

// Swap exchanges two actions.
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds an action.
func (q *queue) Push(x any) { *q = append(*q, x.(*action)) }

// Pop removes the last action.
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}

// after schedules do d from now, outside the gateway.
func (s *simulation) after(d time.Duration, do func()) { s.schedule(d, nil, do) }

// schedule schedules do d from now, in a node's process or outside (nil).
func (s *simulation) schedule(d time.Duration, n *node, do func()) {
	heap.Push(&s.queue, s.newAction(d, n, do))
}

func (s *simulation) newAction(d time.Duration, n *node, do func()) *action {
	s.serial++
	// Clocks have a resolution of a microsecond: round up, so that work is due then.
	at := (s.clock.Monotonic() + max(d, 0) + time.Microsecond - 1).Truncate(time.Microsecond)
	a := &action{at: at, rank: s.random.Int64N(1 << 30), serial: s.serial, node: n, do: do}
	if n != nil {
		a.life = n.life
	}
	return a
}

// runUntil runs all actions that are due until target, and ends at that time.
func (s *simulation) runUntil(target time.Duration) {
	for len(s.queue) > 0 && s.queue[0].at <= target && len(s.violations) == 0 {
		a := heap.Pop(&s.queue).(*action)
		s.clock.Advance(a.at - s.clock.Monotonic())
		s.run(a)
	}
	s.clock.Advance(target - s.clock.Monotonic())
}

func (s *simulation) run(a *action) {
	if n := a.node; n != nil {
		if a.life != n.life && a.resume == nil {
			return // its process is dead
		}
		if a.life == n.life && n.pausedUntil > s.clock.Monotonic() {
			a.at = n.pausedUntil
			heap.Push(&s.queue, a)
			return
		}
	}
	if s.steps++; s.steps > stepsMax {
		s.violate(checker.Progress, "", "", fmt.Sprintf("not finished after %d steps", s.steps))
		return
	}
	if a.resume != nil {
		s.transfer(func() { a.resume <- struct{}{} })
		return
	}
	s.act(a.do)
}
