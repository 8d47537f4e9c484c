package app_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// The last entry of a ledger is logged when it has moved, in the form that verify takes.
func TestHeadsAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := env.System(env.OutboundOptions{})
	s := storetest.Open(t, storetest.Prepare(t, "sqlite", e))
	core := app.NewCore(app.CoreOptions{
		Store: s, Env: e, Processors: processor.Registry{coretest.BankName: coretest.NewBank()}, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	m, err := core.Merchants.Create(t.Context(), store.Merchant{Name: "Loja", City: "OLINDA", Routes: payment.AllRoutes(coretest.BankName)}, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", m.ID.String() + ":1:", "", m.ID.String() + ":2:"} {
		if i%2 == 1 {
			if err := core.Merchants.Fund(t.Context(), m, 100); err != nil {
				t.Fatal(err)
			}
		}
		log.Reset()
		for _, w := range core.Workers {
			if w.Name == app.WorkerHeads {
				if _, err := w.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := log.String(); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%d: logged %q, want %q", i, got, want)
		}
	}
}
