package checker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The log is a table of the checker's own in the gateway's database. Triggers write
// each change of a row into it, in the transaction that makes the change: a change that
// is rolled back leaves no line, and one that is committed cannot be missed.

// operation is what happened to a row.
type operation int64

const (
	rowAdded operation = iota + 1
	rowChanged
	rowRewritten // a fixed column was written again
	rowDeleted
)

// separator separates the values of a line.
const separator = "\x1f"

// line is a line of the log.
type line struct {
	seq    int64
	table  tableID
	op     operation
	key    rowKey
	fields string // values, see columns
	blob   []byte
}

// insertion is the statement that logs an operation on a row, which the engine calls
// NEW or OLD.
func (t *watchedTable) insertion(e *engine, id tableID, op operation) string {
	row := *e
	row.row = "NEW."
	if op == rowRewritten || op == rowDeleted {
		row.row = "OLD."
	}
	c := newColumns()
	c.engine = &row
	c.of(op)
	t.columns(c)
	column := func(name string) string {
		if name == "" {
			return "''"
		}
		return row.row + name
	}
	fields, blob := "''", "''"
	if len(c.values) > 0 {
		fields = "concat_ws('" + separator + "', " + strings.Join(c.values, ", ") + ")"
	}
	if c.blob != "" {
		blob = c.blob
	}
	return "INSERT INTO checker_log (table_id, operation, merchant, id, fields, blob) VALUES (" + strings.Join([]string{
		strconv.Itoa(int(id)), strconv.Itoa(int(op)), column(t.merchant), column(t.id), fields, blob,
	}, ", ") + ")"
}

// triggers are the statements that make the engine log the table's changes.
func (t *watchedTable) triggers(e *engine, id tableID) []string {
	c := newColumns()
	c.engine = e
	c.mutable.active = true
	t.columns(c)
	list := []string{
		e.trigger("added", "INSERT", t.name, t.insertion(e, id, rowAdded)),
		e.trigger("deleted", "DELETE", t.name, t.insertion(e, id, rowDeleted)),
	}
	rewritten := "UPDATE"
	if len(c.names) > 0 {
		list = append(list, e.trigger("changed", "UPDATE", t.name, t.insertion(e, id, rowChanged)))
		rewritten = "UPDATE OF " + strings.Join(t.fixedColumns(e), ", ")
	}
	return append(list, e.trigger("rewritten", rewritten, t.name, t.insertion(e, id, rowRewritten)))
}

// fixedColumns are the columns that are never written again.
func (t *watchedTable) fixedColumns(e *engine) []string {
	c := newColumns()
	c.engine = e
	c.key.active, c.fixed.active = true, true
	t.columns(c)
	list := append(c.names, t.unread...)
	for _, name := range []string{t.merchant, t.id} {
		if name != "" {
			list = append(list, name)
		}
	}
	return list
}

// Install makes the database of an engine ("sqlite" or "postgres") log its changes.
// The schema must exist and all tables be empty. It is called once for a database.
func Install(ctx context.Context, db *sql.DB, engineName string) error {
	e, err := engineOf(engineName)
	if err != nil {
		return err
	}
	statements := []string{e.table}
	for i := range tables {
		statements = append(statements, tables[i].triggers(e, tableID(i))...)
	}
	for _, text := range append(statements, e.prepare...) {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("checker: install the log: %w: %s", err, text)
		}
	}
	return nil
}

const readLog = "SELECT seq, table_id, operation, merchant, id, fields, blob FROM checker_log WHERE seq > $1 ORDER BY seq"

// readLines reads the lines after the last one that was read.
func (c *Checker) readLines(ctx context.Context) (err error) {
	rows, err := c.log.QueryContext(context.WithoutCancel(ctx), c.seq)
	if err != nil {
		return fmt.Errorf("checker: read the log: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var merchant, id, blob sql.RawBytes
	for rows.Next() {
		var l line
		if err := rows.Scan(&c.seq, &l.table, &l.op, &merchant, &id, &l.fields, &blob); err != nil {
			return fmt.Errorf("checker: read the log: %w", err)
		}
		l.seq, l.key = c.seq, rowKey{rowIDOf(merchant), rowIDOf(id)}
		if len(blob) > 0 {
			l.blob = append([]byte(nil), blob...)
		}
		c.lines = append(c.lines, l)
	}
	return rows.Err()
}
