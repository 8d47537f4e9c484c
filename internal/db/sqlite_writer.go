package db

import (
	"context"
	"database/sql"
	"errors"
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
		conn: conn, checkpointer: checkpointer, pages: checkpointPages, stmts: map[string]*sql.Stmt{}, log: log, clock: clock, ended: make(chan struct{}),
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
