package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// node is a gateway process: the real core and HTTP API, assembled as in package app, but
// without concurrency.
type node struct {
	sim    *simulation
	name   string
	shared bool // opens an SQLite file that another node has open

	life        int // number of starts; actions of earlier lives do not run
	up          bool
	pausedUntil time.Duration
	clockOffset time.Duration   // of its wall clock
	woken       map[string]bool // scheduled workers
	working     map[string]bool // workers in a step
	wanted      map[string]bool // workers that are to run again after their step
	calls       int             // of the workers, in flight
	renewing    bool            // a heartbeat is scheduled
	removalFrom time.Time       // wall clock at the start of the pass over old deliveries

	store   *store.Store
	core    *app.Core
	env     env.Env
	handler http.Handler
	links   transition.Links
}

// marker keeps the installation's mark outside the database.
type marker struct{ cluster.Mark }

// Read implements [cluster.Marker].
func (m *marker) Read() (cluster.Mark, error) { return m.Mark, nil }

// Write implements [cluster.Marker].
func (m *marker) Write(mark cluster.Mark) error {
	m.Mark = mark
	return nil
}

// start opens the database and begins a new life.
func (n *node) start() {
	s := n.sim
	if n.up {
		return
	}
	n.close()
	n.life++
	n.up, n.woken, n.working, n.removalFrom = true, map[string]bool{}, map[string]bool{}, time.Time{}
	n.wanted = map[string]bool{}
	n.calls, n.renewing = 0, false
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

// environment is the environment of this life of the process.
func (n *node) environment(life int) env.Env {
	return env.Env{
		Clock: &nodeClock{n.sim.clock, n, life}, IDs: n.sim.source.IDs, Random: n.sim.source.Random,
		Webhooks:    &webhookTransport{n, life},
		Processor:   &bankTransport{n, life},
		OnFailpoint: func(f env.Failpoint) error { return n.failpoint(life, f) },
	}
}

func (n *node) open(life int) (err error) {
	s, e := n.sim, n.environment(life)
	log := slog.New(slog.DiscardHandler)
	n.store, err = store.Open(s.ctx, db.Options{
		Database: s.options.Database, Keys: s.keys, Env: e, Log: log, Shared: n.shared, Connections: 2,
		AllowUnsafe: true, // the database outlives its gateways, so it needs no sync
	})
	if err != nil {
		return err
	}
	processors, err := n.openAccounts(e, log)
	if err != nil {
		return err
	}
	n.links = checkout.Links("https://pay.example", n.store.Keys())
	n.env = e
	n.core = app.NewCore(app.CoreOptions{
		Store: n.store, Env: e, Processors: processors, Log: log, Marker: &s.marker, Links: n.links, Retention: retention, Steps: app.AppSteps{Accounts: processors.Follow},
		Spawn: func(call func()) { n.spawn(life, call) },
		Wait:  func(_ context.Context, d time.Duration) error { n.elapse(life, d); return nil }, Wakers: app.NewWakers(func(worker string) { n.wake(life, worker) }),
	})
	n.handler = httpapi.New(httpapi.Options{
		Admission: n.core.Writer, Payins: n.core.Payins, Payouts: n.core.Payouts, Refunds: n.core.Refunds, Disputes: n.core.Disputes, Events: n.core.Deliveries, Endpoints: n.core.Endpoints, Secrets: n.core.Merchants,
		Reader: n.store, Keys: n.store.Keys(), Env: e, Processors: processors, Log: log, Links: n.links,
		Inbound: notice.NewHandler(notice.HandlerOptions{Recorder: n.core.Notices, Questions: n.core.Outgoing, Processors: processors, Clock: e.Clock, Log: log}),
	})
	alone := !db.IsPostgres(s.options.Database) && len(s.nodes) == 1
	if err := n.core.Cluster.Join(s.ctx, s.marker.Mark, alone); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	s.checker.ColdStart = s.checker.ColdStart || n.core.Node.History() > 0
	_, err = n.core.Cluster.KeepAlive(s.ctx)
	return err
}

// die ends this life at once: only committed data remains.
func (n *node) die() {
	n.up = false
	n.life++
	n.sim.trace.linef("%s dies", n.name)
}

// close closes the database of a killed process.
func (n *node) close() {
	if n.store != nil {
		_ = n.store.Close() // errors do not matter after a crash
		n.store = nil
	}
}

// crash kills the process, and starts it again later.
func (n *node) crash() {
	if !n.up {
		return
	}
	n.die()
	n.sim.result.Crashes++
	n.sim.after(n.sim.between(10*time.Millisecond, 5*time.Second), n.start)
}

// pause stops the process, as SIGSTOP or a sleeping machine does.
func (n *node) pause(d time.Duration) {
	n.pausedUntil = n.sim.clock.Monotonic() + d
	n.sim.trace.linef("%s is paused for %v", n.name, d)
}

// exitIfDead ends the goroutine of a process that is dead.
func (n *node) exitIfDead(life int) {
	if n.life != life || !n.up {
		runtime.Goexit()
	}
}

// elapse advances time in the middle of this process's step. It does not return if the
// process dies meanwhile.
func (n *node) elapse(life int, d time.Duration) {
	n.sim.park(n, d)
	n.exitIfDead(life)
}

// hang waits until the caller gives up.
func (n *node) hang(life int, ctx context.Context) error {
	for ctx.Err() == nil {
		wait, ok := n.sim.clock.Next()
		if !ok {
			return errors.New("sim: a call without a timeout")
		}
		n.elapse(life, max(wait, time.Microsecond))
	}
	return ctx.Err()
}

// serve answers a request that reached the gateway; ok is false if it died meanwhile.
func (n *node) serve(r *http.Request, body []byte) (w *httptest.ResponseRecorder, ok bool) {
	w = newRecorder()
	r = r.Clone(r.Context())
	r.Body, r.ContentLength, r.RequestURI, r.RemoteAddr = io.NopCloser(bytes.NewReader(body)), int64(len(body)), "", "192.0.2.1:1"
	ok = n.sim.step(n, func() { n.handler.ServeHTTP(w, r) })
	return w, ok && w.Code != 0
}

// reachableNode is a gateway that answers, or nil if none does.
func (s *simulation) reachableNode() *node {
	first := s.number(len(s.nodes))
	for i := range s.nodes {
		n := s.nodes[(first+i)%len(s.nodes)]
		if n.up && n.pausedUntil <= s.clock.Monotonic() {
			return n
		}
	}
	return nil
}
