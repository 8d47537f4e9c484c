package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// dialect is everything in which the engines truly differ. All other SQL is
// one text with $n parameters, which both drivers take as it is.
type dialect interface {
	name() string
	// remote says that a statement is a round trip.
	remote() bool
	// lanes is how many transactions write side by side.
	lanes() int
	// migration fills the placeholders of a migration's text.
	migration(text string) string
	// forUpdate ends a SELECT whose rows the transaction will change.
	forUpdate() string
	// skipLocked ends a SELECT of rows to claim, past those that others claim.
	skipLocked() string
	// keyShare ends a SELECT of a row that must not be deleted before the
	// transaction ends; others may go on updating it.
	keyShare() string
	// begin opens a write transaction.
	begin(ctx context.Context, s *Store) (transaction, error)
	// insert adds rows to a table and says which of them are new.
	insert(ctx context.Context, tx *Tx, t *table, rows [][]any) ([]bool, error)
	// classify turns a driver's error into one of the store's.
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

// table describes the rows that insert adds: a type per column, as PostgreSQL
// must know it. The key is what tells which rows are new.
type table struct {
	name    string
	columns []column
	key     int // position of a column that is unique within one call
	sqlite  string
	pg      string
}

type column struct{ name, kind string }

// newTable builds both engines' texts of one insert; a row whose unique key is
// taken is left out.
func newTable(name, key string, columns ...column) *table {
	t := &table{name: name, columns: columns, key: -1}
	names, params, arrays := make([]string, len(columns)), make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
		params[i] = fmt.Sprintf("$%d", i+1)
		arrays[i] = fmt.Sprintf("$%d::%s[]", i+1, c.kind)
		if c.name == key {
			t.key = i
		}
	}
	head := "INSERT INTO " + name + " (" + strings.Join(names, ", ") + ") "
	t.sqlite = head + "VALUES (" + strings.Join(params, ", ") + ") ON CONFLICT DO NOTHING"
	t.pg = head + "SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ") ON CONFLICT DO NOTHING RETURNING " + key
	return t
}

// sqliteDialect: one writer, one prepared statement a row.
type sqliteDialect struct{}

func (sqliteDialect) name() string       { return "sqlite" }
func (sqliteDialect) remote() bool       { return false }
func (sqliteDialect) lanes() int         { return 1 }
func (sqliteDialect) forUpdate() string  { return "" }
func (sqliteDialect) skipLocked() string { return "" }
func (sqliteDialect) keyShare() string   { return "" }

func (sqliteDialect) migration(text string) string {
	return strings.NewReplacer(" {{bytewise}}", "", "{{narrow}}", "WITHOUT ROWID").Replace(text)
}

func (sqliteDialect) begin(ctx context.Context, s *Store) (transaction, error) {
	s.solo.mu.Lock()
	t := &soloTransaction{w: s.solo}
	if err := s.solo.secure(context.WithoutCancel(ctx)); err != nil {
		s.solo.mu.Unlock()
		return nil, err
	}
	if _, err := t.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		s.solo.mu.Unlock()
		return nil, err
	}
	return t, nil
}

func (sqliteDialect) insert(ctx context.Context, tx *Tx, t *table, rows [][]any) ([]bool, error) {
	added := make([]bool, len(rows))
	for i, row := range rows {
		res, err := tx.exec(ctx, t.sqlite, row...)
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

// soloTransaction holds the writer until it ends. Its statements carry no
// cancellation: the driver would start a goroutine for each.
type soloTransaction struct{ w *soloWriter }

func (t *soloTransaction) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	ctx = context.WithoutCancel(ctx)
	st, err := t.w.prepared(ctx, text)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(ctx, args...)
}

func (t *soloTransaction) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	ctx = context.WithoutCancel(ctx)
	st, err := t.w.prepared(ctx, text)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

func (t *soloTransaction) queryRow(ctx context.Context, text string, args ...any) *sql.Row {
	ctx = context.WithoutCancel(ctx)
	st, err := t.w.prepared(ctx, text)
	if err != nil {
		return t.w.conn.QueryRowContext(ctx, text, args...) // fails alike, and carries the error
	}
	return st.QueryRowContext(ctx, args...)
}

func (t *soloTransaction) commit(ctx context.Context) error {
	if _, err := t.exec(ctx, "COMMIT"); err != nil {
		t.rollback(ctx)
		return err
	}
	if err := t.w.tidy(context.WithoutCancel(ctx)); err != nil {
		t.w.log.ErrorContext(ctx, "the write-ahead log is not moved", "error", err)
	}
	t.w.mu.Unlock()
	return nil
}

// rollback ignores its error: SQLite may have rolled back by itself.
func (t *soloTransaction) rollback(ctx context.Context) {
	_, _ = t.exec(ctx, "ROLLBACK")
	t.w.mu.Unlock()
}

// pgDialect: many writers, one statement for many rows.
type pgDialect struct{ writers int }

func (pgDialect) name() string       { return "postgres" }
func (pgDialect) remote() bool       { return true }
func (d pgDialect) lanes() int       { return d.writers }
func (pgDialect) forUpdate() string  { return " FOR UPDATE" }
func (pgDialect) skipLocked() string { return " FOR UPDATE SKIP LOCKED" }
func (pgDialect) keyShare() string   { return " FOR KEY SHARE" }

func (pgDialect) migration(text string) string {
	return strings.NewReplacer("{{bytewise}}", `COLLATE "C"`, " {{narrow}}", "").Replace(text)
}

func (pgDialect) begin(ctx context.Context, s *Store) (transaction, error) {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	return pgTransaction{tx}, nil
}

func (pgDialect) insert(ctx context.Context, tx *Tx, t *table, rows [][]any) ([]bool, error) {
	added := make([]bool, len(rows))
	if len(rows) == 0 {
		return added, nil
	}
	args := make([]any, len(t.columns))
	for c := range t.columns {
		args[c] = columnOf(t.columns[c].kind, rows, c)
	}
	keys, err := tx.query(ctx, t.pg, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = keys.Close() }()
	fresh := make(map[string]bool, len(rows))
	for keys.Next() {
		key, err := scanKey(keys, t.columns[t.key].kind)
		if err != nil {
			return nil, err
		}
		fresh[key] = true
	}
	if err := keys.Err(); err != nil {
		return nil, err
	}
	for i, row := range rows {
		key := keyText(row[t.key])
		added[i] = fresh[key]
		delete(fresh, key) // of two equal keys in one call, the first is the new row
	}
	return added, nil
}

func keyText(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return v.(string)
}

// columnOf turns one column of rows into the array that PostgreSQL takes.
func columnOf(kind string, rows [][]any, c int) any {
	switch kind {
	case "bytea":
		list := make([][]byte, len(rows))
		for i := range rows {
			list[i] = rows[i][c].([]byte)
		}
		return list
	case "bigint":
		list := make([]int64, len(rows))
		for i := range rows {
			list[i] = rows[i][c].(int64)
		}
		return list
	default:
		list := make([]string, len(rows))
		for i := range rows {
			list[i] = rows[i][c].(string)
		}
		return list
	}
}

func (pgDialect) classify(err error) failure {
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
