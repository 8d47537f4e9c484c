package drivers

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/worker"
)

// account is the gateway's only one.
const account = "main"

// noticeURL is where the account's notices arrive.
const noticeURL = "https://gateway.invalid/inbound/" + account + "/" + account

// gateway is a database and the process that runs on it.
type gateway struct {
	t        *testing.T
	clock    *env.VirtualClock
	env      env.Env // without the failpoints of a process
	database db.Options
	marker   coretest.Marker
	log      apptest.Log
	merchant store.Merchant
	bank     bank
	nemesis  *nemesis
	way      []letter // messages that arrive later

	*process
}

// process is one life of the gateway.
type process struct {
	dead    atomic.Bool
	acting  bool // within do
	store   *store.Store
	core    *app.Core
	driver  processor.Processor
	inbound http.Handler
}

// workers are those that have to do with orders.
var workers = []string{
	app.WorkerSend, app.WorkerLookUp, app.WorkerAnswer, app.WorkerNotices, app.WorkerFeeds, app.WorkerCharge, app.WorkerExpire, app.WorkerSettle,
}

// newGateway prepares a database and starts a process on it, with a merchant that has money.
func newGateway(t *testing.T, engine string, open func(g *gateway) bank, n *nemesis) *gateway {
	t.Helper()
	e, clock := env.Virtual(coretest.Start, 1)
	g := &gateway{t: t, clock: clock, env: e, nemesis: n, database: storetest.Prepare(t, engine, e)}
	g.bank = open(g)
	n.off = true
	g.start()
	t.Cleanup(func() { g.must(g.store.Close()) })
	var err error
	g.merchant, err = g.core.Merchants.Create(t.Context(), store.Merchant{Name: "Loja", City: "SAO PAULO", Routes: payment.AllRoutes(account)}, "")
	g.must(err)
	g.merchant.Limits, err = g.core.Merchants.SetLimits(t.Context(), g.merchant.ID, func(l *limits.Limits) { *l = limits.Limits{} })
	g.must(err)
	g.must(g.store.Transact(t.Context(), func(tx *store.Tx) error { return tx.SetSetting(t.Context(), store.SettingSandbox, "true") }))
	g.must(g.core.Merchants.Fund(t.Context(), g.merchant, coretest.Opening))
	g.must(g.driver.(processor.Installer).Install(t.Context(), noticeURL))
	g.bank.installed()
	n.off = false
	return g
}

func (g *gateway) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatalf("%v\n%s", err, &g.log)
	}
}

// start starts a process; that before it is dead. A process that dies while it starts is
// followed by another one.
func (g *gateway) start() {
	g.t.Helper()
	for g.process == nil || g.dead.Load() {
		if g.process != nil {
			g.must(g.store.Close())
		}
		g.process = &process{}
		p := g.process
		e := g.env
		e.Clock = clock{g.clock, g, p}
		e.OnFailpoint = func(f env.Failpoint) error {
			if f == env.AfterCommit {
				g.point(p, "commit")
			}
			p.exitIfDead()
			return nil
		}
		o := g.database
		o.Env = e
		var err error
		p.store, err = store.Open(g.t.Context(), o)
		g.must(err)
		p.driver = g.bank.open(processor.Env{Clock: e.Clock, Transport: outbound{g, p}})
		g.do(func() {
			processors := processor.Registry{account: p.driver}
			p.core = app.NewCore(app.CoreOptions{
				Store: p.store, Env: e, Processors: processors, Marker: &g.marker, Log: slog.New(slog.NewTextHandler(&g.log, nil)), Spawn: worker.Inline,
			})
			inbound := notice.NewHandler(notice.HandlerOptions{
				Recorder: p.core.Notices, Questions: p.core.Outgoing, Clock: g.clock, Processors: processors,
			})
			mux := http.NewServeMux()
			mux.Handle("POST /inbound/{account}/{token}", inbound)
			mux.Handle("POST /inbound/{account}/{token}/{rest...}", inbound)
			p.inbound = mux
			err = p.core.Cluster.Join(g.t.Context(), g.marker.Mark, g.store.Engine() == "sqlite")
		})
		g.must(err)
		g.heartbeat()
	}
}

func (p *process) exitIfDead() {
	if p.dead.Load() {
		runtime.Goexit()
	}
}

// point is where a process may die: then it does not return.
func (g *gateway) point(p *process, name string) {
	p.exitIfDead()
	if g.nemesis.kills(name) {
		p.die()
	}
}

// die ends the process. It does not return.
func (p *process) die() {
	p.dead.Store(true)
	runtime.Goexit()
}

// do lets the process do something until it ends or the process dies, and reports whether the
// process lives.
func (g *gateway) do(f func()) (alive bool) {
	g.t.Helper()
	p, done := g.process, make(chan struct{})
	p.acting = true
	go func() {
		defer close(done)
		f()
	}()
	<-done
	p.acting = false
	return !p.dead.Load()
}

// clock is that of a process: the time passes while it waits.
type clock struct {
	*env.VirtualClock

	g *gateway
	p *process
}

// NewTimer implements [env.Clock].
func (c clock) NewTimer(d time.Duration) env.Timer {
	c.p.exitIfDead()
	c.g.advance(d)
	fired := make(firedTimer, 1)
	fired <- c.Now()
	return fired
}

// firedTimer is a timer that has fired.
type firedTimer chan time.Time

// C implements [env.Timer].
func (t firedTimer) C() <-chan time.Time { return t }

// Stop implements [env.Timer].
func (t firedTimer) Stop() bool { return false }

// heartbeat renews the lease. Nothing depends on when a process dies in between.
func (g *gateway) heartbeat() {
	g.t.Helper()
	g.nemesis.off, g.nemesis.wasOff = true, g.nemesis.off
	var err error
	g.do(func() { _, err = g.core.Cluster.KeepAlive(g.t.Context()) })
	g.must(err)
	g.nemesis.off = g.nemesis.wasOff
}

// tick advances the clock, and lets both sides work until nothing is due.
func (g *gateway) tick(d time.Duration) {
	g.t.Helper()
	g.advance(d)
	g.heartbeat()
	for range 200 {
		did, err := g.bank.step(g.t.Context(), g.clock.Now())
		g.must(err)
		if did += g.work(); did == 0 {
			return
		}
	}
	g.t.Fatalf("the workers still find work\n%s", &g.log)
}

// work runs a step of each worker.
func (g *gateway) work() (did int) {
	g.t.Helper()
	for _, w := range g.core.Workers {
		if !slices.Contains(workers, w.Name) {
			continue
		}
		n, err := 0, error(nil)
		if !g.do(func() { n, err = w.Step(g.t.Context()) }) {
			g.start()
			return 1
		}
		g.must(err)
		did += n
	}
	return did
}

// request sends a request of the merchant again and again, with longer and longer waits, until
// it is answered.
func (g *gateway) request(send func(ctx context.Context) error) {
	g.t.Helper()
	var err error
	for tries := range 90 { // a list may lag by half an hour
		err = errGone
		if !g.do(func() { err = send(g.t.Context()) }) {
			g.start()
			continue
		}
		if err == nil {
			return
		}
		g.tick(time.Duration(1+tries) * time.Second)
	}
	g.must(err)
}
