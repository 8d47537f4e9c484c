package apptest

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver
)

// rowsQuery counts the rows of each table; cases, events and postings by kind or type, and counters of
// limits by key only: how many a payout has otherwise depends on the time of day.
const rowsQuery = `SELECT 'payins', count(*) FROM payins UNION ALL SELECT 'payouts', count(*) FROM payouts UNION ALL SELECT 'receipts', count(*) FROM receipts
	UNION ALL SELECT 'receipt_claims', count(*) FROM receipt_claims UNION ALL SELECT 'disputes', count(*) FROM disputes UNION ALL SELECT 'receivables', count(*) FROM receivables
	UNION ALL SELECT 'notices', count(*) FROM notices UNION ALL SELECT 'deliveries', count(*) FROM deliveries
	UNION ALL SELECT 'payout_batches', count(*) FROM payout_batches UNION ALL SELECT 'refunds', count(*) FROM refunds UNION ALL SELECT 'refund_parts', count(*) FROM refund_parts
	UNION ALL SELECT 'dispute_answers', count(*) FROM dispute_answers UNION ALL SELECT 'merchants', count(*) FROM merchants UNION ALL SELECT 'credentials', count(*) FROM credentials
	UNION ALL SELECT 'approvals', count(*) FROM approvals UNION ALL SELECT 'limit_counters', count(*) FROM limit_counters WHERE length(key_hash) > 0
	UNION ALL SELECT 'case ' || kind, count(*) FROM cases GROUP BY kind
	UNION ALL SELECT 'event ' || type, count(*) FROM events GROUP BY type
	UNION ALL SELECT 'entry ' || kind, count(DISTINCT entry_id) FROM postings GROUP BY kind`

// Rows is the number of rows in the database by the names of rowsQuery.
type Rows map[string]int

// Rows counts the rows in the database.
func (g *Installed) Rows(t testing.TB) Rows {
	t.Helper()
	found, err := g.SQL.QueryContext(context.Background(), rowsQuery)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = found.Close() }()
	rows := Rows{}
	for found.Next() {
		var name string
		var n int
		if err := found.Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		rows[name] = n
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// openSQL opens the gateway's database for reading.
func (g *Installed) openSQL(t testing.TB) {
	t.Helper()
	driver, source := "sqlite", "file:"+g.Database+"?_pragma=busy_timeout(5000)&_pragma=query_only(1)"
	if g.Engine == "postgres" {
		driver, source = "pgx", g.Database
	}
	var err error
	if g.SQL, err = sql.Open(driver, source); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.SQL.Close() })
}

// FeedDue makes the lists of one kind due that no process is reading.
func (g *Installed) FeedDue(t testing.TB, feed string) {
	t.Helper()
	to := g.SQL
	if g.Engine != "postgres" { // whose connections only read
		var err error
		if to, err = sql.Open("sqlite", "file:"+g.Database+"?_pragma=busy_timeout(5000)"); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = to.Close() }()
	}
	if _, err := to.ExecContext(t.Context(), FeedDue, feed); err != nil {
		t.Fatal(err)
	}
}

// FeedDue is the statement of [Installed.FeedDue].
const FeedDue = "UPDATE feeds SET next_at = 1 WHERE feed = $1 AND next_at > 0"

// Since returns the difference to an earlier count, such as "event payin.paid 1,
// payins 1"; "" if there is none.
func (r Rows) Since(before Rows) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if n := r[name] - before[name]; n != 0 {
			list = append(list, fmt.Sprintf("%s %d", name, n))
		}
	}
	return strings.Join(list, ", ")
}
