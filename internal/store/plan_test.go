package store_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// large are the tables that grow with merchants' orders.
var large = []string{
	"payins", "payouts", "payout_sends", "postings", "balances", "event_counters", "events", "deliveries", "delivery_attempts",
	"receipts", "receipt_claims", "disputes", "notices", "cases", "credentials", "found_transfers", "charges", "consents", "limit_counters", "approvals", "receivables", "refunds", "refund_parts", "dispute_answers",
	"payout_batches", "search_terms", "search_positions",
}

// ofOneMerchant are the statements that may begin at a merchant's first row: they
// list its rows in the order of their key, filtered by nothing; or they read its few
// accounts or its one counter.
var ofOneMerchant = regexp.MustCompile(`WHERE t\.merchant_id = \$1 ORDER BY id DESC LIMIT|(FROM|UPDATE) balances|FROM event_counters`)

// pulledForward are the statements that look at all scheduled rows, when a process
// begins or its clock was set back: their cost is that of the queues, not of the
// tables. And the one that copies the counters of all merchants, once per restore.
var pulledForward = regexp.MustCompile(`^INSERT INTO event_histories|^UPDATE \w+ SET next_at = (\$1|CASE WHEN next_at - \$2 > \$1 THEN next_at - \$2 ELSE \$1 END) WHERE next_at > \$1 AND next_at > 0`)

// firstOfQueue is the step that reads the first row of a queue in the order of its
// index, to skip from merchant to merchant, or from account to account.
var firstOfQueue = regexp.MustCompile(`^SCAN \w+ USING (COVERING )?INDEX (payouts_to_send|payouts_to_look_up|deliveries_due|notices_due|charges_due|refund_parts_to_send|refund_parts_to_look_up|dispute_answers_due)$`)

// A statement of a request or a worker finds its rows by an index: with a year of
// orders in the table it must cost as much as with ten.
func TestStatementsUseAnIndex(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		s := storetest.Open(t, storetest.Prepare(t, "sqlite", systemEnv()))
		runExercise(t, s)
		texts := s.DB().Statements()
		wantEveryStatement(t, texts, "sqlite")
		for _, text := range texts {
			for _, step := range sqlitePlan(t, s, text) {
				checkSQLiteStep(t, text, step)
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		o := storetest.Prepare(t, "postgres", systemEnv())
		o.Connections = 1 // which then has prepared every statement
		s := storetest.Open(t, o)
		runExercise(t, s)
		fillPostgres(t, s)
		plans := postgresPlans(t, s)
		wantEveryStatement(t, slices.Collect(maps.Keys(plans)), "postgres")
		for text, plan := range plans {
			for _, table := range regexp.MustCompile(`Seq Scan on (\w+)`).FindAllStringSubmatch(plan, -1) {
				if slices.Contains(large, table[1]) && !pulledForward.MatchString(text) {
					t.Errorf("%s\n%s", text, plan)
				}
			}
		}
	})
}

// checkSQLiteStep refuses a step that reads a large table, or all rows that a
// merchant has in it.
func checkSQLiteStep(t *testing.T, text, step string) {
	t.Helper()
	words := strings.Fields(step)
	if len(words) < 2 || !slices.Contains(large, tableOfAlias(text, words[1])) {
		return
	}
	switch {
	case strings.Contains(step, " INDEX cases_stops_account"): // of few open cases
	case words[0] == "SCAN" && !pulledForward.MatchString(text) && !(firstOfQueue.MatchString(step) && strings.Contains(text, "WITH RECURSIVE queue (")):
		t.Errorf("%s: %s", step, text)
	case strings.Contains(step, " INDEX cases_open "), strings.Contains(step, " INDEX cases_stops "): // a merchant has few open cases
	case strings.Contains(text, "WITH RECURSIVE queue (") && strings.Contains(step, ")>(?"): // SQLite begins at the equal rows, and reads all of them
		t.Errorf("all payouts of a merchant and processor, %s: %s", step, text)
	case strings.HasSuffix(step, "(merchant_id=?)") && !ofOneMerchant.MatchString(text):
		t.Errorf("all rows of a merchant, %s: %s", step, text)
	}
}

// tableOfAlias is the table that a name of one or two letters stands for in a
// statement.
func tableOfAlias(text, name string) string {
	found := regexp.MustCompile(`(?:FROM|JOIN|UPDATE) (\w+)(?: AS)? ` + regexp.QuoteMeta(name) + `\b`).FindStringSubmatch(text)
	if len(name) > 2 || found == nil {
		return name
	}
	return found[1]
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// isStatement matches statements on rows, unlike BEGIN.
var isStatement = regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|WITH)\b`)

func sqlitePlan(t *testing.T, s *store.Store, text string) []string {
	t.Helper()
	if !isStatement.MatchString(text) {
		return nil
	}
	highest := 0
	for _, match := range parameter.FindAllStringSubmatch(text, -1) {
		highest = max(highest, atoi(t, match[1]))
	}
	rows, err := s.DB().Query(t.Context(), "EXPLAIN QUERY PLAN "+text, make([]any, highest)...)
	steps, err := db.Collect(rows, err, func(r db.Scanner) (detail string, err error) {
		var id, parent, unused int
		return detail, r.Scan(&id, &parent, &unused, &detail)
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return steps
}

// postgresPlans explains every statement that the one connection prepared, as
// the server plans it for tables that have grown.
func postgresPlans(t *testing.T, s *store.Store) map[string]string {
	t.Helper()
	plans := map[string]string{}
	write(t, s, func(tx *store.AdminTx) error {
		read := func(text string) []string {
			rows, err := tx.Query(t.Context(), text, pgx.QueryExecModeSimpleProtocol)
			list, err := db.Collect(rows, err, func(r db.Scanner) (line string, err error) { return line, r.Scan(&line) })
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return list
		}
		if _, err := tx.Exec(t.Context(), "SET LOCAL plan_cache_mode = force_generic_plan"); err != nil {
			return err
		}
		for _, line := range read(`SELECT name || ' ' || coalesce(array_length(parameter_types, 1), 0) || ' ' || statement FROM pg_prepared_statements
			WHERE statement !~ 'pg_'`) {
			parts := strings.SplitN(line, " ", 3)
			if !isStatement.MatchString(parts[2]) {
				continue
			}
			call := parts[0]
			if n := atoi(t, parts[1]); n > 0 {
				call += "(" + strings.TrimSuffix(strings.Repeat("NULL, ", n), ", ") + ")"
			}
			plans[parts[2]] = strings.Join(read("EXPLAIN EXECUTE "+call), "\n")
		}
		return nil
	})
	return plans
}
