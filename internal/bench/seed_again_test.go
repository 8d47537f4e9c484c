package bench_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/bench"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// place is a folder that is not there yet, and an empty database for PostgreSQL.
func place(t *testing.T, engine string) (folder, database string) {
	t.Helper()
	if engine == "postgres" {
		database = storetest.Empty(t, engine, env.System(env.OutboundOptions{})).Database
	}
	return filepath.Join(t.TempDir(), "seeded"), database
}

// hasty is a clock by which nobody waits.
type hasty struct{ env.Clock }

func (c hasty) NewTimer(time.Duration) env.Timer { return c.Clock.NewTimer(0) }

// What dies in any of its commits is gone on with by the same command, and
// payouts that it had in hand come to their end too.
func TestSeedGoesOnAfterADeath(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			folder, database := place(t, engine)
			o := bench.SeedOptions{Data: folder, Database: database, Payins: 60, Payouts: 30, Merchants: 1}
			died := 0
			for last := 1; ; last++ {
				w := env.System(env.OutboundOptions{})
				w.Clock = hasty{w.Clock}
				commits := 0
				w.OnFailpoint = func(m env.Failpoint) error {
					if m == env.BeforeCommit {
						if commits++; commits > last {
							runtime.Goexit() // it dies
						}
					}
					return nil
				}
				o.Env = w
				var err error
				ended, lived := make(chan struct{}), false
				go func() {
					defer close(ended)
					_, err = bench.Seed(t.Context(), o)
					lived = true
				}()
				<-ended
				if lived {
					if err != nil {
						t.Fatal(err)
					}
					break
				}
				died++
			}
			if died < 5 {
				t.Errorf("it died only %d times", died)
			}
			proved(t, folder, database)
			t.Run("nobody is left on the list", func(t *testing.T) {
				if nodes, err := bench.OpenSeeded(t, folder, database).Nodes(t.Context()); err != nil || len(nodes) > 0 {
					t.Errorf("%v, %v", nodes, err)
				}
			})
			payins, payouts := counted(t, folder, database)
			var all int64
			for _, n := range payins {
				all += n
			}
			if all != 60 || payouts[payment.PayoutCompleted]+payouts[payment.PayoutFailed] != 30 {
				t.Errorf("pay-ins %v, payouts %v", payins, payouts)
			}
		})
	}
}

// A store whose making came to no end is made by the next run.
func TestSeedGoesOnAfterItBegan(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			folder, database := place(t, engine)
			o := bench.SeedOptions{Data: folder, Database: database, Payins: 5, Merchants: 1, Env: env.System(env.OutboundOptions{})}
			for name, made := range map[string]bool{"the mark": false, "the mark and the key": true} {
				if err := os.RemoveAll(folder); err != nil {
					t.Fatal(err)
				}
				if engine == "postgres" {
					database = storetest.Empty(t, engine, o.Env).Database
					o.Database = database
				}
				if err := bench.BeginSeeding(folder, made); err != nil {
					t.Fatal(err)
				}
				v, err := bench.Seed(t.Context(), o)
				if err != nil || v.Payins != 5 {
					t.Errorf("%s: %+v, %v", name, v, err)
					continue
				}
				proved(t, folder, database)
			}
			if engine == "sqlite" { // the schema, and nothing in it
				folder = filepath.Join(t.TempDir(), "seeded")
				if err := bench.BeginSeeding(folder, true); err != nil {
					t.Fatal(err)
				}
				bench.MigrateSeeded(t, folder)
				o.Data = folder
				if v, err := bench.Seed(t.Context(), o); err != nil || v.Payins != 5 {
					t.Errorf("the schema: %+v, %v", v, err)
				}
			}
		})
	}
}

// Two that fill or measure one database at once would each count what they made
// themselves: the second one is refused, and does nothing.
func TestSeedOneAtATime(t *testing.T) {
	t.Parallel()
	folder, database := place(t, "postgres")
	release, err := bench.LockSeeded(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	w := env.System(env.OutboundOptions{})
	if _, err := bench.Seed(t.Context(), bench.SeedOptions{Data: folder, Database: database, Payins: 1, Env: w}); !errors.Is(err, bench.ErrBusy) {
		t.Errorf("a second one that fills: %v", err)
	}
	o := bench.GrowthOptions{Data: folder, Database: database, Duration: time.Second, Samples: 1, Env: w}
	if _, err := bench.Growth(t.Context(), o); !errors.Is(err, bench.ErrBusy) {
		t.Errorf("a second one that measures: %v", err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) || bench.Tables(t, database) != 0 {
		t.Errorf("it made something: %v", err)
	}
}

// A gateway that works on a seeded database would send what is made up.
func TestSeedBesideAGateway(t *testing.T) {
	t.Parallel()
	folder, database := place(t, "postgres")
	o := bench.SeedOptions{Data: folder, Database: database, Payins: 5, Payouts: 5, Merchants: 1}
	seeded(t, o)
	s := bench.OpenSeeded(t, folder, database)
	alive := payment.ID(env.System(env.OutboundOptions{}).IDs.NewID(time.Now()))
	write := func(work func(tx *store.Tx) error) {
		t.Helper()
		if err := s.Write(t.Context(), work); err != nil {
			t.Error(err)
		}
	}
	write(func(tx *store.Tx) error { return tx.RegisterNode(t.Context(), alive) })
	seed := func(beats bool) error {
		clock := env.NewVirtualClock(time.Now())
		o.Payins, o.Env = o.Payins+5, env.System(env.OutboundOptions{})
		o.Env.Clock = clock
		ended := make(chan error, 1)
		go func() {
			_, err := bench.Seed(t.Context(), o)
			ended <- err
		}()
		clock.BlockUntil(1)
		if beats {
			write(func(tx *store.Tx) error {
				_, err := tx.Beat(context.Background(), alive)
				return err
			})
		}
		clock.Advance(4 * time.Second)
		return <-ended
	}
	if err := seed(true); !errors.Is(err, bench.ErrBusy) {
		t.Errorf("beside a gateway: %v", err)
	}
	if payins, _ := counted(t, folder, database); payins[payment.PayinPaid]+payins[payment.PayinCanceled]+payins[payment.PayinExpired]+payins[payment.PayinPending] != 5 {
		t.Errorf("it made orders: %v", payins)
	}
	if nodes, err := s.Nodes(t.Context()); err != nil || len(nodes) != 1 || nodes[0].ID != alive {
		t.Errorf("the gateway is not on the list: %v, %v", nodes, err)
	}
	if err := seed(false); err != nil {
		t.Errorf("beside one that died: %v", err)
	}
}

// A folder without its database is none to begin anew in, and a database that is
// named in another way is none at all; nothing is made.
func TestSeedRefuses(t *testing.T) {
	t.Parallel()
	folder, database := place(t, "postgres")
	w := env.System(env.OutboundOptions{})
	seeded(t, bench.SeedOptions{Data: folder, Database: database, Payins: 1})
	before, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bench.Seed(t.Context(), bench.SeedOptions{Data: folder, Payins: 2, Env: w}); !errors.Is(err, bench.ErrNotSeeded) {
		t.Errorf("without its database: %v", err)
	}
	other := filepath.Join(t.TempDir(), "other.db")
	for _, name := range []string{other, "host=127.0.0.1 dbname=real"} {
		if _, err := bench.Seed(t.Context(), bench.SeedOptions{Data: folder, Database: name, Payins: 2, Env: w}); !errors.Is(err, bench.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
		o := bench.GrowthOptions{Data: folder, Database: name, Duration: time.Second, Samples: 1, Env: w}
		if _, err := bench.Growth(t.Context(), o); !errors.Is(err, bench.ErrUsage) {
			t.Errorf("%s, measured: %v", name, err)
		}
	}
	for _, o := range []bench.SeedOptions{{Payins: -1}, {Payouts: -1}, {Payins: 1 << 62}, {Payouts: 1 << 62}, {Merchants: -1}, {Merchants: 1 << 20}} {
		o.Data, o.Database, o.Env = folder, database, w
		if _, err := bench.Seed(t.Context(), o); !errors.Is(err, bench.ErrUsage) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	after, err := filepath.Glob(filepath.Join(folder, "*"))
	if _, made := os.Stat(other); err != nil || len(after) != len(before) || !errors.Is(made, os.ErrNotExist) {
		t.Errorf("made: %v beside %v, %v", after, before, made)
	}
}
