// Package db runs the database engines: open, transaction, dialect, migrations, sealing,
// backup.
//
// It runs one SQL text with $n parameters on SQLite and on PostgreSQL. It has no
// tables of its own except the version of the schema: rows belong to the store.
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/porteira/porteira/internal/env"
)

// Errors that callers distinguish.
var (
	// ErrNotFound: the row does not exist.
	ErrNotFound = errors.New("db: not found")
	// ErrConflict: a guarded write found another state than expected.
	ErrConflict = errors.New("db: state has changed")
	// ErrCommitUnknown: the connection broke at COMMIT. A unique key or a guard shows
	// whether it took effect when the same work runs again.
	ErrCommitUnknown = errors.New("db: outcome of commit is unknown")
	// ErrUnavailable: the database cannot be reached, or is out of space.
	ErrUnavailable = errors.New("db: database is unavailable")
	// ErrSchema: the schema does not match this program.
	ErrSchema = errors.New("db: schema")
)

// Options say which database to open and how.
type Options struct {
	// Database is a path of an SQLite file or a postgres:// URL.
	Database string
	// Keys seal personal data and secrets.
	Keys *Keyring
	// Env provides time, ids and randomness.
	Env env.Env
	// Log gets one line if a transaction is retried.
	Log *slog.Logger
	// Migrations are the SQL files of the schema, with the placeholders of
	// [Migrate].
	Migrations fs.FS
	// Shared opens an SQLite file while the gateway that owns it may be running: for
	// commands that read, or write little. The owner keeps the file's lock.
	Shared bool
	// Connections bounds the PostgreSQL pool; 0 is the default.
	Connections int
	// AllowUnsafe opens a PostgreSQL whose settings may lose acknowledged commits.
	// For measurements only.
	AllowUnsafe bool
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	dialect dialect
	keys    *Keyring
	env     env.Env
	log     *slog.Logger
	reader  *sql.DB
	writer  *sql.DB
	lock    *fileLock

	sqlite *sqliteWriter // nil on PostgreSQL
	reads  sync.Map      // text -> *sql.Stmt of reader, for SQLite; texts are few
	path   string        // of the SQLite file
}

// Open opens a database, and checks that its settings are safe for money and that
// its schema matches the migrations.
func Open(ctx context.Context, o Options) (*DB, error) {
	d, err := connect(ctx, o)
	if err == nil {
		err = d.checkSchema(ctx, o.Migrations)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// connect opens a database whose schema may be missing. It returns the DB with
// the error, to be closed.
func connect(ctx context.Context, o Options) (*DB, error) {
	d := &DB{keys: o.Keys, env: o.Env, log: o.Log}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if IsPostgres(o.Database) {
		return d, d.openPostgres(ctx, o)
	}
	if scheme, _, ok := strings.Cut(o.Database, "://"); ok {
		return d, fmt.Errorf("db: %s:// is not supported: name a PostgreSQL by postgres://, or an SQLite file by its path", scheme)
	}
	return d, d.openSQLite(ctx, o)
}

// Close ends all connections and releases the SQLite file's lock.
func (d *DB) Close() error {
	if d.sqlite != nil && d.sqlite.hasFailed() {
		return nil // the end of the process closes them, and keeps the log
	}
	var errs []error
	if d.sqlite != nil {
		errs = append(errs, d.sqlite.close())
	}
	if d.reader != nil && d.reader != d.writer {
		errs = append(errs, d.reader.Close())
	}
	if d.writer != nil {
		errs = append(errs, d.writer.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.release())
	}
	return errors.Join(errs...)
}

// Engine names the database engine: sqlite or postgres.
func (d *DB) Engine() string { return d.dialect.name() }

// Writers is how many transactions the engine commits concurrently.
func (d *DB) Writers() int { return d.dialect.writers() }

// Keys seal and hash for this database.
func (d *DB) Keys() *Keyring { return d.keys }

// UseRoot makes keyed hashes come from a root from now on. It is called before the database is used.
func (d *DB) UseRoot(root []byte) (err error) {
	d.keys, err = d.keys.WithRoot(root)
	return err
}

// Env is the environment that the database was opened with.
func (d *DB) Env() *env.Env { return &d.env }

// Ping checks that the database answers; else ErrUnavailable.
func (d *DB) Ping(ctx context.Context) error {
	var one int
	if err := d.QueryRow(ctx, "SELECT 1").Scan(&one); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Query reads concurrently with the writers. SQLite's driver compiles a text each
// time, so its statements are cached; the PostgreSQL driver caches them itself.
func (d *DB) Query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if st := d.compiled(ctx, text); st != nil {
		return st.QueryContext(ctx, args...)
	}
	return d.reader.QueryContext(ctx, text, args...)
}

// QueryRow is Query for one row.
func (d *DB) QueryRow(ctx context.Context, text string, args ...any) *sql.Row {
	if st := d.compiled(ctx, text); st != nil {
		return st.QueryRowContext(ctx, args...)
	}
	return d.reader.QueryRowContext(ctx, text, args...)
}

// compiled returns the statement of text; nil if it does not compile, and text is
// to be run as it is, which reports the error.
func (d *DB) compiled(ctx context.Context, text string) *sql.Stmt {
	if d.sqlite == nil {
		return nil
	}
	if st, ok := d.reads.Load(text); ok {
		return st.(*sql.Stmt)
	}
	st, err := d.reader.PrepareContext(ctx, text)
	if err != nil {
		return nil
	}
	if first, taken := d.reads.LoadOrStore(text, st); taken {
		_ = st.Close()
		return first.(*sql.Stmt)
	}
	return st
}

// Statements are the texts that an SQLite database has compiled, for tests of their
// plans. A PostgreSQL server lists them itself.
func (d *DB) Statements() (list []string) {
	if d.sqlite == nil {
		return nil
	}
	d.reads.Range(func(text, _ any) bool {
		list = append(list, text.(string))
		return true
	})
	d.sqlite.mu.Lock()
	defer d.sqlite.mu.Unlock()
	list = slices.AppendSeq(list, maps.Keys(d.sqlite.stmts))
	return slices.AppendSeq(list, maps.Keys(d.sqlite.execs))
}

// Collect reads every row of a query with scan.
func Collect[T any](rows *sql.Rows, err error, scan func(Scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var list []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// Scanner is a row, of one or of many.
type Scanner interface{ Scan(dest ...any) error }

// ReadError adds what was read to an error of Query or QueryRow, and translates
// it into an error of this package; ErrNotFound stays as it is.
func (d *DB) ReadError(what string, err error) error {
	if err = NotFound(err); err == nil || errors.Is(err, ErrNotFound) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrSealed) {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return fmt.Errorf("read %s: %w", what, d.translate(err))
}

// NotFound converts [sql.ErrNoRows] into ErrNotFound; other errors are returned unchanged.
func NotFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}
