package store_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/store"
)

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// few are the tables of which a merchant has few rows, so that they grow with the
// number of merchants.
var few = []string{"balances", "event_counters"}

// fillPostgres makes three thousand copies of each row of the large tables, of fifty
// merchants or of as many, and updates the planner's statistics. Values of unique
// keys differ between the copies.
func fillPostgres(t *testing.T, s *store.Store) {
	t.Helper()
	write(t, s, func(tx *store.AdminTx) error {
		run := func(text string) {
			t.Helper()
			if _, err := tx.Exec(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		run("SET LOCAL session_replication_role = replica") // the copies of foreign keys name no row
		for _, table := range large {
			run(fmt.Sprintf("INSERT INTO %s SELECT %s FROM %s, generate_series(1, 3000) g ON CONFLICT DO NOTHING", table, copies(t, tx, table), table))
		}
		return nil
	})
	write(t, s, func(tx *store.AdminTx) error { _, err := tx.Exec(t.Context(), "ANALYZE"); return err })
}

// copies are the expressions of a table's columns in its copies.
func copies(t *testing.T, tx *store.AdminTx, table string) string {
	t.Helper()
	type column struct {
		name, kind string
		unique     bool
	}
	rows, err := tx.Query(t.Context(), `SELECT column_name, data_type, EXISTS (SELECT 1 FROM pg_index i JOIN pg_attribute a
			ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) WHERE i.indrelid = $1::text::regclass AND i.indisunique AND a.attname = column_name)
		FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position`, table)
	columns, err := db.Collect(rows, err, func(r db.Scanner) (c column, err error) { return c, r.Scan(&c.name, &c.kind, &c.unique) })
	must(t, err)
	var list []string
	for _, c := range columns {
		value := c.name
		switch {
		case c.name == "merchant_id" && slices.Contains(few, table):
			value = "decode(md5(merchant_id::text || g), 'hex')"
		case slices.Contains(few, table):
		case c.name == "merchant_id":
			value = "decode(md5(merchant_id::text || g % 50), 'hex')"
		case c.unique && c.kind == "bytea", c.name == "payin_id": // a pay-in has few receipts and disputes
			value = fmt.Sprintf("decode(md5(%s::text || g), 'hex')", c.name)
		case c.unique && c.kind == "text":
			value = c.name + " || g"
		case c.unique:
			value = c.name + " + g"
		}
		list = append(list, value)
	}
	return strings.Join(list, ", ")
}
