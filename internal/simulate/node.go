package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/inbound"
	"github.com/porteira/porteira/internal/jobs"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/store"
)

// node is a gateway process: the real flows, duties and HTTP API, put together
// as app does it, in which nothing happens at the same time.
type node struct {
	sim    *simulation
	name   string
	shared bool // opens an SQLite file beside the first node

	life        int // counts starts; what belongs to an earlier one is dead
	up          bool
	frozenUntil time.Duration
	offset      time.Duration // of its wall clock
	waking      map[flow.Wake]bool
	forgetting  time.Time // the wall clock when its walk along old deliveries began

	store   *store.Store
	flow    *flow.Flow
	jobs    *jobs.Jobs
	handler http.Handler
}

// marker is what is kept outside the database.
type marker struct{ beat int64 }

// Read implements [jobs.Marker].
func (m *marker) Read() (int64, error) { return m.beat, nil }

// Write implements [jobs.Marker].
func (m *marker) Write(beat int64) error {
	m.beat = beat
	return nil
}

// nodeClock is a process's clock: all share one time, but each has a wall clock
// that may be wrong. Whoever waits for a timer lets the world go on.
type nodeClock struct {
	*env.VirtualClock
	node *node
	life int
}

// Now implements [env.Clock].
func (c *nodeClock) Now() time.Time { return c.VirtualClock.Now().Add(c.node.offset) }

// NewTimer implements [env.Clock]: the time passes here.
func (c *nodeClock) NewTimer(d time.Duration) env.Timer {
	c.node.elapse(c.life, d)
	fired := make(chan time.Time, 1)
	fired <- c.Now()
	return firedTimer(fired)
}

type firedTimer chan time.Time

// C implements [env.Timer].
func (t firedTimer) C() <-chan time.Time { return t }

// Stop implements [env.Timer].
func (t firedTimer) Stop() bool { return false }

// elapse lets time pass in the middle of this process's step. It does not
// return where the process has died meanwhile.
func (n *node) elapse(life int, d time.Duration) {
	n.sim.elapse(d)
	n.alive(life)
}

// alive ends the goroutine of a process that is dead.
func (n *node) alive(life int) {
	if n.life != life || !n.up {
		runtime.Goexit()
	}
}

// start opens the database and begins a new life.
func (n *node) start() {
	s := n.sim
	if n.up {
		return
	}
	n.close()
	n.life++
	n.up, n.waking, n.forgetting = true, map[flow.Wake]bool{}, time.Time{}
	life := n.life
	s.trace.linef("%s starts", n.name)
	s.step(n, func() {
		if err := n.open(life); err != nil {
			s.trace.linef("%s cannot start: %v", n.name, err)
			n.die()
		}
	})
	if n.up && n.life == life {
		n.poll(0)
	} else if !n.up {
		s.after(s.between(50*time.Millisecond, time.Second), n.start)
	}
}

// world is the outside as this life of the process sees it.
func (n *node) env(life int) env.Env {
	return env.Env{
		Clock: &nodeClock{n.sim.clock, n, life}, IDs: n.sim.source.IDs, Random: n.sim.source.Random,
		Webhooks:    &webhookWire{n, life},
		Processor:   &bankWire{n, life},
		OnFailpoint: func(m env.Failpoint) error { return n.reach(life, m) },
	}
}

func (n *node) open(life int) (err error) {
	s, w := n.sim, n.env(life)
	log := slog.New(slog.DiscardHandler)
	n.store, err = store.Open(s.ctx, store.Options{
		Database: s.options.Database, Keys: s.keys, Env: w, Log: log, Shared: n.shared, Connections: 2,
		AllowUnsafe: true, // a database that outlives its gateways loses nothing by being fast
	})
	if err != nil {
		return err
	}
	adapter, err := sandbox.NewProcessor(sandbox.Options{URL: bankURL, Secret: bankSecret, Transport: w.Processor})
	if err != nil {
		return err
	}
	processors := processor.Registry{sandbox.Name: adapter}
	links := checkout.Links("https://pay.example", n.store.Keys())
	n.flow = flow.New(flow.Options{
		Store: n.store, Env: w, Processors: processors, Log: log,
		Wake: func(what flow.Wake) { n.wake(life, what) }, Links: links,
	})
	n.jobs = jobs.New(jobs.Options{
		Flow: n.flow, Store: n.store, Env: w, Processors: processors, Log: log, Marker: &s.marker, Inline: true,
		Retention: retention,
	})
	n.flow.HandTo(n.jobs)
	n.handler = httpapi.New(httpapi.Options{
		Orders: n.flow, Payins: n.flow, Payouts: n.flow, Events: n.flow,
		Reader: n.store, Keys: n.store.Keys(), Env: w, Processors: processors, Log: log, Links: links,
		Inbound: inbound.New(inbound.Options{Flow: n.flow, Processors: processors, Clock: w.Clock, Log: log}),
	})
	alone := !store.IsPostgres(s.options.Database) && len(s.nodes) == 1
	if err := n.flow.Join(s.ctx, s.marker.beat, alone); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	_, err = n.jobs.KeepAlive(s.ctx)
	return err
}

// die ends this life where it stands: nothing that is not committed remains.
func (n *node) die() {
	n.up = false
	n.life++
	n.sim.trace.linef("%s dies", n.name)
}

// close lets go of the database of a life that has ended.
func (n *node) close() {
	if n.store != nil {
		_ = n.store.Close() // a process that died closed nothing either
		n.store = nil
	}
}

// crash kills the process and brings it back a while later.
func (n *node) crash() {
	if !n.up {
		return
	}
	n.die()
	n.sim.result.Crashes++
	n.sim.after(n.sim.between(10*time.Millisecond, 5*time.Second), n.start)
}

// freeze stops the process, as SIGSTOP or a sleeping machine does.
func (n *node) freeze(d time.Duration) {
	n.frozenUntil = n.sim.clock.Monotonic() + d
	n.sim.trace.linef("%s stands still for %v", n.name, d)
}

// reach is what happens at a moment: the world may go on in the middle of a
// step, the process may stand still, its database may be cut off, or it dies.
func (n *node) reach(life int, m env.Failpoint) error {
	s := n.sim
	n.alive(life)
	switch m {
	case env.BeforeCommit:
		return n.cut(m)
	case env.AfterCommit:
		s.result.Commits++
		s.check()
	}
	n.maybeCrash(life, m)
	if err := n.cut(m); err != nil {
		return err
	}
	if s.calm || s.depth >= depthMax {
		return nil
	}
	if s.chance(s.plan.freeze) {
		s.cells.fire("process", "stop "+string(m), "any")
		d := s.between(time.Second, 20*time.Second)
		n.freeze(d)
		n.elapse(life, d)
	} else if s.chance(s.plan.interleave) {
		n.elapse(life, s.between(0, 300*time.Millisecond))
	}
	return nil
}

func (n *node) maybeCrash(life int, m env.Failpoint) {
	s := n.sim
	if s.calm || s.result.Crashes >= s.plan.crashesMax || !s.chance(s.plan.crash) {
		return
	}
	s.cells.fire("process", "crash "+string(m), "any")
	s.trace.linef("%s dies at %s", n.name, m)
	n.crash()
	n.alive(life)
}

// cut is the moment around COMMIT in which a connection breaks.
func (n *node) cut(m env.Failpoint) error {
	s := n.sim
	if m != env.BeforeCommit && m != env.AfterCommit || s.calm || !s.chance(s.plan.cut) {
		return nil
	}
	s.cells.fire("process", "cut "+string(m), "any")
	s.trace.linef("%s loses its database at %s", n.name, m)
	return errCut
}

var errCut = errors.New("simulate: the connection broke")

// duties are what a process does unasked.
var duties = []struct {
	wake flow.Wake
	name string
	step func(*jobs.Jobs, context.Context) (int, error)
}{
	{flow.WakeSubmit, "submit", (*jobs.Jobs).SubmitPayouts},
	{flow.WakeResolve, "resolve", (*jobs.Jobs).ResolvePayouts},
	{flow.WakeNotices, "notices", (*jobs.Jobs).ApplyNotices},
	{flow.WakeExpire, "expire", (*jobs.Jobs).ExpirePayins},
	{flow.WakeDeliver, "deliver", (*jobs.Jobs).DeliverWebhooks},
	{flow.WakeCollect, "collect", (*jobs.Jobs).CollectPayments},
}

// wake schedules a duty soon, once.
func (n *node) wake(life int, what flow.Wake) {
	if n.life != life || n.waking[what] {
		return
	}
	n.waking[what] = true
	n.sim.push(n.sim.between(0, n.sim.plan.lag), n, func() {
		n.waking[what] = false
		n.work(what)
	})
}

// work runs one duty, and again soon if it did something.
func (n *node) work(what flow.Wake) (did int) {
	s, life := n.sim, n.life
	duty := &duties[0]
	for i := range duties {
		if duties[i].wake == what {
			duty = &duties[i]
		}
	}
	var err error
	s.step(n, func() {
		if n.jobs.Lease().Remaining() < time.Second {
			if _, err = n.jobs.KeepAlive(s.ctx); err != nil {
				return
			}
		}
		did, err = duty.step(n.jobs, s.ctx)
	})
	if did > 0 || err != nil {
		s.trace.linef("%s %s did %d %v", n.name, duty.name, did, err)
		n.wake(life, what)
	}
	return did
}

// retention is for how long finished deliveries are kept: not long, so that
// they go while the rest goes on.
const retention = time.Hour

// forgetting is the latest clock by which a process removes old deliveries: one
// may go on with its walk in the middle of another's.
func (s *simulation) forgetting() (latest time.Time) {
	for _, n := range s.nodes {
		if n.forgetting.After(latest) {
			latest = n.forgetting
		}
	}
	return latest
}

// forget removes old deliveries, which nothing wakes.
func (n *node) forget() {
	if !n.up {
		return
	}
	n.sim.step(n, func() {
		if !n.jobs.Removing() { // a walk goes by the clock of its beginning, right or wrong
			n.forgetting = n.jobs.Env.Clock.Now()
		}
		if _, err := n.jobs.RemoveDeliveries(n.sim.ctx); err != nil {
			n.sim.trace.linef("%s removes no deliveries: %v", n.name, err)
		}
	})
}

// poll runs all duties now and then, as what is due at a time wakes nobody.
func (n *node) poll(d time.Duration) {
	s := n.sim
	s.push(d, n, func() {
		for i := range duties {
			if !n.up {
				return
			}
			n.work(duties[i].wake)
		}
		n.forget()
		if !s.calm {
			n.poll(s.between(5*time.Second, 15*time.Second))
		}
	})
}
