package sim

import (
	"slices"
	"time"

	"github.com/porteira/porteira/internal/app"
)

// workers are the background workers that run when woken and periodically. The others have
// their own schedule: the heartbeat renews the lease, and removeOld removes old deliveries.
func (n *node) workers() []app.WorkerSpec {
	return slices.DeleteFunc(slices.Clone(n.core.Workers), func(w app.WorkerSpec) bool {
		return w.Name == app.WorkerHeartbeat || w.Name == app.WorkerRemove || w.Name == app.WorkerAnalyze
	})
}

// wake schedules a worker soon, once.
func (n *node) wake(life int, name string) {
	if n.life != life || n.woken[name] {
		return
	}
	n.woken[name] = true
	n.sim.schedule(n.sim.between(0, n.sim.plan.wakeDelay), n, func() {
		n.woken[name] = false
		for _, w := range n.workers() {
			if w.Name == name {
				n.runWorker(w)
			}
		}
	})
}

// runWorker runs a step of a worker, and wakes it if it did work.
// A step that is wanted while another one of the worker is not over follows it.
func (n *node) runWorker(w app.WorkerSpec) (did int) {
	s, life := n.sim, n.life
	if n.working[w.Name] {
		n.wanted[w.Name] = true
		return 0
	}
	n.working[w.Name], n.wanted[w.Name] = true, false
	var err error
	s.step(n, func() {
		if n.core.Node.Lease.Remaining() < time.Second {
			if _, err = n.core.Cluster.KeepAlive(s.ctx); err != nil {
				return
			}
		}
		did, err = w.Step(s.ctx)
	})
	if n.life == life {
		n.working[w.Name] = false
	}
	if did > 0 || err != nil {
		s.trace.linef("%s %s did %d %v", n.name, w.Name, did, err)
	}
	if did > 0 || err != nil || n.life == life && n.wanted[w.Name] {
		n.wake(life, w.Name)
	}
	return did
}

// spawn runs a call of a worker beside its step.
func (n *node) spawn(life int, call func()) {
	s := n.sim
	n.calls++
	if len(s.nodes) > 1 && !n.renewing {
		n.renewing = true
		s.schedule(time.Second, n, n.renew)
	}
	s.schedule(0, n, func() {
		s.step(n, call)
		if n.life == life {
			n.calls--
		}
	})
}

// renew writes heartbeats while calls are in flight: else another process takes them over.
func (n *node) renew() {
	s := n.sim
	if n.renewing = n.calls > 0; !n.renewing {
		return
	}
	s.step(n, func() { _, _ = n.core.Cluster.KeepAlive(s.ctx) }) // a failure is repeated
	if n.renewing {
		s.schedule(time.Second, n, n.renew)
	}
}

// poll runs all workers periodically, because work that becomes due wakes none.
func (n *node) poll(d time.Duration) {
	s := n.sim
	s.schedule(d, n, func() {
		for _, w := range n.workers() {
			s.schedule(0, n, func() { n.runWorker(w) })
		}
		s.schedule(0, n, n.removeOld)
		if !s.faultsOff {
			n.poll(s.between(5*time.Second, 15*time.Second))
		}
	})
}

// retention of finished deliveries is short, so that they are removed during a run.
const retention = time.Hour

// removeOld runs the worker that removes old deliveries.
func (n *node) removeOld() {
	life := n.life
	if !n.up || n.working[app.WorkerRemove] {
		return
	}
	n.working[app.WorkerRemove] = true
	defer func() {
		if n.life == life {
			n.working[app.WorkerRemove] = false
		}
	}()
	n.sim.step(n, func() {
		if !n.core.Deliveries.Removing() { // a pass uses the wall clock of its start
			n.removalFrom = n.env.Clock.Now()
		}
		if _, err := n.core.Deliveries.RemoveOld(n.sim.ctx); err != nil {
			n.sim.trace.linef("%s removes no deliveries: %v", n.name, err)
		}
	})
}

// latestRemoval is the latest wall clock of a pass over old deliveries: passes of several
// processes may overlap.
func (s *simulation) latestRemoval() (latest time.Time) {
	for _, n := range s.nodes {
		if n.removalFrom.After(latest) {
			latest = n.removalFrom
		}
	}
	return latest
}
