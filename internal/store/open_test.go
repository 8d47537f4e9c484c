package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// intruder names the database that a second process of this test is to open.
const intruder = "STORE_TEST_INTRUDER"

// TestSecondProcess is both sides: started anew with a database to open, it
// says how that went.
func TestSecondProcess(t *testing.T) {
	w := env.System(env.OutboundOptions{})
	if path := os.Getenv(intruder); path != "" {
		o := storetest.Empty(t, "sqlite", w)
		o.Database = path
		_, err := store.Open(t.Context(), o)
		fmt.Printf("alone: %v\n", err)
		o.Shared = true
		s, err := store.Open(t.Context(), o)
		if err == nil {
			err = s.Write(t.Context(), func(tx *store.Tx) error { return tx.SetSetting(t.Context(), "visitor", "was here") })
			fmt.Printf("shared: %v\n", errors.Join(err, s.Close()))
		}
		return
	}
	t.Parallel()
	o := storetest.Prepare(t, "sqlite", w)
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	says := func() string {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), intruder+"="+o.Database)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if got := says(); !strings.Contains(got, "alone: store: another gateway uses "+o.Database) || !strings.Contains(got, "stop it, or give this one a database of its own") {
		t.Errorf("the second process says %q", got)
	} else if !strings.Contains(got, "shared: <nil>") {
		t.Errorf("a command beside the gateway says %q", got)
	}
	if value, err := s.Setting(t.Context(), "visitor"); value != "was here" || err != nil {
		t.Errorf("what the command wrote is %q, %v", value, err)
	}
	if _, err := store.Open(t.Context(), o); err == nil {
		t.Error("the same process opens the file twice")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := says(); !strings.Contains(got, "alone: <nil>") {
		t.Errorf("when the gateway has ended, the next one says %q", got)
	}
}

// A path is a path, whatever it holds: it must not end up as a pragma.
func TestSQLitePathIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b.db", "a?_pragma=synchronous(0).db", "a#b%20c&d.db", "ção.db"} {
		o := storetest.Empty(t, "sqlite", env.System(env.OutboundOptions{}))
		o.Database = filepath.Join(t.TempDir(), "new folder", name)
		if _, err := store.Migrate(t.Context(), o); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		storetest.Open(t, o)
		if _, err := os.Stat(o.Database); err != nil {
			t.Error(err)
		}
	}
}

// What SQLite acknowledged survives a power cut: both kinds of connections keep
// a write-ahead log, and the one that writes syncs it at each COMMIT.
func TestSQLiteIsDurable(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Prepare(t, "sqlite", env.System(env.OutboundOptions{})))
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		var reads, writes string
		if err := s.Reader().QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&reads); err != nil {
			t.Fatal(err)
		}
		if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.QueryRow(t.Context(), "PRAGMA "+pragma).Scan(&writes) }); err != nil {
			t.Fatal(err)
		}
		if reads != want || writes != want {
			t.Errorf("%s is %s for readers and %s for the writer, want %s", pragma, reads, writes, want)
		}
	}
}

func TestSQLiteVersions(t *testing.T) {
	t.Parallel()
	for version, safe := range map[string]bool{
		"3.51.3": true, "3.51.10": true, "3.52.1": true, "4.0.0": true, "10.0.0": true,
		"3.51.2": false, "3.50.7": false, "3.9.9": false, "2.99.99": false, "": false, "3": false, "3.51": false, "rubbish": false,
	} {
		err := store.CheckSQLiteVersion(version)
		if (err == nil) != safe {
			t.Errorf("SQLite %q: %v", version, err)
		}
		if err != nil && (!strings.Contains(err.Error(), version) || !strings.Contains(err.Error(), "3.51.3 or later")) {
			t.Errorf("%q does not say what to do", err)
		}
	}
}

// A PostgreSQL that may lose what it acknowledged is refused, with every reason
// at once.
func TestUnsafePostgresIsRefused(t *testing.T) {
	t.Parallel()
	server := storetest.PostgresServer(t, "fsync=off", "full_page_writes=off")
	o := storetest.Empty(t, "sqlite", env.System(env.OutboundOptions{}))
	o.Database = server.Database(t)
	for _, setting := range []string{"synchronous_commit = off", "default_transaction_read_only = on"} {
		alter(t, o.Database, setting)
	}
	for name, open := range map[string]func() error{
		"open":    func() error { _, err := store.Open(t.Context(), o); return err },
		"migrate": func() error { _, err := store.Migrate(t.Context(), o); return err },
	} {
		err := open()
		for _, reason := range []string{
			"fsync=off: a crash would corrupt the database; set fsync = on",
			"full_page_writes=off: a power cut would corrupt the database; set full_page_writes = on",
			"synchronous_commit=off: a crash would lose acknowledged orders; set synchronous_commit = on",
			"default_transaction_read_only=on: this is a standby",
		} {
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %v, want %q", name, err, reason)
			}
		}
	}
	alter(t, o.Database, "default_transaction_read_only = off")
	o.AllowUnsafe = true
	if _, err := store.Migrate(t.Context(), o); err != nil {
		t.Errorf("for measurements: %v", err)
	}
	storetest.Open(t, o)
}

func alter(t *testing.T, database, setting string) {
	t.Helper()
	config, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	name := config.Database
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "ALTER DATABASE "+pgx.Identifier{name}.Sanitize()+" SET "+setting); err != nil {
		t.Error(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// An address that leads nowhere is told as such, without the password.
func TestPostgresAddressIsNotRepeated(t *testing.T) {
	t.Parallel()
	o := storetest.Empty(t, "sqlite", env.System(env.OutboundOptions{}))
	for _, address := range []string{
		"postgres://u:hunter2@127.0.0.1:1/none?sslmode=disable",
		"postgres://u:hunter2@127.0.0.1:port/none",
		"postgresql://u:hunter2@[::1:5432/none",
	} {
		o.Database = address
		_, err := store.Open(t.Context(), o)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
}

// A database that is as it should be is not written to, so that a gateway
// starts on a full disk as well.
func TestMigrateAgainWritesNothing(t *testing.T) {
	t.Parallel()
	o := storetest.Empty(t, "sqlite", env.System(env.OutboundOptions{}))
	var before []byte
	for run := range 3 {
		if _, err := store.Migrate(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(o.Database)
		if err != nil {
			t.Fatal(err)
		}
		if run > 0 && !bytes.Equal(before, after) {
			t.Errorf("run %d of the same migrations changes the database", run+1)
		}
		before = after
	}
	s := storetest.Open(t, o)
	var n int
	if err := s.Reader().QueryRow("SELECT count(*) FROM sqlite_stat1 WHERE stat LIKE '1000%'").Scan(&n); n < 20 || err != nil {
		t.Errorf("the planner is told of %d indexes, %v", n, err)
	}
}
