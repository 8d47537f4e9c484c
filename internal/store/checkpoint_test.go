package store_test

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

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

func lite(t *testing.T) (*store.Store, store.Options) {
	t.Helper()
	return liteIn(t, env.System(env.OutboundOptions{}))
}

func liteIn(t *testing.T, w env.Env) (*store.Store, store.Options) {
	t.Helper()
	o := storetest.Prepare(t, "sqlite", w)
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, o
}

func set(t *testing.T, s *store.Store, name, value string) error {
	t.Helper()
	return s.Write(t.Context(), func(tx *store.Tx) error { return tx.SetSetting(t.Context(), name, value) })
}

// copied copies files of a database that is in use, as they are.
func copied(t *testing.T, database string, endings ...string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.db")
	for _, ending := range endings {
		text, err := os.ReadFile(database + ending)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+ending, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// What a killed process left in the log is in the database file before anything
// is written behind it.
func TestFoundLogIsSecuredFirst(t *testing.T) {
	t.Parallel()
	killed, o := lite(t)
	if err := set(t, killed, "found", "yes"); err != nil {
		t.Fatal(err)
	}
	o.Database = copied(t, o.Database, "", "-wal")
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	s.FailCheckpoints("TRUNCATE", sqlite3.SQLITE_FULL)
	if err := set(t, s, "written", "yes"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("written behind a log that may not be on disk: %v", err)
	}
	if value, err := s.Setting(t.Context(), "found"); value != "yes" || err != nil {
		t.Errorf("meanwhile it is read as %q, %v", value, err)
	}
	s.FailCheckpoints("TRUNCATE", 0)
	if err := set(t, s, "written", "yes"); err != nil {
		t.Fatal(err)
	}
	o.Database = copied(t, o.Database, "") // without the log
	alone := storetest.Open(t, o)
	if value, err := alone.Setting(t.Context(), "found"); value != "yes" || err != nil {
		t.Errorf("without its log the database says %q, %v", value, err)
	}
}

// An fsync of the database file has failed: nothing is written any more, and
// the log, the one true copy, is left to the next process as it stands.
func TestFailedSyncOfTheDatabaseIsTheEnd(t *testing.T) {
	t.Parallel()
	s, o := lite(t)
	s.FailCheckpoints("PASSIVE", sqlite3.SQLITE_IOERR_FSYNC)
	large := strings.Repeat("x", 40<<20) // more than gathers in the log
	if err := set(t, s, "last", large); err != nil {
		t.Errorf("a commit that is durable in the log: %v", err)
	}
	<-s.Ended()
	if err := set(t, s, "late", "1"); !errors.Is(err, store.ErrDisk) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("written all the same: %v", err)
	}
	if value, err := s.Setting(t.Context(), "last"); value != large || err != nil {
		t.Errorf("reading: %d bytes, %v", len(value), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	o.Database = copied(t, o.Database, "", "-wal")
	next := storetest.Open(t, o)
	if value, err := next.Setting(t.Context(), "last"); value != large || err != nil {
		t.Errorf("the next process finds %d bytes, %v", len(value), err)
	}
	if err := set(t, next, "late", "1"); err != nil {
		t.Errorf("the next process: %v", err)
	}
}

// A command beside the gateway leaves the log alone.
func TestVisitorDoesNotMoveTheLog(t *testing.T) {
	t.Parallel()
	s, o := lite(t)
	o.Shared = true
	visitor := storetest.Open(t, o)
	visitor.FailCheckpoints("PASSIVE", sqlite3.SQLITE_IOERR_FSYNC)
	if err := set(t, visitor, "large", strings.Repeat("x", 40<<20)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.LogPages(t.Context()); n < 8000 || err != nil {
		t.Errorf("%d pages of a visitor's wait to be moved, %v", n, err)
	}
	if err := set(t, s, "small", "1"); err != nil { // begins to move it
		t.Fatal(err)
	}
	if n, err := s.LogPages(t.Context()); n > 10 || err != nil {
		t.Errorf("%d pages wait still, %v", n, err)
	}
}

// A checkpoint that fails for want of room is made up for later, and the log
// does not grow without end.
func TestLogIsMoved(t *testing.T) {
	t.Parallel()
	w, _ := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1) // on which no move is slow
	s, o := liteIn(t, w)
	const gather = 500 // pages, instead of thousands
	s.LimitLog(gather)
	s.FailCheckpoints("PASSIVE", sqlite3.SQLITE_FULL)
	waiting := func() int {
		t.Helper()
		n, err := s.LogPages(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	large := strings.Repeat("x", 256<<10) // 64 pages
	for i := range 12 {
		if err := set(t, s, fmt.Sprint(i), large); err != nil {
			t.Fatal(err)
		}
	}
	if n := waiting(); n < gather {
		t.Errorf("%d pages wait to be moved, though none could be", n)
	}
	s.FailCheckpoints("PASSIVE", 0)
	const most = 6 << 20 // bytes of the log's file, which begins anew: three times what gathers
	for i := range 30 {
		if err := set(t, s, fmt.Sprint(i), large); err != nil {
			t.Fatal(err)
		}
		if n := waiting(); n > gather+100 {
			t.Errorf("%d pages wait to be moved", n)
		}
		if f, err := os.Stat(o.Database + "-wal"); err != nil || f.Size() > most {
			t.Fatalf("the log has grown: %v, %v", f.Size(), err)
		}
	}
}

// Where the writer waits long for the end of a move, the next one begins later,
// or when four times as much has gathered.
func TestSlowLogIsMovedLessOften(t *testing.T) {
	t.Parallel()
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	s, _ := liteIn(t, w)
	const gather = 500 // pages, instead of thousands
	s.LimitLog(gather)
	var moves atomic.Int64
	s.BeforeCheckpoints(func(mode string) {
		switch mode {
		case "PASSIVE beside the writer":
			moves.Add(1)
		case "PASSIVE":
			clock.Advance(time.Second)
		}
	})
	serial := 0
	fill := func() (pages int) { // until the log is moved
		t.Helper()
		for before := moves.Load(); moves.Load() == before; serial++ {
			n, err := s.LogPages(t.Context())
			if pages = n; err != nil || n > 5*gather {
				t.Fatalf("%d pages have gathered, %v", n, err)
			}
			if err := set(t, s, fmt.Sprint(serial), strings.Repeat("x", 256<<10)); err != nil { // 64 pages
				t.Fatal(err)
			}
			if _, err = s.LogPages(t.Context()); err != nil { // what was begun has ended
				t.Fatal(err)
			}
		}
		return pages
	}
	if n := fill(); n > gather {
		t.Errorf("the first move began at %d pages", n)
	}
	if n := fill(); n < 4*gather-100 {
		t.Errorf("the next one began at %d pages", n)
	}
	if err := set(t, s, "end of it", ""); err != nil {
		t.Fatal(err)
	}
	clock.Advance(20 * time.Second)
	if n := fill(); n > gather {
		t.Errorf("after 20 s it began at %d pages", n)
	}
}
