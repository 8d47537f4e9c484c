package app_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/processor"
)

// Workers resume soon after an outage of the database, however long it was. The test runs
// on SQLite only, because an unavailable server takes time to answer.
func TestWorkersResumeSoon(t *testing.T) {
	t.Parallel()
	g := coretest.New(t, "sqlite")
	core := app.NewCore(app.CoreOptions{
		Store: g.ClosedStore(), Env: g.Env, Processors: processor.Registry{coretest.BankName: g.Bank}, Retention: time.Hour,
	})
	failed := 0
	for _, w := range core.NewWorkers(g.Env, slog.New(slog.DiscardHandler)) {
		longest := 5500 * time.Millisecond
		if w.Name() == app.WorkerHeartbeat {
			longest = 1100 * time.Millisecond
		}
		w.Start(t.Context())
		for range 12 {
			g.Clock.BlockUntil(1)
			wait, _ := g.Clock.Next()
			if wait > longest {
				t.Errorf("%s waits for %v after %d failures", w.Name(), wait, w.Stats().Failures)
			}
			g.Clock.Advance(wait)
		}
		w.Stop()
		if w.Stats().Failures > 0 {
			failed++
		}
	}
	if failed < 3 {
		t.Errorf("%d workers failed without the database", failed)
	}
}
