package sim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the checker's own connection
	_ "modernc.org/sqlite"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	merchants "github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/test/sim/checker"
)

// OrdersDefault is the default number of orders of a run.
const OrdersDefault = 200

// Options are the parameters of a run.
type Options struct {
	// Seed determines all random choices.
	Seed uint64
	// Database is the path of an SQLite file or a postgres:// URL: empty, and
	// migrated by [Prepare].
	Database string
	// Journal is the path of the bank's journal, which does not exist yet.
	Journal string
	// Orders is the number of orders; 0 means [OrdersDefault].
	Orders int
	// Copy copies a PostgreSQL database to which nothing is connected, and returns the URL
	// of the copy; nil: none is made.
	Copy func(database string) (string, error)
	// Trace, if not nil, is called with each line of the trace.
	Trace func(line string)
}

// masterKey is the master key of simulated gateways.
const masterKey = "a master key for simulations, 32"

func newKeys(e env.Env) (*db.Keyring, error) {
	return db.NewKeyring([]byte(masterKey), e.Random)
}

// Prepare migrates an empty database and makes it log its changes for the checker.
func Prepare(ctx context.Context, database string) error {
	e, _ := env.Virtual(startTimes[0], 0)
	keys, err := newKeys(e)
	if err != nil {
		return err
	}
	if _, err := store.Migrate(ctx, db.Options{Database: database, Keys: keys, Env: e}); err != nil {
		return err
	}
	raw, engine, err := openRaw(database)
	if err != nil {
		return err
	}
	return errors.Join(checker.Install(ctx, raw, engine), raw.Close())
}

// openRaw opens a database without the gateway's own code.
func openRaw(database string) (raw *sql.DB, engine string, err error) {
	if db.IsPostgres(database) {
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

// Run simulates one seed. The error is one of the simulator; violations by the gateway are in
// the result.
func Run(ctx context.Context, o Options) (result Result, err error) {
	if o.Orders == 0 {
		o.Orders = OrdersDefault
	}
	s := &simulation{
		ctx: ctx, options: o, random: env.SeededRandom(o.Seed ^ 0x5eed), coverage: coverage{},
		control: make(chan ending), receivers: map[string]*receiver{}, oldAnswers: map[string][]byte{}, mistaken: map[string]bool{}, undecided: map[payment.ID]bool{}, deciding: map[payment.ID]bool{}, contracts: newContracts(), accounts: map[string]*contract{}, turns: map[string]int{},
	}
	s.began = pick(s, startTimes)
	s.source, s.clock = env.Virtual(s.began, o.Seed)
	s.trace = newTrace(s.clock.Monotonic, o.Trace)
	s.plan = s.drawPlan()
	if err := s.open(); err != nil {
		return s.result, errors.Join(err, s.close())
	}
	s.start()
	s.drain()
	s.compare(len(s.violations) == 0)
	if len(s.violations) == 0 {
		s.verify()
	}
	for _, text := range s.coverage.impossible() {
		s.violate(checker.States, "", "", text)
	}
	s.finish()
	return s.result, s.close()
}

func (s *simulation) open() (err error) {
	if s.raw, _, err = openRaw(s.options.Database); err != nil {
		return err
	}
	s.checker, err = checker.New(s.ctx, checker.Options{
		DB: s.raw, MasterKey: []byte(masterKey), Retention: retention, Now: s.latestRemoval,
		LookUpFirst: s.accountsOf(notIdempotent, consenting), AsksConsent: s.accountsOf(consenting), Outcome: s.countOutcome, Limits: s.limitsByID,
		Mistaken:   func(externalID string) bool { return s.mistaken[externalID] },
		Receivable: func(what string) { s.coverage.count("receivable", what, "any") },
	})
	if err != nil {
		return err
	}
	if s.keys, err = newKeys(s.source); err != nil {
		return err
	}
	if err := s.createMerchants(); err != nil {
		return err
	}
	source, _ := env.Virtual(s.began, s.options.Seed+1<<32)
	s.bank = &bank{sim: s, source: source, charges: map[string]*checker.BankCharge{}}
	if err := s.bank.open(); err != nil {
		return err
	}
	for i := range s.plan.nodes {
		s.nodes = append(s.nodes, &node{sim: s, name: fmt.Sprintf("gateway%d", i), shared: i > 0})
	}
	for _, n := range s.nodes {
		s.perform(n.start)
	}
	return nil
}

func (s *simulation) createMerchants() (err error) {
	e := s.source
	e.Clock, e.Processor = s.clock, directTransport{} // nobody is called
	st, err := store.Open(s.ctx, db.Options{Database: s.options.Database, Keys: s.keys, Env: e, AllowUnsafe: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if err := s.createAccounts(st, e); err != nil {
		return err
	}
	if err := st.Transact(s.ctx, func(tx *store.Tx) error { return tx.SetSetting(s.ctx, store.SettingSandbox, "true") }); err != nil { // for its funds
		return err
	}
	seeder := merchants.New(merchants.Options{Store: st, Env: e, Author: actor.Author{Actor: actor.System}})
	for i := range merchantCount {
		m, err := s.newMerchant(i, seeder, st)
		if err != nil {
			return err
		}
		s.merchants = append(s.merchants, m)
		s.checkCommit()
	}
	return nil
}

func (s *simulation) close() error {
	var errs []error
	s.endParked()
	for _, n := range s.nodes {
		n.close()
	}
	if s.bank != nil && s.bank.bank != nil {
		errs = append(errs, s.bank.bank.Close())
	}
	if s.checker != nil {
		errs = append(errs, s.checker.Close())
	}
	if s.raw != nil {
		errs = append(errs, s.raw.Close())
	}
	return errors.Join(errs...)
}

// start places orders while faults occur.
func (s *simulation) start() {
	span := time.Duration(0)
	for range s.options.Orders {
		m := pick(s, s.merchants)
		s.after(span, m.placeOrder)
		span += s.between(0, 1500*time.Millisecond)
	}
	s.scheduleFaults(span)
	s.runUntil(span + time.Minute)
}

// drain stops all faults and runs until no work is left.
func (s *simulation) drain() {
	s.faultsOff = true
	s.trace.linef("faults stop")
	s.bank.unreachable = false
	for _, c := range s.contracts {
		c.hangs = ""
	}
	s.bank.restart()
	for _, n := range s.nodes {
		n.pausedUntil, n.clockOffset = 0, 0
		s.perform(n.start)
	}
	s.repair()
	bound := s.clock.Monotonic() + drainWithin
	polled := s.clock.Monotonic()
	for len(s.violations) == 0 {
		if len(s.queue) > 0 {
			s.runUntil(s.queue[0].at)
			if s.clock.Monotonic()-polled >= time.Minute { // clients that try again may wait for a worker, or a person
				polled = s.clock.Monotonic()
				s.perform(func() { s.bookLate() })
				s.pollAll()
			}
			continue
		}
		next, what := s.nextDue()
		if what == "" {
			if s.runAllWorkers() || s.resolveAll() || s.enableAll() {
				continue
			}
			bound = s.clock.Monotonic() + lateRepeat + drainWithin
			if !s.repeatLate() {
				return
			}
			continue
		}
		if next > bound {
			s.violate(checker.Progress, "", "", what+" still have work "+drainWithin.String()+" after the faults stopped")
			return
		}
		s.runUntil(next)
		s.pollAll()
		s.after(time.Second, func() {}) // work that is due again at once is due a second later
	}
}

// resolveAll resolves the cases about damage that are left, and lets people decide.
func (s *simulation) resolveAll() (found bool) {
	s.perform(func() { found = s.resolveDamaged() })
	s.perform(func() {
		if s.decideUnknown() {
			found = true
			s.retryNotices()
		}
		found = s.bookLate() || found
	})
	return found
}

// enableAll enables the webhook endpoints that are disabled.
func (s *simulation) enableAll() (found bool) {
	fails := false
	s.perform(func() { fails = s.anyFails() })
	if fails {
		s.failForDays()
	}
	s.perform(func() { found = s.enableEndpoints() })
	return found
}

// pollAll runs all workers of all nodes.
func (s *simulation) pollAll() {
	for _, n := range s.nodes {
		n.poll(0)
	}
}

// feedsWithin is longer than any feed waits after failures.
const feedsWithin = 6 * time.Minute

// runAllWorkers runs each worker once more; it reports whether there was work, such as a
// payment whose notice was lost.
func (s *simulation) runAllWorkers() bool {
	before := s.checker.Changes()
	s.elapse(feedsWithin)
	s.pollAll()
	s.runQueue()
	return s.checker.Changes() != before
}

// runQueue runs until no event is left.
func (s *simulation) runQueue() {
	for len(s.queue) > 0 && len(s.violations) == 0 {
		s.runUntil(s.queue[0].at)
	}
}

// nextDue is the next due time of work in the database, and its table; "" if there is none.
// A payout that waits for its merchant's debt may wait forever, and one whose merchant is stopped
// waits for a person; their cases say so.
func (s *simulation) nextDue() (at time.Duration, table string) {
	var due int64
	err := s.raw.QueryRowContext(s.ctx, `SELECT name, due FROM (
		SELECT 'payins' AS name, min(next_at) AS due FROM payins WHERE next_at > 0 UNION ALL
		SELECT 'payouts', min(next_at) FROM payouts p WHERE next_at > 0 AND NOT EXISTS (SELECT 1 FROM cases c WHERE c.merchant_id = p.merchant_id
			AND c.closed_at = 0 AND (c.subject_id = p.id AND c.kind = 'payout_waiting' AND c.params LIKE '%"debt"%' OR c.stops_payouts = 1)) UNION ALL
		SELECT 'refunds', min(next_at) FROM refund_parts WHERE next_at > 0 UNION ALL
		SELECT 'charges', min(next_at) FROM charges WHERE next_at > 0 UNION ALL
		SELECT 'deliveries', min(next_at) FROM deliveries WHERE next_at > 0 UNION ALL
		SELECT 'notices', min(next_at) FROM notices WHERE next_at > 0) AS dues WHERE due > 0 ORDER BY due LIMIT 1`).Scan(&table, &due)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		s.fail(err)
	}
	return max(time.UnixMicro(due).Sub(s.began), s.clock.Monotonic()), table
}
