package simulate

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

	"github.com/porteira/porteira/internal/store/storetest"
)

var (
	oneSeed = flag.Uint64("seed", 0, "simulate this seed alone, and print its trace with -v")
	seeds   = flag.Uint64("seeds", 2, "how many seeds to simulate")
	from    = flag.Uint64("from", 1, "the first of them")
	lasting = flag.Duration("for", 0, "simulate seeds for so long, instead of a number of them")
	engine  = flag.String("engine", "", "sqlite or postgres; both unless set")
	orders  = flag.Int("orders", OrdersDefault, "orders of a run")
	onward  = flag.Bool("onward", false, "go on after a seed that fails")
	helper  = flag.Bool("helper", false, "simulate the seeds that another process names; see helper_test.go")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // memory is small, and time is what is short
	os.Exit(storetest.Main(m))
}

// place is where one run after the other has its database.
type place struct {
	t        *testing.T
	engine   string
	folder   string
	template []byte // of an SQLite file
}

func newPlace(t *testing.T, engine string) *place {
	t.Helper()
	p := &place{t: t, engine: engine, folder: memoryFolder(t)}
	if engine == "sqlite" {
		path := filepath.Join(p.folder, "template.db")
		err := Prepare(t.Context(), path)
		if err == nil {
			p.template, err = os.ReadFile(path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// memoryFolder is a folder in memory, where the machine has one.
func memoryFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "porteira-simulate-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// run simulates one seed in a database of its own.
func (p *place) run(t *testing.T, seed uint64, trace func(string)) Result {
	t.Helper()
	folder := filepath.Join(p.folder, fmt.Sprint(seed))
	o := Options{Seed: seed, Orders: *orders, Trace: trace, Journal: filepath.Join(folder, "bank.journal")}
	err := os.Mkdir(folder, 0o700)
	if p.engine == "sqlite" {
		o.Database = filepath.Join(folder, "gateway.db")
		err = errors.Join(err, os.WriteFile(o.Database, p.template, 0o600))
	} else {
		o.Database = storetest.PostgresFrom(t, "simulate", func(url string) error { return Prepare(context.Background(), url) })
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

// TestSeeds simulates one seed after the other and holds each step against the
// rules.
func TestSeeds(t *testing.T) {
	if *helper {
		help(t)
		return
	}
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			p := newPlace(t, engine)
			if *oneSeed != 0 {
				fail(t, engine, p.run(t, *oneSeed, func(line string) {
					if testing.Verbose() {
						fmt.Println(line)
					}
				}))
				return
			}
			sum := &sum{cells: coverage{}}
			began := time.Now()
			var next atomic.Uint64
			next.Store(*from)
			var workers sync.WaitGroup
			for range runtime.GOMAXPROCS(0) {
				run := p.run
				if engine == "sqlite" && (*seeds > helpFrom || *lasting > 0) {
					run = newHelper(t).run
				}
				workers.Go(func() {
					for *onward || !t.Failed() {
						seed := next.Add(1) - 1
						if *lasting > 0 && time.Since(began) > *lasting || *lasting == 0 && seed >= *from+*seeds {
							return
						}
						result := run(t, seed, nil)
						sum.add(&result)
						fail(t, engine, result)
					}
				})
			}
			workers.Wait()
			sum.report(t, engine, time.Since(began))
		})
	}
}

func fail(t *testing.T, engine string, r Result) {
	if r.Broken != "" {
		t.Errorf("seed %d breaks a rule; again, with its trace:\n  go test ./internal/simulate -run TestSeeds -engine %s -orders %d -seed %d -v\n%s",
			r.Seed, engine, *orders, r.Seed, r.Broken)
	}
}

// sum adds up runs.
type sum struct {
	mu      sync.Mutex
	figures map[string]int64
	cells   coverage
}

func (s *sum) add(r *Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.figures == nil {
		s.figures = map[string]int64{}
	}
	for name, n := range map[string]int{
		"seeds": 1, "orders": r.Orders, "faults": r.Faults, "faults on payouts": r.PayoutFaults,
		"crashes": r.Crashes, "commits": r.Commits, "steps": r.Steps, "simulated seconds": int(r.Simulated / time.Second),
	} {
		s.figures[name] += int64(n)
	}
	for cell, n := range r.Cells {
		s.cells[cell] += n
	}
}

func (s *sum) report(t *testing.T, engine string, took time.Duration) {
	t.Helper()
	n := s.figures["seeds"]
	t.Logf("%s: %d seeds in %v, %.1f a second: %v", engine, n, took.Round(time.Millisecond), float64(n)/took.Seconds(), s.figures)
	t.Logf("faults by the state that they met:\n%s", s.cells.table())
	if *orders == OrdersDefault {
		for _, fault := range s.cells.faults(n) {
			t.Error(fault)
		}
	}
}

// TestTrace simulates a seed twice: the same happens, byte for byte.
func TestTrace(t *testing.T) {
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			p := newPlace(t, engine)
			first, second := p.run(t, *from, nil), p.run(t, *from, nil)
			if first.Trace != second.Trace {
				t.Errorf("seed %d has two traces: %s and %s", *from, first.Trace, second.Trace)
			}
		})
	}
}
