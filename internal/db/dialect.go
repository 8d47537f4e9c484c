package db

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// dialect is the real differences between the engines. All other SQL is one text
// with $n parameters, which both drivers accept.
type dialect interface {
	name() string
	// bulk reports whether a statement costs a round trip, so that rows share one.
	bulk() bool
	// writers is how many transactions commit concurrently.
	writers() int
	// migration fills the placeholders of a migration's text.
	migration(text string) string
	// forUpdate ends a SELECT of rows that the transaction will change or delete.
	forUpdate() string
	// lockOf ends a SELECT that joins t to others and will change t's rows, but not
	// their keys.
	lockOf(t string) string
	// skipLocked ends a SELECT of rows to claim; it skips rows that others are
	// claiming.
	skipLocked() string
	// keyShare ends a SELECT of a row that must not be deleted before the
	// transaction ends; others may go on updating it.
	keyShare(t string) string
	// begin opens a write transaction.
	begin(ctx context.Context, d *DB) (transaction, error)
	// insert adds rows to a table and returns which of them are new.
	insert(ctx context.Context, tx *Tx, t *Table, rows [][]any) ([]bool, error)
	// classify turns a driver's error into a failure.
	classify(err error) failure
}

// failure is what an error of the database means for the transaction.
type failure int

const (
	failed    failure = iota // a bug, or data that the database refuses
	retryable                // serialization, deadlock, lock timeout: run it again
	broken                   // the connection or the disk: not available now
)

// transaction is an open write transaction of an engine.
type transaction interface {
	exec(ctx context.Context, text string, args ...any) (sql.Result, error)
	query(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	queryRow(ctx context.Context, text string, args ...any) *sql.Row
	commit(ctx context.Context) error
	rollback(ctx context.Context)
}

// sqliteDialect: one writer, one prepared statement a row.
type sqliteDialect struct{}

func (sqliteDialect) name() string           { return "sqlite" }
func (sqliteDialect) bulk() bool             { return false }
func (sqliteDialect) writers() int           { return 1 }
func (sqliteDialect) forUpdate() string      { return "" }
func (sqliteDialect) lockOf(string) string   { return "" }
func (sqliteDialect) skipLocked() string     { return "" }
func (sqliteDialect) keyShare(string) string { return "" }

func (sqliteDialect) migration(text string) string {
	return strings.NewReplacer(" {{bytewise}}", "", "{{narrow}}", "WITHOUT ROWID").Replace(text)
}

func (sqliteDialect) begin(ctx context.Context, d *DB) (transaction, error) {
	w := d.sqlite
	w.mu.Lock()
	t := &sqliteTransaction{w}
	err := w.recoverLog(context.WithoutCancel(ctx))
	if err == nil {
		_, err = t.exec(ctx, "BEGIN IMMEDIATE")
	}
	if err != nil {
		w.mu.Unlock()
		return nil, err
	}
	return t, nil
}

func (sqliteDialect) insert(ctx context.Context, tx *Tx, t *Table, rows [][]any) ([]bool, error) {
	added := make([]bool, len(rows))
	for i, row := range rows {
		res, err := tx.Exec(ctx, t.one, row...)
		if err != nil {
			return nil, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return nil, err
		}
		added[i] = n == 1
	}
	return added, nil
}

func (sqliteDialect) classify(err error) failure {
	if errors.Is(err, sql.ErrConnDone) {
		return broken
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return failed
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return retryable
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM:
		return broken
	}
	return failed
}

// sqliteTransaction owns the writer until it ends. Its statements cannot be
// canceled: the driver would start a goroutine for each.
type sqliteTransaction struct{ w *sqliteWriter }

func (t *sqliteTransaction) exec(_ context.Context, text string, args ...any) (sql.Result, error) {
	return t.w.exec(text, args)
}

func (t *sqliteTransaction) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	ctx = context.WithoutCancel(ctx)
	st, err := t.w.prepared(ctx, text)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

func (t *sqliteTransaction) queryRow(ctx context.Context, text string, args ...any) *sql.Row {
	ctx = context.WithoutCancel(ctx)
	st, err := t.w.prepared(ctx, text)
	if err != nil {
		return t.w.conn.QueryRowContext(ctx, text, args...) // fails the same way, and returns the error
	}
	return st.QueryRowContext(ctx, args...)
}

func (t *sqliteTransaction) commit(ctx context.Context) error {
	if _, err := t.exec(ctx, "COMMIT"); err != nil {
		t.rollback(ctx)
		return err
	}
	if err := t.w.maybeCheckpoint(context.WithoutCancel(ctx)); err != nil {
		t.w.log.ErrorContext(ctx, "checkpoint failed", "error", err)
	}
	t.w.mu.Unlock()
	return nil
}

// rollback ignores its error: SQLite may have rolled back by itself.
func (t *sqliteTransaction) rollback(ctx context.Context) {
	_, _ = t.exec(ctx, "ROLLBACK")
	t.w.mu.Unlock()
}

// pgDialect: many writers, one statement for many rows.
type pgDialect struct{ lanes int }

func (pgDialect) name() string             { return "postgres" }
func (pgDialect) bulk() bool               { return true }
func (d pgDialect) writers() int           { return d.lanes }
func (pgDialect) forUpdate() string        { return " FOR UPDATE" }
func (pgDialect) lockOf(t string) string   { return " FOR NO KEY UPDATE OF " + t }
func (pgDialect) skipLocked() string       { return " FOR NO KEY UPDATE SKIP LOCKED" }
func (pgDialect) keyShare(t string) string { return " FOR KEY SHARE OF " + t }

func (pgDialect) migration(text string) string {
	return strings.NewReplacer("{{bytewise}}", `COLLATE "C"`, " {{narrow}}", "").Replace(text)
}

func (pgDialect) begin(ctx context.Context, d *DB) (transaction, error) {
	tx, err := d.writer.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	return pgTransaction{tx}, nil
}

func (pgDialect) insert(ctx context.Context, tx *Tx, t *Table, rows [][]any) ([]bool, error) {
	found, err := tx.Query(ctx, t.many, arrays(t.columns, rows)...)
	keys, err := Collect(found, err, scanKeys(t.keys))
	if err != nil {
		return nil, err
	}
	added := make([]bool, len(rows))
	if len(keys) == len(rows) { // usually no key is taken
		for i := range added {
			added[i] = true
		}
		return added, nil
	}
	fresh := make(map[string]bool, len(keys))
	for _, k := range keys {
		fresh[k] = true
	}
	for i, row := range rows {
		key := t.keyOf(row)
		added[i] = fresh[key]
		delete(fresh, key) // of two equal keys in one call, the first is the new row
	}
	return added, nil
}

func (pgDialect) classify(err error) failure {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return broken // for any reason by which the server refused the connection
	}
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return broken // not an answer of the server: the connection
	}
	switch {
	case e.Code == "40001", e.Code == "40P01", e.Code == "55P03":
		return retryable
	case e.Code[:2] == "08", e.Code[:2] == "53", e.Code[:2] == "57", e.Code[:2] == "58", e.Code == "25006":
		return broken
	}
	return failed
}

type pgTransaction struct{ tx *sql.Tx }

func (t pgTransaction) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	return t.tx.ExecContext(ctx, text, args...)
}

func (t pgTransaction) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return t.tx.QueryContext(ctx, text, args...)
}

func (t pgTransaction) queryRow(ctx context.Context, text string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(ctx, text, args...)
}

func (t pgTransaction) commit(context.Context) error { return t.tx.Commit() }
func (t pgTransaction) rollback(context.Context)     { _ = t.tx.Rollback() }
