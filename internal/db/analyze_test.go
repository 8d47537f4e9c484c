package db_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/db"
)

// addNotes adds n notes, and makes the server count them at once.
func addNotes(t *testing.T, d *db.DB, from, n int) {
	t.Helper()
	must(t, d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(t.Context(), `WITH RECURSIVE number (n) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT n + 1 FROM number WHERE n + 1 < $2)
			INSERT INTO notes (name, value) SELECT CAST(n AS TEXT), '' FROM number`, int64(from), int64(from+n))
		if err == nil && d.Engine() == "postgres" {
			_, err = tx.Exec(t.Context(), "SELECT pg_stat_force_next_flush()")
		}
		return err
	}))
}

// disableAutovacuum keeps the server's own ANALYZE away from the notes.
func disableAutovacuum(t *testing.T, d *db.DB) {
	t.Helper()
	must(t, write(t, d, "ALTER TABLE notes SET (autovacuum_enabled = false)"))
}

func wantAnalyzed(t *testing.T, d *db.DB, what string, want int) {
	t.Helper()
	n, err := d.AnalyzeGrown(t.Context())
	if n != want || err != nil {
		t.Errorf("%s: %d tables were analyzed, %v, want %d", what, n, err, want)
	}
}

// A table is analyzed when it has grown fourfold, and not again before it has
// grown fourfold once more.
func TestGrownTablesAreAnalyzed(t *testing.T) {
	t.Parallel()
	d := open(t, prepare(t, "postgres", systemEnv()))
	disableAutovacuum(t, d)
	wantAnalyzed(t, d, "an empty table", 0)
	addNotes(t, d, 0, 900)
	wantAnalyzed(t, d, "few rows", 0)
	addNotes(t, d, 900, 100)
	wantAnalyzed(t, d, "a thousand rows", 1)
	wantAnalyzed(t, d, "the same again", 0)
	addNotes(t, d, 1000, 2900)
	wantAnalyzed(t, d, "not yet fourfold", 0)
	addNotes(t, d, 3900, 100)
	wantAnalyzed(t, d, "fourfold", 1)
	wantAnalyzed(t, d, "fourfold, again", 0)
	rows, err := d.Query(t.Context(), "EXPLAIN SELECT * FROM notes")
	plan, err := db.Collect(rows, err, func(r db.Scanner) (line string, err error) { return line, r.Scan(&line) })
	if err != nil || len(plan) == 0 || !strings.Contains(plan[0], "rows=4000 ") {
		t.Errorf("the planner expects %q, %v", plan, err)
	}
}

// AnalyzeGrown does not wait for others that change the table or analyze it, and
// leaves out a table of the same name in another schema.
func TestAnalyzeDoesNotWait(t *testing.T) {
	t.Parallel()
	d := open(t, prepare(t, "postgres", systemEnv()))
	disableAutovacuum(t, d)
	ctx := t.Context()
	must(t, write(t, d, "CREATE SCHEMA aside", "CREATE TABLE aside.grown (id BIGINT) WITH (autovacuum_enabled = false)",
		"INSERT INTO aside.grown SELECT generate_series(1, 5000)"))
	addNotes(t, d, 0, 1000)
	must(t, d.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "LOCK TABLE notes IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
			return err
		}
		if _, err := d.AnalyzeGrown(ctx); err != nil {
			t.Errorf("while the table is locked: %v", err)
		}
		return nil
	}))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := d.AnalyzeGrown(ctx); err != nil {
				t.Errorf("several at once: %v", err)
			}
		})
	}
	all.Wait()
	wantAnalyzed(t, d, "after those", 0)
}

// A role that only uses the tables leaves them to their owner.
func TestTablesOfAnotherOwnerAreLeft(t *testing.T) {
	t.Parallel()
	o := prepare(t, "postgres", systemEnv())
	o.Connections = 1
	d := open(t, o)
	disableAutovacuum(t, d)
	addNotes(t, d, 0, 1000)
	var clerk string // roles belong to all databases of a server
	must(t, d.QueryRow(t.Context(), "SELECT 'clerk_' || current_database()").Scan(&clerk))
	must(t, write(t, d, "CREATE ROLE "+clerk, "GRANT USAGE ON SCHEMA public TO "+clerk,
		"GRANT ALL ON ALL TABLES IN SCHEMA public TO "+clerk, "SET ROLE "+clerk))
	wantAnalyzed(t, d, "as another role", 0)
	must(t, write(t, d, "RESET ROLE"))
	wantAnalyzed(t, d, "as the owner", 1)
}

// SQLite has fixed statistics, from the schema's migration on.
func TestAnalyzeLeavesSQLiteAlone(t *testing.T) {
	t.Parallel()
	d := open(t, prepare(t, "sqlite", systemEnv()))
	addNotes(t, d, 0, 2000)
	wantAnalyzed(t, d, "two thousand rows", 0)
}

func TestAnalyzeReportsAnUnavailableServer(t *testing.T) {
	t.Parallel()
	d, err := db.Open(t.Context(), prepare(t, "postgres", systemEnv()))
	must(t, err)
	must(t, d.Close())
	if _, err := d.AnalyzeGrown(t.Context()); err == nil || errors.Is(err, db.ErrNotFound) {
		t.Errorf("of a closed database: %v", err)
	}
}
