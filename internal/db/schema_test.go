package db_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/db/dbtest"
	"github.com/porteira/porteira/internal/env"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// engines names every database engine.
var engines = []string{"sqlite", "postgres"}

// schema is what these tests need: samples of each type, notes to write and read,
// and items with a merchant, two unique keys and a partial index.
const schema = `-- +goose Up
CREATE TABLE samples (
    id   BIGINT NOT NULL PRIMARY KEY,
    word TEXT {{bytewise}} NOT NULL,
    raw  BYTEA  NOT NULL,
    n    BIGINT NOT NULL
);
CREATE TABLE notes (
    name  TEXT {{bytewise}} NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
CREATE TABLE items (
    merchant_id BYTEA  NOT NULL,
    id          BIGINT NOT NULL,
    word        TEXT {{bytewise}} NOT NULL,
    n           BIGINT NOT NULL CHECK (n >= 0),
    PRIMARY KEY (merchant_id, id)
) {{narrow}};
CREATE UNIQUE INDEX items_word ON items (merchant_id, word);
CREATE INDEX items_due ON items (n) WHERE n > 0;
`

// schemaVersion is the number of the one migration.
const schemaVersion = 20260101

var migrations fs.FS = fstest.MapFS{"20260101_schema.sql": {Data: []byte(schema)}}

// nothing is what a migration runs afterwards if there is nothing to run.
func nothing(context.Context, *sql.DB) error { return nil }

func systemEnv() env.Env { return env.System(env.OutboundOptions{}) }

// empty makes the options of a database of an engine, without a schema.
func empty(t testing.TB, engine string, e env.Env) db.Options {
	t.Helper()
	o := options(t, e)
	if engine == "postgres" {
		o.Database = dbtest.Postgres(t)
	} else {
		o.Database = filepath.Join(t.TempDir(), "test.db")
	}
	return o
}

// prepare makes a database of an engine, with the schema in place.
func prepare(t testing.TB, engine string, e env.Env) db.Options {
	t.Helper()
	o := options(t, e)
	if engine == "postgres" {
		o.Database = dbtest.PostgresFrom(t, "db", func(url string) error {
			prepared := o
			prepared.Database = url
			_, err := db.Migrate(context.Background(), prepared, nothing)
			return err
		})
		return o
	}
	o.Database = filepath.Join(t.TempDir(), "test.db")
	if _, err := db.Migrate(t.Context(), o, nothing); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	return o
}

func options(t testing.TB, e env.Env) db.Options {
	t.Helper()
	return db.Options{Keys: keyring(t, 0, e.Random), Env: e, Migrations: migrations}
}

// open opens a prepared database and closes it when the test ends.
func open(t testing.TB, o db.Options) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

// each runs a test on every engine, with an open database of its own.
func each(t *testing.T, run func(t *testing.T, d *db.DB)) {
	t.Helper()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			run(t, open(t, prepare(t, engine, systemEnv())))
		})
	}
}

// write runs statements without parameters in one transaction.
func write(t testing.TB, d *db.DB, texts ...string) error {
	t.Helper()
	return d.Write(t.Context(), func(tx *db.Tx) error {
		for _, text := range texts {
			if _, err := tx.Exec(t.Context(), text); err != nil {
				return err
			}
		}
		return nil
	})
}

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// setNote writes a note within a transaction.
func setNote(ctx context.Context, tx *db.Tx, name, value string) error {
	_, err := tx.Exec(ctx, "INSERT INTO notes (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = $2", name, value)
	return err
}

// writeNote writes a note in a transaction of its own.
func writeNote(t testing.TB, d *db.DB, name, value string) error {
	t.Helper()
	return d.Write(t.Context(), func(tx *db.Tx) error { return setNote(t.Context(), tx, name, value) })
}

// readNote reads a note; "" if there is none.
func readNote(t testing.TB, d *db.DB, name string) (value string, err error) {
	t.Helper()
	err = d.ReadError("note", d.QueryRow(t.Context(), "SELECT value FROM notes WHERE name = $1", name).Scan(&value))
	if errors.Is(err, db.ErrNotFound) {
		err = nil
	}
	return value, err
}

// wantNote compares a note with what it must be.
func wantNote(t testing.TB, d *db.DB, name, want string) {
	t.Helper()
	if got, err := readNote(t, d, name); got != want || err != nil {
		t.Errorf("note %s has %d bytes beginning with %.20q, %v; want %d bytes beginning with %.20q", name, len(got), got, err, len(want), want)
	}
}
