package dbtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/internal/db/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// Our SQL has to request byte order explicitly, which only shows on a database
// with another default.
func TestPostgresIsUTF8AndDoesNotSortByBytes(t *testing.T) {
	t.Parallel()
	database := dbtest.Postgres(t)
	if got := query[string](t, database, "SHOW server_encoding"); got != "UTF8" {
		t.Errorf("encoding is %s, want UTF8", got)
	}
	hasICU := query[bool](t, database, "SELECT EXISTS (SELECT 1 FROM pg_collation WHERE collprovider = 'i')")
	if got := query[bool](t, database, "SELECT 'a' < 'B'"); hasICU && !got {
		t.Error("the default collation sorts by bytes, though the server has another")
	}
}

func TestPostgresKeepsWhatItAcknowledges(t *testing.T) {
	t.Parallel()
	database := dbtest.Postgres(t)
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		if got := query[string](t, database, "SHOW "+setting); got != "on" {
			t.Errorf("%s is %s, want on", setting, got)
		}
	}
}

func TestPostgresServerRecoversFromACrash(t *testing.T) {
	t.Parallel()
	server := dbtest.PostgresServer(t)
	database := server.Database(t)
	execSQL(t, database, "CREATE TABLE mark (id bigint); INSERT INTO mark VALUES (7)")
	server.Crash(t)
	if conn, err := pgx.Connect(t.Context(), database); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a crashed server takes connections")
	}
	server.Start(t)
	if got := query[int64](t, database, "SELECT id FROM mark"); got != 7 {
		t.Errorf("mark = %d after recovery, want 7", got)
	}
}

// A test process that is killed cannot stop its server; the server has to notice.
func TestPostgresServerDiesWithItsProcess(t *testing.T) {
	const mark = "STORETEST_ORPHAN"
	if os.Getenv(mark) != "" {
		fmt.Println(dbtest.PostgresServer(t).URL())
		_, _ = io.Copy(io.Discard, os.Stdin) // until killed
		return
	}
	victim := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	victim.Env = append(os.Environ(), mark+"=1")
	_, err1 := victim.StdinPipe()
	stdout, err2 := victim.StdoutPipe()
	if err := errors.Join(err1, err2, victim.Start()); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(stdout).ReadString('\n')
	address = strings.TrimSpace(address)
	if err != nil || !strings.HasPrefix(address, "postgres://") {
		t.Fatalf("the victim says %q (%v), want its server's URL", address, err)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // "signal: killed", as wanted

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for err = error(nil); err == nil; {
		var conn *pgx.Conn
		if conn, err = pgx.Connect(ctx, address); err == nil {
			_ = conn.Close(ctx)
		}
	}
	if ctx.Err() != nil {
		t.Error("the server outlived its test process by 10 s")
	}
}

func execSQL(t testing.TB, database, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func query[T any](t testing.TB, database, sql string) T {
	t.Helper()
	var value T
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return value
}
