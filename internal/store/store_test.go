package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/db/dbtest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

func systemEnv() env.Env { return env.System(env.OutboundOptions{}) }

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// each runs a test on every engine, with an open store of its own.
func each(t *testing.T, run func(t *testing.T, s *store.Store)) {
	t.Helper()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			run(t, storetest.Open(t, storetest.Prepare(t, engine, systemEnv())))
		})
	}
}

// write runs work in a plain transaction.
func write(t testing.TB, s *store.Store, work func(tx *store.AdminTx) error) {
	t.Helper()
	must(t, s.Administer(t.Context(), storetest.Operator, work))
}

// commit commits what decide changes, without capacity to claim.
func commit(t testing.TB, s *store.Store, needs func(n *store.Needs), decide func(l *store.Loaded, c *store.Changes) error) error {
	t.Helper()
	var n store.Needs
	needs(&n)
	_, err := s.Commit(t.Context(), &n, store.Capacity{}, decide)
	return err
}

// query reads a column of all rows of a query.
func query[V any](t testing.TB, s *store.Store, text string, args ...any) []V {
	t.Helper()
	rows, err := s.DB().Query(t.Context(), text, args...)
	list, err := db.Collect(rows, err, func(r db.Scanner) (v V, err error) { return v, r.Scan(&v) })
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return list
}

// createMerchant adds a merchant.
func createMerchant(t testing.TB, s *store.Store, name string) (m store.Merchant) {
	t.Helper()
	write(t, s, func(tx *store.AdminTx) (err error) {
		m, err = tx.CreateMerchant(t.Context(), store.Merchant{Name: name, City: "RECIFE", Routes: payment.AllRoutes("bank")}, "whsec_"+name)
		return err
	})
	return m
}

// newPayin is a Pix pay-in of a merchant, of 10 cents, to be stored.
func newPayin(t testing.TB, s *store.Store, m *store.Merchant, id payment.ID, reference string) *store.NewPayin {
	t.Helper()
	return s.NewPayin(payment.Payin{
		Merchant: m.ID, ID: id, ExternalID: s.ExternalID(m, payment.OperationPayin, reference), ReferenceID: reference, Method: payment.PIX,
		Amount: 10, Status: payment.PayinPending, Version: 1, Processor: "bank",
	}, payment.PersonalData{Customer: []byte(`{"document":"52998224725"}`)}, []byte("fingerprint of "+reference))
}

// newPayout is a payout of a merchant, of 10 cents, to be stored.
func newPayout(t testing.TB, s *store.Store, m *store.Merchant, id payment.ID, reference string) *store.NewPayout {
	t.Helper()
	p, err := s.NewPayout(payment.Payout{
		Merchant: m.ID, ID: id, ExternalID: s.ExternalID(m, payment.OperationPayout, reference), ReferenceID: reference,
		Amount: 10, Status: payment.PayoutPending, Step: payment.StepQueued, Version: 1, Processor: "bank",
		Beneficiary: payment.Beneficiary{Document: "52998224725", PIXKey: "ana@example.com"},
	}, []byte("fingerprint of "+reference), "")
	must(t, err)
	return p
}

// A copy carries the installation's id, and an epoch that precedes every other.
func TestBackup(t *testing.T) {
	t.Parallel()
	o := storetest.Prepare(t, "sqlite", systemEnv())
	s := storetest.Open(t, o)
	write(t, s, func(tx *store.AdminTx) error { return tx.SetSetting(t.Context(), "kept", "yes") })
	o.Database = filepath.Join(t.TempDir(), "copy.db")
	must(t, s.Backup(t.Context(), o.Database))
	copied := storetest.Open(t, o)
	if value, err := copied.Setting(t.Context(), "kept"); value != "yes" || err != nil {
		t.Errorf("the copy has the setting %q, %v", value, err)
	}
	mine, err1 := s.ReadInstallation(t.Context())
	its, err2 := copied.ReadInstallation(t.Context())
	if err1 != nil || err2 != nil || its.ID != mine.ID || its.Epoch >= 0 || mine.Epoch < 0 {
		t.Errorf("the copy is %+v, %v, of %+v, %v", its, err2, mine, err1)
	}
	if copied.Installation() != s.Installation() {
		t.Error("the copy has another installation")
	}
}

// The installation gets its id once, also if several nodes start at the same time,
// and then keeps it.
func TestInstallationKeepsItsID(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := storetest.Empty(t, engine, systemEnv())
			if _, err := store.Open(t.Context(), o); !errors.Is(err, db.ErrSchema) || !strings.Contains(err.Error(), "run porteira migrate") {
				t.Errorf("without a schema: %v", err)
			}
			errs := make(chan error, 4)
			for range cap(errs) {
				migrate := func() {
					_, err := store.Migrate(context.WithoutCancel(t.Context()), o)
					errs <- err
				}
				if engine == "sqlite" { // which one process uses
					migrate()
				} else {
					go migrate()
				}
			}
			for range cap(errs) {
				must(t, <-errs)
			}
			s, err := store.Open(t.Context(), o)
			must(t, err)
			id := s.Installation()
			if stored, err := s.ReadInstallation(t.Context()); id.IsZero() || stored.ID != id || stored.Epoch != 1 || !stored.RestoredAt.IsZero() || err != nil {
				t.Errorf("the installation is %v and %+v, %v", id, stored, err)
			}
			if n := len(query[[]byte](t, s, "SELECT id FROM merchants WHERE number = 0 AND closed_at > 0")); n != 1 {
				t.Errorf("the platform is there %d times", n)
			}
			must(t, s.Close())
			if applied, err := store.Migrate(t.Context(), o); err != nil || len(applied) != 0 {
				t.Errorf("the same migrations again: %v, %v", applied, err)
			}
			if again := storetest.Open(t, o).Installation(); again != id {
				t.Errorf("the installation is %s, and was %s", again, id)
			}
		})
	}
}

// SQLite's planner has statistics of grown tables for all indexes.
func TestSQLiteHasStatistics(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Prepare(t, "sqlite", systemEnv()))
	const missing = `SELECT i.name FROM sqlite_schema m, pragma_index_list(m.name) i WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'
		AND NOT EXISTS (SELECT 1 FROM sqlite_stat1 s WHERE s.tbl = m.name AND s.idx = i.name AND s.stat LIKE '1000%')`
	if list := query[string](t, s, missing); len(list) > 0 {
		t.Errorf("no statistics of %v", list)
	}
	if n := query[int](t, s, "SELECT count(*) FROM sqlite_stat1")[0]; n < 20 {
		t.Errorf("statistics of %d indexes", n)
	}
}

// A closed store returns a specific error, and does not panic.
func TestClosedStore(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		s, err := store.Open(t.Context(), storetest.Prepare(t, engine, systemEnv()))
		must(t, err)
		must(t, s.Close())
		if err := s.Administer(t.Context(), storetest.Operator, func(tx *store.AdminTx) error { return tx.SetSetting(t.Context(), "late", "1") }); err == nil {
			t.Error("a closed store writes")
		}
		if _, err := s.Setting(t.Context(), "late"); err == nil {
			t.Error("a closed store reads")
		}
		set := func(_ *store.Loaded, c *store.Changes) error { c.SetSetting("late", "1"); return nil }
		if err := commit(t, s, func(*store.Needs) {}, set); err == nil {
			t.Error("a closed store commits")
		}
	}
}
