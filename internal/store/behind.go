package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A server is a round trip away, and a batch changes hundreds of rows: what
// changes one row each waits in the transaction, and goes in one statement for
// all rows of an owner, a merchant mostly, and a table. Whatever else writes, and
// whatever reads such a table, has all that waits sent first, so that writes keep
// their order and reads see them. SQLite is in the process: there each row goes
// at once.

// ofMerchant is what owns most rows.
var ofMerchant = column{"merchant_id", "bytea"}

// rowUpdate is an UPDATE of single rows, as one statement for one of them and
// one for many. Its parameters are the owner, the keys, then what is set.
type rowUpdate struct {
	table     string
	owner     column   // whose rows: what distributes the table
	keys      []column // which of them; together unique
	set       []column
	one, many string
	// exact says that each row must be there, else ErrConflict; otherwise missed
	// is called for each that is not, and may be nil.
	exact  bool
	missed func(ctx context.Context, tx *Tx, row []any) error
}

// newRowUpdate builds both texts. condition, such as " AND t.closed_at = 0",
// narrows the rows further. In the one for many the owner is joined like a key,
// though it is the same in each row: where it stood alone, a planner that takes
// its owner for a small one would read all rows of the largest.
func newRowUpdate(u rowUpdate, condition string) *rowUpdate {
	var sets, setsOf, where, join, arrays, names []string
	for i, c := range u.columns() {
		param, name := fmt.Sprintf("$%d", i+1), fmt.Sprintf("v%d", i+1)
		names = append(names, name)
		arrays = append(arrays, param+"::"+c.kind+"[]")
		if i <= len(u.keys) {
			where = append(where, "t."+c.name+" = "+param)
			join = append(join, "t."+c.name+" = v."+name)
		} else {
			sets = append(sets, c.name+" = "+param)
			setsOf = append(setsOf, c.name+" = v."+name)
		}
	}
	head := "UPDATE " + u.table + " AS t SET "
	u.one = head + strings.Join(sets, ", ") + " WHERE " + strings.Join(where, " AND ") + condition
	u.many = head + strings.Join(setsOf, ", ") + " FROM unnest(" + strings.Join(arrays, ", ") + ") AS v (" + strings.Join(names, ", ") + ")" +
		" WHERE " + strings.Join(join, " AND ") + condition + " RETURNING t." + u.keys[0].name
	return &u
}

// columns are all of a row: the owner, the keys, what is set.
func (u *rowUpdate) columns() []column {
	return append(append([]column{u.owner}, u.keys...), u.set...)
}

// waiting is updates of one owner's rows that have not been sent. Their first
// keys differ.
type waiting struct {
	update *rowUpdate
	owner  string
	rows   [][]any
	has    map[string]bool // by the first key
}

// change updates one row: its owner, its keys and what is set.
func (tx *Tx) change(ctx context.Context, u *rowUpdate, row ...any) error {
	if !tx.store.dialect.remote() {
		n, err := tx.changed(ctx, u.one, row...)
		if err != nil || n > 0 {
			return err
		}
		return u.miss(ctx, tx, row)
	}
	owner, key := keyText(row[0]), keyText(row[1])
	var w *waiting
	for _, other := range tx.waiting {
		if other.update == u && other.owner == owner {
			w = other
		}
	}
	if w != nil && w.has[key] { // one change after another
		if err := tx.sendAll(ctx); err != nil {
			return err
		}
		w = nil
	}
	if w == nil {
		w = &waiting{update: u, owner: owner, has: map[string]bool{}}
		tx.waiting = append(tx.waiting, w)
	}
	w.has[key] = true
	w.rows = append(w.rows, row)
	return nil
}

func (u *rowUpdate) miss(ctx context.Context, tx *Tx, row []any) error {
	switch {
	case u.exact:
		return fmt.Errorf("%w: %s", ErrConflict, u.table)
	case u.missed != nil:
		return u.missed(ctx, tx, row)
	}
	return nil
}

// settle sends what waits before a statement that writes, or that reads what
// waits. Its error ends the transaction, and is told at the latest when that
// would be committed: some of those who ask cannot be told.
func (tx *Tx) settle(ctx context.Context, text string) {
	if len(tx.waiting) == 0 {
		return
	}
	if strings.HasPrefix(text, "SELECT") && !slices.ContainsFunc(tx.waiting, func(w *waiting) bool { return strings.Contains(text, w.update.table) }) {
		return
	}
	_ = tx.sendAll(ctx)
}

// sendAll sends everything that waits, in the order in which it came.
func (tx *Tx) sendAll(ctx context.Context) error {
	list := tx.waiting
	tx.waiting = nil
	for _, w := range list {
		if tx.broken == nil {
			tx.broken = tx.send(ctx, w)
		}
	}
	return tx.broken
}

func (tx *Tx) send(ctx context.Context, w *waiting) error {
	u := w.update
	var args []any
	for i, c := range u.columns() {
		args = append(args, columnOf(c.kind, w.rows, i))
	}
	rows, err := tx.t.query(ctx, u.many, args...)
	found, err := collect(rows, err, func(r scanner) (string, error) { return scanKey(r, u.keys[0].kind) })
	if err != nil {
		return err
	}
	for _, key := range found {
		delete(w.has, key)
	}
	for _, row := range w.rows {
		if w.has[keyText(row[1])] {
			if err := u.miss(ctx, tx, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// scanKey reads a key as [keyText] writes it.
func scanKey(r scanner, kind string) (string, error) {
	if kind == "text" {
		var word string
		err := r.Scan(&word)
		return word, err
	}
	var key []byte
	err := r.Scan(&key)
	return string(key), err
}
