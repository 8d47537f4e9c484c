package main

import (
	"context"
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

func open(t *testing.T, o options) *store.Store {
	t.Helper()
	e := env.System(env.OutboundOptions{})
	key, err := masterKey(filepath.Join(o.data, "master.key"), e.Random)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := db.NewKeyring(key, e.Random)
	if err != nil {
		t.Fatal(err)
	}
	database := o.database
	if database == "" {
		database = filepath.Join(o.data, "porteira.db")
	}
	s, err := store.Open(t.Context(), db.Options{Database: database, Keys: keys, Env: e, AllowUnsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A filled store has the requested orders, no due work and a correct ledger. A second run
// adds to it.
func TestFill(t *testing.T) {
	for engine, database := range map[string]func() string{
		"sqlite":   func() string { return "" },
		"postgres": func() string { return dbtest.Postgres(t) },
	} {
		t.Run(engine, func(t *testing.T) {
			o := options{data: t.TempDir(), database: database(), payins: 300, payouts: 40, merchants: 3}
			for range 2 {
				if err := fill(t.Context(), o, env.System(env.OutboundOptions{}).Random); err != nil {
					t.Fatal(err)
				}
			}
			s := open(t, o)
			merchants, err := s.Merchants(t.Context())
			if err != nil || len(merchants) != o.merchants {
				t.Fatalf("%d merchants, %v", len(merchants), err)
			}
			payins, payouts := 0, 0
			for _, m := range merchants {
				in, err := s.Payins(t.Context(), m.ID, store.Filter{Limit: 10_000})
				if err != nil {
					t.Fatal(err)
				}
				out, err := s.Payouts(t.Context(), m.ID, store.Filter{Limit: 10_000})
				if err != nil {
					t.Fatal(err)
				}
				payins, payouts = payins+len(in), payouts+len(out)
				for i := range in {
					if in[i].Status == "PENDING" {
						t.Errorf("pay-in %s is pending", in[i].ID)
					}
				}
				proofs, err := s.Verify(t.Context(), m.ID)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range proofs {
					if len(p.Defects) > 0 {
						t.Errorf("%s: %s: %v", m.Name, p.Check, p.Defects)
					}
				}
			}
			if payins != 2*o.payins || payouts != 2*o.payouts {
				t.Errorf("%d pay-ins and %d payouts, want %d and %d", payins, payouts, 2*o.payins, 2*o.payouts)
			}
		})
	}
}

// A database that this program did not create is not changed.
func TestFillRefusesOtherDatabases(t *testing.T) {
	o := options{data: t.TempDir(), payins: 1, merchants: 1}
	e := env.System(env.OutboundOptions{})
	key, err := masterKey(filepath.Join(o.data, "master.key"), e.Random)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := db.NewKeyring(key, e.Random)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Migrate(t.Context(), db.Options{Database: filepath.Join(o.data, "porteira.db"), Keys: keys, Env: e}); err != nil {
		t.Fatal(err)
	}
	s := open(t, o)
	err = s.Administer(t.Context(), storetest.Operator, func(tx *store.AdminTx) error {
		_, err := tx.CreateMerchant(context.Background(), store.Merchant{Name: "Loja", City: "RECIFE", Routes: payment.AllRoutes("sandbox")}, "whsec_x")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := fill(t.Context(), o, e.Random); err == nil || !strings.Contains(err.Error(), "was not made by loadtest") {
		t.Errorf("error %v", err)
	}
}

// A measured statement has the requested rows, and each row of the store is read once.
func TestStatement(t *testing.T) {
	for engine, database := range map[string]func() string{
		"sqlite":   func() string { return "" },
		"postgres": func() string { return dbtest.Postgres(t) },
	} {
		t.Run(engine, func(t *testing.T) {
			o := options{data: t.TempDir(), database: database(), merchants: 1, postings: 2500} // three parts of the answer
			r, err := measureStatement(t.Context(), o, env.System(env.OutboundOptions{}).Random)
			if err != nil {
				t.Fatal(err)
			}
			s := open(t, o)
			merchants, err := s.Merchants(t.Context())
			if err != nil || len(merchants) != 1 {
				t.Fatalf("%d merchants, %v", len(merchants), err)
			}
			end, err := s.StatementEnd(t.Context(), merchants[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			if r.rows != end || r.rows < int64(o.postings) || r.rows > 2*int64(o.postings) || r.size < 100*r.rows || r.took <= 0 || r.heapPeak < r.heapBefore || r.heapBefore == 0 {
				t.Errorf("measured %+v, the statement has %d rows", r, end)
			}
		})
	}
}
