package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
)

// A transaction that lost a race is run again, writeTries times at the most.
const (
	writeTries      = 5
	writeBackoffMin = 2 * time.Millisecond
)

// Tx is one write transaction: a unit of work. Rows are written as they come;
// postings, ends of attempts and events are gathered and written right before
// COMMIT, balances first and the event counters last, each in the order of
// merchants, so that two transactions never wait for each other in a circle.
type Tx struct {
	// Now is the time of everything that this transaction writes, in UTC.
	Now time.Time

	store *Store
	t     transaction
	books map[payment.ID]*books
	news  []announcement

	attempts    [][]any // to deliver, that have ended
	payins      []Ref   // that it updated
	redelivered bool

	room Room // for what it makes due; nil for none
	held Held

	waiting []*waiting // changes that have not been sent
	broken  error      // of one that was sent
	ahead   ahead      // orders that were read together
}

// Write runs work in a write transaction and commits it. Where the engine asks
// for it (serialization, deadlock), work is run again from its beginning: it
// must touch nothing but tx and what it resets itself. Errors of work come back
// as they are, after a rollback.
//
// An error at COMMIT whose outcome is unknown is ErrCommitUnknown: run the same
// work again and let its unique keys and guards decide.
func (s *Store) Write(ctx context.Context, work func(tx *Tx) error) error {
	for try := 1; ; try++ {
		err := s.writeOnce(ctx, work)
		if err == nil || try == writeTries || !errors.Is(err, errRetry) {
			if errors.Is(err, errRetry) {
				return fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
			return err
		}
		s.log.Debug("transaction runs again", "try", try, "cause", err)
		if err := s.pause(ctx, writeBackoffMin<<try); err != nil {
			return err
		}
	}
}

// errRetry marks errors after which the same work may succeed.
var errRetry = errors.New("store: transaction must run again")

func (s *Store) pause(ctx context.Context, d time.Duration) error {
	timer := s.env.Clock.NewTimer(s.env.Random.Jitter(d, 50))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) writeOnce(ctx context.Context, work func(tx *Tx) error) (err error) {
	t, err := s.dialect.begin(ctx, s)
	if err != nil {
		return s.translate(err)
	}
	tx := &Tx{Now: s.env.Clock.Now(), store: s, t: t}
	done := false
	defer func() {
		if !done { // an error, or a panic of work
			t.rollback(ctx)
		}
	}()
	if err := work(tx); err != nil {
		if tx.broken != nil { // of which err is only what followed
			err = tx.broken
		}
		return s.translate(err)
	}
	if err := tx.flush(ctx); err != nil {
		return s.translate(err)
	}
	if err := s.env.InjectCommit(env.BeforeCommit); err != nil {
		return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
	}
	done = true
	if err := t.commit(ctx); err != nil {
		return s.translateCommit(err)
	}
	if err := s.env.InjectCommit(env.AfterCommit); err != nil {
		return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
	}
	return nil
}

// flush writes what was gathered.
func (tx *Tx) flush(ctx context.Context) error {
	if err := tx.sendAll(ctx); err != nil {
		return err
	}
	if err := tx.saveBooks(ctx); err != nil {
		return err
	}
	if err := tx.saveAttempts(ctx); err != nil {
		return err
	}
	return tx.publish(ctx)
}

// translate makes a driver's error one of the store's; other errors pass.
func (s *Store) translate(err error) error {
	if !isDriverError(err) {
		return err
	}
	switch s.dialect.classify(err) {
	case retryable:
		return fmt.Errorf("%w: %w", errRetry, err)
	case broken:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return fmt.Errorf("store: %w", err)
	}
}

// translateCommit is translate for COMMIT: where the connection broke, nobody
// knows. SQLite rolled back, or says so.
func (s *Store) translateCommit(err error) error {
	if s.dialect.classify(err) == broken && s.solo == nil && !serverSpoke(err) {
		return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
	}
	return s.translate(err)
}

// before keeps the order of things: what waits comes before the statement, and
// what was read ahead is not shown after it where the statement changes that.
func (tx *Tx) before(ctx context.Context, text string) {
	tx.settle(ctx, text)
	tx.ahead.forget(text)
}

func (tx *Tx) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	tx.before(ctx, text)
	return tx.t.exec(ctx, text, args...)
}

func (tx *Tx) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	tx.before(ctx, text)
	return tx.t.query(ctx, text, args...)
}

func (tx *Tx) queryRow(ctx context.Context, text string, args ...any) *sql.Row {
	tx.before(ctx, text)
	return tx.t.queryRow(ctx, text, args...)
}

// guarded runs an UPDATE that must change exactly one row; else ErrConflict.
func (tx *Tx) guarded(ctx context.Context, text string, args ...any) error {
	n, err := tx.changed(ctx, text, args...)
	if err == nil && n != 1 {
		err = ErrConflict
	}
	return err
}

// changed runs an UPDATE and counts its rows.
func (tx *Tx) changed(ctx context.Context, text string, args ...any) (int64, error) {
	res, err := tx.exec(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// insert adds rows to t; those whose unique key is taken are not new.
func (tx *Tx) insert(ctx context.Context, t *table, rows ...[]any) ([]bool, error) {
	return tx.store.dialect.insert(ctx, tx, t, rows)
}

// insertNew adds rows that must all be new; else ErrConflict.
func (tx *Tx) insertNew(ctx context.Context, t *table, rows ...[]any) error {
	added, err := tx.insert(ctx, t, rows...)
	if err != nil {
		return err
	}
	for _, fresh := range added {
		if !fresh {
			return fmt.Errorf("%w: %s", ErrConflict, t.name)
		}
	}
	return nil
}

// NewID makes an id of this transaction's time.
func (tx *Tx) NewID() payment.ID { return tx.store.env.IDs.NewID(tx.Now) }
