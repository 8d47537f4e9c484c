package checker

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/db/dbtest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/worker"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// bankName is the name of the bank as a processor.
const bankName = "bank"

// asking is the name of another bank, which asks for consent to transfers: to payouts of
// askedAmount, in cents.
const (
	asking      = "asking"
	askedAmount = 3_100
)

// registered is the amount in cents of pay-ins that the bank does not generate offline.
const registered = 7_700

// bank is a processor that generates charges offline. Each test sets what it does with transfers.
type bank struct{}

func (bank) Profile() processor.Profile {
	return processor.Profile{
		Name: bankName, Methods: payment.Methods, CodeKey: processortest.Key, Charge: processor.Effect{Repeat: processor.RepeatReturnsFirst, Timeout: time.Second},
		Transfer: processor.Effect{Repeat: processor.RepeatReturnsFirst, Timeout: 5 * time.Second, QuietPeriod: time.Second},
	}
}

func (bank) NewCharge(r processor.ChargeRequest) (processor.Charge, bool) {
	return processor.Charge{PIX: processortest.PIX(r)}, r.Amount != registered
}

func (b bank) Charge(_ context.Context, r processor.ChargeRequest, _ func() error) processor.ChargeAnswer {
	charge, _ := b.NewCharge(r)
	return processor.ChargeAnswer{Outcome: processor.Done, Charge: charge}
}

func (bank) QueryCharge(context.Context, string) (r processor.ChargeReport) { return r }

func (bank) Transfer(context.Context, processor.TransferRequest, func() error) (a processor.TransferAnswer) {
	return a
}

func (bank) QueryTransfer(context.Context, string) (r processor.TransferReport) { return r }

func (bank) VerifyNotice(http.Header, []byte, time.Time) (string, error) { return "notice", nil }

// ParseNotice reads "nothing" as a notice of nothing.
func (bank) ParseNotice(body []byte) ([]processor.Hint, error) {
	if string(body) != "nothing" {
		return nil, os.ErrInvalid
	}
	return nil, nil
}

// scene is a merchant, its gateway and its bank. The checker reads every commit.
type scene struct {
	*app.Core

	t        *testing.T
	ctx      context.Context
	clock    *env.VirtualClock
	keys     *db.Keyring
	store    *store.Store
	raw      *sql.DB // the checker's own connection
	checker  *Checker
	found    []Violation
	merchant store.Merchant
	records  Records
	limits   Limits

	processors processor.Registry
}

// eachEngine opens a scene on SQLite: the simulation proves the triggers of both engines.
func eachEngine(t *testing.T, run func(s *scene)) {
	t.Helper()
	for _, engine := range storetest.Engines[:1] {
		t.Run(engine, func(t *testing.T) { run(newScene(t, engine)) })
	}
}

func newScene(t *testing.T, engine string) *scene {
	t.Helper()
	s := &scene{t: t, ctx: t.Context(), limits: NoLimits}
	e, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	e.OnFailpoint = func(f env.Failpoint) error {
		if f == env.AfterCommit && s.checker != nil {
			s.commit()
		}
		return nil
	}
	o := storetest.Prepare(t, engine, e)
	driver, address := "pgx", o.Database
	if engine == "sqlite" {
		driver, address = "sqlite", "file:"+o.Database+"?_pragma=busy_timeout(5000)&_pragma=ignore_check_constraints(1)"
	}
	s.clock, s.keys = clock, o.Keys
	var err error
	s.raw, err = sql.Open(driver, address)
	s.must(err)
	s.raw.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = s.raw.Close() })
	s.must(Install(s.ctx, s.raw, engine))
	s.checker = s.newChecker()
	t.Cleanup(func() { _ = s.checker.Close() })
	s.store = storetest.Open(t, o)
	s.processors = processor.Registry{bankName: bank{}, asking: bank{}}
	s.Core = app.NewCore(app.CoreOptions{
		Store: s.store, Env: e, Processors: s.processors, Log: slog.New(slog.DiscardHandler),
		Retention: retention, Spawn: worker.Inline, RecordOnce: true,
	})
	// There is no heartbeat, so nothing is claimed when it is created.
	s.must(s.Cluster.Join(s.ctx, cluster.Mark{}, true))
	routes := append([]payment.Route{{Operation: payment.OperationPayout, Account: asking, Minimum: askedAmount, Maximum: askedAmount}}, payment.AllRoutes(bankName)...)
	s.merchant, err = s.Merchants.Create(s.ctx, store.Merchant{Name: "shop", City: "SAO PAULO", Routes: routes}, "")
	s.must(err)
	s.merchant.Limits, err = s.Merchants.SetLimits(s.ctx, s.merchant.ID, func(l *limits.Limits) { *l = limits.Limits{} })
	s.must(err)
	s.must(s.Merchants.Fund(s.ctx, s.merchant, 100_000))
	return s
}

// retention is how long the gateway keeps finished deliveries.
const retention = time.Hour

// newChecker follows the database from its beginning. It allows no removal.
func (s *scene) newChecker() *Checker {
	s.t.Helper()
	c, err := New(s.ctx, Options{DB: s.raw, MasterKey: make([]byte, db.MasterKeyLength), AsksConsent: []string{asking}, Limits: func(string) Limits { return s.limits }})
	s.must(err)
	return c
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// commit checks what was committed.
func (s *scene) commit() {
	s.t.Helper()
	found, err := s.checker.Commit(context.Background())
	s.must(err)
	s.found = append(s.found, found...)
}

// wantSound fails the test if there is any violation.
func (s *scene) wantSound() {
	s.t.Helper()
	s.found = append(s.found, s.checker.Compare(&s.records, false)...)
	for _, v := range s.found {
		s.t.Errorf("%+v\n%s", v, s.checker.History(v.Order))
	}
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// want looks for a violation of an invariant whose text contains words.
func (s *scene) want(name string, found []Violation, invariant Invariant, words string) {
	s.t.Helper()
	for _, v := range found {
		if v.Invariant == invariant && strings.Contains(v.Text, words) {
			return
		}
	}
	s.t.Errorf("%s: no violation of %s with %q in %+v", name, invariant, words, found)
}

// relax drops the database's own constraints, so that it accepts what only the checker
// is to find.
func (s *scene) relax() {
	s.t.Helper()
	texts := []string{"DROP INDEX payout_sends_live"}
	if s.store.Engine() == "postgres" {
		rows, err := s.raw.QueryContext(s.ctx, `SELECT 'ALTER TABLE ' || conrelid::regclass || ' DROP CONSTRAINT ' || conname
			FROM pg_constraint WHERE contype IN ('c', 'f') AND connamespace = 'public'::regnamespace`)
		s.must(err)
		for rows.Next() {
			var text string
			s.must(rows.Scan(&text))
			texts = append(texts, text)
		}
		s.must(rows.Err())
		s.must(rows.Close())
	}
	for _, text := range texts {
		_, err := s.raw.ExecContext(s.ctx, text)
		s.must(err)
	}
}

// restartChecker reads all commits into a new checker, as one commit.
func (s *scene) restartChecker() {
	s.t.Helper()
	old := s.checker
	s.checker = s.newChecker()
	s.checker.Retention, s.checker.Now = old.Retention, old.Now
	s.must(old.Close())
	s.found = nil
	s.commit()
}

// freshID is an id that no row has.
const freshID = "0123456789abcdef"

// corrupt runs statements as one commit, and rolls it back after it is checked. $1 is an
// id that no row has, and $2 a value to store.
func (s *scene) corrupt(statements []string, value []byte) []Violation {
	t := s.t
	t.Helper()
	s.restartChecker()
	s.wantSound()
	tx, err := s.raw.BeginTx(s.ctx, nil)
	s.must(err)
	defer func() { s.must(tx.Rollback()) }()
	for _, text := range statements {
		var args []any
		if strings.Contains(text, "$1") {
			args = append(args, []byte(freshID))
		}
		if strings.Contains(text, "$2") {
			args = append(args, value)
		}
		if _, err := tx.ExecContext(s.ctx, text, args...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	direct := s.checker.log
	s.checker.log = tx.StmtContext(s.ctx, direct)
	defer func() { s.checker.log = direct }()
	found, err := s.checker.Commit(s.ctx)
	s.must(err)
	return found
}
