package store_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// recordMany records n more notices, and has the server count them at once.
func recordMany(t *testing.T, s *store.Store, from, n int) {
	t.Helper()
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		list := make([]store.Notice, n)
		for i := range list {
			list[i] = store.Notice{Processor: "bank", ID: fmt.Sprint(from + i)}
		}
		_, err := tx.RecordNotices(t.Context(), list)
		if err == nil && s.Engine() == "postgres" {
			_, err = tx.Exec(t.Context(), "SELECT pg_stat_force_next_flush()")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ownStatistics keeps the server's daemon from the table of notices.
func ownStatistics(t *testing.T, s *store.Store) {
	t.Helper()
	if _, err := s.Reader().ExecContext(t.Context(), "ALTER TABLE notices SET (autovacuum_enabled = false)"); err != nil {
		t.Fatal(err)
	}
}

func analyzed(t *testing.T, s *store.Store, what string, want int) {
	t.Helper()
	n, err := s.AnalyzeGrown(t.Context())
	if n != want || err != nil {
		t.Errorf("%s: the planner was told of %d tables, %v, want %d", what, n, err, want)
	}
}

// The planner is told of a table when it has grown fourfold, and not again
// before it has grown as much once more.
func TestGrownTablesAreTold(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Prepare(t, "postgres", env.System(env.OutboundOptions{})))
	ownStatistics(t, s)
	analyzed(t, s, "nothing is there", 0)
	recordMany(t, s, 0, 900)
	analyzed(t, s, "few rows", 0)
	recordMany(t, s, 900, 100)
	analyzed(t, s, "a thousand rows", 1)
	analyzed(t, s, "the same again", 0)
	recordMany(t, s, 1000, 2900)
	analyzed(t, s, "not yet fourfold", 0)
	recordMany(t, s, 3900, 100)
	analyzed(t, s, "fourfold", 1)
	analyzed(t, s, "fourfold, again", 0)
	var plan []string
	rows, err := s.Reader().QueryContext(t.Context(), "EXPLAIN SELECT * FROM notices")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, line)
	}
	if err := rows.Err(); err != nil || !strings.Contains(plan[0], "rows=4000 ") {
		t.Errorf("the planner expects %q, %v", plan, err)
	}
}

// Who looks while another changes the table, or tells the planner itself, waits
// for nobody; nor is a table of the same name in another schema looked at.
func TestGrownTablesKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Prepare(t, "postgres", env.System(env.OutboundOptions{})))
	ownStatistics(t, s)
	ctx := t.Context()
	_, err := s.Reader().ExecContext(ctx, `CREATE SCHEMA aside; CREATE TABLE aside.grown (id BIGINT) WITH (autovacuum_enabled = false)`)
	if err == nil {
		_, err = s.Reader().ExecContext(ctx, `INSERT INTO aside.grown SELECT generate_series(1, 5000)`)
	}
	if err != nil {
		t.Fatal(err)
	}
	recordMany(t, s, 0, 1000)
	err = s.Write(ctx, func(tx *store.Tx) error {
		if _, err := tx.Exec(ctx, "LOCK TABLE notices IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
			return err
		}
		if _, err := s.AnalyzeGrown(ctx); err != nil {
			t.Errorf("while another has the table: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := s.AnalyzeGrown(ctx); err != nil {
				t.Errorf("several at once: %v", err)
			}
		})
	}
	all.Wait()
	analyzed(t, s, "when they have", 0)
}

// A role that only uses the tables leaves them to their owner.
func TestGrownTablesOfAnotherAreLeft(t *testing.T) {
	t.Parallel()
	o := storetest.Prepare(t, "postgres", env.System(env.OutboundOptions{}))
	o.Connections = 1
	s := storetest.Open(t, o)
	ownStatistics(t, s)
	recordMany(t, s, 0, 1000)
	var clerk string // roles are of all databases
	first(t, s.Reader().QueryRowContext(t.Context(), "SELECT 'clerk_' || current_database()").Scan(&clerk))
	for _, text := range []string{
		"CREATE ROLE " + clerk, "GRANT USAGE ON SCHEMA public TO " + clerk,
		"GRANT ALL ON ALL TABLES IN SCHEMA public TO " + clerk, "SET ROLE " + clerk,
	} {
		if _, err := s.Reader().ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	analyzed(t, s, "as somebody else", 0)
	if _, err := s.Reader().ExecContext(t.Context(), "RESET ROLE"); err != nil {
		t.Fatal(err)
	}
	analyzed(t, s, "as their owner", 1)
}

// SQLite is told when its schema is made.
func TestGrownTablesOfSQLite(t *testing.T) {
	t.Parallel()
	s, _ := lite(t)
	recordMany(t, s, 0, 2000)
	analyzed(t, s, "two thousand rows", 0)
}
