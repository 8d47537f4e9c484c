package store

import (
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// column is one column of a noun's table: its name and type, the stored value of a row, and the
// destination of Scan. INSERT, UPDATE, SELECT and scan are all generated from the list of a table's
// columns, so their orders cannot differ.
type column[T any] struct {
	db.Column

	value  func(*T) any
	hashed func([]byte, *T) []byte // appends value to the input of a keyed hash, without allocating; nil if it would
	dest   func(*T) any
	role   role
}

// role is how a column takes part in reads and updates.
type role int

const (
	fixed   role = iota // read with the row, never updated: an order's amount
	mutable             // read with the row, updated with it: an order's status
	hidden              // neither: inserted, and read separately: a pay-in's sealed personal data
)

// as gives the column a role; fixed is the default.
func (c column[T]) as(r role) column[T] {
	c.role = r
	return c
}

// tableOf generates the statements that insert, update and read the rows of a noun.
type tableOf[T any] struct {
	name     string
	columns  []column[T]
	insert   *db.Table
	selected string // the columns that scan reads, of the table t
}

// newTable describes a table. keys are columns whose values differ between the rows of
// one INSERT.
func newTable[T any](name string, keys []string, columns ...column[T]) *tableOf[T] {
	t := &tableOf[T]{name: name, columns: columns}
	var all []db.Column
	var selected []string
	for _, c := range columns {
		all = append(all, c.Column)
		if c.role != hidden {
			selected = append(selected, "t."+c.Name)
		}
	}
	t.insert = db.NewTable(name, keys, all...)
	t.selected = strings.Join(selected, ", ")
	return t
}

// row is v in the form of Insert.
func (t *tableOf[T]) row(v *T) []any {
	row := make([]any, len(t.columns))
	for i := range t.columns {
		row[i] = t.columns[i].value(v)
	}
	return row
}

// scan reads the selected columns into v, and further ones into more.
func (t *tableOf[T]) scan(r db.Scanner, v *T, more ...any) error {
	return r.Scan(append(t.dests(v, len(more)), more...)...)
}

// dests are the destinations of the selected columns in v, with capacity for more.
func (t *tableOf[T]) dests(v *T, more int) []any {
	dest := make([]any, 0, len(t.columns)+more)
	for i := range t.columns {
		if t.columns[i].role != hidden {
			dest = append(dest, t.columns[i].dest(v))
		}
	}
	return dest
}

// scanDue is scan of a row that waits for a worker or is listed. If a value cannot be decoded, the row is
// damaged, and its other values are read: an error would stop the rows beside it.
func (t *tableOf[T]) scanDue(r db.Scanner, v *T, more ...any) (damaged bool, err error) {
	if t.scan(r, v, more...) == nil {
		return false, nil
	}
	var dest []any
	for i := range t.columns {
		if t.columns[i].role == hidden {
			continue
		}
		to := t.columns[i].dest(v)
		if s, ok := to.(sql.Scanner); ok {
			to = damagedDest{s}
		}
		dest = append(dest, to)
	}
	return true, r.Scan(append(dest, more...)...)
}

// damagedDest leaves out a value that cannot be decoded.
type damagedDest struct{ sql.Scanner }

// Scan implements [sql.Scanner].
func (d damagedDest) Scan(src any) error {
	_ = d.Scanner.Scan(src)
	return nil
}

// named returns columns of the table by their names.
func (t *tableOf[T]) named(names ...string) []db.Column {
	list := make([]db.Column, len(names))
	for i, name := range names {
		list[i] = t.columns[t.index(name)].Column
	}
	return list
}

// index is the position of a column in the table.
func (t *tableOf[T]) index(name string) int {
	at := slices.IndexFunc(t.columns, func(c column[T]) bool { return c.Name == name })
	if at < 0 {
		panic(fmt.Sprintf("store: table %s has no column %s", t.name, name))
	}
	return at
}

// selectBy is a SELECT of rows by key columns, which locks them in order.
func (t *tableOf[T]) selectBy(order string, keys ...string) *db.KeySelect {
	return db.NewKeySelect(t.selected, t.name, t.named(keys...), "", order)
}

// values lists an expression for each selected column, by name, for a SELECT from another
// table.
func (t *tableOf[T]) values(of map[string]string) string {
	var list []string
	for i := range t.columns {
		if t.columns[i].role == hidden {
			continue
		}
		text, ok := of[t.columns[i].Name]
		if !ok {
			panic(fmt.Sprintf("store: no value for column %s of table %s", t.columns[i].Name, t.name))
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// descending lists the positions of selected columns, for the ORDER BY of a UNION.
func (t *tableOf[T]) descending(names ...string) string {
	var selected, list []string
	for i := range t.columns {
		if t.columns[i].role != hidden {
			selected = append(selected, t.columns[i].Name)
		}
	}
	for _, c := range t.named(names...) {
		list = append(list, strconv.Itoa(slices.Index(selected, c.Name)+1)+" DESC")
	}
	return strings.Join(list, ", ")
}

// names lists all columns, in the order of INSERT.
func (t *tableOf[T]) names() string {
	list := make([]string, len(t.columns))
	for i := range t.columns {
		list[i] = t.columns[i].Name
	}
	return strings.Join(list, ", ")
}

// upsert is an INSERT of one row, or an UPDATE of the mutable columns of the row with its
// key.
func (t *tableOf[T]) upsert(key string) string {
	var set []string
	params := make([]string, len(t.columns))
	for i, c := range t.columns {
		if params[i] = fmt.Sprintf("$%d", i+1); c.role == mutable {
			set = append(set, c.Name+" = excluded."+c.Name)
		}
	}
	return "INSERT INTO " + t.name + " (" + t.names() + ") VALUES (" + strings.Join(params, ", ") + ") ON CONFLICT (" + key + ") DO UPDATE SET " +
		strings.Join(set, ", ")
}

// updateOf writes the mutable columns of rows.
type updateOf[T any] struct {
	*db.RowUpdate

	keys, set []column[T]
}

// updateBy is an UPDATE of the mutable columns of rows, named by key columns. A column
// that is both a key and mutable, such as version, is a guard: the row is updated only
// if it still has the value that was read.
func (t *tableOf[T]) updateBy(condition string, keys ...string) *updateOf[T] {
	return t.updateIf(condition, nil, keys...)
}

// updateIf is updateBy with values that the condition compares with, see
// [db.NewRowUpdate]: they follow the others in a row.
func (t *tableOf[T]) updateIf(condition string, checks []db.Column, keys ...string) *updateOf[T] {
	u := &updateOf[T]{}
	var set []db.Column
	for _, c := range t.columns {
		if c.role == mutable {
			u.set, set = append(u.set, c), append(set, c.Column)
		}
	}
	u.RowUpdate = db.NewRowUpdate(t.name, t.named(keys...), set, checks, condition)
	for _, name := range keys {
		u.keys = append(u.keys, t.columns[t.index(name)])
	}
	return u
}

// row is v in the form of Update: its keys, then the new values. guards are the old values
// of the mutable keys.
func (u *updateOf[T]) row(v *T, guards ...any) []any {
	row := make([]any, 0, len(u.keys)+len(u.set))
	for i := range u.keys {
		if u.keys[i].role == mutable {
			row, guards = append(row, guards[0]), guards[1:]
		} else {
			row = append(row, u.keys[i].value(v))
		}
	}
	if len(guards) > 0 {
		panic("store: a guard for a key that is not mutable")
	}
	for i := range u.set {
		row = append(row, u.set[i].value(v))
	}
	return row
}

// The constructors of columns: each takes the name and the field.

func textColumn[T any, S ~string](name string, of func(*T) *S) column[T] {
	return column[T]{
		Column: db.Column{Name: name, Kind: "text"},
		value:  func(v *T) any { return string(*of(v)) },
		hashed: func(b []byte, v *T) []byte { return appendField(b, *of(v)) },
		dest:   func(v *T) any { return textDest[S]{of(v)} },
	}
}

func intColumn[T any, I ~int64 | ~int](name string, of func(*T) *I) column[T] {
	return column[T]{
		Column: db.Column{Name: name, Kind: "bigint"},
		value:  func(v *T) any { return int64(*of(v)) },
		hashed: func(b []byte, v *T) []byte { return appendNumber(b, int64(*of(v))) },
		dest:   func(v *T) any { return intDest[I]{of(v)} },
	}
}

func flagColumn[T any](name string, of func(*T) *bool) column[T] {
	return column[T]{
		Column: db.Column{Name: name, Kind: "bigint"},
		value:  func(v *T) any { return flag(*of(v)) },
		hashed: func(b []byte, v *T) []byte { return appendNumber(b, flag(*of(v))) },
		dest:   func(v *T) any { return (*flagDest)(of(v)) },
	}
}

// timeColumn keeps microseconds UTC; 0 is the zero time.
func timeColumn[T any](name string, of func(*T) *time.Time) column[T] {
	return column[T]{
		Column: db.Column{Name: name, Kind: "bigint"},
		value:  func(v *T) any { return micros(*of(v)) },
		hashed: func(b []byte, v *T) []byte { return appendNumber(b, micros(*of(v))) },
		dest:   func(v *T) any { return (*timeDest)(of(v)) },
	}
}

// idColumn keeps the 16 bytes of an id, including the zero id.
func idColumn[T any](name string, of func(*T) *payment.ID) column[T] {
	return column[T]{
		Column: db.Column{Name: name, Kind: "bytea"},
		value:  func(v *T) any { return of(v)[:] },
		hashed: func(b []byte, v *T) []byte { return appendField(b, of(v)[:]) },
		dest:   func(v *T) any { return (*idDest)(of(v)) },
	}
}

// optionalIDColumn keeps an empty blob for the zero id.
func optionalIDColumn[T any](name string, of func(*T) *payment.ID) column[T] {
	c := idColumn(name, of)
	c.value = func(v *T) any {
		if id := of(v); !id.IsZero() {
			return id[:]
		}
		return emptyBlob
	}
	c.hashed = func(b []byte, v *T) []byte { return appendField(b, optionalID(*of(v))) }
	return c
}

func bytesColumn[T any, B ~[]byte](name string, of func(*T) *B) column[T] {
	return column[T]{
		Column: db.Column{Name: name, Kind: "bytea"},
		value: func(v *T) any {
			if b := *of(v); len(b) > 0 {
				return []byte(b)
			}
			return emptyBlob
		},
		hashed: func(b []byte, v *T) []byte { return appendField(b, *of(v)) },
		dest:   func(v *T) any { return bytesDest[B]{of(v)} },
	}
}

// jsonColumn keeps a value as a JSON document; the empty text is the zero value.
func jsonColumn[T, V any](name string, of func(*T) *V) column[T] {
	return column[T]{
		Column: db.Column{Name: name, Kind: "text"},
		value:  func(v *T) any { return jsonText(of(v)) },
		dest:   func(v *T) any { return jsonDest[V]{of(v)} },
	}
}

// jsonText is a JSON document of a value that always marshals: it consists of
// texts, numbers and times.
func jsonText(v any) string {
	text, err := json.Marshal(v, json.Deterministic(true)) // keyed hashes cover it
	if err != nil {
		panic(fmt.Sprintf("store: %T: %v", v, err))
	}
	return string(text)
}

// The destinations of Scan convert the drivers' types: int64, string and []byte.

type textDest[S ~string] struct{ to *S }

// Scan implements [sql.Scanner].
func (d textDest[S]) Scan(src any) error {
	switch v := src.(type) {
	case string:
		*d.to = S(v)
	case []byte:
		*d.to = S(v)
	default:
		return scanError(src, "a text")
	}
	return nil
}

type intDest[I ~int64 | ~int] struct{ to *I }

// Scan implements [sql.Scanner].
func (d intDest[I]) Scan(src any) error {
	v, ok := src.(int64)
	if !ok {
		return scanError(src, "an integer")
	}
	*d.to = I(v)
	return nil
}

type flagDest bool

// Scan implements [sql.Scanner].
func (d *flagDest) Scan(src any) error {
	v, ok := src.(int64)
	if !ok {
		return scanError(src, "a flag")
	}
	*d = v != 0
	return nil
}

type timeDest time.Time

// Scan implements [sql.Scanner].
func (d *timeDest) Scan(src any) error {
	v, ok := src.(int64)
	if !ok {
		return scanError(src, "a time")
	}
	*d = timeDest(atMicros(v))
	return nil
}

type idDest payment.ID

// Scan implements [sql.Scanner]. A damaged id is the zero id, which matches nothing.
func (d *idDest) Scan(src any) error {
	v, ok := src.([]byte)
	if !ok {
		return scanError(src, "an id")
	}
	*d = idDest(idOf(v))
	return nil
}

type bytesDest[B ~[]byte] struct{ to *B }

// Scan implements [sql.Scanner].
func (d bytesDest[B]) Scan(src any) error {
	v, ok := src.([]byte)
	if !ok {
		return scanError(src, "bytes")
	}
	*d.to = slices.Clone(B(v)) // the driver's memory
	return nil
}

type jsonDest[V any] struct{ to *V }

// Scan implements [sql.Scanner].
func (d jsonDest[V]) Scan(src any) error {
	var text string
	if err := (textDest[string]{&text}).Scan(src); err != nil || text == "" {
		return err
	}
	if err := json.Unmarshal([]byte(text), d.to); err != nil {
		// Not wrapped: an io.ErrUnexpectedEOF would look like a broken connection.
		return fmt.Errorf("store: invalid JSON: %v", err) //nolint:errorlint // see above
	}
	return nil
}

func scanError(src any, want string) error { return fmt.Errorf("store: %T is not %s", src, want) }

// micros stores a time; the zero time is 0.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// atMicros reads a time that micros stored.
func atMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// emptyBlob is the stored form of no bytes, never NULL. Many columns have it: it is allocated once.
var emptyBlob any = []byte{}

// idOf reads an id column; a damaged one is the zero id, which matches nothing.
func idOf(b []byte) payment.ID {
	id, _ := payment.IDFromBytes(b)
	return id
}

// optionalID stores an id that may be absent: the zero id is an empty blob.
func optionalID(id payment.ID) []byte {
	if id.IsZero() {
		return []byte{}
	}
	return id[:]
}
