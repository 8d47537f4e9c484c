package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
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
	q.Add("_pragma", "foreign_keys(1)")
	q.Add("_pragma", "cache_size(-16384)")
	q.Add("_txlock", "immediate")
	if readOnly {
		q.Add("_pragma", "query_only(1)")
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

func (s *Store) openSQLite(ctx context.Context, o Options) error {
	s.dialect = sqliteDialect{}
	path := strings.TrimPrefix(o.Database, "sqlite:")
	s.path = path
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if !o.Shared {
		lock, err := lockFile(path + ".lock")
		if err != nil {
			return fmt.Errorf("store: another gateway uses %s (its lock file %s.lock is held): stop it, or give this one a database of its own: %w", path, path, err)
		}
		s.lock = lock
	}
	var err error
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
	s.solo = &soloWriter{conn: conn, stmts: map[string]*sql.Stmt{}}
	return s.checkSQLite(ctx)
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
