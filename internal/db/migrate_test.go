package db_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/porteira/porteira/internal/db"
)

func TestMigrateTwice(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := empty(t, engine, systemEnv())
			if _, err := db.Open(t.Context(), o); !errors.Is(err, db.ErrSchema) || !strings.Contains(err.Error(), "run porteira migrate") {
				t.Errorf("without a schema: %v", err)
			}
			afters := 0
			after := func(ctx context.Context, to *sql.DB) error {
				afters++
				_, err := to.ExecContext(ctx, "INSERT INTO notes (name, value) VALUES ('first', 'row') ON CONFLICT DO NOTHING")
				return err
			}
			applied, err := db.Migrate(t.Context(), o, after)
			if err != nil || !slices.Equal(applied, []int64{schemaVersion}) {
				t.Fatalf("first: %v, %v", applied, err)
			}
			if applied, err = db.Migrate(t.Context(), o, after); err != nil || len(applied) != 0 {
				t.Errorf("second: %v, %v", applied, err)
			}
			if afters != 2 {
				t.Errorf("what follows a migration ran %d times in 2 migrations", afters)
			}
			wantNote(t, open(t, o), "first", "row")
		})
	}
}

// Several nodes of a new installation may start at the same time.
func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	o := empty(t, "postgres", systemEnv())
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			_, err := db.Migrate(context.WithoutCancel(t.Context()), o, nothing)
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	open(t, o)
}

// next is the schema with one more migration.
func next(statements string) fs.FS {
	return fstest.MapFS{"20260101_schema.sql": {Data: []byte(schema)}, "20260102_next.sql": {Data: []byte("-- +goose Up\n" + statements)}}
}

// A database of an earlier release is refused until it is migrated.
func TestEarlierReleaseIsMigrated(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := prepare(t, engine, systemEnv())
			o.Migrations = next("INSERT INTO notes (name, value) VALUES ('next', 'yes');")
			_, err := db.Open(t.Context(), o)
			refused(t, err, fmt.Sprintf("the database has version %d, this program wants 20260102: run porteira migrate", schemaVersion))
			applied, err := db.Migrate(t.Context(), o, nothing)
			if err != nil || !slices.Equal(applied, []int64{20260102}) {
				t.Fatalf("%v, %v", applied, err)
			}
			wantNote(t, open(t, o), "next", "yes")
		})
	}
}

// A failed migration leaves no trace, and the function after it does not run.
func TestFailedMigration(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := prepare(t, engine, systemEnv())
			good := o.Migrations
			o.Migrations = next("INSERT INTO notes (name, value) VALUES ('half', 'yes');\nINSERT INTO nowhere VALUES (1);")
			applied, err := db.Migrate(t.Context(), o, func(context.Context, *sql.DB) error {
				t.Error("what follows the migration ran")
				return nil
			})
			if err == nil || len(applied) != 0 {
				t.Errorf("%v, %v", applied, err)
			}
			o.Migrations = good
			wantNote(t, open(t, o), "half", "")
		})
	}
}

// An error of the function after a migration, for example for the first rows,
// fails it.
func TestErrorAfterMigration(t *testing.T) {
	t.Parallel()
	errAfter := errors.New("no first row")
	for _, engine := range engines {
		applied, err := db.Migrate(t.Context(), empty(t, engine, systemEnv()), func(context.Context, *sql.DB) error { return errAfter })
		if !errors.Is(err, errAfter) || len(applied) != 1 {
			t.Errorf("%s: %v, %v", engine, applied, err)
		}
	}
}

func refused(t *testing.T, err error, sentence string) {
	t.Helper()
	if !errors.Is(err, db.ErrSchema) || !strings.Contains(err.Error(), sentence) {
		t.Errorf("%v, want %q", err, sentence)
	}
}

// A schema that this program cannot use is rejected with an advice, and is not
// changed.
func TestOtherSchemaIsRefused(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := prepare(t, engine, systemEnv())
			d := open(t, o)
			o.Shared = true // while a gateway runs
			isApplied := map[string]string{"sqlite": "1", "postgres": "true"}[engine]
			version := func(n int64) {
				must(t, write(t, d, "DELETE FROM goose_db_version WHERE version_id > 0",
					fmt.Sprintf("INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, %s)", n, isApplied)))
			}
			for n, sentence := range map[int64]string{
				20270101: "the database has version 20270101, this program supports 20260101: run a newer porteira",
				5: "an older development version of porteira made this database, and there are no upgrades before v0.1.0: " +
					"delete it (for porteira dev: the data folder) or name a new one",
			} {
				version(n)
				_, err := db.Open(t.Context(), o)
				refused(t, err, sentence)
				_, err = db.Migrate(t.Context(), o, nothing)
				refused(t, err, sentence)
				var now int64
				must(t, d.QueryRow(t.Context(), "SELECT max(version_id) FROM goose_db_version").Scan(&now))
				if now != n {
					t.Errorf("version %d became %d", n, now)
				}
			}
			must(t, write(t, d, "DELETE FROM goose_db_version WHERE version_id > 0"))
			_, err := db.Open(t.Context(), o)
			refused(t, err, "run porteira migrate")
		})
	}
}

// The placeholders of a migration: a column compares by bytes on every engine, and
// a narrow table is stored in the order of its key if the engine can.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		text := map[string]string{
			"sqlite":   "SELECT count(*) FROM sqlite_schema WHERE name = 'items' AND sql LIKE '%) WITHOUT ROWID' AND sql NOT LIKE '%{{%'",
			"postgres": "SELECT count(*) FROM information_schema.columns WHERE table_name = 'items' AND column_name = 'word' AND collation_name = 'C'",
		}[d.Engine()]
		var n int
		if err := d.QueryRow(t.Context(), text).Scan(&n); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
}
