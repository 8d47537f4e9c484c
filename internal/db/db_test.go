package db_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/db"
)

// A URL of another database is refused, and no file is created under its name.
func TestOtherDatabasesAreRefused(t *testing.T) {
	for _, address := range []string{"mysql://root@localhost/porteira", "xyz://somewhere", "file:///tmp/porteira.db", "://porteira"} {
		o := options(t, systemEnv())
		t.Chdir(t.TempDir())
		o.Database = address
		scheme, _, _ := strings.Cut(address, "://")
		for name, open := range map[string]func() error{
			"open":    func() error { _, err := db.Open(t.Context(), o); return err },
			"migrate": func() error { _, err := db.Migrate(t.Context(), o, nothing); return err },
		} {
			err := open()
			if err == nil || !strings.Contains(err.Error(), "db: "+scheme+":// is not supported: name a PostgreSQL by postgres://, or an SQLite file by its path") {
				t.Errorf("%s of %s: %v", name, address, err)
			}
		}
		if list, err := filepath.Glob("*"); len(list) > 0 || err != nil {
			t.Errorf("%s created %v, %v", address, list, err)
		}
	}
}

func TestEngines(t *testing.T) {
	t.Parallel()
	for database, postgres := range map[string]bool{
		"postgres://u@h/d": true, "postgresql://u@h/d": true, "postgres:/u": false, "a.db": false, "sqlite:a.db": false, "./postgres://x": false,
	} {
		if got := db.IsPostgres(database); got != postgres {
			t.Errorf("IsPostgres(%q) is %v", database, got)
		}
	}
	each(t, func(t *testing.T, d *db.DB) {
		if want := filepath.Base(t.Name()); d.Engine() != want {
			t.Errorf("the engine is %s, want %s", d.Engine(), want)
		}
		if n := d.Writers(); (n == 1) != (d.Engine() == "sqlite") {
			t.Errorf("%s has %d writers", d.Engine(), n)
		}
		must(t, d.Ping(t.Context()))
	})
}

// An SQLite file may be named with its scheme.
func TestSQLiteScheme(t *testing.T) {
	t.Parallel()
	o := prepare(t, "sqlite", systemEnv())
	o.Database = "sqlite:" + o.Database
	must(t, writeNote(t, open(t, o), "name", "value"))
}

// An operation after Close is refused, and does not panic.
func TestClosedDatabaseIsAnError(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d, err := db.Open(t.Context(), prepare(t, engine, systemEnv()))
			must(t, err)
			must(t, d.Close())
			if err := writeNote(t, d, "late", "1"); err == nil {
				t.Error("a closed database writes")
			}
			if _, err := readNote(t, d, "late"); err == nil {
				t.Error("a closed database reads")
			}
			if err := d.Ping(t.Context()); !errors.Is(err, db.ErrUnavailable) {
				t.Errorf("ping of a closed database: %v", err)
			}
		})
	}
}

// ReadError names what was read, and lets callers distinguish the causes.
func TestReadError(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		read := func(ctx context.Context, text string, args ...any) error {
			var v string
			return d.ReadError("the thing", d.QueryRow(ctx, text, args...).Scan(&v))
		}
		must(t, writeNote(t, d, "name", "value"))
		must(t, read(t.Context(), "SELECT value FROM notes WHERE name = $1", "name"))
		if err := read(t.Context(), "SELECT value FROM notes WHERE name = $1", "other"); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("no row: %v", err)
		}
		err := read(t.Context(), "SELECT value FROM nowhere")
		if err == nil || errors.Is(err, db.ErrNotFound) || errors.Is(err, db.ErrUnavailable) || !strings.Contains(err.Error(), "the thing") {
			t.Errorf("no table: %v", err)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		err = read(canceled, "SELECT value FROM notes WHERE name = $1", "name")
		if !errors.Is(err, context.Canceled) || errors.Is(err, db.ErrUnavailable) || !strings.Contains(err.Error(), "the thing") {
			t.Errorf("canceled: %v", err)
		}
		for _, cause := range []error{context.DeadlineExceeded, db.ErrSealed} {
			if err := d.ReadError("the thing", cause); !errors.Is(err, cause) || errors.Is(err, db.ErrUnavailable) {
				t.Errorf("%v became %v", cause, err)
			}
		}
		if err := d.ReadError("the thing", nil); err != nil {
			t.Errorf("no error became %v", err)
		}
	})
}

// Many readers that run a text for the first time share its statement, while a
// writer runs, and each sees the earlier commits.
func TestConcurrentReaders(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		must(t, writeNote(t, d, "name", "0"))
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 20 {
					if value, err := readNote(t, d, "name"); err != nil || value == "" {
						t.Errorf("read %q, %v", value, err)
					}
				}
			})
		}
		for range 20 {
			must(t, writeNote(t, d, "name", "1"))
			wantNote(t, d, "name", "1")
		}
		all.Wait()
	})
}

// Statements are those that were run, of the readers and of the writer.
func TestStatements(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		must(t, write(t, d, "DELETE FROM notes"))
		wantNote(t, d, "name", "")
		for text, want := range map[string]bool{
			"DELETE FROM notes": true, "SELECT value FROM notes WHERE name = $1": true, "SELECT 2": false,
		} {
			if got := slices.Contains(d.Statements(), text); got != (want && d.Engine() == "sqlite") {
				t.Errorf("%s: listed is %v", text, got)
			}
		}
	})
}

// Collect stops at the first row that cannot be scanned, and passes an error of
// the query on.
func TestCollect(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		must(t, write(t, d, "INSERT INTO notes (name, value) VALUES ('a', '1'), ('b', 'x'), ('c', '3')"))
		number := func(r db.Scanner) (n int, err error) { return n, r.Scan(&n) }
		const text = "SELECT value FROM notes WHERE name <> $1 ORDER BY name"
		rows, err := d.Query(t.Context(), text, "b")
		if list, err := db.Collect(rows, err, number); err != nil || len(list) != 2 || list[0] != 1 || list[1] != 3 {
			t.Errorf("%v, %v", list, err)
		}
		rows, err = d.Query(t.Context(), text, "a")
		if list, err := db.Collect(rows, err, number); err == nil || list != nil {
			t.Errorf("of a row that is no number: %v, %v", list, err)
		}
		rows, err = d.Query(t.Context(), "SELECT value FROM nowhere")
		if list, err := db.Collect(rows, err, number); err == nil || list != nil {
			t.Errorf("of no table: %v, %v", list, err)
		}
	})
}
