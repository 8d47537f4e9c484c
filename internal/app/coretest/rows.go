package coretest

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/payment"
)

// tables are the tables that operations write, with their keys and the columns shown of
// a new row.
// Balances, counters of events and claims of receipts are left out: they follow from the
// others, which [Gateway.WantProven] checks.
var tables = []struct{ name, key, shown string }{
	{"installation", "singleton", ""},
	{"nodes", "id", ""},
	{"settings", "name", "name value"},
	{"feeds", "account feed", "feed cursor"},
	{"payins", "id", "status amount"},
	{"payouts", "id", "status step amount"},
	{"payout_batches", "id", "items amount version"},
	{"payout_sends", "payout_id number", "number outcome"},
	{"charges", "payin_id number", "state outcome claimed_by"},
	{"refunds", "id", "status origin amount"},
	{"refund_parts", "refund_id number", "number step amount"},
	{"receipts", "id", "amount applied"},
	{"disputes", "id", "status taken"},
	{"dispute_answers", "dispute_id number", "number action step"},
	{"receivables", "id", "state installment gross fee taken"},
	{"cases", "id", "kind amount params"},
	{"decisions", "merchant_id number", "action resolution actor params"},
	{"notices", "processor notice_id", "state"},
	{"found_transfers", "external_id", "amount"},
	{"consents", "account external_id", "transfer_id state"},
	{"approvals", "payout_id number", "number action actor reason"},
	{"limit_counters", "merchant_id counter day key_hash", "counter day amount payouts"},
	{"postings", "entry_id line", "kind account amount"},
	{"events", "merchant_id number", "type"},
	{"webhook_endpoints", "id", "enabled failures"},
	{"deliveries", "id", "state claimed_by"},
	{"delivery_attempts", "delivery_id number", "status"},
}

// row is a row of a table: column names and readable values.
type row map[string]string

// snapshot is all rows, by table and key.
type snapshot []map[string]row

func (g *Gateway) connect() *sql.DB {
	g.T.Helper()
	if g.raw != nil {
		return g.raw
	}
	driver := "sqlite"
	if g.Engine == "postgres" {
		driver = "pgx"
	}
	var err error
	g.raw, err = sql.Open(driver, g.database.Database)
	g.Must(err)
	g.T.Cleanup(func() { g.Must(g.raw.Close()) })
	return g.raw
}

func (g *Gateway) snapshot() snapshot {
	g.T.Helper()
	d := g.connect()
	all := newSnapshot()
	for i, table := range tables {
		rows, err := d.QueryContext(g.T.Context(), "SELECT * FROM "+table.name)
		g.Must(err)
		columns, err := rows.Columns()
		g.Must(err)
		for rows.Next() {
			values, dest := make([]any, len(columns)), make([]any, len(columns))
			for j := range values {
				dest[j] = &values[j]
			}
			g.Must(rows.Scan(dest...))
			stored := map[string]any{}
			for j, name := range columns {
				stored[name] = values[j]
			}
			all.add(i, stored, g.Clock.Now(), g.Node.ID())
		}
		g.Must(errors.Join(rows.Err(), rows.Close()))
	}
	return all
}

func newSnapshot() snapshot {
	all := make(snapshot, len(tables))
	for i := range all {
		all[i] = map[string]row{}
	}
	return all
}

// add adds a row of a table, as it is stored.
func (s snapshot) add(table int, stored map[string]any, now time.Time, node payment.ID) {
	r := row{}
	for column, v := range stored {
		r[column] = text(column, v, now, node)
	}
	var key strings.Builder
	for name := range strings.FieldsSeq(tables[table].key) {
		fmt.Fprintf(&key, "%020v ", stored[name])
	}
	s[table][key.String()] = r
}

// text formats a value for tests: times relative to now, nodes as "this" or "other".
func text(column string, v any, now time.Time, node payment.ID) string {
	switch v := v.(type) {
	case int64:
		if !strings.HasSuffix(column, "_at") && column != "deadline" && column != "failing_since" && column != "previous_until" {
			return strconv.FormatInt(v, 10)
		}
		switch d := time.UnixMicro(v).Sub(now); {
		case v == 0:
			return "-"
		case d == 0:
			return "now"
		case d > 0:
			return "in " + d.String()
		default:
			return (-d).String() + " ago"
		}
	case []byte:
		switch {
		case column != "claimed_by" && column != "node":
			return hex.EncodeToString(v)
		case len(v) == 0:
			return "-"
		case bytes.Equal(v, node[:]):
			return "this"
		default:
			return "other"
		}
	case string:
		if column == "params" {
			return strings.Join(members("{}", v), " ")
		}
		return v
	default:
		panic(fmt.Sprintf("column %s is a %T", column, v))
	}
}

// Changes returns the changes that work makes in the database, one line per row, in the
// order of tables. New rows begin with +, deleted rows with -.
func (g *Gateway) Changes(work func()) string {
	g.T.Helper()
	before := g.snapshot()
	work()
	return before.changes(g.snapshot())
}

func (s snapshot) changes(after snapshot) string {
	var lines []string
	for i, table := range tables {
		keys := maps.Clone(s[i])
		maps.Copy(keys, after[i])
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			was, is := s[i][key], after[i][key]
			var line []string
			switch {
			case is == nil:
				line = []string{"-" + table.name}
			case was == nil:
				line = []string{"+" + table.name}
				for column := range strings.FieldsSeq(table.shown) {
					if is[column] != "" {
						line = append(line, is[column])
					}
				}
			default:
				line = append([]string{table.name}, difference(was, is)...)
			}
			if was == nil || is == nil || len(line) > 1 {
				lines = append(lines, strings.Join(line, " "))
			}
		}
	}
	return strings.Join(lines, "\n")
}

// difference lists the changed columns of a row; for JSON documents the changed members.
func difference(was, is row) (list []string) {
	for _, column := range slices.Sorted(maps.Keys(is)) {
		if was[column] == is[column] || column == "updated_at" || column == "approval_mac" {
			continue
		}
		if column == "details" {
			list = append(list, members(was[column], is[column])...)
			continue
		}
		list = append(list, fmt.Sprintf("%s:%s→%s", column, was[column], is[column]))
	}
	return list
}

func members(was, is string) (list []string) {
	old, now := map[string]any{}, map[string]any{}
	if json.Unmarshal([]byte(was), &old) != nil || json.Unmarshal([]byte(is), &now) != nil {
		return []string{was + "→" + is}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if text := fmt.Sprint(now[name]); text != fmt.Sprint(old[name]) {
			list = append(list, name+":"+text)
		}
	}
	return list
}

// Lines removes indentation and empty lines, so that a test can compare a literal with
// the result of Changes.
func Lines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// WantProven checks that balances, orders and events are consistent, as the command
// verify does.
func (g *Gateway) WantProven() {
	g.T.Helper()
	for _, merchant := range []payment.ID{g.Merchant.ID, {}} {
		proofs, err := g.Store.Verify(g.T.Context(), merchant)
		g.Must(err)
		for _, p := range proofs {
			if len(p.Defects) > 0 {
				g.T.Errorf("%s: %v", p.Check, p.Defects)
			}
		}
	}
}

// For returns the gateway for a subtest, with a new merchant with a balance of [Opening].
func (g *Gateway) For(t *testing.T) *Gateway {
	t.Helper()
	g.connect() // once for all subtests
	other := *g
	other.T = t
	list, err := g.Store.Merchants(t.Context())
	g.Must(err)
	other.newMerchant(fmt.Sprint(t.Name(), " ", len(list)), Opening)
	return &other
}
