package db_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/db"
)

// secondProcess names the database that a second process of this test opens.
const secondProcess = "DB_TEST_SECOND_PROCESS"

// TestSecondProcess is both processes: one that is started with a database to open
// reports how that went.
func TestSecondProcess(t *testing.T) {
	if path := os.Getenv(secondProcess); path != "" {
		o := empty(t, "sqlite", systemEnv())
		o.Database = path
		_, err := db.Open(t.Context(), o)
		fmt.Printf("alone: %v\n", err)
		o.Shared = true
		d, err := db.Open(t.Context(), o)
		if err == nil {
			fmt.Printf("shared: %v\n", errors.Join(writeNote(t, d, "visitor", "was here"), d.Close()))
		}
		return
	}
	t.Parallel()
	o := prepare(t, "sqlite", systemEnv())
	d, err := db.Open(t.Context(), o)
	must(t, err)
	report := func() string {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), secondProcess+"="+o.Database)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if got := report(); !strings.Contains(got, "alone: db: another gateway uses "+o.Database) || !strings.Contains(got, "stop it, or give this one a database of its own") {
		t.Errorf("the second process reports %q", got)
	} else if !strings.Contains(got, "shared: <nil>") {
		t.Errorf("a command that runs while a gateway does reports %q", got)
	}
	wantNote(t, d, "visitor", "was here")
	if _, err := db.Open(t.Context(), o); err == nil {
		t.Error("the same process opens the file twice")
	}
	link := o
	link.Database = filepath.Join(t.TempDir(), "link.db")
	must(t, os.Symlink(o.Database, link.Database))
	if _, err := db.Open(t.Context(), link); err == nil {
		t.Error("the file is opened twice, by a symbolic link")
	}
	must(t, d.Close())
	if got := report(); !strings.Contains(got, "alone: <nil>") {
		t.Errorf("after the gateway has ended, the next one reports %q", got)
	}
	must(t, os.Remove(o.Database+".lock"))
	must(t, os.Mkdir(o.Database+".lock", 0o700))
	if _, err := db.Open(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), "db: lock file: ") {
		t.Errorf("a lock file that cannot be opened is reported as %v", err)
	}
}

// A path is a path, with any characters: none of it may become a pragma.
func TestSQLitePathIsTakenLiterally(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b.db", "a?_pragma=synchronous(0).db", "a#b%20c&d.db", "ção.db"} {
		o := options(t, systemEnv())
		o.Database = filepath.Join(t.TempDir(), "new folder", name)
		if _, err := db.Migrate(t.Context(), o, nothing); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		open(t, o)
		if _, err := os.Stat(o.Database); err != nil {
			t.Error(err)
		}
	}
}

// Commits that SQLite acknowledged survive a power cut: both kinds of connections
// keep a write-ahead log, and the writer syncs it at each COMMIT.
func TestSQLiteIsDurable(t *testing.T) {
	t.Parallel()
	d := open(t, prepare(t, "sqlite", systemEnv()))
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		var reads, writes string
		must(t, d.QueryRow(t.Context(), "PRAGMA "+pragma).Scan(&reads))
		must(t, d.Write(t.Context(), func(tx *db.Tx) error { return tx.QueryRow(t.Context(), "PRAGMA "+pragma).Scan(&writes) }))
		if reads != want || writes != want {
			t.Errorf("%s is %s for readers and %s for the writer, want %s", pragma, reads, writes, want)
		}
	}
}

// Connections for reading cannot write.
func TestSQLiteReadersCannotWrite(t *testing.T) {
	t.Parallel()
	d := open(t, prepare(t, "sqlite", systemEnv()))
	var name string
	err := d.QueryRow(t.Context(), "INSERT INTO notes (name, value) VALUES ('read', '') RETURNING name").Scan(&name)
	if err == nil {
		t.Error("a reading connection wrote")
	}
	wantNote(t, d, "read", "")
}

func TestSQLiteVersions(t *testing.T) {
	t.Parallel()
	for version, safe := range map[string]bool{
		"3.51.3": true, "3.51.10": true, "3.52.1": true, "4.0.0": true, "10.0.0": true,
		"3.51.2": false, "3.50.7": false, "3.9.9": false, "2.99.99": false, "": false, "3": false, "3.51": false, "garbage": false,
	} {
		err := db.CheckSQLiteVersion(version)
		if (err == nil) != safe {
			t.Errorf("SQLite %q: %v", version, err)
		}
		if err != nil && (!strings.Contains(err.Error(), version) || !strings.Contains(err.Error(), "3.51.3 or later")) {
			t.Errorf("%q does not say what to do", err)
		}
	}
}

// A database whose schema is up to date is not written to, so that a gateway
// starts on a full disk too. SQLite's planner has statistics of grown tables.
func TestMigrateAgainWritesNothing(t *testing.T) {
	t.Parallel()
	o := empty(t, "sqlite", systemEnv())
	var before []byte
	for run := range 3 {
		_, err := db.Migrate(t.Context(), o, nothing)
		must(t, err)
		after, err := os.ReadFile(o.Database)
		must(t, err)
		if run > 0 && !bytes.Equal(before, after) {
			t.Errorf("run %d of the same migrations changes the database", run+1)
		}
		before = after
	}
	d := open(t, o)
	rows, err := d.Query(t.Context(), "SELECT idx || ': ' || stat FROM sqlite_stat1 WHERE tbl = 'items' ORDER BY idx")
	list, err := db.Collect(rows, err, func(r db.Scanner) (line string, err error) { return line, r.Scan(&line) })
	const want = "items_due: 1000 10, items_word: 1000000 100000 1, sqlite_autoindex_items_1: 1000000 100000 1"
	if got := strings.Join(list, ", "); got != want || err != nil {
		t.Errorf("the planner has %q, %v; want %q", got, err, want)
	}
}

// On a full disk writes are rejected as unavailable and reads continue; writes
// continue when there is space again.
func TestFullDiskOnSQLite(t *testing.T) {
	t.Parallel()
	d := open(t, prepare(t, "sqlite", systemEnv()))
	ctx := t.Context()
	large := strings.Repeat("x", 64<<10)
	must(t, writeNote(t, d, "before", large))
	must(t, d.LimitPages(ctx, 4))
	for range 3 {
		if err := writeNote(t, d, "during", large); !errors.Is(err, db.ErrUnavailable) {
			t.Fatalf("a full disk: %v", err)
		}
	}
	wantNote(t, d, "before", large)
	wantNote(t, d, "during", "") // nothing of what was refused
	must(t, d.LimitPages(ctx, 1<<20))
	if err := writeNote(t, d, "after", large); err != nil {
		t.Errorf("after there is space: %v", err)
	}
}

// Parameters lose their names only if their order alone says which is which.
func TestUnnamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"COMMIT":                             "COMMIT",
		"VALUES ($1, $2), ($3)":              "VALUES (?, ?), (?)",
		"$1$2":                               "??",
		"SET n = $2 WHERE id = $1":           "SET n = $2 WHERE id = $1",
		"a = $1 OR b = $1":                   "a = $1 OR b = $1",
		"a = $1 OR b = $20":                  "a = $1 OR b = $20",
		"a = $10":                            "a = $10",
		"a ->> '$.b' = $1":                   "a ->> '$.b' = $1",
		"$1 $2 $3 $4 $5 $6 $7 $8 $9 $10 $11": "? ? ? ? ? ? ? ? ? ? ?",
	} {
		if got := db.Unnamed(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
