package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/db/dbtest"
	"github.com/porteira/porteira/internal/store/storetest"
)

var (
	oneSeed     = flag.Uint64("seed", 0, "simulate this seed alone, and print its trace with -v")
	seeds       = flag.Uint64("seeds", 1, "number of seeds to simulate")
	from        = flag.Uint64("from", 1, "the first of them")
	duration    = flag.Duration("for", 0, "simulate seeds for this time, instead of a number of them")
	engine      = flag.String("engine", "", "sqlite or postgres; both unless set")
	orders      = flag.Int("orders", OrdersDefault, "orders of a run")
	onward      = flag.Bool("onward", false, "continue after a seed that fails")
	processFlag = flag.Bool("process", false, "simulate the seeds that another process sends; see process_test.go")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // uses more memory, and less time
	os.Exit(dbtest.Main(m))
}

// runner runs one seed after another on an engine.
type runner struct {
	engine   string
	folder   string
	template []byte // of an SQLite file
}

func newRunner(t *testing.T, engine string) *runner {
	t.Helper()
	r := &runner{engine: engine, folder: memoryFolder(t)}
	if engine == "sqlite" {
		path := filepath.Join(r.folder, "template.db")
		err := Prepare(t.Context(), path)
		if err == nil {
			r.template, err = os.ReadFile(path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// memoryFolder is a folder in memory, if the machine has one.
func memoryFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "porteira-sim-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// run simulates one seed in a database of its own.
func (r *runner) run(t *testing.T, seed uint64, trace func(string)) Result {
	t.Helper()
	folder := filepath.Join(r.folder, fmt.Sprint(seed))
	o := Options{Seed: seed, Orders: *orders, Trace: trace, Journal: filepath.Join(folder, "bank.journal")}
	err := os.Mkdir(folder, 0o700)
	if r.engine == "sqlite" {
		o.Database = filepath.Join(folder, "gateway.db")
		err = errors.Join(err, os.WriteFile(o.Database, r.template, 0o600))
	} else {
		o.Database = dbtest.PostgresFrom(t, "sim", func(url string) error { return Prepare(context.Background(), url) })
		o.Copy = func(database string) (string, error) { return dbtest.CopyPostgres(t, database) }
		o.Database += "&options=-csynchronous_commit%3Doff"
	}
	var result Result
	if err == nil {
		result, err = Run(t.Context(), o)
	}
	if err = errors.Join(err, os.RemoveAll(folder)); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return result
}

func engines() []string {
	if *engine != "" {
		return []string{*engine}
	}
	return storetest.Engines
}

// TestSeeds simulates seeds, and fails if one of them breaks a rule.
func TestSeeds(t *testing.T) {
	if *processFlag {
		serveSeeds(t)
		return
	}
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			r := newRunner(t, engine)
			if *oneSeed != 0 {
				result := r.run(t, *oneSeed, func(line string) {
					if testing.Verbose() {
						fmt.Println(line)
					}
				})
				checkResult(t, engine, &result)
				return
			}
			runSeeds(t, r)
		})
	}
}

// runSeeds runs seeds on all CPUs.
func runSeeds(t *testing.T, r *runner) {
	t.Helper()
	sum := &sum{figures: map[string]int64{}, coverage: coverage{}}
	began := time.Now()
	var broken atomic.Bool
	var next atomic.Uint64
	next.Store(*from)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		run := r.run
		if r.engine == "sqlite" && (*seeds > processesFrom || *duration > 0) {
			run = startProcess(t).run
		}
		group.Go(func() {
			for *onward || !broken.Load() && !t.Failed() {
				seed := next.Add(1) - 1
				if *duration > 0 && time.Since(began) > *duration || *duration == 0 && seed >= *from+*seeds {
					return
				}
				result := run(t, seed, nil)
				sum.add(&result)
				if result.Broken != "" {
					broken.Store(true)
					t.Logf("seed %d breaks a rule", seed)
				}
			}
		})
	}
	group.Wait()
	sum.report(t, r.engine, time.Since(began))
	for i := range sum.broken { // last, as the end of an output is what a reader sees of a long one
		checkResult(t, r.engine, &sum.broken[i])
	}
}

func checkResult(t *testing.T, engine string, r *Result) {
	t.Helper()
	if r.Broken != "" {
		t.Errorf("seed %d breaks a rule; to repeat it with its trace:\n  go test ./test/sim -run TestSeeds -engine %s -orders %d -seed %d -v\n%s",
			r.Seed, engine, *orders, r.Seed, r.Broken)
	}
}

// sum adds up runs.
type sum struct {
	mu       sync.Mutex
	figures  map[string]int64
	coverage coverage
	broken   []Result
}

func (s *sum) add(r *Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, n := range map[string]int{
		"seeds": 1, "orders": r.Orders, "faults": r.Faults, "faults on payouts": r.PayoutFaults, "faults on effects": r.EffectFaults,
		"crashes": r.Crashes, "commits": r.Commits, "steps": r.Steps, "rows verified": r.Proved, "simulated seconds": int(r.Simulated / time.Second),
	} {
		s.figures[name] += int64(n)
	}
	for cell, n := range r.Coverage {
		s.coverage[cell] += n
	}
	if r.Broken != "" {
		s.broken = append(s.broken, *r)
	}
}

func (s *sum) report(t *testing.T, engine string, took time.Duration) {
	t.Helper()
	n := s.figures["seeds"]
	t.Logf("%s: %d seeds in %v, %.1f per second: %v", engine, n, took.Round(time.Millisecond), float64(n)/took.Seconds(), s.figures)
	t.Logf("faults by the state that they met:\n%s", s.coverage.table())
	if *orders == OrdersDefault {
		for _, problem := range s.coverage.problems(n) {
			t.Error(problem)
		}
	}
}

// TestTrace simulates a seed twice: the traces are equal. Nothing else uses the server meanwhile:
// where PostgreSQL puts rows, and so the order of rows that are due at the same time, depends on
// the transactions in other databases.
func TestTrace(t *testing.T) {
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			r := newRunner(t, engine)
			first, second := r.run(t, *from, nil), r.run(t, *from, nil)
			if first.Trace == "" || first.Trace != second.Trace {
				t.Errorf("seed %d has two traces: %s and %s", *from, first.Trace, second.Trace)
			}
		})
	}
}
