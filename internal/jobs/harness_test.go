package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/jobs"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// bankName is how the bank of these tests is registered.
const bankName = "bank"

// opening is what the merchant of each test has at first.
const opening money.Cents = 1_000_00

// bank is the far side of these tests: it keeps books of its own, which the
// gateway under test cannot touch, and misbehaves as it is told.
type bank struct {
	mu        sync.Mutex
	transfers map[string]*booked
	charges   map[string]*processor.ChargeReport
	payments  []processor.Payment         // all that came in, oldest first
	changes   []processor.Change          // all that moved again, oldest first
	calls     []processor.TransferRequest // every request that arrived, by its bytes
	questions int
	profile   processor.Profile
	down      bool   // it answers no question
	charged   func() // called when it is asked about a charge; may be nil
	onTheWay  func() // called before the guard of a transfer; may be nil
	// transfer and query, when set, stand in for what the bank would do.
	transfer func(b *bank, r processor.TransferRequest) processor.TransferAnswer
	query    func(b *bank, externalID string) processor.TransferReport
}

type booked struct {
	request processor.TransferRequest
	state   processor.TransferState
	back    money.Cents
}

func newBank() *bank {
	return &bank{transfers: map[string]*booked{}, charges: map[string]*processor.ChargeReport{}, profile: processor.Profile{
		Name: bankName, IdempotentByOurID: true, QuietPeriod: time.Minute,
		ChargeTimeout: 4 * time.Second, TransferTimeout: 5 * time.Second,
	}}
}

func (b *bank) Profile() processor.Profile { return b.profile }

// pay books a transfer, once per id: the second time it is the same one.
func (b *bank) pay(r processor.TransferRequest, state processor.TransferState) processor.TransferReport {
	if _, ok := b.transfers[r.ExternalID]; !ok {
		b.transfers[r.ExternalID] = &booked{request: r, state: state}
	}
	return b.look(r.ExternalID)
}

func (b *bank) look(externalID string) processor.TransferReport {
	t, ok := b.transfers[externalID]
	if !ok {
		return processor.TransferReport{Lookup: processor.NotFound}
	}
	return processor.TransferReport{
		Lookup: processor.Found, State: t.state, EndToEndID: "E" + externalID[:31], Amount: t.request.Amount,
		Returned: t.back, Evidence: "bank's books",
	}
}

func (b *bank) Transfer(ctx context.Context, r processor.TransferRequest, guard func() error) processor.TransferAnswer {
	if err := ctx.Err(); err != nil {
		return processor.TransferAnswer{Outcome: processor.NotSent, Cause: err}
	}
	if b.onTheWay != nil {
		b.onTheWay()
	}
	if err := guard(); err != nil {
		return processor.TransferAnswer{Outcome: processor.NotSent, Cause: err}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, r)
	if b.transfer != nil {
		return b.transfer(b, r)
	}
	return processor.TransferAnswer{Outcome: processor.Done, Report: b.pay(r, processor.TransferPaid)}
}

func (b *bank) QueryTransfer(_ context.Context, externalID string) processor.TransferReport {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.questions++
	if b.down {
		return processor.TransferReport{Cause: errDown}
	}
	if b.query != nil {
		return b.query(b, externalID)
	}
	return b.look(externalID)
}

// gateway is one process of the gateway, with its loops in the test's hands.
type gateway struct {
	t        *testing.T
	engine   string
	options  store.Options
	clock    *env.VirtualClock
	env      env.Env
	store    *store.Store
	flow     *flow.Flow
	jobs     *jobs.Jobs
	assembly jobs.Options // of the jobs
	bank     *bank
	web      *receivers // whom webhooks reach
	merchant store.Merchant
	marker   *memoryMarker
	log      *strings.Builder
}

type memoryMarker struct {
	beat int64
	err  error // of the disk that it is kept on
}

func (m *memoryMarker) Read() (int64, error) { return m.beat, nil }

func (m *memoryMarker) Write(beat int64) error {
	if m.err == nil {
		m.beat = beat
	}
	return m.err
}

// start is when the virtual days of these tests begin.
var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// each runs a test on every engine, with one gateway, one merchant, one bank.
func each(t *testing.T, run func(t *testing.T, g *gateway)) {
	t.Helper()
	w, clock := env.Virtual(start, 1)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		w.Webhooks = &receivers{clock: clock}
		g := newGateway(t, o, w, clock, newBank(), &memoryMarker{})
		var err error
		g.merchant, err = g.flow.CreateMerchant(t.Context(), store.Merchant{Name: "Loja", City: "SAO PAULO", Processor: bankName}, "")
		g.must(err)
		g.must(g.flow.Fund(t.Context(), g.merchant, opening))
		run(t, g)
	})
}

func newGateway(t *testing.T, o store.Options, w env.Env, clock *env.VirtualClock, b *bank, marker *memoryMarker) *gateway {
	t.Helper()
	g := &gateway{t: t, options: o, clock: clock, env: w, bank: b, marker: marker, log: &strings.Builder{}}
	g.store = storetest.Open(t, o)
	g.engine = g.store.Engine()
	log := slog.New(slog.NewTextHandler(g.log, nil))
	registry := processor.Registry{bankName: b}
	g.flow = flow.New(flow.Options{Store: g.store, Env: w, Processors: registry, Log: log})
	g.web = w.Webhooks.(*receivers)
	g.assembly = jobs.Options{Flow: g.flow, Store: g.store, Env: w, Processors: registry, Log: log, Marker: marker, Inline: true, RecordOnce: true}
	g.assemble()
	g.must(g.flow.Join(t.Context(), marker.beat, false))
	g.beat()
	return g
}

// assemble makes the process's jobs, which take in hand what its lanes make due.
func (g *gateway) assemble() {
	g.jobs = jobs.New(g.assembly)
	g.flow.HandTo(g.jobs)
}

// besides gives the process jobs whose calls run beside its steps, as in real life.
func (g *gateway) besides() {
	g.t.Helper()
	g.assembly.Inline, g.assembly.RecordOnce = false, false
	g.assemble()
	g.t.Cleanup(g.settled)
	g.beat()
}

// Waits on the clock that are due this soon are between two tries to write;
// all others are longer.
const retriesWithin = 7 * time.Second

// until waits for work that goes on beside the test. A transaction that lost a
// race, or a result that could not be recorded, is tried again after a pause by
// the virtual clock, which stands still: it is moved on for them, and only then.
func (g *gateway) until(work func()) {
	g.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-done:
			return
		case <-look.C:
			if d, waits := g.clock.Next(); waits && d < retriesWithin {
				g.clock.Advance(d)
			}
		}
	}
}

// settled waits until no call is under way.
func (g *gateway) settled() { g.t.Helper(); g.until(g.jobs.Wait) }

// second starts another process of the same gateway: same database, same bank.
func (g *gateway) second() *gateway {
	g.t.Helper()
	o := g.options
	o.Shared = true // SQLite: the lock is not what is tested here
	other := newGateway(g.t, o, g.env, g.clock, g.bank, g.marker)
	other.merchant = g.merchant
	return other
}

func (g *gateway) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatalf("%v\n%s", err, g.log)
	}
}

func (g *gateway) beat() {
	g.t.Helper()
	_, err := g.jobs.KeepAlive(g.t.Context())
	g.must(err)
}

// pass lets time go by, with a beat each second, as a living process has.
func (g *gateway) pass(d time.Duration) {
	g.t.Helper()
	for ; d > 0; d -= time.Second {
		g.clock.Advance(min(d, time.Second))
		g.beat()
	}
}

// leap lets much time go by at once; the process beats right after.
func (g *gateway) leap(d time.Duration) {
	g.t.Helper()
	g.clock.Advance(d)
	g.beat()
}

// run runs a step until it finds nothing to do.
func (g *gateway) run(step func(context.Context) (int, error)) {
	g.t.Helper()
	for range 100 {
		did, err := step(g.t.Context())
		g.must(err)
		if did == 0 {
			return
		}
	}
	g.t.Fatal("a step never comes to rest")
}

func (g *gateway) submit()  { g.t.Helper(); g.run(g.jobs.SubmitPayouts) }
func (g *gateway) resolve() { g.t.Helper(); g.run(g.jobs.ResolvePayouts) }

func payoutOf(reference string, cents int64) *wire.PayoutRequest {
	return &wire.PayoutRequest{
		Amount: wire.Some(cents), PIXKey: wire.Some("maria@example.com"), PIXKeyType: wire.Some("EMAIL"), NormalKey: "maria@example.com",
		BeneficiaryName: wire.Some("Maria"), BeneficiaryDocument: wire.Some("52998224725"), ReferenceID: wire.Some(reference),
		Fingerprint: wire.Fingerprint(fmt.Sprintf("%s %d", reference, cents)),
	}
}

// payout requests a payout and returns it as it was answered.
func (g *gateway) payout(reference string, cents int64) payment.Payout {
	g.t.Helper()
	p, _, err := g.flow.RequestPayout(g.t.Context(), g.merchant, payoutOf(reference, cents))
	g.must(err)
	return p
}

func (g *gateway) read(p payment.Payout) payment.Payout {
	g.t.Helper()
	got, err := g.store.Payout(g.t.Context(), p.Merchant, p.ID)
	g.must(err)
	return got
}

// want compares a payout's status and step.
func (g *gateway) want(p payment.Payout, status payment.PayoutStatus, step payment.PayoutStep) payment.Payout {
	g.t.Helper()
	got := g.read(p)
	if got.Status != status || got.Step != step {
		g.t.Fatalf("payout is %s/%s, want %s/%s\n%s", got.Status, got.Step, status, step, g.log)
	}
	return got
}

// wantBalances compares the merchant's accounts, written as "available 980.00 held 20.00".
func (g *gateway) wantBalances(available, held money.Cents) {
	g.t.Helper()
	b, err := g.store.Balances(g.t.Context(), g.merchant.ID)
	g.must(err)
	if b[ledger.Available] != available || b[ledger.Held] != held {
		g.t.Fatalf("available %s, held %s; want %s and %s", b[ledger.Available].Decimal(), b[ledger.Held].Decimal(), available.Decimal(), held.Decimal())
	}
	var sum money.Cents
	for _, v := range b {
		sum += v
	}
	if sum != 0 {
		g.t.Fatalf("the books are off by %d", sum)
	}
}

// wantSends compares how a payout's sends ended, in order.
func (g *gateway) wantSends(p payment.Payout, outcomes ...string) {
	g.t.Helper()
	sends, err := g.store.Sends(g.t.Context(), p.Merchant, p.ID)
	g.must(err)
	var got []string
	for i := range sends {
		got = append(got, sends[i].Outcome)
	}
	if fmt.Sprint(got) != fmt.Sprint(outcomes) {
		g.t.Fatalf("sends %v, want %v", got, outcomes)
	}
}

// wantExceptions compares the kinds of what waits for a person.
func (g *gateway) wantExceptions(kinds ...string) {
	g.t.Helper()
	list, err := g.store.OpenExceptions(g.t.Context(), 100)
	g.must(err)
	var got []string
	for i := range list {
		got = append(got, list[i].Kind)
	}
	if fmt.Sprint(got) != fmt.Sprint(kinds) {
		g.t.Fatalf("exceptions %v, want %v", got, kinds)
	}
}

// wantPaid says how many times the bank was asked to pay, and how often it did.
func (g *gateway) wantPaid(calls, transfers int) {
	g.t.Helper()
	if len(g.bank.calls) != calls || len(g.bank.transfers) != transfers {
		g.t.Fatalf("the bank got %d requests and made %d transfers, want %d and %d", len(g.bank.calls), len(g.bank.transfers), calls, transfers)
	}
}

// wantEvents compares the types of all events of the merchant, in order.
func (g *gateway) wantEvents(types ...payment.EventType) {
	g.t.Helper()
	list, err := g.store.Events(g.t.Context(), g.merchant.ID, 0, 1000)
	g.must(err)
	var got []payment.EventType
	for i := range list {
		if list[i].Number != int64(i+1) {
			g.t.Fatalf("event %d has number %d", i+1, list[i].Number)
		}
		got = append(got, list[i].Type)
	}
	if fmt.Sprint(got) != fmt.Sprint(types) {
		g.t.Fatalf("events %v, want %v", got, types)
	}
}

// bytesOf is a request as it would leave.
func bytesOf(r processor.TransferRequest) string {
	text, err := json.Marshal(&r)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func unknown(*bank, processor.TransferRequest) processor.TransferAnswer {
	return processor.TransferAnswer{Cause: errors.New("timeout")}
}
