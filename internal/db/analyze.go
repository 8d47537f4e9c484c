package db

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// analyzeFrom is the number of rows from which a table's plan matters.
const analyzeFrom = 1000

// AnalyzeGrown runs ANALYZE on PostgreSQL tables that have grown fourfold since the
// last one, and returns how many. A plan made for an empty table reads the complete
// table, or all rows of a merchant, until the next ANALYZE. Autovacuum checks only
// once a minute; meanwhile a busy merchant creates a hundred thousand rows. Tables of
// other owners are skipped, and so are locked tables until the next call. SQLite has
// fixed statistics: see setStatistics.
func (d *DB) AnalyzeGrown(ctx context.Context) (n int, err error) {
	if !d.dialect.bulk() {
		return 0, nil
	}
	rows, err := d.Query(ctx, `SELECT c.relname FROM pg_stat_user_tables t JOIN pg_class c ON c.oid = t.relid
		WHERE t.schemaname = current_schema() AND t.n_live_tup >= $1 AND t.n_live_tup >= 4 * c.reltuples AND pg_has_role(c.relowner, 'USAGE')`, analyzeFrom)
	tables, err := Collect(rows, err, func(r Scanner) (name string, err error) { return name, r.Scan(&name) })
	if err != nil {
		return 0, d.ReadError("sizes of tables", err)
	}
	for _, name := range tables {
		if _, err := d.writer.ExecContext(ctx, "ANALYZE (SKIP_LOCKED) "+pgx.Identifier{name}.Sanitize()); err != nil {
			return n, fmt.Errorf("analyze %s: %w", name, d.translate(err))
		}
		n++
	}
	return n, nil
}
