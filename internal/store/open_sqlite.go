package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"modernc.org/sqlite" // registers the pure-Go driver, whose errors dialect.go reads
)

// sqliteFixed is the first release without the WAL-reset bug, which can corrupt
// a database that has readers (3.7.0 to 3.51.2; sqlite.org/wal.html).
var sqliteFixed = [3]int{3, 51, 3}

// sqliteReaders bounds the pool of reading connections.
const sqliteReaders = 8

var _ *sqlite.Driver

// sqliteDSN holds every pragma, so that every connection of a pool has them.
// busy_timeout comes first: the others may have to wait for a lock.
func sqliteDSN(path string, readOnly bool) string {
	q := url.Values{}
	q.Add("_pragma", "busy_timeout(5000)")
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", "synchronous(FULL)")
	q.Add("_pragma", "wal_autocheckpoint(0)") // see checkpoint.go
	q.Add("_pragma", "foreign_keys(1)")
	q.Add("_txlock", "immediate")
	if readOnly {
		q.Add("_pragma", "query_only(1)")
		q.Add("_pragma", "cache_size(-4096)") // KiB for each; the system caches the file as well
	} else {
		q.Add("_pragma", "cache_size(-16384)")
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// copyDSN is for a copy that nobody uses yet: without a write-ahead log it is
// one file, as VACUUM INTO made it.
func copyDSN(path string) string {
	q := url.Values{"_pragma": {"journal_mode(MEMORY)"}}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

func (s *Store) openSQLite(ctx context.Context, o Options) error {
	s.dialect = sqliteDialect{}
	path := strings.TrimPrefix(o.Database, "sqlite:")
	s.path = path
	if err := MakeFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if !o.Shared {
		lock, err := lockFile(path + ".lock")
		if err != nil {
			return fmt.Errorf("store: another gateway uses %s (its lock file %s.lock is held): stop it, or give this one a database of its own: %w", path, path, err)
		}
		s.lock = lock
	}
	err := private(path)
	if err != nil {
		return err
	}
	if s.writer, err = sql.Open("sqlite", sqliteDSN(path, false)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s.writer.SetMaxOpenConns(1)
	if s.reader, err = sql.Open("sqlite", sqliteDSN(path, true)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s.reader.SetMaxOpenConns(sqliteReaders)
	s.reader.SetMaxIdleConns(sqliteReaders)
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return fmt.Errorf("store: open %s: %w", path, err)
	}
	mover, err := sql.Open("sqlite", sqliteDSN(path, false)) // connects when it is needed
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	mover.SetMaxOpenConns(1)
	s.solo = newSoloWriter(conn, mover, s.log, s.env.Clock)
	s.solo.owner = !o.Shared
	return s.checkSQLite(ctx)
}

// private makes a new database file for its owner alone; SQLite gives its other
// files the same mode. A file that exists is not opened: closing it would drop
// the locks that this process may hold on it.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return f.Close()
}

// checkSQLite refuses an engine or settings that may lose what was acknowledged.
func (s *Store) checkSQLite(ctx context.Context) error {
	var version, journal string
	var synchronous, foreignKeys int
	for _, q := range []struct {
		text string
		dest any
	}{
		{"SELECT sqlite_version()", &version},
		{"PRAGMA journal_mode", &journal},
		{"PRAGMA synchronous", &synchronous},
		{"PRAGMA foreign_keys", &foreignKeys},
	} {
		if err := s.solo.conn.QueryRowContext(ctx, q.text).Scan(q.dest); err != nil {
			return fmt.Errorf("store: %s: %w", q.text, err)
		}
	}
	return errors.Join(
		checkSQLiteVersion(version),
		want(journal == "wal", "SQLite runs with journal_mode=%s, not WAL: the file system of the database does not allow it; use a local disk", journal),
		want(synchronous == 2, "SQLite runs with synchronous=%d, not FULL: a power cut would lose acknowledged orders; remove the setting", synchronous),
		want(foreignKeys == 1, "SQLite runs without foreign keys (foreign_keys=%d): remove the setting", foreignKeys),
	)
}

func checkSQLiteVersion(version string) error {
	parts := strings.SplitN(version, ".", 3)
	for i, least := range sqliteFixed {
		n := 0
		if i < len(parts) {
			n, _ = strconv.Atoi(parts[i]) // not a number is older than anything
		}
		if n != least {
			return want(n > least, "SQLite %s may corrupt its write-ahead log: build with a driver that carries 3.51.3 or later", version)
		}
	}
	return nil
}

// want returns a sentence that says what is unsafe and what to do, unless ok.
func want(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("store: unsafe: "+format, args...)
}

// describe tells SQLite's planner what the tables look like once they have
// grown. Without statistics it takes one merchant's rows for ten, and so reads
// all of them where another index leads straight to the few (sqlite.org:
// queryplanner-ng.html, section 4, and fileformat2.html#stat1tab). Where they
// stand already nothing is written: a gateway must start on a full disk too.
func (s *Store) describe(ctx context.Context) error {
	rows, err := s.writer.QueryContext(ctx, `SELECT m.name, i.name, i."unique", i.partial,
			(SELECT group_concat(c.name, ' ') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno) c)
		FROM sqlite_schema m, pragma_index_list(m.name) i WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY 1, 2`)
	stats, err := collect(rows, err, func(r scanner) (v [3]string, err error) {
		var unique, partial bool
		var columns string
		err = r.Scan(&v[0], &v[1], &unique, &partial, &columns)
		v[2] = statistics(strings.Fields(columns), unique, partial)
		return v, err
	})
	if err != nil {
		return fmt.Errorf("store: statistics: %w", err)
	}
	rows, err = s.writer.QueryContext(ctx, "SELECT tbl, idx, stat FROM sqlite_stat1 ORDER BY 1, 2")
	has, err := collect(rows, err, func(r scanner) (v [3]string, err error) {
		return v, r.Scan(&v[0], &v[1], &v[2])
	})
	if err == nil && slices.Equal(has, stats) { // err: there is no such table yet
		return nil
	}
	var text strings.Builder
	var args []any
	text.WriteString("BEGIN; ANALYZE installation; DELETE FROM sqlite_stat1;")
	for i := range stats {
		fmt.Fprintf(&text, "INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ($%d, $%d, $%d);", 3*i+1, 3*i+2, 3*i+3)
		args = append(args, stats[i][0], stats[i][1], stats[i][2])
	}
	text.WriteString("COMMIT")
	if _, err := s.writer.ExecContext(ctx, text.String(), args...); err != nil {
		_, _ = s.writer.ExecContext(ctx, "ROLLBACK")
		return fmt.Errorf("store: statistics: %w", err)
	}
	return nil
}

// statistics are the rows of an index, and how many of them share the first
// column, the first two, and so on: ten merchants with a million rows, of which
// a partial index holds a thousand.
func statistics(columns []string, unique, partial bool) string {
	rows := 1_000_000
	if partial {
		rows = 1000
	}
	words, sharing := []string{strconv.Itoa(rows)}, rows
	for i, column := range columns {
		switch {
		case unique && i == len(columns)-1:
			sharing = 1
		case column == "merchant_id":
			sharing = max(1, sharing/10)
		default:
			sharing = min(sharing, 10)
		}
		words = append(words, strconv.Itoa(sharing))
	}
	return strings.Join(words, " ")
}
