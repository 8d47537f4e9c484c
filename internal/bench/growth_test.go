package bench_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/bench"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store/storetest"
)

// A seeded store is measured from its start to its lists, beside a base, and is
// as sound afterwards as it was.
func TestGrowth(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			folder, database := filepath.Join(t.TempDir(), "seeded"), ""
			if engine == "postgres" {
				database = storetest.Empty(t, engine, env.System(env.OutboundOptions{})).Database
			}
			seeded(t, bench.SeedOptions{Data: folder, Database: database, Payins: 300, Payouts: 60, Merchants: 2})
			run := own(t, bench.Read)
			o := bench.GrowthOptions{
				Data: folder, Database: database, Program: run.Program, Environ: run.Environ, Duration: 2 * time.Second, Samples: 3, Env: run.Env,
			}
			base, err := bench.Growth(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			o.Base = base
			again, err := bench.Growth(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if again.Payins != 300 || again.Payouts != 60 || again.Bytes < 100_000 || again.Engine != engine {
				t.Errorf("%+v", again)
			}
			for _, f := range again.Figures {
				if f.Count == 0 || f.Ratio <= 0 || (f.P50 > 0) == (f.PerSecond > 0) {
					t.Errorf("%+v", f)
				}
			}
			if len(again.Figures) < 60 {
				t.Errorf("only %d figures", len(again.Figures))
			}
			var out bytes.Buffer
			again.Print(&out)
			for _, want := range []string{"300 pay-ins and 60 payouts on " + engine, "start until ready", "status=REFUNDED, largest merchant", "POST /payin, 64 connections"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing in\n%s", want, out.String())
				}
			}
			proved(t, folder, database)
			if list, err := bench.OpenSeeded(t, folder, database).OpenExceptions(t.Context(), 10); err != nil || len(list) > 0 {
				t.Errorf("measuring left things for a person: %+v, %v", list, err)
			}
		})
	}
}

// A store with hardly an order, or with one kind alone, is measured as well: what
// there is none of is left out.
func TestGrowthOfFewOrders(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]struct {
		payins, payouts int64
		left            string // out
	}{
		"no payouts": {40, 0, "GET /payout/{id}, largest merchant"},
		"no pay-ins": {0, 40, ""},
		"one each":   {1, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "seeded")
			seeded(t, bench.SeedOptions{Data: folder, Payins: v.payins, Payouts: v.payouts, Merchants: 3})
			run := own(t, bench.Read)
			report, err := bench.Growth(t.Context(), bench.GrowthOptions{
				Data: folder, Program: run.Program, Environ: run.Environ, Duration: 100 * time.Millisecond, Samples: 2, Env: run.Env,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range report.Figures {
				if f.Name == v.left {
					t.Errorf("%+v was measured with none", f)
				}
			}
		})
	}
}

func TestGrowthRefuses(t *testing.T) {
	t.Parallel()
	o := bench.GrowthOptions{Data: t.TempDir(), Duration: time.Second, Samples: 1, Env: env.System(env.OutboundOptions{})}
	if _, err := bench.Growth(t.Context(), o); !errors.Is(err, bench.ErrNotSeeded) {
		t.Errorf("an empty folder: %v", err)
	}
	o.Samples = 0
	if _, err := bench.Growth(t.Context(), o); !errors.Is(err, bench.ErrUsage) {
		t.Errorf("no samples: %v", err)
	}
}
