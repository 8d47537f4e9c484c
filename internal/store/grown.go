package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// youngRows is from how many rows on it matters how a table is read.
const youngRows = 1000

// AnalyzeGrown tells a server's planner of tables that have grown fourfold since
// it was told last, and says how many. A plan that was made while a table was
// empty reads all of it, or all of a merchant's rows, and is kept until then; the
// server's own daemon looks once a minute, in which a busy merchant makes a
// hundred thousand rows. A table of somebody else is left to its owner, and one
// that another process or the daemon has under its hands to the next time. SQLite
// is told when the schema is made; see describe.
func (s *Store) AnalyzeGrown(ctx context.Context) (n int, err error) {
	if !s.dialect.remote() {
		return 0, nil
	}
	rows, err := s.query(ctx, `SELECT c.relname FROM pg_stat_user_tables t JOIN pg_class c ON c.oid = t.relid
		WHERE t.schemaname = current_schema() AND t.n_live_tup >= $1 AND t.n_live_tup >= 4 * c.reltuples AND pg_has_role(c.relowner, 'USAGE')`, youngRows)
	tables, err := collect(rows, err, func(r scanner) (name string, err error) { return name, r.Scan(&name) })
	if err != nil {
		return 0, s.readError("sizes of tables", err)
	}
	for _, name := range tables {
		if _, err := s.writer.ExecContext(ctx, "ANALYZE (SKIP_LOCKED) "+pgx.Identifier{name}.Sanitize()); err != nil {
			return n, fmt.Errorf("analyze %s: %w", name, s.translate(err))
		}
		n++
	}
	return n, nil
}
