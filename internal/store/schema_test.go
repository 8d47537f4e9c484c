package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// keyed lists the tables that merchant_id does not lead: reference tables, which
// every node of a sharded database holds whole, and claims, which are
// distributed by their own key.
var keyed = []string{"installation", "settings", "merchants", "credentials", "nodes", "receipt_claims", "notices"}

// tables are a schema: a line per table with its columns, nullable ones marked,
// and its unique keys.
type tables map[string]*struct{ columns, keys []string }

func (s tables) at(name string) *struct{ columns, keys []string } {
	if s[name] == nil {
		s[name] = &struct{ columns, keys []string }{}
	}
	return s[name]
}

// The same two queries for both engines: table, column, nullable; and table,
// columns of a unique key.
var catalog = map[string][2]string{
	"postgres": {
		`SELECT table_name, column_name, CASE is_nullable WHEN 'YES' THEN 1 ELSE 0 END FROM information_schema.columns
			WHERE table_schema = 'public' ORDER BY table_name, ordinal_position`,
		`SELECT t.relname, string_agg(a.attname, ' ' ORDER BY k.place) FROM pg_index i
			JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace AND n.nspname = 'public'
			CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
			JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum
			WHERE i.indisunique GROUP BY t.relname, i.indexrelid ORDER BY 1, 2`,
	},
	"sqlite": {
		`SELECT m.name, c.name, CASE WHEN c."notnull" = 0 THEN 1 ELSE 0 END FROM sqlite_master m, pragma_table_info(m.name) c
			WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid`,
		`SELECT m.name, (SELECT group_concat(k.name, ' ') FROM pragma_index_info(i.name) k) FROM sqlite_master m, pragma_index_list(m.name) i
			WHERE m.type = 'table' AND i."unique" = 1 AND m.name NOT LIKE 'sqlite_%' ORDER BY 1, 2`,
	},
}

func readSchema(t *testing.T, s *store.Store) tables {
	t.Helper()
	schema := tables{}
	rows, err := s.Reader().QueryContext(t.Context(), catalog[s.Engine()][0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var table, column string
		var nullable int
		if err := rows.Scan(&table, &column, &nullable); err != nil {
			t.Fatal(err)
		}
		if table != "goose_db_version" {
			schema.at(table).columns = append(schema.at(table).columns, column+[]string{"", " NULL"}[nullable])
		}
	}
	keys, err := s.Reader().QueryContext(t.Context(), catalog[s.Engine()][1])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = keys.Close() }()
	for keys.Next() {
		var table, columns string
		if err := keys.Scan(&table, &columns); err != nil {
			t.Fatal(err)
		}
		if table != "goose_db_version" {
			schema.at(table).keys = append(schema.at(table).keys, columns)
		}
	}
	return schema
}

func TestSchema(t *testing.T) {
	t.Parallel()
	lists := map[string]string{}
	storetest.Each(t, env.System(env.OutboundOptions{}), func(t *testing.T, o store.Options) {
		s := storetest.Open(t, o)
		schema := readSchema(t, s)
		if len(schema) < 15 {
			t.Fatalf("the catalog shows %d tables", len(schema))
		}
		var list []string
		for name, table := range schema {
			if joined := strings.Join(table.columns, ", "); strings.Contains(joined, "NULL") {
				t.Errorf("%s has a column that may be NULL: %s", name, joined)
			}
			if len(table.keys) == 0 && name != "installation" && name != "settings" {
				t.Errorf("%s has no key", name)
			}
			for _, key := range table.keys {
				if !strings.HasPrefix(key+" ", "merchant_id ") && !slices.Contains(keyed, name) {
					t.Errorf("merchant_id does not lead the key (%s) of %s", key, name)
				}
			}
			list = append(list, fmt.Sprint(name, table.columns))
		}
		slices.Sort(list)
		lists[s.Engine()] = strings.Join(list, "\n")
	})
	if pg, ok := lists["postgres"]; ok && pg != lists["sqlite"] {
		t.Errorf("the engines' tables differ:\n%s\n\n%s", lists["sqlite"], pg)
	}
}

func TestMigrateTwice(t *testing.T) {
	t.Parallel()
	w := env.System(env.OutboundOptions{})
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := storetest.Empty(t, engine, w)
			if _, err := store.Open(t.Context(), o); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "run porteira migrate") {
				t.Errorf("without a schema: %v", err)
			}
			applied, err := store.Migrate(t.Context(), o)
			if err != nil || len(applied) == 0 || applied[0] != 1 {
				t.Fatalf("first: %v, %v", applied, err)
			}
			id := installation(t, o)
			if applied, err = store.Migrate(t.Context(), o); err != nil || len(applied) != 0 {
				t.Errorf("second: %v, %v", applied, err)
			}
			if again := installation(t, o); again != id {
				t.Errorf("the installation is %s, and was %s", again, id)
			}
		})
	}
}

func installation(t *testing.T, o store.Options) string {
	t.Helper()
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	return s.Installation().String()
}

// Two nodes of a new installation may start at the same instant.
func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	o := storetest.Empty(t, "postgres", env.System(env.OutboundOptions{}))
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			_, err := store.Migrate(context.WithoutCancel(t.Context()), o)
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	storetest.Open(t, o)
}

// A schema that is not this program's is refused, with what to do about it.
func TestOtherSchemaIsRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, env.System(env.OutboundOptions{}), func(t *testing.T, o store.Options) {
		t.Parallel()
		s := storetest.Open(t, o)
		o.Shared = true // beside it
		change := func(text string) {
			if err := s.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(t.Context(), text); return err }); err != nil {
				t.Fatal(err)
			}
		}
		refuses := func(err error, sentence string) {
			t.Helper()
			if !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), sentence) {
				t.Errorf("%v, want %q", err, sentence)
			}
		}
		change("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, " + truth(o) + ")")
		_, err := store.Open(t.Context(), o)
		refuses(err, "run a newer porteira")
		_, err = store.Migrate(t.Context(), o)
		refuses(err, "run a newer porteira")
		change("DELETE FROM goose_db_version WHERE version_id > 0")
		_, err = store.Open(t.Context(), o)
		refuses(err, "run porteira migrate")
	})
}

func truth(o store.Options) string {
	if store.IsPostgres(o.Database) {
		return "true"
	}
	return "1"
}
