package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// cut says when the connection to PostgreSQL breaks.
type cut int32

const (
	never        cut = iota
	beforeCommit     // the server never hears of it
	afterCommit      // the server has done it, and its answer is lost
)

// proxy carries connections to a PostgreSQL server, and breaks the next one that
// commits, as next says.
type proxy struct{ next atomic.Int32 }

func (p *proxy) carry(client, server net.Conn) {
	var deaf atomic.Bool // the server's next answer is lost, and the connection with it
	go func() {
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil || deaf.Load() {
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
				deaf.Store(true)
			}
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
		if deaf.Load() {
			_, _ = io.Copy(io.Discard, client) // until the answer has come, and was lost
			return
		}
	}
}

// The connection breaks at COMMIT: nobody knows whether it took place. The same
// work again, with the same ids, finds out by its unique key, and there is one
// order in either case.
func TestCommitOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	o := storetest.Prepare(t, "postgres", env.System(env.OutboundOptions{}))
	w := &proxy{}
	storetest.Wire(t, &o, w.carry)
	s := storetest.Open(t, o)
	merchant := payment.ID{9}
	for when, stored := range map[cut]bool{never: false, beforeCommit: false, afterCommit: true} {
		name := fmt.Sprint(when)
		p := &store.NewPayin{Payin: payment.Payin{
			Merchant: merchant, ID: payment.ID{byte(when + 1)}, ExternalID: name, ReferenceID: name, Amount: 1, Status: payment.PayinPending, Version: 1,
		}}
		var fresh bool
		work := func(tx *store.Tx) error {
			added, err := tx.InsertPayins(t.Context(), []*store.NewPayin{p})
			if err == nil {
				fresh = added[0]
				tx.Announce(payment.Event{Merchant: merchant, Type: payment.EventPayinPaid, Subject: p.ID}, []byte(`{}`), "")
			}
			return err
		}
		w.next.Store(int32(when))
		if err := s.Write(t.Context(), work); errors.Is(err, store.ErrCommitUnknown) != (when != never) {
			t.Fatalf("cut %d: %v", when, err)
		}
		if when == never {
			continue
		}
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			if err := work(tx); err != nil || fresh {
				return err
			}
			return errUndo // somebody has it already: it is ours
		})
		if stored != errors.Is(err, errUndo) || !stored && err != nil {
			t.Errorf("cut %d, run again: new is %v, %v", when, fresh, err)
		}
		got, err := s.Payin(t.Context(), merchant, p.ID)
		if err != nil || got.ReferenceID != name {
			t.Errorf("cut %d: %v, %v", when, got, err)
		}
	}
	events, err := s.Events(t.Context(), merchant, 0, 10)
	if err != nil || len(events) != 3 || events[2].Number != 3 {
		t.Errorf("%d events, %v; want one per order, without a gap", len(events), err)
	}
}

// Two transactions lock two rows in opposite order. PostgreSQL ends one of
// them; it is run again, and both happen.
func TestDeadlockRunsAgain(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Prepare(t, "postgres", env.System(env.OutboundOptions{})))
	ctx := t.Context()
	write := func(work func(tx *store.Tx) error) error { return s.Write(ctx, work) }
	for _, name := range []string{"a", "b"} {
		if err := write(func(tx *store.Tx) error { return tx.SetSetting(ctx, name, "") }); err != nil {
			t.Fatal(err)
		}
	}
	var met, done sync.WaitGroup
	met.Add(2)
	var runs atomic.Int32
	add := func(tx *store.Tx, name string) error {
		_, err := tx.Exec(ctx, "UPDATE settings SET value = value || 'x' WHERE name = $1", name)
		return err
	}
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		done.Go(func() {
			first := true
			if err := write(func(tx *store.Tx) error {
				runs.Add(1)
				if err := add(tx, order[0]); err != nil {
					return err
				}
				if first {
					first = false
					met.Done()
					met.Wait()
				}
				return add(tx, order[1])
			}); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	for _, name := range []string{"a", "b"} {
		if value, err := s.Setting(ctx, name); value != "xx" || err != nil {
			t.Errorf("%s is %q, %v", name, value, err)
		}
	}
	if runs.Load() < 3 { // more where the one that runs again meets the other again
		t.Errorf("%d runs: nothing ran again", runs.Load())
	}
}

// The same, where the change that meets the other's lock has waited until the
// end, or until a row is read whose absence the work would tell of.
func TestLateDeadlockRunsAgain(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Prepare(t, "postgres", env.System(env.OutboundOptions{})))
	ctx := t.Context()
	merchant, subjects := payment.ID{9}, []payment.ID{{1}, {2}}
	kinds := []string{store.ExceptionNotice, store.ExceptionDispute}
	open := func(tx *store.Tx, i int) error {
		return tx.OpenException(ctx, store.Exception{Merchant: merchant, Subject: subjects[i], Kind: kinds[i]})
	}
	closeOne := func(tx *store.Tx, i int) error {
		return tx.CloseExceptions(ctx, merchant, subjects[i], kinds[i])
	}
	for what, after := range map[string]func(tx *store.Tx) error{
		"at the end": func(*store.Tx) error { return nil },
		"before a row is read": func(tx *store.Tx) error {
			var n int
			if err := tx.QueryRow(ctx, "SELECT count(*) FROM exceptions WHERE merchant_id = $1", merchant[:]).Scan(&n); err != nil {
				return errors.New("what follows from the first error")
			}
			return nil
		},
	} {
		if err := s.Write(ctx, func(tx *store.Tx) error { return errors.Join(open(tx, 0), open(tx, 1)) }); err != nil {
			t.Fatal(err)
		}
		var met, done sync.WaitGroup
		met.Add(2)
		var runs atomic.Int32
		for i := range 2 {
			done.Go(func() {
				first := true
				if err := s.Write(ctx, func(tx *store.Tx) error {
					runs.Add(1)
					if _, err := tx.Exec(ctx, "UPDATE exceptions SET note = 'x' WHERE merchant_id = $1 AND subject_id = $2",
						merchant[:], subjects[i][:]); err != nil {
						return err
					}
					if first {
						first = false
						met.Done()
						met.Wait()
					}
					if err := closeOne(tx, 1-i); err != nil {
						return err
					}
					return after(tx)
				}); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		done.Wait()
		if runs.Load() < 3 {
			t.Errorf("%s: %d runs: nothing ran again", what, runs.Load())
		}
		if list, err := s.OpenExceptions(ctx, 10); len(list) != 0 || err != nil {
			t.Errorf("%s: left open: %v, %v", what, list, err)
		}
	}
}

// What each of PostgreSQL's errors means. Codes: PostgreSQL manual, appendix A.
func TestPostgresErrorClasses(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Prepare(t, "postgres", env.System(env.OutboundOptions{})))
	for code, want := range map[string]string{
		"40001": "retryable", "40P01": "retryable", "55P03": "retryable",
		"08006": "broken", "53100": "broken", "53300": "broken", "57P01": "broken", "57P03": "broken", "57014": "broken", "58030": "broken", "25006": "broken",
		"23505": "failed", "23514": "failed", "42601": "failed", "22021": "failed", "XX000": "failed", "25P02": "failed",
	} {
		if got := s.Classify(&pgconn.PgError{Code: code, Severity: "ERROR"}); got != want {
			t.Errorf("%s is %s, want %s", code, got, want)
		}
	}
	if got := s.Classify(io.ErrUnexpectedEOF); got != "broken" {
		t.Errorf("a cut connection is %s", got)
	}
	for _, c := range []struct {
		err     error
		unknown bool
	}{
		{io.ErrUnexpectedEOF, true},
		{&pgconn.PgError{Code: "57P01", SeverityUnlocalized: "FATAL"}, true},
		{&pgconn.PgError{Code: "57P02", SeverityUnlocalized: "WARNING"}, true},
		{&pgconn.PgError{Code: "53100", SeverityUnlocalized: "PANIC"}, true},
		{&pgconn.PgError{Code: "53100", SeverityUnlocalized: "ERROR"}, false},
		{&pgconn.PgError{Code: "40001", SeverityUnlocalized: "ERROR"}, false},
		{&pgconn.PgError{Code: "23505", SeverityUnlocalized: "ERROR"}, false},
	} {
		if got := s.CommitError(c.err); errors.Is(got, store.ErrCommitUnknown) != c.unknown {
			t.Errorf("%v at COMMIT: %v", c.err, got)
		}
	}
}

// An error in a statement is the program's: it is told once, and not tried again.
func TestStatementErrorsAreNotRetried(t *testing.T) {
	t.Parallel()
	storetest.Each(t, env.System(env.OutboundOptions{}), func(t *testing.T, o store.Options) {
		t.Parallel()
		s := storetest.Open(t, o)
		for _, text := range []string{"SELEC 1", "INSERT INTO nowhere VALUES (1)", "INSERT INTO nodes (id) VALUES (NULL)", "UPDATE installation SET singleton = 2"} {
			runs := 0
			err := s.Write(t.Context(), func(tx *store.Tx) error {
				runs++
				_, err := tx.Exec(t.Context(), text)
				return err
			})
			if err == nil || errors.Is(err, store.ErrUnavailable) || runs != 1 {
				t.Errorf("%s: %v after %d runs", text, err, runs)
			}
		}
	})
}

func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Prepare(t, "sqlite", env.System(env.OutboundOptions{})))
	runs := 0
	err := s.Write(t.Context(), func(*store.Tx) error { runs++; return store.ErrRetry })
	if !errors.Is(err, store.ErrUnavailable) || runs != 5 {
		t.Errorf("%v after %d runs", err, runs)
	}
	runs = 0
	if err := s.Write(t.Context(), func(*store.Tx) error {
		if runs++; runs < 5 {
			return store.ErrRetry
		}
		return nil
	}); err != nil || runs != 5 {
		t.Errorf("%v after %d runs", err, runs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.Write(ctx, func(*store.Tx) error { cancel(); return store.ErrRetry }); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has left waits on: %v", err)
	}
}

// Work that comes after the end is refused, not a crash.
func TestClosedStoreIsUnavailable(t *testing.T) {
	t.Parallel()
	storetest.Each(t, env.System(env.OutboundOptions{}), func(t *testing.T, o store.Options) {
		t.Parallel()
		s, err := store.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.SetSetting(t.Context(), "late", "1") }); err == nil {
			t.Error("a closed store writes")
		}
		if _, err := s.Setting(t.Context(), "late"); err == nil {
			t.Error("a closed store reads")
		}
	})
}

// The connection is killed in mid-transaction: that is no bug of the program,
// and the next transaction gets another one.
func TestKilledConnectionIsUnavailable(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Prepare(t, "postgres", env.System(env.OutboundOptions{})))
	ctx := t.Context()
	err := s.Write(ctx, func(tx *store.Tx) error {
		if err := tx.SetSetting(ctx, "killed", "1"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
		return err
	})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if value, err := s.Setting(ctx, "killed"); value != "" || err != nil {
		t.Errorf("half a transaction stayed: %q, %v", value, err)
	}
	if err := s.Write(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, "after", "1") }); err != nil {
		t.Error(err)
	}
}

// The server dies and comes back: the store says so meanwhile, and then goes on.
func TestServerCrashAndReturn(t *testing.T) {
	t.Parallel()
	server := storetest.PostgresServer(t)
	o := storetest.Empty(t, "sqlite", env.System(env.OutboundOptions{}))
	o.Database = server.Database(t)
	if _, err := store.Migrate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s := storetest.Open(t, o)
	ctx := t.Context()
	set := func(value string) error {
		return s.Write(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, "kept", value) })
	}
	if err := set("acknowledged"); err != nil {
		t.Fatal(err)
	}
	server.Crash(t)
	if err := set("lost"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("write while it is down: %v", err)
	}
	if _, err := s.Setting(ctx, "kept"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("read while it is down: %v", err)
	}
	if err := s.Ping(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("ping while it is down: %v", err)
	}
	server.Start(t)
	if value, err := s.Setting(ctx, "kept"); value != "acknowledged" || err != nil {
		t.Errorf("after the crash: %q, %v", value, err)
	}
	if err := set("again"); err != nil {
		t.Error(err)
	}
}

// The disk is full: writes are refused as unavailable, reads go on, and all is
// well again when there is room.
func TestFullDiskOnSQLite(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Prepare(t, "sqlite", env.System(env.OutboundOptions{})))
	ctx := t.Context()
	large := strings.Repeat("x", 64<<10)
	set := func(name string) error {
		return s.Write(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, name, large) })
	}
	if err := set("before"); err != nil {
		t.Fatal(err)
	}
	if err := s.LimitPages(ctx, 4); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := set("during"); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("a full disk: %v", err)
		}
	}
	if value, err := s.Setting(ctx, "before"); value != large || err != nil {
		t.Errorf("reading while it is full: %d bytes, %v", len(value), err)
	}
	if value, err := s.Setting(ctx, "during"); value != "" || err != nil {
		t.Errorf("what was refused is there: %d bytes, %v", len(value), err)
	}
	if err := s.LimitPages(ctx, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := set("after"); err != nil {
		t.Errorf("when there is room: %v", err)
	}
}
