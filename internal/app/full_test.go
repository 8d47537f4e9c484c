package app_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/db/dbtest"
)

// fill makes every write to the tables fail as on a full disk; free ends that.
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

// A gateway that starts while the disk is full serves reads, refuses writes, and starts
// its workers when the disk has space again.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	database := dbtest.Postgres(t)
	cfg := dev(t, "data", t.TempDir(), "database", database)
	before := apptest.Run(t, cfg)
	first := payout(before, "before")
	await(before, "/payout/"+first, "COMPLETED")
	before.Stop()

	free := fill(t, database, "nodes", "payins", "payouts", "postings")
	g := apptest.Run(t, cfg)
	g.Must(200, "GET", "/healthz", "")
	wants(g, "/payout/"+first, "status", "COMPLETED")
	for path, body := range map[string]string{"/payin": pixOf, "/payout": payoutOf} {
		if answer := g.Must(503, "POST", path, with(body, "{ref}", "during")); answer.Get("code") != "unavailable" {
			t.Errorf("on a full disk POST %s is answered %s", path, answer.Body)
		}
	}
	free()
	await(g, "/payout/"+payout(g, "after"), "COMPLETED")
	g.Stop()

	// A process that never joined stops in order, too.
	free = fill(t, database, "nodes")
	apptest.Run(t, cfg).Stop()
	free()
}
