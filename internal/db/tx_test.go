package db_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
)

// An error in a statement is a bug: it is reported once, and not retried.
func TestStatementErrorsAreNotRetried(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		must(t, write(t, d, "INSERT INTO items (merchant_id, id, word, n) VALUES ('', 1, '', 1)"))
		for _, text := range []string{
			"SELEC 1", "INSERT INTO nowhere VALUES (1)", "INSERT INTO notes (name, value) VALUES ('a', NULL)", "UPDATE items SET n = -1",
		} {
			runs := 0
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				runs++
				_, err := tx.Exec(t.Context(), text)
				return err
			})
			if err == nil || errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrRetry) || runs != 1 {
				t.Errorf("%s: %v after %d runs", text, err, runs)
			}
		}
	})
}

func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	d := open(t, prepare(t, "sqlite", systemEnv()))
	runs := 0
	err := d.Write(t.Context(), func(*db.Tx) error { runs++; return db.ErrRetry })
	if !errors.Is(err, db.ErrUnavailable) || runs != 5 {
		t.Errorf("%v after %d runs", err, runs)
	}
	runs = 0
	if err := d.Write(t.Context(), func(*db.Tx) error {
		if runs++; runs < 5 {
			return db.ErrRetry
		}
		return nil
	}); err != nil || runs != 5 {
		t.Errorf("%v after %d runs", err, runs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := d.Write(ctx, func(*db.Tx) error { cancel(); return db.ErrRetry }); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled caller waits: %v", err)
	}
}

// A run that ends with ErrRetry leaves nothing for the next one.
func TestRetryBeginsAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		first := true
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			name := "second run"
			if first {
				name = "first run"
			}
			if err := setNote(t.Context(), tx, name, "1"); err != nil {
				return err
			}
			if first {
				first = false
				return fmt.Errorf("a lost race: %w", db.ErrRetry)
			}
			return nil
		}))
		wantNote(t, d, "first run", "")
		wantNote(t, d, "second run", "1")
	})
}

// An error of the work is returned as it is, after a rollback; so is a panic.
func TestFailedWorkIsRolledBack(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			must(t, setNote(t.Context(), tx, "refused", "1"))
			return errUndo
		})
		if err != errUndo {
			t.Errorf("the error became %v", err)
		}
		func() {
			defer func() {
				if cause := recover(); cause != "a bug" {
					t.Errorf("the panic became %v", cause)
				}
			}()
			_ = d.Write(t.Context(), func(tx *db.Tx) error {
				must(t, setNote(t.Context(), tx, "panicked", "1"))
				panic("a bug")
			})
		}()
		must(t, writeNote(t, d, "next", "1"))
		wantNote(t, d, "refused", "")
		wantNote(t, d, "panicked", "")
		wantNote(t, d, "next", "1")
	})
}

// A refusal at COMMIT, here because of a foreign key without a row, stores nothing
// and is reported. It does not block the next transaction.
func TestRefusedCommitIsAnError(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		must(t, write(t, d, "CREATE TABLE parents (id BIGINT PRIMARY KEY)",
			"CREATE TABLE children (parent BIGINT REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)"))
		err := write(t, d, "INSERT INTO children VALUES (1)")
		if err == nil || errors.Is(err, db.ErrCommitUnknown) || errors.Is(err, db.ErrUnavailable) {
			t.Errorf("a COMMIT that is refused: %v", err)
		}
		must(t, write(t, d, "INSERT INTO parents VALUES (1)", "INSERT INTO children VALUES (1)"))
		var children int
		if err := d.QueryRow(t.Context(), "SELECT count(*) FROM children").Scan(&children); err != nil || children != 1 {
			t.Errorf("%d rows, %v, want 1", children, err)
		}
	})
}

// A canceled request does not block the writer.
func TestWriteGoesOnAfterCanceledCaller(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		_ = d.Write(ctx, func(tx *db.Tx) error { // either all of it is stored, or nothing
			cancel()
			return setNote(ctx, tx, "canceled", "1")
		})
		for range 3 {
			must(t, writeNote(t, d, "later", "1"))
		}
	})
}

// A transaction has one time, in UTC, and its ids are of that time.
func TestTransactionTime(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 12, 0, 0, 123_000_000, time.UTC)
	for _, engine := range engines {
		e, clock := env.Virtual(start, 1)
		d := open(t, prepare(t, engine, e))
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			clock.Advance(time.Hour)
			if !tx.Now.Equal(start) || tx.Now.Location() != time.UTC {
				t.Errorf("%s: the time is %v, want %v", engine, tx.Now, start)
			}
			from, to := payment.MinIDAt(start), payment.MinIDAt(start.Add(time.Millisecond))
			one, other := tx.NewID(), tx.NewID()
			for _, id := range []payment.ID{one, other} {
				if one == other || payment.CompareIDs(id, from) < 0 || payment.CompareIDs(id, to) >= 0 {
					t.Errorf("%s: ids %v and %v are not of %v", engine, one, other, start)
				}
			}
			return nil
		}))
	}
}

// ExecCount counts the rows that a statement changed; ExecOne refuses any number
// but one.
func TestExecCountAndExecOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		must(t, write(t, d, "INSERT INTO notes (name, value) VALUES ('a', 'x'), ('b', 'x'), ('c', 'y')"))
		for value, want := range map[string]int64{"x": 2, "y": 1, "z": 0} {
			const text = "UPDATE notes SET value = value WHERE value = $1"
			must(t, d.Write(ctx, func(tx *db.Tx) error {
				if n, err := tx.ExecCount(ctx, text, value); n != want || err != nil {
					t.Errorf("%s: %d rows, %v, want %d", value, n, err, want)
				}
				return nil
			}))
			err := d.Write(ctx, func(tx *db.Tx) error { return tx.ExecOne(ctx, text, value) })
			if (want == 1) != (err == nil) || want != 1 && !errors.Is(err, db.ErrConflict) {
				t.Errorf("%s: of %d rows ExecOne says %v", value, want, err)
			}
		}
		// Two rows instead of one: neither is changed.
		err := d.Write(ctx, func(tx *db.Tx) error { return tx.ExecOne(ctx, "UPDATE notes SET value = 'new' WHERE value = $1", "x") })
		if !errors.Is(err, db.ErrConflict) {
			t.Error(err)
		}
		wantNote(t, d, "a", "x")
		for _, f := range []func(*db.Tx) error{
			func(tx *db.Tx) error { return tx.ExecOne(ctx, "UPDATE nowhere SET value = ''") },
			func(tx *db.Tx) error { _, err := tx.ExecCount(ctx, "UPDATE nowhere SET value = ''"); return err },
		} {
			if err := d.Write(ctx, f); err == nil || errors.Is(err, db.ErrConflict) {
				t.Errorf("no table: %v", err)
			}
		}
	})
}

// A failpoint at COMMIT makes its outcome unknown: before it nothing is stored,
// after it everything.
func TestFailpointsAtCommit(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			var reached []env.Failpoint
			var fail env.Failpoint
			errFail := errors.New("the process was stopped here")
			e := systemEnv()
			e.OnFailpoint = func(f env.Failpoint) error {
				reached = append(reached, f)
				if f == fail {
					return errFail
				}
				return nil
			}
			d := open(t, prepare(t, engine, e))
			for _, c := range []struct {
				fail    env.Failpoint
				stored  string
				reached []env.Failpoint
			}{
				{"", "1", []env.Failpoint{env.BeforeCommit, env.AfterCommit}},
				{env.BeforeCommit, "", []env.Failpoint{env.BeforeCommit}},
				{env.AfterCommit, "1", []env.Failpoint{env.BeforeCommit, env.AfterCommit}},
			} {
				reached, fail = nil, c.fail
				name := "note " + string(c.fail)
				err := writeNote(t, d, name, "1")
				if unknown := c.fail != ""; errors.Is(err, db.ErrCommitUnknown) != unknown || errors.Is(err, errFail) != unknown || !unknown && err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if !slices.Equal(reached, c.reached) {
					t.Errorf("%s: reached %v, want %v", name, reached, c.reached)
				}
				wantNote(t, d, name, c.stored)
			}
		})
	}
}
