package app_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/store/storetest"
)

// fill makes every write to the tables fail as it does on a full disk; free
// gives room again.
func fill(t *testing.T, database string, tables ...string) (free func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	exec := func(text string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`)
	for _, table := range tables {
		exec("CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE OR DELETE ON " + table + " FOR EACH STATEMENT EXECUTE FUNCTION disk_full()")
	}
	return func() {
		t.Helper()
		exec("DROP FUNCTION disk_full() CASCADE")
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A gateway that is started while the database takes no writes serves reads,
// refuses the rest, and begins its duties when there is room.
func TestStartOnAFullDisk(t *testing.T) {
	database := storetest.Postgres(t)
	cfg := load(t, config.Dev, nil, "data", t.TempDir(), "database", database)
	before := run(t, cfg)
	first := before.payout("before")
	before.await("/payout/"+first, "COMPLETED")
	before.stop()

	free := fill(t, database, "nodes", "payins", "payouts", "postings")
	g := run(t, cfg)
	g.must(200, "GET", "/healthz", "")
	if p := g.must(200, "GET", "/payout/"+first, ""); p["status"] != "COMPLETED" {
		t.Errorf("what was paid is %v", p)
	}
	for _, kind := range []string{"payin", "payout"} {
		body := strings.NewReplacer("%d", "100", "%q", `"during"`).Replace(map[string]string{"payin": payinBody, "payout": payoutBody}[kind])
		if answer := g.must(503, "POST", "/"+kind, body); answer["code"] != "unavailable" {
			t.Errorf("on a full disk POST /%s is answered %v", kind, answer)
		}
	}
	free()
	g.await("/payout/"+g.payout("after"), "COMPLETED")
	g.stop()

	// One that never came to do anything stops in order, too.
	free = fill(t, database, "nodes")
	run(t, cfg).stop()
	free()
}
