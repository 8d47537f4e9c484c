package simulate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the checker's own connection
	_ "modernc.org/sqlite"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/store"
)

// Result is what came of a run.
type Result struct {
	Seed         uint64
	Orders       int // acknowledged
	Payouts      int
	Faults       int // that happened, of all kinds
	PayoutFaults int // of those, in calls about a payout
	Crashes      int
	Commits      int
	Steps        int
	Simulated    time.Duration
	Trace        string // digest
	// Cells counts how often each fault met each state.
	Cells map[Cell]int
	// Broken tells what rule was broken, with the story of the order
	// concerned; "" if none was.
	Broken string
}

// Prepare migrates an empty database and lets the checker follow its changes.
func Prepare(ctx context.Context, database string) error {
	w, _ := env.Virtual(epoch, 0)
	keys, err := newKeys(w)
	if err != nil {
		return err
	}
	if _, err := store.Migrate(ctx, store.Options{Database: database, Keys: keys, Env: w}); err != nil {
		return err
	}
	raw, engine, err := openRaw(database)
	if err != nil {
		return err
	}
	return errors.Join(installBook(ctx, raw, engine), raw.Close())
}

// masterKey seals what a simulated gateway stores.
const masterKey = "a master key for simulations, 32"

func newKeys(w env.Env) (*store.Keyring, error) {
	return store.NewKeyring([]byte(masterKey), w.Random)
}

func openRaw(database string) (raw *sql.DB, engine string, err error) {
	if store.IsPostgres(database) {
		raw, err = sql.Open("pgx", database)
		engine = "postgres"
	} else {
		raw, err = sql.Open("sqlite", "file:"+database+"?_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)")
		engine = "sqlite"
	}
	if err != nil {
		return nil, "", err
	}
	raw.SetMaxOpenConns(1)
	return raw, engine, nil
}

// Run simulates one seed. The error is of the simulator; what the gateway did
// wrong is in the result.
func Run(ctx context.Context, o Options) (result Result, err error) {
	if o.Orders == 0 {
		o.Orders = OrdersDefault
	}
	s := &simulation{
		ctx: ctx, options: o, random: env.SeededRandom(o.Seed ^ 0x5eed), cells: coverage{},
		mailboxes: map[string]*receiver{}, answers: map[string][]byte{}, turns: map[string]int{},
	}
	s.source, s.clock = env.Virtual(epoch, o.Seed)
	s.trace = newTrace(s.clock.Monotonic, o.Trace)
	s.plan = s.draw()
	if err := s.open(); err != nil {
		return s.result, errors.Join(err, s.close())
	}
	s.live()
	s.settle()
	s.compare(len(s.broken) == 0)
	s.finish()
	return s.result, s.close()
}

func (s *simulation) open() (err error) {
	var engine string
	if s.raw, engine, err = openRaw(s.options.Database); err != nil {
		return err
	}
	if s.gateway, err = newGatewayBook(s.ctx, s.raw, engine, []byte(masterKey)); err != nil {
		return err
	}
	s.gateway.retention, s.gateway.now = retention, s.forgetting
	if s.keys, err = newKeys(s.source); err != nil {
		return err
	}
	if err := s.settleMerchants(); err != nil {
		return err
	}
	bank, _ := env.Virtual(epoch, s.options.Seed+1<<32)
	s.bank = &bankSite{sim: s, source: bank}
	if err := s.bank.open(); err != nil {
		return err
	}
	for i := range s.plan.nodes {
		s.nodes = append(s.nodes, &node{sim: s, name: fmt.Sprintf("gateway%d", i), shared: i > 0})
	}
	for _, n := range s.nodes {
		n.start()
	}
	return nil
}

// settleMerchants lets merchants open their accounts.
func (s *simulation) settleMerchants() (err error) {
	w := s.source
	w.Clock = s.clock
	st, err := store.Open(s.ctx, store.Options{Database: s.options.Database, Keys: s.keys, Env: w, AllowUnsafe: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	f := flow.New(flow.Options{Store: st, Env: w})
	for i := range merchantCount {
		m, err := s.newMerchant(i, f, st)
		if err != nil {
			return err
		}
		s.merchants = append(s.merchants, m)
		s.check()
	}
	return nil
}

func (s *simulation) close() error {
	var errs []error
	for _, n := range s.nodes {
		n.close()
	}
	for _, w := range s.idle {
		close(w.work)
	}
	if s.bank != nil && s.bank.bank != nil {
		errs = append(errs, s.bank.bank.Close())
	}
	if s.gateway != nil {
		errs = append(errs, s.gateway.close())
	}
	if s.raw != nil {
		errs = append(errs, s.raw.Close())
	}
	return errors.Join(errs...)
}

// live is the time in which orders are placed and things go wrong.
func (s *simulation) live() {
	span := time.Duration(0)
	for range s.options.Orders {
		m := pick(s, s.merchants)
		s.after(span, m.place)
		span += s.between(0, 1500*time.Millisecond)
	}
	s.chaos(span)
	s.runUntil(span + time.Minute)
}

// settle stops all faults and lets everything come to its end.
func (s *simulation) settle() {
	s.calm = true
	s.trace.linef("faults stop")
	s.bank.down = false
	s.bank.restart()
	for _, n := range s.nodes {
		n.frozenUntil, n.offset = 0, 0
		n.start()
	}
	bound := s.clock.Monotonic() + settleWithin
	for len(s.broken) == 0 {
		if len(s.queue) > 0 {
			s.runUntil(s.queue[0].at)
			continue
		}
		next, what := s.nextDue()
		if what == "" {
			if !s.lastRound() {
				return
			}
			continue
		}
		if next > bound {
			s.violate("I11", "", "", "there are "+what+" with work to do "+settleWithin.String()+" after faults stopped")
			return
		}
		s.runUntil(next)
		for _, n := range s.nodes {
			n.poll(0)
		}
		s.after(time.Second, func() {}) // what is due again at once is due a second later
	}
}

// lastRound lets every duty run once more; it says whether there was anything
// to do, such as a payment whose notice was lost.
func (s *simulation) lastRound() bool {
	s.elapse(10 * time.Second)
	did := 0
	for _, n := range s.nodes {
		for i := range duties {
			did += n.work(duties[i].wake)
		}
	}
	return did > 0 || len(s.queue) > 0
}

// nextDue is when something in the database is due next, and what.
func (s *simulation) nextDue() (at time.Duration, what string) {
	var due int64
	err := s.raw.QueryRowContext(s.ctx, `SELECT what, due FROM (
		SELECT 'payins' AS what, min(next_at) AS due FROM payins WHERE next_at > 0 UNION ALL
		SELECT 'payouts', min(next_at) FROM payouts WHERE next_at > 0 UNION ALL
		SELECT 'deliveries', min(next_at) FROM deliveries WHERE next_at > 0 UNION ALL
		SELECT 'notices', min(next_at) FROM notices WHERE next_at > 0) AS dues WHERE due > 0 ORDER BY due LIMIT 1`).Scan(&what, &due)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		s.violate("", "", "", err.Error())
	}
	return max(time.UnixMicro(due).Sub(epoch), s.clock.Monotonic()), what
}

// stateOf is the state of an order as the database has it.
func (s *simulation) stateOf(externalID string) string {
	o := s.gateway.externals[externalID]
	switch {
	case o == nil:
		return none
	case o.status == "PROCESSING" && o.kind == payout:
		return o.status + " " + o.step
	default:
		return o.status
	}
}

// compare holds the four books against each other.
func (s *simulation) compare(settled bool) {
	var err error
	if s.books.transfers, err = s.bank.transfers(); err == nil {
		s.books.payments, err = s.bank.payments()
	}
	if err != nil {
		s.violate("", "", "", "the bank's books cannot be read: "+err.Error())
		return
	}
	s.broken = append(s.broken, compare(s.books, s.gateway, settled)...)
}

func (s *simulation) finish() {
	s.result.Seed = s.options.Seed
	s.result.Steps = s.steps
	s.result.Simulated = s.clock.Monotonic()
	s.result.Cells = s.cells
	s.result.Payouts = len(s.books.transfers)
	s.trace.linef("end: %d orders, %d transfers, %d payments, %d deliveries", s.result.Orders, len(s.books.transfers), len(s.books.payments), len(s.books.received))
	s.result.Trace = s.trace.sum()
	s.result.Broken = s.tell()
}

// tell is what was broken, for people.
func (s *simulation) tell() string {
	if len(s.broken) == 0 {
		return ""
	}
	var text strings.Builder
	told := map[string]bool{}
	for i, v := range s.broken {
		if i == 10 {
			fmt.Fprintf(&text, "and %d more\n", len(s.broken)-i)
			break
		}
		fmt.Fprintf(&text, "%s: merchant %s, order %s: %s\n", v.invariant, v.merchant, v.order, v.text)
		if v.order != "" && !told[v.order] && len(told) < 3 {
			told[v.order] = true
			text.WriteString(s.gateway.story(v.order))
		}
	}
	return text.String()
}
