package db

import (
	"fmt"
	"slices"
)

// A transaction queues the statements whose results it does not need at once. On PostgreSQL all that
// are queued share a round trip, in their order; on SQLite each runs when it is queued. After an
// error nothing else runs, and [Tx.Flush] returns the error.

// statement is one of a transaction, with one reader or none.
type statement struct {
	what  string // names it in errors
	text  string
	args  []any
	read  func(Rows) error
	count func(int64) error // the rows that it changed
}

// QueueQuery queues a query, and calls read with its rows. what names it in errors.
func (tx *Tx) QueueQuery(what, text string, args []any, read func(Rows) error) {
	tx.queue(statement{what: what, text: text, args: args, read: read})
}

// QueueExec queues a statement. count, if not nil, gets the number of rows that it changed.
func (tx *Tx) QueueExec(what, text string, args []any, count func(int64) error) {
	tx.queue(statement{what: what, text: text, args: args, count: count})
}

func (tx *Tx) queue(s statement) {
	if tx.err == nil {
		tx.Fail(s.what, tx.t.queue(tx.ctx, s))
	}
}

// Fail ends the transaction with an error, if it is not nil and the first one.
func (tx *Tx) Fail(what string, err error) {
	if err != nil && tx.err == nil {
		tx.err = named(what, err)
	}
}

func named(what string, err error) error {
	if what == "" {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Flush runs the queued statements. It leaves what their readers queue for the next call, or for
// COMMIT: a statement without a reader shares its round trip.
func (tx *Tx) Flush() error {
	if tx.err == nil {
		tx.Fail("", tx.t.flush(tx.ctx))
	}
	return tx.err
}

// Queued reports whether statements are queued.
func (tx *Tx) Queued() bool { return tx.err == nil && tx.t.queued() }

// QueueSelect reads the rows with the given keys, and locks them unless the select says otherwise, in
// the order of the keys.
func QueueSelect[T any](tx *Tx, s *KeySelect, keys [][]any, scan func(Scanner) (T, error), read func([]T)) {
	switch {
	case len(keys) == 0 || tx.err != nil:
	case tx.engine().bulk():
		text, args := s.text(tx.engine(), len(keys) > 1), keys[0]
		if len(keys) > 1 {
			args = arrays(s.keys, keys)
		}
		QueueCollect(tx, s.table, text, args, scan, read)
	default:
		list, err := selectEach(tx.ctx, tx, s, keys, scan)
		if err == nil {
			read(list)
		}
		tx.Fail(s.table, err)
	}
}

// QueueCollect queues a query, and calls read with its scanned rows.
func QueueCollect[T any](tx *Tx, what, text string, args []any, scan func(Scanner) (T, error), read func([]T)) {
	tx.QueueQuery(what, text, args, func(rows Rows) error {
		list, err := Collect(rows, nil, scan)
		if err == nil {
			read(list)
		}
		return err
	})
}

// QueueInsert adds rows to t, except those whose unique key is taken. read, if not nil, gets which are
// new.
func (tx *Tx) QueueInsert(t *Table, rows [][]any, read func(added []bool) error) {
	switch {
	case len(rows) == 0 || tx.err != nil:
	case tx.engine().bulk() && read == nil:
		tx.QueueExec(t.name, t.many, arrays(t.columns, rows), nil)
	case tx.engine().bulk():
		tx.QueueQuery(t.name, t.many, arrays(t.columns, rows), func(found Rows) error {
			keys, err := Collect(found, nil, scanKeys(t.keys))
			if err != nil {
				return err
			}
			return read(t.added(rows, keys))
		})
	default:
		added := make([]bool, len(rows))
		for i, row := range rows {
			n, err := tx.ExecCount(tx.ctx, t.one, row...)
			if err != nil {
				tx.Fail(t.name, err)
				return
			}
			added[i] = n == 1
		}
		if read != nil {
			tx.Fail(t.name, read(added))
		}
	}
}

// QueueNew adds rows that must all be new; else ErrConflict.
func (tx *Tx) QueueNew(t *Table, rows [][]any) {
	switch {
	case len(rows) == 0 || tx.err != nil:
	case tx.engine().bulk():
		tx.QueueExec(t.name, t.strict, arrays(t.columns, rows), nil)
	default:
		for ; len(rows) >= someRows && tx.err == nil; rows = rows[someRows:] {
			n, err := tx.ExecCount(tx.ctx, t.some, slices.Concat(rows[:someRows]...)...)
			if err == nil && n != someRows {
				err = ErrConflict
			}
			tx.Fail(t.name, err)
		}
		for i := range rows {
			if tx.err == nil {
				tx.Fail(t.name, tx.ExecOne(tx.ctx, t.one, rows[i]...))
			}
		}
	}
}

// QueueUpdate changes rows, each named by its own keys. read, if not nil, gets the indexes of those that
// match no row. No two rows may have the same keys.
func (tx *Tx) QueueUpdate(u *RowUpdate, rows [][]any, read func(missed []int) error) {
	switch {
	case len(rows) == 0 || tx.err != nil:
	case tx.engine().bulk() && read == nil:
		text, args := u.one, rows[0]
		if len(rows) > 1 {
			text, args = u.many, arrays(u.columns, rows)
		}
		tx.QueueExec(u.table, text, args, nil)
	case tx.engine().bulk() && len(rows) > 1:
		tx.QueueQuery(u.table, u.many, arrays(u.columns, rows), func(found Rows) error {
			keys, err := Collect(found, nil, scanKeys(u.keys))
			if err != nil {
				return err
			}
			return read(u.missed(rows, keys))
		})
	case tx.engine().bulk():
		tx.QueueExec(u.table, u.one, rows[0], func(n int64) error {
			if n == 0 {
				return read([]int{0})
			}
			return read(nil)
		})
	default:
		var missed []int
		for i, row := range rows {
			n, err := tx.ExecCount(tx.ctx, u.one, row...)
			if err != nil {
				tx.Fail(u.table, err)
				return
			}
			if n == 0 {
				missed = append(missed, i)
			}
		}
		if read != nil {
			tx.Fail(u.table, read(missed))
		}
	}
}

// QueueAdd adds to counters. read gets their new values by key. Each of rows is a key and what is
// added to its counter; no two have the same key. The counters are locked in the order of rows.
func (tx *Tx) QueueAdd(c *Counter, rows [][]any, read func(map[string]int64) error) {
	values, left := make(map[string]int64, len(rows)), len(rows)
	for _, row := range rows {
		QueueCollect(tx, c.table, c.one, row, scanCount, func(list []count) {
			for _, v := range list {
				values[string(v.key)] = v.value
			}
			if left--; left == 0 {
				tx.Fail(c.table, read(values))
			}
		})
	}
}

// QueueDelete removes the rows with the given keys.
func (tx *Tx) QueueDelete(d *RowDelete, keys [][]any) {
	if tx.engine().bulk() && len(keys) > 1 {
		tx.QueueExec(d.table, d.many, arrays(d.keys, keys), nil)
		return
	}
	for _, key := range keys {
		tx.QueueExec(d.table, d.one, key, nil)
	}
}

// One is a count for QueueExec: the statement must change exactly one row; else ErrConflict.
func One(n int64) error {
	if n != 1 {
		return ErrConflict
	}
	return nil
}

// None is a reader for QueueUpdate: no row may be missed; else ErrConflict.
func None(missed []int) error {
	if len(missed) > 0 {
		return ErrConflict
	}
	return nil
}

// NoneOrRetry is None, but the transaction runs again.
func NoneOrRetry(missed []int) error {
	if len(missed) > 0 {
		return ErrRetry
	}
	return nil
}

type count struct {
	key   []byte
	value int64
}

func scanCount(r Scanner) (v count, err error) { return v, r.Scan(&v.key, &v.value) }
