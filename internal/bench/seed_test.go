package bench_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/bench"
	"github.com/porteira/porteira/internal/cli"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// seeded fills a store, and fails the test where that fails.
func seeded(t *testing.T, o bench.SeedOptions) *bench.Seeded {
	t.Helper()
	o.Env = env.System(env.OutboundOptions{})
	v, err := bench.Seed(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// proved runs porteira verify on a seeded folder.
func proved(t *testing.T, folder, database string) {
	t.Helper()
	args := []string{"verify", "--data", folder}
	if database != "" {
		args = append(args, "--database", database)
	}
	var out, complaints bytes.Buffer
	p := cli.Program{Args: args, Stdout: &out, Stderr: &complaints}
	if code := p.Run(t.Context()); code != 0 || !strings.Contains(out.String(), "all sound") {
		t.Errorf("exit code %d: %s%s", code, out.String(), complaints.String())
	}
}

// counted reads every list of a seeded store to its end.
func counted(t *testing.T, folder, database string) (payins map[payment.PayinStatus]int64, payouts map[payment.PayoutStatus]int64) {
	t.Helper()
	s := bench.OpenSeeded(t, folder, database)
	list, err := s.Merchants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	payins, payouts = map[payment.PayinStatus]int64{}, map[payment.PayoutStatus]int64{}
	for i := range list {
		f := store.Filter{Limit: 1000}
		for more := true; more; {
			page, err := s.Payins(t.Context(), list[i].ID, f)
			if err != nil {
				t.Fatal(err)
			}
			for k := range page {
				payins[page[k].Status]++
				f.Before = page[k].ID
			}
			more = len(page) == f.Limit
		}
		f.Before = payment.ID{}
		for more := true; more; {
			page, err := s.Payouts(t.Context(), list[i].ID, f)
			if err != nil {
				t.Fatal(err)
			}
			for k := range page {
				payouts[page[k].Status]++
				f.Before = page[k].ID
			}
			more = len(page) == f.Limit
		}
	}
	return payins, payouts
}

// A store is filled by the gateway's own rules, further when it is asked for
// more, and its books are sound.
func TestSeed(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			folder, database := filepath.Join(t.TempDir(), "seeded"), ""
			if engine == "postgres" {
				database = storetest.Empty(t, engine, env.System(env.OutboundOptions{})).Database
			}
			o := bench.SeedOptions{Data: folder, Database: database, Payins: 500, Payouts: 60, Merchants: 3}
			if v := seeded(t, o); v.Payins != 500 || v.Payouts != 60 || v.Made != 560 || v.Merchants != 3 {
				t.Errorf("first: %+v", v)
			}
			o.Payins, o.Payouts, o.Merchants = 700, 50, 0
			if v := seeded(t, o); v.Payins != 700 || v.Payouts != 60 || v.Made != 200 || v.Merchants != 3 {
				t.Errorf("further: %+v", v)
			}
			proved(t, folder, database)
			payins, payouts := counted(t, folder, database)
			var all int64
			for _, n := range payins {
				all += n
			}
			if all != 700 || payins[payment.PayinPaid] < 200 || payins[payment.PayinCanceled] == 0 {
				t.Errorf("pay-ins %v", payins)
			}
			if payouts[payment.PayoutCompleted]+payouts[payment.PayoutFailed] != 60 {
				t.Errorf("payouts %v", payouts)
			}
		})
	}
}

// What seeding did not make is not touched.
func TestSeedTouchesNothingElse(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "porteira.db")
	if err := os.WriteFile(path, []byte("somebody's own"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := bench.SeedOptions{Data: folder, Payins: 10, Env: env.System(env.OutboundOptions{})}
	if _, err := bench.Seed(t.Context(), o); !errors.Is(err, bench.ErrNotSeeded) {
		t.Errorf("a folder with a database: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "somebody's own" {
		t.Errorf("%q, %v", text, err)
	}

	// A database behind a folder with the mark of another one.
	seeded(t, bench.SeedOptions{Data: filepath.Join(folder, "seeded"), Payins: 1})
	w := env.System(env.OutboundOptions{})
	foreign := storetest.Prepare(t, "postgres", w)
	o.Data, o.Database = filepath.Join(folder, "seeded"), foreign.Database
	if _, err := bench.Seed(t.Context(), o); !errors.Is(err, bench.ErrNotSeeded) {
		t.Errorf("a database of somebody's own: %v", err)
	}
	o.Data = filepath.Join(folder, "new")
	if _, err := bench.Seed(t.Context(), o); !errors.Is(err, bench.ErrNotSeeded) {
		t.Errorf("a database of somebody's own and a new folder: %v", err)
	}
}

// A stop in the middle leaves a sound store, which the next run goes on with.
func TestSeedGoesOnAfterAStop(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "seeded")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w := env.System(env.OutboundOptions{})
	commits := 0
	w.OnFailpoint = func(m env.Failpoint) error {
		if m == env.BeforeCommit {
			if commits++; commits == 12 {
				stop()
			}
		}
		return nil
	}
	o := bench.SeedOptions{Data: folder, Payins: 9_000, Payouts: 100, Merchants: 2, Env: w}
	v, err := bench.Seed(ctx, o)
	if !errors.Is(err, bench.ErrStopped) || v == nil || v.Payins == 9_000 {
		t.Fatalf("%+v, %v", v, err)
	}
	o.Env = env.System(env.OutboundOptions{})
	proved(t, folder, "")
	if v = seeded(t, o); v.Payins != 9_000 || v.Payouts != 100 {
		t.Errorf("%+v", v)
	}
	proved(t, folder, "")
	payins, _ := counted(t, folder, "")
	var all int64
	for _, n := range payins {
		all += n
	}
	if all != 9_000 {
		t.Errorf("pay-ins %v", payins)
	}
}
