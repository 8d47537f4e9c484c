package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
)

// A transaction that lost a race runs again, writeTries times at most.
const (
	writeTries      = 5
	writeBackoffMin = 2 * time.Millisecond
)

// Tx is one write transaction.
type Tx struct {
	// Now is the time of everything that this transaction writes, in UTC.
	Now time.Time

	db *DB
	t  transaction
}

// Write runs work in a write transaction and commits it. If the engine reports a
// serialization failure or a deadlock, or work returns ErrRetry, work runs again
// from its beginning: it must change only tx and its own results, which it
// resets. Errors of work are returned unchanged, after a rollback.
//
// An error at COMMIT with an unknown outcome is ErrCommitUnknown: run the same
// work again, and its unique keys and guards decide.
func (d *DB) Write(ctx context.Context, work func(tx *Tx) error) error {
	for try := 1; ; try++ {
		err := d.writeOnce(ctx, work)
		if err == nil || !errors.Is(err, ErrRetry) {
			return err
		}
		if try == writeTries {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		d.log.Debug("transaction is retried", "try", try, "cause", err)
		if err := d.pause(ctx, writeBackoffMin<<try); err != nil {
			return err
		}
	}
}

// ErrRetry marks errors after which the same work may succeed.
var ErrRetry = errors.New("db: transaction must run again")

func (d *DB) pause(ctx context.Context, wait time.Duration) error {
	timer := d.env.Clock.NewTimer(d.env.Random.Jitter(wait, 50))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *DB) writeOnce(ctx context.Context, work func(tx *Tx) error) (err error) {
	t, err := d.dialect.begin(ctx, d)
	if err != nil {
		return d.translateOf(ctx, err)
	}
	tx := &Tx{Now: d.env.Clock.Now(), db: d, t: t}
	done := false
	defer func() {
		if !done { // an error, or a panic of work
			t.rollback(ctx)
		}
	}()
	if err := work(tx); err != nil {
		return d.translateOf(ctx, err)
	}
	if err := d.env.InjectCommit(env.BeforeCommit); err != nil {
		return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
	}
	done = true
	if err := t.commit(ctx); err != nil {
		return d.translateCommit(err)
	}
	if err := d.env.InjectCommit(env.AfterCommit); err != nil {
		return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
	}
	return nil
}

// translateOf is translate in a transaction for a caller. If its time has ended, that is the
// error: it says nothing about the database.
func (d *DB) translateOf(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return fmt.Errorf("db: %w", err)
	}
	return d.translate(err)
}

// translate makes a driver's error one of this package's; other errors pass.
func (d *DB) translate(err error) error {
	if !isDriverError(err) {
		return err
	}
	switch d.dialect.classify(err) {
	case retryable:
		return fmt.Errorf("%w: %w", ErrRetry, err)
	case broken:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return fmt.Errorf("db: %w", err)
	}
}

// translateCommit is translate for COMMIT, whose outcome is unknown if the
// connection broke. SQLite has rolled back, or says so.
func (d *DB) translateCommit(err error) error {
	if d.dialect.classify(err) == broken && d.sqlite == nil && !serverSpoke(err) {
		return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
	}
	return d.translate(err)
}

// Exec runs a statement.
func (tx *Tx) Exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	return tx.t.exec(ctx, text, args...)
}

// Query reads rows within the transaction.
func (tx *Tx) Query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return tx.t.query(ctx, text, args...)
}

// QueryRow reads one row within the transaction.
func (tx *Tx) QueryRow(ctx context.Context, text string, args ...any) *sql.Row {
	return tx.t.queryRow(ctx, text, args...)
}

// ExecOne runs a statement that must change exactly one row; else ErrConflict.
func (tx *Tx) ExecOne(ctx context.Context, text string, args ...any) error {
	n, err := tx.ExecCount(ctx, text, args...)
	if err == nil && n != 1 {
		err = ErrConflict
	}
	return err
}

// ExecCount runs a statement and counts the rows that it changed.
func (tx *Tx) ExecCount(ctx context.Context, text string, args ...any) (int64, error) {
	res, err := tx.Exec(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Insert adds rows to t, except those whose unique key is taken, and returns
// which are new.
func (tx *Tx) Insert(ctx context.Context, t *Table, rows ...[]any) (added []bool, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	return tx.db.dialect.insert(ctx, tx, t, rows)
}

// InsertNew adds rows that must all be new; else ErrConflict.
func (tx *Tx) InsertNew(ctx context.Context, t *Table, rows ...[]any) error {
	for ; !tx.db.dialect.bulk() && len(rows) >= someRows; rows = rows[someRows:] {
		n, err := tx.ExecCount(ctx, t.some, slices.Concat(rows[:someRows]...)...)
		if err != nil {
			return err
		}
		if n != someRows {
			return fmt.Errorf("%w: %s", ErrConflict, t.name)
		}
	}
	added, err := tx.Insert(ctx, t, rows...)
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

// Update changes rows, each named by its own keys, and returns the indexes of
// those that match no row. No two rows may have the same keys.
func (tx *Tx) Update(ctx context.Context, u *RowUpdate, rows ...[]any) (missed []int, err error) {
	if tx.db.dialect.bulk() && len(rows) > 1 {
		return tx.updateTogether(ctx, u, rows)
	}
	for i, row := range rows {
		n, err := tx.ExecCount(ctx, u.one, row...)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			missed = append(missed, i)
		}
	}
	return missed, nil
}

func (tx *Tx) updateTogether(ctx context.Context, u *RowUpdate, rows [][]any) (missed []int, err error) {
	found, err := tx.Query(ctx, u.many, arrays(u.columns, rows)...)
	keys, err := Collect(found, err, scanKeys(u.keys))
	if err != nil {
		return nil, err
	}
	matched := make(map[string]bool, len(keys))
	for _, k := range keys {
		matched[k] = true
	}
	for i, row := range rows {
		if !matched[keyText(row[:len(u.keys)])] {
			missed = append(missed, i)
		}
	}
	return missed, nil
}

// Add adds to counters, and returns their new values by key. Each of rows is a key and what is added to
// its counter; no two have the same key. The counters are locked in the order of rows.
func (tx *Tx) Add(ctx context.Context, c *Counter, rows ...[]any) (map[string]int64, error) {
	values := make(map[string]int64, len(rows))
	scan := func(r Scanner) (none struct{}, err error) {
		var key []byte
		var value int64
		err = r.Scan(&key, &value)
		values[string(key)] = value
		return none, err
	}
	if tx.db.dialect.bulk() && len(rows) > 1 {
		added, err := tx.Query(ctx, c.many, arrays(c.columns, rows)...)
		_, err = Collect(added, err, scan)
		return values, err
	}
	for _, row := range rows {
		added, err := tx.Query(ctx, c.one, row...)
		if _, err = Collect(added, err, scan); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Delete removes the rows with the given keys.
func (tx *Tx) Delete(ctx context.Context, d *RowDelete, keys ...[]any) error {
	if tx.db.dialect.bulk() && len(keys) > 1 {
		_, err := tx.Exec(ctx, d.many, arrays(d.keys, keys)...)
		return err
	}
	for _, key := range keys {
		if _, err := tx.Exec(ctx, d.one, key...); err != nil {
			return err
		}
	}
	return nil
}

// Reader is a [Tx], or a [DB] for selects that lock nothing.
type Reader interface {
	Query(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	engine() dialect
}

func (tx *Tx) engine() dialect { return tx.db.dialect }

func (d *DB) engine() dialect { return d.dialect }

// Select reads the rows with the given keys, and locks them unless the select
// says otherwise, in the order of the keys.
func Select[T any](ctx context.Context, tx Reader, s *KeySelect, keys [][]any, scan func(Scanner) (T, error)) ([]T, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	engine := tx.engine()
	if engine.bulk() && len(keys) > 1 {
		rows, err := tx.Query(ctx, s.text(engine, true), arrays(s.keys, keys)...)
		return Collect(rows, err, scan)
	}
	var list []T
	for ; len(keys) >= someKeys; keys = keys[someKeys:] {
		rows, err := tx.Query(ctx, s.some, slices.Concat(keys[:someKeys]...)...)
		some, err := Collect(rows, err, scan)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	text := s.text(engine, false)
	for _, key := range keys {
		rows, err := tx.Query(ctx, text, key...)
		some, err := Collect(rows, err, scan)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// ForUpdate ends a SELECT of rows that the transaction will change or delete.
func (tx *Tx) ForUpdate() string { return tx.db.dialect.forUpdate() }

// NoKeyUpdate ends a SELECT of rows of t that the transaction will update without
// changing their keys.
func (tx *Tx) NoKeyUpdate(t string) string { return tx.db.dialect.lockOf(t) }

// SkipLocked ends a SELECT of rows to claim; it skips rows that others are
// claiming.
func (tx *Tx) SkipLocked() string { return tx.db.dialect.skipLocked() }

// KeyShare ends a SELECT whose row of table t must not be deleted before the
// transaction ends; others may still update it.
func (tx *Tx) KeyShare(t string) string { return tx.db.dialect.keyShare(t) }

// Keys seal and hash for this database.
func (tx *Tx) Keys() *Keyring { return tx.db.keys }

// NewID makes an id of this transaction's time.
func (tx *Tx) NewID() payment.ID { return tx.db.env.IDs.NewID(tx.Now) }
