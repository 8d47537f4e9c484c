// Package store is the concrete store: one SQL text for both engines, one file
// per noun, a small dialect file, embedded migrations.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
)

// Errors that callers decide by.
var (
	// ErrNotFound: no such row for this merchant.
	ErrNotFound = errors.New("store: not found")
	// ErrConflict: a guarded write met another state than it was decided on.
	ErrConflict = errors.New("store: state has changed")
	// ErrCommitUnknown: the connection broke at COMMIT; whether it took place
	// is for a unique key or a guard to tell, when the same work is run again.
	ErrCommitUnknown = errors.New("store: outcome of commit is unknown")
	// ErrUnavailable: the database cannot be reached, or is out of space.
	ErrUnavailable = errors.New("store: database is unavailable")
)

// Options say which database to open and how.
type Options struct {
	// Database is a path of an SQLite file or a postgres:// URL.
	Database string
	// Keys seal personal data and secrets.
	Keys *Keyring
	// Env gives time, ids and chance.
	Env env.Env
	// Log gets one line where a transaction had to be run again.
	Log *slog.Logger
	// Shared opens an SQLite file beside the gateway that owns it: for
	// commands that read, or write little. The owner keeps the file's lock.
	Shared bool
	// Connections bounds the PostgreSQL pool; 0 takes a default.
	Connections int
	// AllowUnsafe opens a PostgreSQL whose settings may lose acknowledged
	// commits. For measurements only.
	AllowUnsafe bool
}

// Store is an open database. It is safe for concurrent use.
type Store struct {
	dialect dialect
	keys    *Keyring
	env     env.Env
	log     *slog.Logger
	reader  *sql.DB
	writer  *sql.DB
	lock    *fileLock

	// SQLite has one writer: its connection and prepared statements.
	solo  *soloWriter
	reads sync.Map // text -> *sql.Stmt of reader; texts are few

	installation payment.ID
	path         string // of the SQLite file
}

// Open opens the database, checks that it is safe to keep money in, and reads
// who it belongs to. The schema must be there already: see Migrate.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{keys: o.Keys, env: o.Env, log: o.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if IsPostgres(o.Database) {
		err = s.openPostgres(ctx, o)
	} else {
		err = s.openSQLite(ctx, o)
	}
	if err == nil {
		err = s.checkSchema(ctx)
	}
	if err == nil {
		err = s.identify(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends all connections and gives the SQLite file's lock back.
func (s *Store) Close() error {
	if s.solo != nil && s.solo.hasFailed() {
		return nil // the end of the process closes them, and keeps the log
	}
	var errs []error
	if s.solo != nil {
		errs = append(errs, s.solo.close())
	}
	if s.reader != nil && s.reader != s.writer {
		errs = append(errs, s.reader.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	return errors.Join(errs...)
}

// Engine names the database engine: sqlite or postgres.
func (s *Store) Engine() string { return s.dialect.name() }

// Lanes is how many transactions the engine writes side by side.
func (s *Store) Lanes() int { return s.dialect.lanes() }

// Keys seal and hash for this store.
func (s *Store) Keys() *Keyring { return s.keys }

// Installation is the id under which this installation derives external ids.
func (s *Store) Installation() payment.ID { return s.installation }

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	if err := s.queryRow(ctx, "SELECT 1").Scan(&one); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// query reads beside the writers. SQLite's driver compiles a text each time, so
// its statements are kept; that of PostgreSQL keeps them itself.
func (s *Store) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if st := s.compiled(ctx, text); st != nil {
		return st.QueryContext(ctx, args...)
	}
	return s.reader.QueryContext(ctx, text, args...)
}

// queryRow is query for one row.
func (s *Store) queryRow(ctx context.Context, text string, args ...any) *sql.Row {
	if st := s.compiled(ctx, text); st != nil {
		return st.QueryRowContext(ctx, args...)
	}
	return s.reader.QueryRowContext(ctx, text, args...)
}

// compiled returns the statement of text; nil where there is none, and text is
// to be run as it is, which carries the error if there is one.
func (s *Store) compiled(ctx context.Context, text string) *sql.Stmt {
	if s.solo == nil {
		return nil
	}
	if st, ok := s.reads.Load(text); ok {
		return st.(*sql.Stmt)
	}
	st, err := s.reader.PrepareContext(ctx, text)
	if err != nil {
		return nil
	}
	if first, taken := s.reads.LoadOrStore(text, st); taken {
		_ = st.Close()
		return first.(*sql.Stmt)
	}
	return st
}

// soloWriter is SQLite's one writing connection.
type soloWriter struct {
	mu    sync.Mutex
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	log   *slog.Logger
	clock env.Clock

	// checkpoint runs one; tests put their own in its place.
	checkpoint func(ctx context.Context, mode string) (checkpoint, error)
	mover      *sql.DB // the connection that moves the log beside the writer
	moves      sync.WaitGroup
	gather     int           // how many pages gather in the log before they are moved
	moving     bool          // the mover is at it
	moved      bool          // it has been, and the writer has not finished its work
	moveAfter  time.Duration // when it may be at it again, by the monotonic clock
	owner      bool          // nobody else moves the log
	secured    bool          // the log that was found is in the database file
	failed     error         // nothing may be written, or closed, any more
	ended      chan struct{} // closed when failed is set
}

func newSoloWriter(conn *sql.Conn, mover *sql.DB, log *slog.Logger, clock env.Clock) *soloWriter {
	w := &soloWriter{
		conn: conn, mover: mover, gather: checkpointAfter, stmts: map[string]*sql.Stmt{}, log: log, clock: clock, ended: make(chan struct{}),
	}
	w.checkpoint = w.runCheckpoint
	return w
}

func (w *soloWriter) hasFailed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed != nil
}

func (w *soloWriter) close() error {
	w.moves.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, st := range w.stmts {
		errs = append(errs, st.Close())
	}
	w.stmts = map[string]*sql.Stmt{}
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
		w.conn = nil
	}
	if w.mover != nil {
		errs = append(errs, w.mover.Close())
	}
	return errors.Join(errs...)
}

// prepared returns the statement of text, prepared once for the connection.
func (w *soloWriter) prepared(ctx context.Context, text string) (*sql.Stmt, error) {
	if st, ok := w.stmts[text]; ok {
		return st, nil
	}
	if w.conn == nil { // the store was closed
		return nil, sql.ErrConnDone
	}
	st, err := w.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	w.stmts[text] = st
	return st, nil
}

// rows reads every row of a query with scan.
func collect[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
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

// scanner is a row, of one or of many.
type scanner interface{ Scan(dest ...any) error }

// micros stores a time; the zero time is 0.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// atMicros reads what micros stored.
func atMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// blob stores bytes where nothing is an empty blob, never NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
