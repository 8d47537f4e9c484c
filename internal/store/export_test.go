package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"

	"modernc.org/sqlite"

	"github.com/porteira/porteira/internal/payment"
)

// Names for tests outside the package.
var (
	CheckSQLiteVersion = checkSQLiteVersion
	ErrRetry           = errRetry
	Micros             = micros
	AtMicros           = atMicros
)

// Exec runs any statement in the transaction.
func (tx *Tx) Exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	return tx.exec(ctx, text, args...)
}

// QueryRow reads one row of any query in the transaction.
func (tx *Tx) QueryRow(ctx context.Context, text string, args ...any) *sql.Row {
	return tx.queryRow(ctx, text, args...)
}

// Query reads the rows of any query in the transaction.
func (tx *Tx) Query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return tx.query(ctx, text, args...)
}

// Reader is the pool of reading connections.
func (s *Store) Reader() *sql.DB { return s.reader }

// Bytewise is the word that makes a column of a table compare by bytes.
func (s *Store) Bytewise() string { return s.dialect.migration(" {{bytewise}}") }

// Classify names what an error of the database means for its transaction.
func (s *Store) Classify(err error) string {
	return [...]string{failed: "failed", retryable: "retryable", broken: "broken"}[s.dialect.classify(err)]
}

// CommitError is what Write makes of an error at COMMIT.
func (s *Store) CommitError(err error) error { return s.translateCommit(err) }

// LimitPages bounds the size of an SQLite database from now on, in pages of
// 4 KiB beyond those in use.
func (s *Store) LimitPages(ctx context.Context, more int) error {
	s.solo.mu.Lock()
	defer s.solo.mu.Unlock()
	var used int
	if err := s.solo.conn.QueryRowContext(ctx, "PRAGMA page_count").Scan(&used); err != nil {
		return err
	}
	_, err := s.solo.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", used+more))
	return err
}

// Written are the statements that SQLite's writer has prepared.
func (s *Store) Written() []string {
	s.solo.mu.Lock()
	defer s.solo.mu.Unlock()
	var list []string
	for text := range s.solo.stmts {
		list = append(list, text)
	}
	return list
}

// RecordReads keeps the text of whatever is read from an SQLite database from
// now on.
func (s *Store) RecordReads(path string) *Recorder {
	r := &Recorder{dsn: sqliteDSN(path, true), texts: map[string]bool{}}
	_ = s.reader.Close()
	s.reader = sql.OpenDB(r)
	return r
}

// Recorder opens connections that remember what is asked of them.
type Recorder struct {
	dsn string

	mu    sync.Mutex
	texts map[string]bool
}

// Texts are the queries so far.
func (r *Recorder) Texts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for text := range r.texts {
		list = append(list, text)
	}
	return list
}

// Connect implements driver.Connector.
func (r *Recorder) Connect(context.Context) (driver.Conn, error) {
	conn, err := r.Driver().Open(r.dsn)
	return &recordedConn{conn, r}, err
}

// Driver implements driver.Connector.
func (r *Recorder) Driver() driver.Driver { return &sqlite.Driver{} }

type recordedConn struct {
	driver.Conn

	r *Recorder
}

// QueryContext implements driver.QueryerContext.
func (c *recordedConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	c.r.mu.Lock()
	c.r.texts[text] = true
	c.r.mu.Unlock()
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *recordedConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	c.r.mu.Lock()
	c.r.texts[text] = true
	c.r.mu.Unlock()
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
}

// SealedAt is a place of a sealed column, for tests that move what is sealed.
func SealedAt(table string, merchant, id payment.ID, column string) Place {
	return Place{table, merchant, id, column}
}

// FailCheckpoints lets each checkpoint of a mode fail with an SQLite code; 0
// ends that.
func (s *Store) FailCheckpoints(mode string, code int) {
	s.solo.mu.Lock()
	defer s.solo.mu.Unlock()
	s.solo.checkpoint = func(ctx context.Context, asked string) (checkpoint, error) {
		if strings.HasPrefix(asked, mode) && code != 0 {
			return checkpoint{}, sqliteCode(code)
		}
		return s.solo.runCheckpoint(ctx, asked)
	}
}

// BeforeCheckpoints calls at before each checkpoint, with its mode.
func (s *Store) BeforeCheckpoints(at func(mode string)) {
	s.solo.mu.Lock()
	defer s.solo.mu.Unlock()
	s.solo.checkpoint = func(ctx context.Context, asked string) (checkpoint, error) {
		at(asked)
		return s.solo.runCheckpoint(ctx, asked)
	}
}

type sqliteCode int

func (c sqliteCode) Error() string { return fmt.Sprintf("code %d", int(c)) }
func (c sqliteCode) Code() int     { return int(c) }

// LimitLog sets how many pages gather in the log before they are moved.
func (s *Store) LimitLog(pages int) {
	s.solo.mu.Lock()
	defer s.solo.mu.Unlock()
	s.solo.gather = pages
}

// LogPages tells how many pages the write-ahead log holds that are not in the
// database file, when nobody is moving it.
func (s *Store) LogPages(ctx context.Context) (int, error) {
	s.solo.moves.Wait()
	s.solo.mu.Lock()
	defer s.solo.mu.Unlock()
	c, err := s.solo.runCheckpoint(ctx, checkpointLook)
	return c.log - c.moved, err
}
