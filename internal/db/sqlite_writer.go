package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// sqliteWriter is SQLite's one writing connection, with its prepared statements.
type sqliteWriter struct {
	mu    sync.Mutex // locked by the open transaction
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	execs map[string]sqliteExec
	args  []driver.NamedValue // of the running statement
	log   *slog.Logger
	clock env.Clock

	// See sqlite_checkpoint.go.
	checkpoint     func(ctx context.Context, mode string) (checkpoint, error) // replaced by tests
	checkpointer   *sql.DB                                                    // runs checkpoints concurrently with the writer
	checkpoints    sync.WaitGroup
	pages          int           // in the log before a checkpoint
	copying        bool          // the checkpointer is running
	copied         bool          // it has run, and the writer has not completed its work
	nextCheckpoint time.Duration // not before, by the monotonic clock
	owner          bool          // no other process runs checkpoints
	recovered      bool          // the log found at opening is in the database file
	failed         error         // nothing may be written, or closed, any more
	ended          chan struct{} // closed when failed is set
}

func newSQLiteWriter(conn *sql.Conn, checkpointer *sql.DB, log *slog.Logger, clock env.Clock) *sqliteWriter {
	w := &sqliteWriter{
		conn: conn, checkpointer: checkpointer, pages: checkpointPages, stmts: map[string]*sql.Stmt{}, execs: map[string]sqliteExec{}, log: log, clock: clock, ended: make(chan struct{}),
	}
	w.checkpoint = w.runCheckpoint
	return w
}

func (w *sqliteWriter) hasFailed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed != nil
}

func (w *sqliteWriter) close() error {
	w.checkpoints.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, st := range w.stmts {
		errs = append(errs, st.Close())
	}
	w.stmts = map[string]*sql.Stmt{}
	if w.conn != nil {
		errs = append(errs, w.conn.Raw(w.closeExecs))
		errs = append(errs, w.conn.Close())
		w.conn = nil
	}
	if w.checkpointer != nil {
		errs = append(errs, w.checkpointer.Close())
	}
	return errors.Join(errs...)
}

// prepared returns the statement of text, prepared once for the connection.
func (w *sqliteWriter) prepared(ctx context.Context, text string) (*sql.Stmt, error) {
	if st, ok := w.stmts[text]; ok {
		return st, nil
	}
	if w.conn == nil { // the database was closed
		return nil, sql.ErrConnDone
	}
	st, err := w.conn.PrepareContext(ctx, unnamed(text))
	if err != nil {
		return nil, err
	}
	w.stmts[text] = st
	return st, nil
}

// sqliteExec is a prepared statement of the driver that returns no rows.
type sqliteExec interface {
	driver.Stmt
	driver.StmtExecContext
}

// exec runs a statement that returns no rows, prepared once for the connection. It cannot be canceled.
// The driver gets its parameters without database/sql, which would allocate and convert them again: a
// sixth of what a payout allocates.
func (w *sqliteWriter) exec(text string, args []any) (res driver.Result, err error) {
	if w.conn == nil { // the database was closed
		return nil, sql.ErrConnDone
	}
	w.args = w.args[:0]
	for i, arg := range args {
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, fmt.Errorf("db: parameter %d of %s: %w", i+1, text, err)
		}
		w.args = append(w.args, driver.NamedValue{Ordinal: i + 1, Value: value})
	}
	defer func() { clear(w.args) }()
	err = w.conn.Raw(func(conn any) error {
		st := w.execs[text]
		if st == nil {
			prepared, err := conn.(driver.Conn).Prepare(unnamed(text))
			if err != nil {
				return err
			}
			st = prepared.(sqliteExec)
			w.execs[text] = st
		}
		res, err = st.ExecContext(context.Background(), w.args)
		return err
	})
	return res, err
}

func (w *sqliteWriter) closeExecs(any) error {
	var errs []error
	for _, st := range w.execs {
		errs = append(errs, st.Close())
	}
	w.execs = map[string]sqliteExec{}
	return errors.Join(errs...)
}

// unnamed replaces the parameters of a statement by ?, if they are $1, $2 and so on in this order: at
// every execution the driver would make a string of each name, and look it up.
func unnamed(text string) string {
	parts := strings.Split(text, "$")
	for i := range parts {
		if i == 0 {
			continue
		}
		rest, ok := strings.CutPrefix(parts[i], strconv.Itoa(i))
		if !ok || rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return text
		}
		parts[i] = rest
	}
	return strings.Join(parts, "?")
}
