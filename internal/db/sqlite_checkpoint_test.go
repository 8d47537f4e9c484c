package db_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
)

// openSQLite opens a new SQLite database. Closing it may fail: a process whose disk
// failed does not close.
func openSQLite(t *testing.T, e env.Env) (*db.DB, db.Options) {
	t.Helper()
	o := prepare(t, "sqlite", e)
	d, err := db.Open(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d, o
}

// copyFiles copies files of a database that is in use, as they are.
func copyFiles(t *testing.T, database string, endings ...string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.db")
	for _, ending := range endings {
		text, err := os.ReadFile(database + ending)
		must(t, err)
		must(t, os.WriteFile(to+ending, text, 0o600))
	}
	return to
}

// The log of a killed process is copied into the database file before anything is
// appended.
func TestFoundLogIsRecoveredFirst(t *testing.T) {
	t.Parallel()
	killed, o := openSQLite(t, systemEnv())
	must(t, writeNote(t, killed, "found", "yes"))
	o.Database = copyFiles(t, o.Database, "", "-wal")
	d, err := db.Open(t.Context(), o)
	must(t, err)
	defer func() { _ = d.Close() }()
	d.FailCheckpoints("TRUNCATE", sqlite3.SQLITE_FULL)
	if err := writeNote(t, d, "written", "yes"); !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("written behind a log that may not be on disk: %v", err)
	}
	wantNote(t, d, "found", "yes") // reads go on meanwhile
	d.FailCheckpoints("TRUNCATE", 0)
	must(t, writeNote(t, d, "written", "yes"))
	o.Database = copyFiles(t, o.Database, "") // without the log
	wantNote(t, open(t, o), "found", "yes")
}

// After a failed fsync of the database file nothing is written, and the log, the
// only true copy, is left unchanged for the next process.
func TestFailedSyncOfTheDatabaseEndsWriting(t *testing.T) {
	t.Parallel()
	d, o := openSQLite(t, systemEnv())
	d.FailCheckpoints("PASSIVE", sqlite3.SQLITE_IOERR_FSYNC)
	large := strings.Repeat("x", 40<<20) // more than the log has before a checkpoint
	if err := writeNote(t, d, "last", large); err != nil {
		t.Errorf("a commit that is durable in the log: %v", err)
	}
	<-d.Ended()
	if err := writeNote(t, d, "late", "1"); !errors.Is(err, db.ErrDisk) || !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("a write after the failure: %v", err)
	}
	wantNote(t, d, "last", large)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	o.Database = copyFiles(t, o.Database, "", "-wal")
	next := open(t, o)
	wantNote(t, next, "last", large)
	if err := writeNote(t, next, "late", "1"); err != nil {
		t.Errorf("the next process: %v", err)
	}
}

// A command that runs while a gateway does runs no checkpoint: the gateway must
// see the error if one fails.
func TestSharedOpeningRunsNoCheckpoint(t *testing.T) {
	t.Parallel()
	d, o := openSQLite(t, systemEnv())
	o.Shared = true
	shared := open(t, o)
	shared.FailCheckpoints("PASSIVE", sqlite3.SQLITE_IOERR_FSYNC)
	must(t, writeNote(t, shared, "large", strings.Repeat("x", 40<<20)))
	if n, err := d.LogPages(t.Context()); n < 8000 || err != nil {
		t.Errorf("after the command the log has %d pages to copy, %v", n, err)
	}
	must(t, writeNote(t, d, "small", "1")) // starts a checkpoint
	if n, err := d.LogPages(t.Context()); n > 10 || err != nil {
		t.Errorf("after the gateway's checkpoint the log has %d pages to copy, %v", n, err)
	}
}

// A checkpoint that failed because the disk was full is repeated later, and the
// log does not grow without end.
func TestLogIsCheckpointed(t *testing.T) {
	t.Parallel()
	e, _ := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1) // a clock on which no checkpoint is slow
	d, o := openSQLite(t, e)
	const after = 500 // pages, instead of thousands
	d.CheckpointAfter(after)
	d.FailCheckpoints("PASSIVE", sqlite3.SQLITE_FULL)
	toCopy := func() int {
		t.Helper()
		n, err := d.LogPages(t.Context())
		must(t, err)
		return n
	}
	large := strings.Repeat("x", 256<<10) // 64 pages
	for i := range 12 {
		must(t, writeNote(t, d, fmt.Sprint(i), large))
	}
	if n := toCopy(); n < after {
		t.Errorf("the log has %d pages to copy, though every checkpoint failed", n)
	}
	d.FailCheckpoints("PASSIVE", 0)
	const most = 6 << 20 // bytes of the log's file, which starts over: three times the pages before a checkpoint
	for i := range 30 {
		must(t, writeNote(t, d, fmt.Sprint(i), large))
		if n := toCopy(); n > after+100 {
			t.Errorf("the log has %d pages to copy", n)
		}
		if f, err := os.Stat(o.Database + "-wal"); err != nil || f.Size() > most {
			t.Fatalf("the log has grown: %v, %v", f.Size(), err)
		}
	}
}

// If the writer waits long for the end of a checkpoint, the next one begins later,
// or when the log has four times as many pages.
func TestSlowCheckpointsRunLessOften(t *testing.T) {
	t.Parallel()
	e, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	d, _ := openSQLite(t, e)
	const after = 500 // pages, instead of thousands
	d.CheckpointAfter(after)
	var checkpoints atomic.Int64
	d.BeforeCheckpoints(func(mode string) {
		switch mode {
		case "PASSIVE concurrently":
			checkpoints.Add(1)
		case "PASSIVE":
			clock.Advance(time.Second)
		}
	})
	serial := 0
	fill := func() (pages int) { // until a checkpoint runs
		t.Helper()
		for before := checkpoints.Load(); checkpoints.Load() == before; serial++ {
			n, err := d.LogPages(t.Context())
			if pages = n; err != nil || n > 5*after {
				t.Fatalf("the log has %d pages to copy, %v", n, err)
			}
			must(t, writeNote(t, d, fmt.Sprint(serial), strings.Repeat("x", 256<<10))) // 64 pages
			_, err = d.LogPages(t.Context())                                           // a checkpoint that began has ended
			must(t, err)
		}
		return pages
	}
	if n := fill(); n > after {
		t.Errorf("the first checkpoint began at %d pages", n)
	}
	if n := fill(); n < 4*after-100 {
		t.Errorf("the next one began at %d pages", n)
	}
	must(t, writeNote(t, d, "end of it", ""))
	clock.Advance(20 * time.Second)
	if n := fill(); n > after {
		t.Errorf("after 20 s it began at %d pages", n)
	}
}
