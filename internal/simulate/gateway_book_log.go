package simulate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The log is a table of the checker's own in the gateway's database. Triggers
// write each change of a row into it, in the transaction that makes the change:
// what was rolled back leaves no line, what was committed cannot hide.

// rowKind names a table of the gateway's.
type rowKind int64

const (
	rowPayin rowKind = iota + 1
	rowPayout
	rowSend
	rowPosting
	rowBalance
	rowEvent
	rowDelivery
	rowAttempt
	rowReceipt
	rowClaim
	rowDispute
	rowNotice
	rowException
)

// rowOp is what happened to a row.
type rowOp int64

const (
	rowAdded rowOp = iota + 1
	rowChanged
	rowFrozen // a column was written that is never to be written again
	rowDeleted
)

// rowID is an id as the database stores it.
type rowID [16]byte

const hexDigits = "0123456789abcdef"

// String is the id as the API shows it.
func (id rowID) String() string {
	text := make([]byte, 0, 36)
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		text = append(text, hexDigits[b>>4], hexDigits[b&15])
	}
	return string(text)
}

func rowIDOf(b []byte) (id rowID) {
	if len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// rowKey names a row of a merchant's.
type rowKey struct{ merchant, id rowID }

// rowChange is a line of the log. What n and t hold, each watched table says.
type rowChange struct {
	kind  rowKind
	op    rowOp
	key   rowKey
	other rowID
	n     [8]int64
	t     [6]string
	data  []byte
}

// watchedTable is a table whose changes are logged. added and changed are
// columns or expressions for the log's n, t, other and data; frozen are columns
// that are never written again.
type watchedTable struct {
	kind           rowKind
	name           string
	merchant, id   string // "" where the table has none
	added, changed logColumns
	frozen         string
}

type logColumns struct {
	other, data string
	n, t        []string
}

// appendOnly is the frozen part of a table whose rows never change at all.
const appendOnly = "*"

var watchedTables = []watchedTable{
	{kind: rowPayin, name: "payins", merchant: "merchant_id", id: "id",
		added: logColumns{
			n: []string{"version", "paid_amount", "refunded_amount", "fee", "next_at", "created_at", "amount", "length(details)"},
			t: []string{"status", "external_id", "reference_id", "method", "processor", "webhook_url"}},
		changed: logColumns{
			n: []string{"version", "paid_amount", "refunded_amount", "fee", "next_at", "updated_at", "webhook_ended", "late"},
			t: []string{"status", "failure", "end_to_end_id", "length(details)"}},
		frozen: "merchant_id, id, external_id, reference_id, method, amount, processor, webhook_url, personal, fingerprint, created_at"},
	{kind: rowPayout, name: "payouts", merchant: "merchant_id", id: "id",
		added: logColumns{
			n: []string{"version", "returned_amount", "amount", "fee", "next_at", "created_at"},
			t: []string{"status", "external_id", "reference_id", "step", "processor", "webhook_url"}},
		changed: logColumns{other: "claimed_by",
			n: []string{"version", "returned_amount", "lookups", "completed_at", "next_at", "updated_at", "webhook_ended"},
			t: []string{"status", "failure", "end_to_end_id", "step"}},
		frozen: "merchant_id, id, external_id, reference_id, amount, fee, processor, pix_key_type, webhook_url, beneficiary, fingerprint, idempotency_key, created_at"},
	{kind: rowSend, name: "payout_sends", merchant: "merchant_id", id: "payout_id",
		added:   logColumns{other: "node", data: "body_hash", n: []string{"number", "created_at", "deadline"}, t: []string{"outcome", "processor"}},
		changed: logColumns{n: []string{"number", "ended_at", "deadline"}, t: []string{"outcome", "evidence"}},
		frozen:  "merchant_id, payout_id, number, processor, body_hash, node, created_at"},
	{kind: rowPosting, name: "postings", merchant: "merchant_id", id: "entry_id",
		added:  logColumns{other: "subject_id", n: []string{"line", "amount", "balance_after", "created_at"}, t: []string{"kind", "account"}},
		frozen: appendOnly},
	{kind: rowBalance, name: "balances", merchant: "merchant_id",
		added:   logColumns{n: []string{"balance", "version"}, t: []string{"account"}},
		changed: logColumns{n: []string{"balance", "version"}, t: []string{"account"}},
		frozen:  "merchant_id, account"},
	{kind: rowEvent, name: "events", merchant: "merchant_id", id: "id",
		added:  logColumns{other: "subject_id", data: "body", n: []string{"number", "version", "created_at"}, t: []string{"type"}},
		frozen: appendOnly},
	{kind: rowDelivery, name: "deliveries", merchant: "merchant_id", id: "id",
		added:   logColumns{other: "subject_id", n: []string{"event_number", "attempts", "next_at", "length(claimed_by)", "created_at"}, t: []string{"state", "url"}},
		changed: logColumns{n: []string{"event_number", "attempts", "next_at", "length(claimed_by)", "updated_at"}, t: []string{"state"}},
		frozen:  "merchant_id, id, event_number, subject_id, url, created_at"},
	{kind: rowAttempt, name: "delivery_attempts", merchant: "merchant_id", id: "delivery_id",
		added:   logColumns{n: []string{"number", "status", "ended_at", "created_at"}, t: []string{"error"}},
		changed: logColumns{n: []string{"number", "status", "ended_at"}, t: []string{"error"}},
		frozen:  "merchant_id, delivery_id, number, created_at"},
	{kind: rowReceipt, name: "receipts", merchant: "merchant_id", id: "id",
		added:  logColumns{other: "payin_id", n: []string{"amount", "applied", "paid_at", "created_at"}, t: []string{"processor", "external_id", "order_id", "end_to_end_id"}},
		frozen: appendOnly},
	{kind: rowClaim, name: "receipt_claims", merchant: "merchant_id", id: "receipt_id",
		added: logColumns{t: []string{"processor", "external_id"}}, frozen: appendOnly},
	{kind: rowDispute, name: "disputes", merchant: "merchant_id", id: "id",
		added:   logColumns{other: "payin_id", n: []string{"amount", "created_at"}, t: []string{"state", "external_id"}},
		changed: logColumns{n: []string{"amount", "updated_at"}, t: []string{"state"}},
		frozen:  "merchant_id, id, payin_id, processor, external_id, amount, created_at"},
	{kind: rowNotice, name: "notices",
		added:   logColumns{n: []string{"next_at", "length(claimed_by)"}, t: []string{"state", "processor", "notice_id"}},
		changed: logColumns{n: []string{"next_at", "length(claimed_by)"}, t: []string{"state", "processor", "notice_id", "problem"}},
		frozen:  "processor, notice_id, headers, body, received_at"},
	{kind: rowException, name: "exceptions", merchant: "merchant_id", id: "id",
		added:   logColumns{other: "subject_id", n: []string{"amount", "created_at"}, t: []string{"kind", "detail"}},
		changed: logColumns{n: []string{"closed_at"}},
		frozen:  "merchant_id, id, kind, subject_id, amount, detail, created_at"},
}

// insertion is the statement that logs a change of a row, which the engine
// calls NEW or OLD.
func (w *watchedTable) insertion(op rowOp, row string, c logColumns) string {
	columns := []string{"kind", "op"}
	values := []string{strconv.Itoa(int(w.kind)), strconv.Itoa(int(op))}
	set := func(column, expression string) {
		if expression == "" {
			return
		}
		columns = append(columns, column)
		if inner, ok := strings.CutPrefix(expression, "length("); ok {
			values = append(values, "length("+row+"."+inner)
		} else {
			values = append(values, row+"."+expression)
		}
	}
	set("merchant", w.merchant)
	set("id", w.id)
	set("other", c.other)
	set("data", c.data)
	for i, n := range c.n {
		set(fmt.Sprintf("n%d", i), n)
	}
	for i, t := range c.t {
		set(fmt.Sprintf("t%d", i), t)
	}
	return "INSERT INTO gateway_log (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")"
}

// triggers are the statements that make the engine log the table's changes.
func (w *watchedTable) triggers(make func(name, when, table, insertion string) string) []string {
	list := []string{
		make("added", "INSERT", w.name, w.insertion(rowAdded, "NEW", w.added)),
		make("deleted", "DELETE", w.name, w.insertion(rowDeleted, "OLD", w.keyColumns())),
	}
	frozen := "UPDATE OF " + w.frozen
	if w.frozen == appendOnly {
		frozen = "UPDATE"
	} else {
		list = append(list, make("changed", "UPDATE", w.name, w.insertion(rowChanged, "NEW", w.changed)))
	}
	return append(list, make("frozen", frozen, w.name, w.insertion(rowFrozen, "OLD", w.keyColumns())))
}

// keyColumns are the first columns, as far as they name the row.
func (w *watchedTable) keyColumns() logColumns {
	switch w.kind {
	case rowBalance, rowNotice:
		return logColumns{t: w.added.t}
	case rowSend, rowAttempt, rowPosting, rowEvent:
		return logColumns{n: w.added.n[:1]}
	default:
		return logColumns{}
	}
}

// installBook lets the database of an engine ("sqlite" or "postgres"), whose
// schema is in place, log its changes. It is done once for a database.
func installBook(ctx context.Context, db *sql.DB, engine string) error {
	table, trigger := sqliteLog, sqliteTrigger
	if engine == "postgres" {
		table, trigger = postgresLog, postgresTrigger
	}
	statements := []string{table}
	for i := range watchedTables {
		statements = append(statements, watchedTables[i].triggers(trigger)...)
	}
	if engine == "postgres" {
		statements = append(statements, postgresSamePlans)
	}
	for _, text := range statements {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("simulate: log of changes: %w: %s", err, text)
		}
	}
	return nil
}

const readLog = `SELECT seq, kind, op, merchant, id, other, data, n0, n1, n2, n3, n4, n5, n6, n7, t0, t1, t2, t3, t4, t5
	FROM gateway_log WHERE seq > $1 ORDER BY seq`

// changes reads what the log holds beyond the last line that was read.
func (g *gatewayBook) changes(ctx context.Context) (err error) {
	rows, err := g.log.QueryContext(context.WithoutCancel(ctx), g.seq)
	if err != nil {
		return fmt.Errorf("simulate: log of changes: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var merchant, id, other, data sql.RawBytes
	for rows.Next() {
		var c rowChange
		err := rows.Scan(&g.seq, &c.kind, &c.op, &merchant, &id, &other, &data,
			&c.n[0], &c.n[1], &c.n[2], &c.n[3], &c.n[4], &c.n[5], &c.n[6], &c.n[7],
			&c.t[0], &c.t[1], &c.t[2], &c.t[3], &c.t[4], &c.t[5])
		if err != nil {
			return fmt.Errorf("simulate: log of changes: %w", err)
		}
		c.key = rowKey{rowIDOf(merchant), rowIDOf(id)}
		c.other, c.data = rowIDOf(other), append([]byte(nil), data...)
		g.history = append(g.history, c)
	}
	return rows.Err()
}
