package db

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

// errLocked means that another process holds a lock file.
var errLocked = errors.New("the lock is held")

var _ *sqlite.Driver

// sqliteDSN contains every pragma, so that it applies to every connection of a
// pool. busy_timeout comes first: the others may have to wait for a lock.
func sqliteDSN(path string, readOnly bool) string {
	q := url.Values{}
	q.Add("_pragma", "busy_timeout(5000)")
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", "synchronous(FULL)")
	q.Add("_pragma", "wal_autocheckpoint(0)") // see sqlite_checkpoint.go
	q.Add("_pragma", "foreign_keys(1)")
	q.Add("_txlock", "immediate")
	if readOnly {
		q.Add("_pragma", "query_only(1)")
		q.Add("_pragma", "cache_size(-4096)") // KiB for each; the system caches the file too
	} else {
		q.Add("_pragma", "cache_size(-16384)")
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// copyDSN is for a copy that nobody uses yet: it remains one file, without a
// write-ahead log, as VACUUM INTO made it.
func copyDSN(path string) string {
	q := url.Values{"_pragma": {"journal_mode(MEMORY)"}}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

func (d *DB) openSQLite(ctx context.Context, o Options) error {
	d.dialect = sqliteDialect{}
	path := strings.TrimPrefix(o.Database, "sqlite:")
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // so that its lock and its log have one name
	}
	d.path = path
	if err := MakeFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("db: %w", err)
	}
	if !o.Shared {
		lock, err := lockFile(path + ".lock")
		if errors.Is(err, errLocked) {
			return fmt.Errorf("db: another gateway uses %s (its lock file %s.lock is held): stop it, or give this one a database of its own", path, path)
		}
		if err != nil {
			return fmt.Errorf("db: lock file: %w", err)
		}
		d.lock = lock
	}
	err := private(path)
	if err != nil {
		return err
	}
	if d.writer, err = sql.Open("sqlite", sqliteDSN(path, false)); err != nil {
		return fmt.Errorf("db: %w", err)
	}
	d.writer.SetMaxOpenConns(1)
	if d.reader, err = sql.Open("sqlite", sqliteDSN(path, true)); err != nil {
		return fmt.Errorf("db: %w", err)
	}
	d.reader.SetMaxOpenConns(sqliteReaders)
	d.reader.SetMaxIdleConns(sqliteReaders)
	conn, err := d.writer.Conn(ctx)
	if err != nil {
		return fmt.Errorf("db: open %s: %w", path, err)
	}
	checkpointer, err := sql.Open("sqlite", sqliteDSN(path, false)) // connects when needed
	if err != nil {
		return fmt.Errorf("db: %w", err)
	}
	checkpointer.SetMaxOpenConns(1)
	d.sqlite = newSQLiteWriter(conn, checkpointer, d.log, d.env.Clock)
	d.sqlite.owner = !o.Shared
	return d.checkSQLite(ctx)
}

// private creates a new database file, readable only by its owner; SQLite gives
// its other files the same mode. An existing file is not opened: closing it would
// drop this process's locks on it.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("db: %w", err)
	}
	return f.Close()
}

// checkSQLite rejects an engine or settings that may lose acknowledged commits.
func (d *DB) checkSQLite(ctx context.Context) error {
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
		if err := d.sqlite.conn.QueryRowContext(ctx, q.text).Scan(q.dest); err != nil {
			return fmt.Errorf("db: %s: %w", q.text, err)
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
			n, _ = strconv.Atoi(parts[i]) // anything but a number counts as older
		}
		if n != least {
			return want(n > least, "SQLite %s may corrupt its write-ahead log: build with a driver that carries 3.51.3 or later", version)
		}
	}
	return nil
}

// want returns an error that says what is unsafe and what to do, unless ok.
func want(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("db: unsafe: "+format, args...)
}

// setStatistics gives SQLite's planner the statistics of grown tables. Without
// them it assumes ten rows per merchant, and reads all of them although another
// index leads straight to the few (sqlite.org: queryplanner-ng.html, section 4,
// and fileformat2.html#stat1tab). If they exist nothing is written: a gateway
// must start on a full disk too.
func (d *DB) setStatistics(ctx context.Context) error {
	rows, err := d.writer.QueryContext(ctx, `SELECT m.name, i.name, i."unique", i.partial,
			(SELECT group_concat(c.name, ' ') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno) c)
		FROM sqlite_schema m, pragma_index_list(m.name) i WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY 1, 2`)
	stats, err := Collect(rows, err, func(r Scanner) (v [3]string, err error) {
		var unique, partial bool
		var columns string
		err = r.Scan(&v[0], &v[1], &unique, &partial, &columns)
		v[2] = statistics(strings.Fields(columns), unique, partial)
		return v, err
	})
	if err != nil || len(stats) == 0 {
		return err
	}
	rows, err = d.writer.QueryContext(ctx, "SELECT tbl, idx, stat FROM sqlite_stat1 ORDER BY 1, 2")
	has, err := Collect(rows, err, func(r Scanner) (v [3]string, err error) {
		return v, r.Scan(&v[0], &v[1], &v[2])
	})
	if err == nil && slices.Equal(has, stats) { // err: the table does not exist yet
		return nil
	}
	var text strings.Builder
	var args []any
	fmt.Fprintf(&text, "BEGIN; ANALYZE %s; DELETE FROM sqlite_stat1;", stats[0][0]) // creates the table
	for i := range stats {
		fmt.Fprintf(&text, "INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ($%d, $%d, $%d);", 3*i+1, 3*i+2, 3*i+3)
		args = append(args, stats[i][0], stats[i][1], stats[i][2])
	}
	text.WriteString("COMMIT")
	if _, err := d.writer.ExecContext(ctx, text.String(), args...); err != nil {
		_, _ = d.writer.ExecContext(ctx, "ROLLBACK")
		return err
	}
	return nil
}

// statistics are the rows of an index, and how many of them share the first
// column, the first two, and so on: ten merchants with a million rows each, of
// which a partial index contains a thousand.
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
