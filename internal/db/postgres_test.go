package db_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/db/dbtest"
)

// A PostgreSQL that may lose acknowledged commits is refused, with every reason
// at once.
func TestUnsafePostgresIsRefused(t *testing.T) {
	t.Parallel()
	server := dbtest.PostgresServer(t, "fsync=off", "full_page_writes=off")
	o := options(t, systemEnv())
	o.Database = server.Database(t)
	for _, setting := range []string{"synchronous_commit = off", "default_transaction_read_only = on"} {
		alter(t, o.Database, setting)
	}
	for name, open := range map[string]func() error{
		"open":    func() error { _, err := db.Open(t.Context(), o); return err },
		"migrate": func() error { _, err := db.Migrate(t.Context(), o, nothing); return err },
	} {
		err := open()
		for _, reason := range []string{
			"fsync=off: a crash would corrupt the database; set fsync = on",
			"full_page_writes=off: a power cut would corrupt the database; set full_page_writes = on",
			"synchronous_commit=off: a crash would lose acknowledged orders; set synchronous_commit = on",
			" transaction_read_only=on: this is a standby",
		} {
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %v, want %q", name, err, reason)
			}
		}
	}
	alter(t, o.Database, "default_transaction_read_only = off")
	o.AllowUnsafe = true
	if _, err := db.Migrate(t.Context(), o, nothing); err != nil {
		t.Errorf("for measurements: %v", err)
	}
	open(t, o)
}

// A standby is refused: a gateway on it would serve old data, and every write would fail.
func TestStandbyIsRefused(t *testing.T) {
	t.Parallel()
	server := dbtest.PostgresServer(t)
	o := options(t, systemEnv())
	o.Database = server.Database(t)
	_, err := db.Migrate(t.Context(), o, nothing)
	must(t, err)
	server.Crash(t)
	server.Standby(t)
	server.Start(t)
	const reason = "transaction_read_only=on: this is a standby, or set to read only; give the address of the primary"
	if _, err := db.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("%v, want %q", err, reason)
	}
}

func alter(t *testing.T, database, setting string) {
	t.Helper()
	config, err := pgx.ParseConfig(database)
	must(t, err)
	name := config.Database
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	must(t, err)
	if _, err := conn.Exec(t.Context(), "ALTER DATABASE "+pgx.Identifier{name}.Sanitize()+" SET "+setting); err != nil {
		t.Error(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// An error about a database URL never contains the password.
func TestPostgresPasswordIsNotInErrors(t *testing.T) {
	t.Parallel()
	o := options(t, systemEnv())
	for _, address := range []string{
		"postgres://u:hunter2@127.0.0.1:1/none?sslmode=disable",
		"postgres://u:hunter2@127.0.0.1:port/none",
		"postgresql://u:hunter2@[::1:5432/none",
	} {
		o.Database = address
		_, err := db.Open(t.Context(), o)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
}

// An error says that the database is unavailable if a connection is killed in the
// middle of a transaction, and the next transaction gets another connection.
func TestKilledConnectionIsUnavailable(t *testing.T) {
	t.Parallel()
	d := open(t, prepare(t, "postgres", systemEnv()))
	ctx := t.Context()
	err := d.Write(ctx, func(tx *db.Tx) error {
		if err := setNote(ctx, tx, "killed", "1"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
		return err
	})
	if !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	wantNote(t, d, "killed", "")
	if err := writeNote(t, d, "after", "1"); err != nil {
		t.Error(err)
	}
}

// While the server is down every call is refused as unavailable; after its restart
// calls succeed again, and nothing acknowledged is lost.
func TestServerCrashAndRestart(t *testing.T) {
	t.Parallel()
	server := dbtest.PostgresServer(t)
	o := options(t, systemEnv())
	o.Database = server.Database(t)
	_, err := db.Migrate(t.Context(), o, nothing)
	must(t, err)
	d := open(t, o)
	must(t, writeNote(t, d, "kept", "acknowledged"))
	server.Crash(t)
	if err := writeNote(t, d, "kept", "lost"); !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("write while the server is down: %v", err)
	}
	if _, err := readNote(t, d, "kept"); !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("read while the server is down: %v", err)
	}
	if err := d.Ping(t.Context()); !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("ping while the server is down: %v", err)
	}
	server.Start(t)
	wantNote(t, d, "kept", "acknowledged")
	if err := writeNote(t, d, "kept", "again"); err != nil {
		t.Error(err)
	}
}

// The number of lanes follows from the pool: a lane has a connection, and as many
// are left for reads.
func TestPostgresLanes(t *testing.T) {
	t.Parallel()
	o := prepare(t, "postgres", systemEnv())
	for connections, lanes := range map[int]int{0: 4, 1: 1, 2: 1, 3: 1, 4: 2, 7: 3, 8: 4, 50: 4} {
		o.Connections = connections
		if got := open(t, o).Writers(); got != lanes {
			t.Errorf("of %d connections %d are lanes, want %d", connections, got, lanes)
		}
	}
}
