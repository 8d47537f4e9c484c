// Package coretest runs the core of a gateway for tests: the use cases and their
// workers on a real database and a virtual clock, with a bank and receivers that the
// test controls. Nothing runs by itself: the test runs each step.
package coretest

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/wire"
	"github.com/porteira/porteira/internal/worker"
)

// Opening is the initial balance of the merchant of each test, in cents.
const Opening money.Cents = 1_000_00

// Start is the initial time of the virtual clock, UTC.
var Start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Gateway is one process of a gateway.
type Gateway struct {
	*app.Core

	T         *testing.T
	Engine    string
	Clock     *env.VirtualClock
	Env       env.Env
	Store     *store.Store
	Bank      *Bank
	Receivers *Receivers // of webhooks
	Merchant  store.Merchant
	Marker    *Marker
	Log       *apptest.Log

	database db.Options
	options  app.CoreOptions
	raw      *sql.DB // for rows.go
}

// Marker keeps the mark of the installation in memory.
type Marker struct {
	cluster.Mark

	Err error // of writing; may be nil
}

// Read implements [cluster.Marker].
func (m *Marker) Read() (cluster.Mark, error) { return m.Mark, nil }

// Write implements [cluster.Marker].
func (m *Marker) Write(mark cluster.Mark) error {
	if m.Err == nil {
		m.Mark = mark
	}
	return m.Err
}

// Each runs the test of a rule with one gateway, one merchant and one bank. A rule is the same on
// each engine, so its test runs on SQLite, and on all engines only if PORTEIRA_TEST_ENGINES=all.
// change alters the environment before the gateway is created.
func Each(t *testing.T, run func(t *testing.T, g *Gateway), change ...func(e *env.Env)) {
	t.Helper()
	engines := storetest.Engines[:1]
	if os.Getenv("PORTEIRA_TEST_ENGINES") == "all" {
		engines = storetest.Engines
	}
	each(t, engines, run, change)
}

// EachEngine is [Each] for a test of what the engine does, such as concurrent processes: it
// always runs on every engine.
func EachEngine(t *testing.T, run func(t *testing.T, g *Gateway), change ...func(e *env.Env)) {
	t.Helper()
	each(t, storetest.Engines, run, change)
}

func each(t *testing.T, engines []string, run func(t *testing.T, g *Gateway), change []func(e *env.Env)) {
	t.Helper()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) { run(t, New(t, engine, change...)) })
	}
}

// New creates a gateway on a database of its own, with a merchant that has a balance of [Opening].
func New(t *testing.T, engine string, change ...func(e *env.Env)) *Gateway {
	t.Helper()
	return newGateway(t, engine, Opening, change)
}

// NewWith creates a gateway on SQLite, whose merchant has a balance. It is for tables of decisions.
func NewWith(t *testing.T, opening money.Cents) *Gateway {
	t.Helper()
	return newGateway(t, "sqlite", opening, nil)
}

func newGateway(t *testing.T, engine string, opening money.Cents, change []func(e *env.Env)) *Gateway {
	t.Helper()
	e, clock := env.Virtual(Start, 1)
	e.Webhooks = &Receivers{clock: clock}
	for _, f := range change {
		f(&e)
	}
	g := open(t, storetest.Prepare(t, engine, e), e, clock, NewBank(), &Marker{})
	g.newMerchant("Loja", opening)
	return g
}

// newMerchant creates the gateway's merchant, with a balance and no limits.
func (g *Gateway) newMerchant(name string, opening money.Cents) {
	g.T.Helper()
	var err error
	g.Merchant, err = g.Merchants.Create(g.T.Context(), store.Merchant{Name: name, City: "SAO PAULO", Routes: payment.AllRoutes(BankName)}, "")
	g.Must(err)
	g.SetLimits(limits.Limits{})
	g.Must(g.Store.Transact(g.T.Context(), func(tx *store.Tx) error { return tx.SetSetting(g.T.Context(), store.SettingSandbox, "true") }))
	if opening > 0 {
		g.Must(g.Merchants.Fund(g.T.Context(), g.Merchant, opening))
	}
}

// SetLimits sets the limits of the gateway's merchant.
func (g *Gateway) SetLimits(l limits.Limits) {
	g.T.Helper()
	var err error
	g.Merchant.Limits, err = g.Merchants.SetLimits(g.T.Context(), g.Merchant.ID, func(old *limits.Limits) { *old = l })
	g.Must(err)
}

func open(t *testing.T, o db.Options, e env.Env, clock *env.VirtualClock, b *Bank, m *Marker) *Gateway {
	t.Helper()
	g := process(t, o, e, clock, b, m)
	g.start()
	return g
}

// process is a process that has not started.
func process(t *testing.T, o db.Options, e env.Env, clock *env.VirtualClock, b *Bank, m *Marker) *Gateway {
	t.Helper()
	g := &Gateway{T: t, Clock: clock, Env: e, Bank: b, Marker: m, Log: &apptest.Log{}, database: o, Store: storetest.Open(t, o)}
	g.Engine = g.Store.Engine()
	b.Now = clock.Now
	g.Receivers, _ = e.Webhooks.(*Receivers)
	g.options = app.CoreOptions{
		Store: g.Store, Env: e, Processors: processor.Registry{BankName: b}, Marker: m,
		Log: slog.New(slog.NewTextHandler(g.Log, nil)), Spawn: worker.Inline, RecordOnce: true,
	}
	return g
}

// start starts a process on the store, as after a clean stop.
func (g *Gateway) start() {
	g.T.Helper()
	g.Core = app.NewCore(g.options)
	g.StopCleanly()
	g.Must(g.Cluster.Join(g.T.Context(), g.Marker.Mark, false))
	g.Heartbeat()
}

// StopCleanly makes the database and the mark agree on a clean stop. They agree on nothing if the
// mark has a later epoch.
func (g *Gateway) StopCleanly() {
	g.T.Helper()
	stop := cluster.Mark{Epoch: g.Marker.Epoch, Stop: "stopped"}
	g.Must(g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
		inst, err := tx.Installation(g.T.Context())
		if err != nil {
			return err
		}
		stop.Epoch = max(stop.Epoch, inst.Epoch)
		inst.StopToken, inst.StoppedAt = stop.Stop, tx.Now
		return tx.SetInstallation(g.T.Context(), inst)
	}))
	g.Marker.Mark = stop
}

// ColdStart starts a process on the store, as after a crash, or on a copy of the database and the
// mark.
func (g *Gateway) ColdStart() {
	g.T.Helper()
	g.Core = app.NewCore(g.options)
	g.Must(g.Cluster.Join(g.T.Context(), g.Marker.Mark, true))
	g.Heartbeat()
}

// Restart restarts the process with other options: nothing in memory survives.
func (g *Gateway) Restart(change func(o *app.CoreOptions)) {
	g.T.Helper()
	if change != nil {
		change(&g.options)
	}
	g.start()
}

// Concurrent restarts the process so that its calls run concurrently with its steps, as in
// production. Each operation is still a commit of its own, until g.Writer.Start.
func (g *Gateway) Concurrent() {
	g.T.Helper()
	g.Restart(func(o *app.CoreOptions) { o.Spawn, o.RecordOnce = nil, false })
	g.T.Cleanup(g.WaitIdle)
}

// Second starts another process of the same gateway: same database, same bank.
func (g *Gateway) Second() *Gateway {
	g.T.Helper()
	o := g.database
	o.Shared = true // SQLite: its lock is not tested here
	other := open(g.T, o, g.Env, g.Clock, g.Bank, g.Marker)
	other.Merchant = g.Merchant
	return other
}

// Must ends the test if err is not nil.
func (g *Gateway) Must(err error) {
	g.T.Helper()
	if err != nil {
		g.T.Fatalf("%v\n%s", err, g.Log)
	}
}

// Logger writes to the gateway's log.
func (g *Gateway) Logger() *slog.Logger { return g.options.Log }

// Heartbeat writes this process's heartbeat.
func (g *Gateway) Heartbeat() {
	g.T.Helper()
	_, err := g.Cluster.KeepAlive(g.T.Context())
	g.Must(err)
}

// Pass advances the clock, with fewer heartbeats than a gateway sends: in tests they would cost more than
// the work between them. In five seconds it sees that another node is dead.
func (g *Gateway) Pass(d time.Duration) {
	g.T.Helper()
	const rarely = 1500 * time.Millisecond
	for ; d > 0; d -= rarely {
		g.Clock.Advance(min(d, rarely))
		g.Heartbeat()
	}
}

// Jump advances the clock in one step, then writes one heartbeat.
func (g *Gateway) Jump(d time.Duration) {
	g.T.Helper()
	g.Clock.Advance(d)
	g.Heartbeat()
}

// Run runs a step until it returns 0.
func (g *Gateway) Run(step func(context.Context) (int, error)) {
	g.T.Helper()
	for range 100 {
		did, err := step(g.T.Context())
		g.Must(err)
		if did == 0 {
			return
		}
	}
	g.T.Fatal("the step still finds work after 100 runs")
}

// Send sends due payouts. Like the steps below, it runs until there is no work left.
func (g *Gateway) Send() { g.T.Helper(); g.Run(g.Outgoing.Send) }

// LookUp resolves unknown payouts.
func (g *Gateway) LookUp() { g.T.Helper(); g.Run(g.Outgoing.LookUp) }

// Charge carries on with charges, and cancels those of orders that ended.
func (g *Gateway) Charge() { g.T.Helper(); g.Run(g.Payins.Charge) }

// Apply applies notices.
func (g *Gateway) Apply() { g.T.Helper(); g.Run(g.Notices.Apply) }

// ReadFeeds reads the feeds of all banks to their ends, as if each were due.
func (g *Gateway) ReadFeeds() {
	g.T.Helper()
	g.FeedsDue()
	g.Run(g.Notices.ReadFeeds)
}

// FeedsDue makes all feeds due that nobody is reading.
func (g *Gateway) FeedsDue() {
	g.T.Helper()
	g.Execute("UPDATE feeds SET next_at = 1 WHERE next_at > 0")
}

// Feed is a feed of the bank as it is stored.
func (g *Gateway) Feed(account string, feed processor.Feed) store.Feed {
	g.T.Helper()
	list, err := g.Store.Feeds(g.T.Context())
	g.Must(err)
	for _, f := range list {
		if f.Account == account && f.Feed == string(feed) {
			return f
		}
	}
	g.T.Fatalf("account %s has no feed %s", account, feed)
	return store.Feed{}
}

// Deliver sends due webhooks.
func (g *Gateway) Deliver() { g.T.Helper(); g.Run(g.Deliveries.Send) }

// retriesWithin is longer than the waits between two attempts to write, and shorter than
// all other waits.
const retriesWithin = 7 * time.Second

// Until waits for concurrent work. After a lost race or a failure to record a result the
// work waits on the virtual clock before it retries: Until advances the clock for those
// waits only.
func (g *Gateway) Until(work func()) {
	g.T.Helper()
	g.UntilWithin(retriesWithin, work)
}

// UntilWithin is Until for waits shorter than limit. Work with calls to processors in
// flight needs a limit below their timeouts.
func (g *Gateway) UntilWithin(limit time.Duration, work func()) {
	g.T.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	real := env.NewSystemClock()
	for {
		poll := real.NewTimer(10 * time.Millisecond)
		select {
		case <-done:
			poll.Stop()
			return
		case <-poll.C():
			if d, waits := g.Clock.Next(); waits && d < limit {
				g.Clock.Advance(d)
			}
		}
	}
}

// AtOnce runs two changes at the same time.
func (g *Gateway) AtOnce(change func(i int) error) (errs [2]error) {
	g.T.Helper()
	var running sync.WaitGroup
	begin := make(chan struct{})
	for i := range errs {
		running.Go(func() {
			<-begin
			errs[i] = change(i)
		})
	}
	close(begin)
	g.Until(running.Wait)
	return errs
}

// WaitIdle waits until no call is in flight.
func (g *Gateway) WaitIdle() { g.T.Helper(); g.Until(g.Wait) }

// PayoutRequest is a request for a payout to an e-mail key, amount in cents.
func PayoutRequest(reference string, amount int64) *wire.PayoutRequest {
	return &wire.PayoutRequest{
		Amount: wire.Some(amount), PIXKey: wire.Some("maria@example.com"), PIXKeyType: wire.Some("EMAIL"), NormalKey: "maria@example.com",
		BeneficiaryName: wire.Some("Maria"), BeneficiaryDocument: wire.Some("52998224725"), ReferenceID: wire.Some(reference),
		Fingerprint: wire.Fingerprint(fmt.Sprintf("%s %d", reference, amount)),
	}
}

// Payout requests a payout and returns the result.
func (g *Gateway) Payout(reference string, amount int64) payment.Payout {
	g.T.Helper()
	p, _, err := g.Payouts.Request(g.T.Context(), g.Merchant, PayoutRequest(reference, amount))
	g.Must(err)
	return p
}

// PayinRequest is a request for a Pix pay-in of 100.00 that expires in an hour.
func PayinRequest(reference, webhookURL string) *wire.PayinRequest {
	r := &wire.PayinRequest{
		Method: wire.Some("PIX"), Amount: wire.Some(int64(100_00)), ReferenceID: wire.Some(reference),
		ExpiresIn: wire.Some(int64(3600)), Fingerprint: wire.Fingerprint(reference),
	}
	if webhookURL != "" {
		r.WebhookURL = wire.Some(webhookURL)
	}
	return r
}

// Payin creates a Pix pay-in of 100.00 of a merchant.
func (g *Gateway) Payin(m store.Merchant, reference, webhookURL string) payment.Payin {
	g.T.Helper()
	p, _, err := g.Payins.Create(g.T.Context(), m, PayinRequest(reference, webhookURL))
	g.Must(err)
	return p
}

// Notify records a notice of the bank with a line per subject.
func (g *Gateway) Notify(id string, lines ...string) {
	g.T.Helper()
	g.Must(g.Notices.Record(g.T.Context(), BankName, id, "", []byte(strings.Join(lines, "\n"))))
}

// Clear lets payouts continue after a restore: the lists of transfers are read beyond it.
func (g *Gateway) Clear() {
	g.T.Helper()
	g.Jump(g.Bank.Profiled.Transfer.QuietPeriod + time.Second)
	g.ReadFeeds()
	g.Heartbeat()
	if g.Node.Frozen(BankName) {
		g.T.Fatalf("payouts still wait: %+v", g.Feed(BankName, processor.FeedTransfers))
	}
}

// ClearAccount lets payouts continue after a restore, on the decision of an operator.
func (g *Gateway) ClearAccount() {
	g.T.Helper()
	g.Must(g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
		k, n := store.Transfers(BankName), store.Needs{}
		n.NewFeed(store.Feed{FeedKey: k})
		n.Feed(k)
		inst, err := tx.Installation(g.T.Context())
		g.Must(err)
		return tx.Apply(g.T.Context(), &n, func(l *store.Loaded, c *store.Changes) error {
			f, _ := l.Feed(k)
			f.Cleared, f.ClearedAt = inst.History, l.Now()
			c.SetFeed(f)
			return nil
		})
	}))
	g.Heartbeat()
}
