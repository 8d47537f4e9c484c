package db

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Column is a column of a table and its type: bytea, bigint or text.
type Column struct{ Name, Kind string }

// Table is how rows are inserted into a table: one prepared statement per row on
// SQLite, one statement for all rows on PostgreSQL.
type Table struct {
	name    string
	columns []Column
	keys    []Column // identify a row within one call
	keysAt  []int
	one     string
	some    string // for SQLite: someRows rows, one after another
	many    string
}

// someRows is how many rows one INSERT of SQLite adds, if there are as many and all must be new: so
// they cost less than a statement each. More would not cost less.
const someRows = 16

// NewTable builds both texts of an INSERT that skips rows whose unique key is
// taken. keys are the columns by which the rows of one call differ.
func NewTable(name string, keys []string, columns ...Column) *Table {
	t := &Table{name: name, columns: columns}
	names, params, lists := make([]string, len(columns)), make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
		params[i] = fmt.Sprintf("$%d", i+1)
		lists[i] = fmt.Sprintf("$%d::%s[]", i+1, c.Kind)
	}
	for _, key := range keys {
		for i, c := range columns {
			if c.Name == key {
				t.keys, t.keysAt = append(t.keys, c), append(t.keysAt, i)
			}
		}
	}
	if len(t.keys) != len(keys) {
		panic(fmt.Sprintf("db: table %s has no columns %v", name, keys))
	}
	head := "INSERT INTO " + name + " (" + strings.Join(names, ", ") + ") "
	t.one = head + "VALUES (" + strings.Join(params, ", ") + ") ON CONFLICT DO NOTHING"
	row := "(" + strings.Repeat("?, ", len(columns)-1) + "?)"
	t.some = head + "VALUES " + strings.Repeat(row+", ", someRows-1) + row + " ON CONFLICT DO NOTHING"
	t.many = head + "SELECT * FROM unnest(" + strings.Join(lists, ", ") + ") ON CONFLICT DO NOTHING RETURNING " + strings.Join(keys, ", ")
	return t
}

// One is the text that inserts one row.
func (t *Table) One() string { return t.one }

// keyOf is the key of a row to insert.
func (t *Table) keyOf(row []any) string {
	key := make([]any, len(t.keysAt))
	for i, at := range t.keysAt {
		key[i] = row[at]
	}
	return keyText(key)
}

// RowUpdate is an UPDATE of single rows, each named by its keys: one text for one
// row and one for many. Its parameters are the keys, the new values, and the
// values that the condition compares with.
type RowUpdate struct {
	keys      []Column
	columns   []Column // of all parameters
	one, many string
}

// NewRowUpdate builds both texts. condition, such as " AND t.closed_at = 0",
// narrows the rows further; {name} in it stands for the value of that check. All
// keys are joined, including the merchant, though it may be the same in each row:
// as a constant, a planner could take the merchant for a small one and read all
// rows of the largest.
func NewRowUpdate(table string, keys, set, checks []Column, condition string) *RowUpdate {
	return newRowUpdate(table, keys, set, checks, condition, func(_, value string) string { return value })
}

// NewRowIncrease is NewRowUpdate that adds the values to the columns.
func NewRowIncrease(table string, keys, add []Column) *RowUpdate {
	return newRowUpdate(table, keys, add, nil, "", func(name, value string) string { return "t." + name + " + " + value })
}

func newRowUpdate(table string, keys, set, checks []Column, condition string, to func(name, value string) string) *RowUpdate {
	u := &RowUpdate{keys: keys, columns: slices.Concat(keys, set, checks)}
	var sets, setsOf, where, join, lists, names, returning []string
	conditionOf := condition
	for i, c := range u.columns {
		param, name := fmt.Sprintf("$%d", i+1), fmt.Sprintf("v%d", i+1)
		names = append(names, name)
		lists = append(lists, param+"::"+c.Kind+"[]")
		switch {
		case i < len(keys):
			where = append(where, "t."+c.Name+" = "+param)
			join = append(join, "t."+c.Name+" = v."+name)
			returning = append(returning, "v."+name)
		case i < len(keys)+len(set):
			sets = append(sets, c.Name+" = "+to(c.Name, param))
			setsOf = append(setsOf, c.Name+" = "+to(c.Name, "v."+name))
		default:
			condition = strings.ReplaceAll(condition, "{"+c.Name+"}", param)
			conditionOf = strings.ReplaceAll(conditionOf, "{"+c.Name+"}", "v."+name)
		}
	}
	head := "UPDATE " + table + " AS t SET "
	u.one = head + strings.Join(sets, ", ") + " WHERE " + strings.Join(where, " AND ") + condition
	u.many = head + strings.Join(setsOf, ", ") + " FROM unnest(" + strings.Join(lists, ", ") + ") AS v (" + strings.Join(names, ", ") + ")" +
		" WHERE " + strings.Join(join, " AND ") + conditionOf + " RETURNING " + strings.Join(returning, ", ")
	return u
}

// KeySelect is a SELECT of rows by their keys: one text for one key and one for
// many.
type KeySelect struct {
	keys      []Column
	one, many string
	some      string // for SQLite: someKeys keys, one after another
	reads     bool
}

// someKeys is how many keys one SELECT of SQLite reads, if there are as many: a statement per
// key costs several times more.
const someKeys = 64

// NewKeySelect builds both texts. columns are those of table t; condition, such
// as " AND t.state = 'pending'", narrows the rows; order follows ORDER BY, and
// is the order in which rows are locked.
func NewKeySelect(columns, table string, keys []Column, condition, order string) *KeySelect {
	s := &KeySelect{keys: keys}
	var where, join, lists, names []string
	for i, c := range keys {
		param, name := fmt.Sprintf("$%d", i+1), fmt.Sprintf("v%d", i+1)
		names = append(names, name)
		lists = append(lists, param+"::"+c.Kind+"[]")
		where = append(where, "t."+c.Name+" = "+param)
		join = append(join, "t."+c.Name+" = v."+name)
	}
	s.one = "SELECT " + columns + " FROM " + table + " t WHERE " + strings.Join(where, " AND ") + condition + " ORDER BY " + order
	s.many = "SELECT " + columns + " FROM unnest(" + strings.Join(lists, ", ") + ") AS v (" + strings.Join(names, ", ") + ")" +
		" JOIN " + table + " t ON " + strings.Join(join, " AND ") + condition + " ORDER BY " + order
	values := make([]string, someKeys)
	for i := range values {
		params := make([]string, len(keys))
		for j := range params {
			params[j] = fmt.Sprintf("$%d", i*len(keys)+j+1)
		}
		values[i] = "(" + strings.Join(params, ", ") + ")"
	}
	s.some = "WITH v (" + strings.Join(names, ", ") + ") AS (VALUES " + strings.Join(values, ", ") + ") SELECT " + columns + // CROSS: in this order
		" FROM v CROSS JOIN " + table + " t ON " + strings.Join(join, " AND ") + condition + " ORDER BY " + order
	return s
}

// ReadOnly is a copy of s that locks nothing.
func (s KeySelect) ReadOnly() *KeySelect {
	s.reads = true
	return &s
}

func (s *KeySelect) text(d dialect, many bool) string {
	text := s.one
	if many {
		text = s.many
	}
	if s.reads {
		return text
	}
	return text + d.lockOf("t")
}

// keyText is a key as one string.
func keyText(key []any) string {
	if len(key) == 1 {
		switch v := key[0].(type) {
		case []byte:
			return string(v)
		case string:
			return v
		}
	}
	var out []byte
	for _, v := range key {
		switch v := v.(type) {
		case []byte:
			out = binary.AppendUvarint(out, uint64(len(v)))
			out = append(out, v...)
		case string:
			out = binary.AppendUvarint(out, uint64(len(v)))
			out = append(out, v...)
		case int64:
			out = binary.AppendVarint(out, v)
		}
	}
	return string(out)
}

// scanKeys reads a key as keyText writes it.
func scanKeys(columns []Column) func(Scanner) (string, error) {
	key, dest := make([]any, len(columns)), make([]any, len(columns))
	for i, c := range columns {
		switch c.Kind {
		case "bytea":
			dest[i] = new([]byte)
		case "bigint":
			dest[i] = new(int64)
		default:
			dest[i] = new(string)
		}
	}
	return func(r Scanner) (string, error) {
		if err := r.Scan(dest...); err != nil {
			return "", err
		}
		for i := range dest {
			switch v := dest[i].(type) {
			case *[]byte:
				key[i] = *v
			case *int64:
				key[i] = *v
			case *string:
				key[i] = *v
			}
		}
		return keyText(key), nil
	}
}

// Counter is a table of counters, each named by a key. A counter without a row is at zero.
type Counter struct {
	columns   []Column // the key, the value
	one, many string
}

// NewCounter builds the texts that add to one counter and to many.
func NewCounter(table string, key, value Column) *Counter {
	head := "INSERT INTO " + table + " AS t (" + key.Name + ", " + value.Name + ") "
	tail := " ON CONFLICT (" + key.Name + ") DO UPDATE SET " + value.Name + " = t." + value.Name + " + excluded." + value.Name +
		" RETURNING " + key.Name + ", " + value.Name
	return &Counter{
		columns: []Column{key, value},
		one:     head + "VALUES ($1, $2)" + tail,
		many:    head + "SELECT * FROM unnest($1::" + key.Kind + "[], $2::" + value.Kind + "[])" + tail,
	}
}

// RowDelete is a DELETE of single rows, each named by its keys.
type RowDelete struct {
	keys      []Column
	one, many string
}

// NewRowDelete builds both texts.
func NewRowDelete(table string, keys []Column) *RowDelete {
	d := &RowDelete{keys: keys}
	var where, lists, names []string
	for i, c := range keys {
		where = append(where, fmt.Sprintf("%s = $%d", c.Name, i+1))
		lists = append(lists, fmt.Sprintf("$%d::%s[]", i+1, c.Kind))
		names = append(names, c.Name)
	}
	d.one = "DELETE FROM " + table + " WHERE " + strings.Join(where, " AND ")
	d.many = "DELETE FROM " + table + " WHERE (" + strings.Join(names, ", ") + ") IN (SELECT * FROM unnest(" + strings.Join(lists, ", ") + "))"
	return d
}
