package db_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/db/dbtest"
	"github.com/porteira/porteira/internal/env"
)

// cut is when the connection to PostgreSQL breaks.
type cut int32

const (
	never        cut = iota
	beforeCommit     // the server does not receive it
	afterCommit      // the server has done it, and its answer is lost
)

// proxy carries connections to a PostgreSQL server, and breaks the next one that
// commits, as next says.
type proxy struct{ next atomic.Int32 }

func (p *proxy) carry(client, server net.Conn) {
	var broken atomic.Bool // the server's next answer is lost, and the connection with it
	go func() {
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil || broken.Load() {
				_ = client.Close()
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if bytes.Contains(buffer[:n], []byte("commit\x00")) {
			switch cut(p.next.Swap(int32(never))) {
			case beforeCommit:
				return
			case afterCommit:
				broken.Store(true)
			}
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
		if broken.Load() {
			_, _ = io.Copy(io.Discard, client) // until the answer has come, and was lost
			return
		}
	}
}

// If the connection breaks at COMMIT, its outcome is unknown. The same work again,
// with the same unique key, is stored once in either case.
func TestCommitOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	o := prepare(t, "postgres", systemEnv())
	p := &proxy{}
	dbtest.Wire(t, &o, p.carry)
	d := open(t, o)
	ctx := t.Context()
	must(t, write(t, d, "INSERT INTO samples (id, word, raw, n) VALUES (1, '', '', 0)"))
	for _, when := range []cut{never, beforeCommit, afterCommit} {
		name := fmt.Sprint(when)
		var fresh bool
		work := func(tx *db.Tx) error {
			added, err := tx.Insert(ctx, noteTable, []any{name, "value"})
			if err != nil {
				return err
			}
			fresh = added[0]
			return tx.ExecOne(ctx, "UPDATE samples SET n = n + 1 WHERE id = 1") // what the note brings about
		}
		p.next.Store(int32(when))
		if err := d.Write(ctx, work); errors.Is(err, db.ErrCommitUnknown) != (when != never) {
			t.Fatalf("cut %d: %v", when, err)
		}
		if when == never {
			continue
		}
		err := d.Write(ctx, func(tx *db.Tx) error {
			if err := work(tx); err != nil || fresh {
				return err
			}
			return errUndo // the first run stored it
		})
		if stored := when == afterCommit; stored != errors.Is(err, errUndo) || !stored && err != nil {
			t.Errorf("cut %d, run again: fresh is %v, %v", when, fresh, err)
		}
		wantNote(t, d, name, "value")
	}
	var n int
	if err := d.QueryRow(ctx, "SELECT n FROM samples WHERE id = 1").Scan(&n); n != 3 || err != nil {
		t.Errorf("the effect of three notes happened %d times, %v", n, err)
	}
}

// deadlocks are ways in which a transaction waits for the lock of another.
var deadlocks = map[string]func(t *testing.T, tx *db.Tx, of int64) error{
	"a statement": func(t *testing.T, tx *db.Tx, of int64) error {
		_, err := tx.Exec(t.Context(), "UPDATE items SET n = n + 1 WHERE id = $1", of)
		return err
	},
	"QueryRow": func(t *testing.T, tx *db.Tx, of int64) error {
		var n int64
		return tx.QueryRow(t.Context(), "SELECT n FROM items WHERE id = $1"+tx.ForUpdate(), of).Scan(&n)
	},
	"Insert": func(t *testing.T, tx *db.Tx, of int64) error {
		_, err := tx.Insert(t.Context(), itemTable, item(1, of+100, fmt.Sprint(of+100), 1), item(1, of+200, fmt.Sprint(of+200), 1))
		return err
	},
	"Update of one row": func(t *testing.T, tx *db.Tx, of int64) error {
		_, err := tx.Update(t.Context(), itemUpdate, []any{merchant(1), of, int64(9)})
		return err
	},
	"Update of several rows": func(t *testing.T, tx *db.Tx, of int64) error {
		_, err := tx.Update(t.Context(), itemUpdate, []any{merchant(1), of, int64(9)}, []any{merchant(1), of + 10, int64(9)})
		return err
	},
	"Select of several rows": func(t *testing.T, tx *db.Tx, of int64) error {
		_, err := db.Select(t.Context(), tx, itemByID, [][]any{{merchant(1), of}, {merchant(1), of + 10}}, scanItem)
		return err
	},
	"Delete of several rows": func(t *testing.T, tx *db.Tx, of int64) error {
		return tx.Delete(t.Context(), itemDelete, []any{merchant(1), of}, []any{merchant(1), of + 10})
	},
}

// If two transactions lock the same rows in opposite order, PostgreSQL ends one of
// them. It runs again, and both take effect.
func TestDeadlockRunsAgain(t *testing.T) {
	t.Parallel()
	for name, lock := range deadlocks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, prepare(t, "postgres", systemEnv()))
			must(t, d.Write(t.Context(), func(tx *db.Tx) error {
				return tx.InsertNew(t.Context(), itemTable, item(1, 1, "a", 0), item(1, 11, "b", 0), item(1, 2, "c", 0), item(1, 12, "d", 0))
			}))
			var met, done sync.WaitGroup
			met.Add(2)
			var runs atomic.Int32
			for _, order := range [][]int64{{1, 2}, {2, 1}} {
				done.Go(func() {
					first := true
					if err := d.Write(t.Context(), func(tx *db.Tx) error {
						runs.Add(1)
						if err := lock(t, tx, order[0]); err != nil {
							return err
						}
						if first {
							first = false
							met.Done()
							met.Wait()
						}
						if err := lock(t, tx, order[1]); err != nil {
							return err
						}
						_, err := tx.Exec(t.Context(), "INSERT INTO notes (name, value) VALUES ($1, 'done')", fmt.Sprint(order))
						return err
					}); err != nil {
						t.Error(err)
					}
				})
			}
			done.Wait()
			wantNote(t, d, "[1 2]", "done")
			wantNote(t, d, "[2 1]", "done")
			if runs.Load() < 3 { // more if the one that runs again meets the other again
				t.Errorf("%d runs: nothing ran again", runs.Load())
			}
		})
	}
}

// A caller whose time has ended learns that, and not that the database is unavailable, which it
// is not. (On SQLite a transaction does not end with its caller.)
func TestCallersTimeEnds(t *testing.T) {
	t.Parallel()
	d := open(t, prepare(t, "postgres", systemEnv()))
	clock := env.NewVirtualClock(time.Now())
	ends := func() { clock.Advance(time.Minute) }
	for name, work := range map[string]func(ctx context.Context) error{
		"before the transaction": func(ctx context.Context) error {
			ends()
			return d.Write(ctx, func(*db.Tx) error { return nil })
		},
		"in a statement": func(ctx context.Context) error {
			return d.Write(ctx, func(tx *db.Tx) error {
				ends()
				_, err := tx.Exec(ctx, "SELECT pg_sleep(60)")
				return err
			})
		},
	} {
		ctx, cancel := clock.WithTimeout(t.Context(), time.Minute)
		if err := work(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, db.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	if err := d.Write(t.Context(), func(*db.Tx) error { return nil }); err != nil {
		t.Errorf("after it: %v", err)
	}
}
