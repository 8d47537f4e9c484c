package store

import (
	"fmt"
	"slices"

	"github.com/porteira/porteira/internal/db"
)

// A rowSet takes part in each commit: it queues the reads of rows before the decisions, and the writes
// of their changes afterwards. [rowSets] lists them all, in the order in which their tables are locked.
type rowSet interface {
	place(at int)
	// load queues the reads of rows that operations name.
	load(tx *db.Tx, n *Needs, l *Loaded)
	// follow queues the reads of rows that follow from what was loaded.
	follow(tx *db.Tx, n *Needs, l *Loaded)
	save(tx *db.Tx, c *Changes)
}

// rowKey names a row: its values in the order of the key columns.
type rowKey interface {
	comparable
	key() []any
}

// rows is the rows of one table in commits. A noun declares one, and [rowSets] lists it.
//
// Operations name the rows that they need. These are read and locked together, before any decision.
// Decisions see each row with the changes of earlier decisions of the same commit. Every version of a
// row is written.
type rows[K rowKey, V any] struct {
	slot
	table   *tableOf[V]
	key     func(*V) K
	byKey   *db.KeySelect         // nil if rows are read by further keys only
	update  *updateOf[V]          // nil if rows never change
	compare func(a, b *V) int     // the order of lists
	opened  func(*db.Keyring, *V) // completes a row that was read; may be nil
	sealing func(*db.Keyring, *V) // completes a row to be added; may be nil
	indexes []rowIndex[V]         // by further keys
}

// rowIndex is a rowsBy of any key.
type rowIndex[V any] interface {
	note(l *Loaded, v *V)
}

// rowsIn are the loaded rows of a set, overlaid with the changes of a commit.
type rowsIn[K rowKey, V any] struct {
	byKey          map[K]*V
	added, changed []V
}

// need makes a commit read and lock the row of a key.
func (s *rows[K, V]) need(n *Needs, k K) {
	keys := made[[]K](s.slot, &n.sets)
	*keys = append(*keys, k)
}

// get is a loaded row; false if there is none.
func (s *rows[K, V]) get(l *Loaded, k K) (v V, ok bool) {
	if in := used[rowsIn[K, V]](s.slot, l.sets); in != nil {
		if r := in.byKey[k]; r != nil {
			return *r, true
		}
	}
	return v, false
}

// add adds a row, which was looked for and did not exist.
func (s *rows[K, V]) add(c *Changes, v V) {
	in := s.put(c.l, &v)
	in.added = append(in.added, v)
	c.count++
}

// set changes a loaded row, or one that this commit adds.
func (s *rows[K, V]) set(c *Changes, v V) {
	in := made[rowsIn[K, V]](s.slot, &c.l.sets)
	r := in.byKey[s.key(&v)]
	if r == nil {
		panic(fmt.Sprintf("store: a row of %s was changed and not loaded", s.table.name))
	}
	*r = v
	in.changed = append(in.changed, v)
	c.count++
}

// put keeps a row. The first one of a key stays: two needs may name one row, and a decision may have
// changed it.
func (s *rows[K, V]) put(l *Loaded, r *V) *rowsIn[K, V] {
	in := made[rowsIn[K, V]](s.slot, &l.sets)
	k := s.key(r)
	if in.byKey[k] != nil {
		return in
	}
	if in.byKey == nil {
		in.byKey = map[K]*V{}
	}
	in.byKey[k] = r
	for _, x := range s.indexes {
		x.note(l, r)
	}
	return in
}

// queue queues the read of rows by keys.
func (s *rows[K, V]) queue(tx *db.Tx, l *Loaded, by *db.KeySelect, keys [][]any) {
	if len(keys) == 0 {
		return
	}
	scan := func(r db.Scanner) (*V, error) {
		v := new(V)
		return v, s.table.scan(r, v)
	}
	db.QueueSelect(tx, by, keys, scan, func(list []*V) {
		for _, r := range list {
			if s.opened != nil {
				s.opened(tx.Keys(), r)
			}
			s.put(l, r)
		}
	})
}

func (s *rows[K, V]) load(tx *db.Tx, n *Needs, l *Loaded) {
	if keys := used[[]K](s.slot, n.sets); keys != nil {
		s.queue(tx, l, s.byKey, keysOf(*keys))
	}
}

func (s *rows[K, V]) follow(*db.Tx, *Needs, *Loaded) {}

// save adds the new rows, and then updates the changed ones. Errors: ErrConflict if a new row exists, or
// a changed one does not.
func (s *rows[K, V]) save(tx *db.Tx, c *Changes) {
	in := used[rowsIn[K, V]](s.slot, c.l.sets)
	if in == nil {
		return
	}
	if s.sealing != nil {
		for i := range in.added {
			s.sealing(tx.Keys(), &in.added[i])
		}
	}
	tx.QueueNew(s.table.insert, s.table.rows(in.added))
	inWaves(in.changed, s.key, func(wave []V) {
		list := make([][]any, len(wave))
		for i := range wave {
			list[i] = s.update.row(&wave[i])
		}
		tx.QueueUpdate(s.update.RowUpdate, list, db.None)
	})
}

// rowsBy is the rows of a set that have a further key in common, such as their pay-in.
type rowsBy[J, K rowKey, V any] struct {
	slot
	of   *rows[K, V]
	key  func(*V) J
	keys *db.KeySelect
	// also are further keys, which follow from rows that were loaded; may be nil.
	also func(n *Needs, l *Loaded) []J
}

// indexBy declares that rows of a set are read by a further key, whose columns never change.
func indexBy[J, K rowKey, V any](of *rows[K, V], key func(*V) J, keys *db.KeySelect, also func(*Needs, *Loaded) []J) *rowsBy[J, K, V] {
	x := &rowsBy[J, K, V]{of: of, key: key, keys: keys, also: also}
	of.indexes = append(of.indexes, x)
	return x
}

// need makes a commit read and lock all rows with the key.
func (x *rowsBy[J, K, V]) need(n *Needs, j J) {
	keys := made[[]J](x.slot, &n.sets)
	*keys = append(*keys, j)
}

// needed are the keys that operations named.
func (x *rowsBy[J, K, V]) needed(n *Needs) []J {
	if keys := used[[]J](x.slot, n.sets); keys != nil {
		return *keys
	}
	return nil
}

func (x *rowsBy[J, K, V]) load(tx *db.Tx, n *Needs, l *Loaded) {
	if keys := x.needed(n); len(keys) > 0 {
		x.of.queue(tx, l, x.keys, keysOf(keys))
	}
}

func (x *rowsBy[J, K, V]) follow(tx *db.Tx, n *Needs, l *Loaded) {
	if x.also == nil {
		return
	}
	if keys := x.also(n, l); len(keys) > 0 {
		read := x.needed(n)
		keys = slices.DeleteFunc(keys, func(j J) bool { return slices.Contains(read, j) })
		x.of.queue(tx, l, x.keys, keysOf(keys))
	}
}

func (x *rowsBy[J, K, V]) save(*db.Tx, *Changes) {}

// index is made when it is first used, of the rows that the commit has until then.
func (x *rowsBy[J, K, V]) index(l *Loaded) map[J][]K {
	index := made[map[J][]K](x.slot, &l.sets)
	if in := used[rowsIn[K, V]](x.of.slot, l.sets); *index == nil && in != nil {
		*index = make(map[J][]K, len(in.byKey))
		for k, r := range in.byKey {
			j := x.key(r)
			(*index)[j] = append((*index)[j], k)
		}
	}
	return *index
}

// note adds a row to the index, if there is one.
func (x *rowsBy[J, K, V]) note(l *Loaded, v *V) {
	if index := used[map[J][]K](x.slot, l.sets); index != nil && *index != nil {
		j := x.key(v)
		(*index)[j] = append((*index)[j], x.of.key(v))
	}
}

// list is the loaded rows with a key, in their order.
func (x *rowsBy[J, K, V]) list(l *Loaded, j J) []V {
	keys := x.index(l)[j]
	if len(keys) == 0 {
		return nil
	}
	list := make([]V, len(keys))
	for i, k := range keys {
		list[i], _ = x.of.get(l, k)
	}
	slices.SortFunc(list, func(a, b V) int { return x.of.compare(&a, &b) })
	return list
}

// steps is a row set that is written by hand.
type steps struct {
	slot
	loads, follows func(l *Loaded, tx *db.Tx, n *Needs)
	saves          func(c *Changes, tx *db.Tx)
}

func (s *steps) load(tx *db.Tx, n *Needs, l *Loaded) {
	if s.loads != nil {
		s.loads(l, tx, n)
	}
}

func (s *steps) follow(tx *db.Tx, n *Needs, l *Loaded) {
	if s.follows != nil {
		s.follows(l, tx, n)
	}
}

func (s *steps) save(tx *db.Tx, c *Changes) {
	if s.saves != nil {
		s.saves(c, tx)
	}
}

// slot is the place of a set's state in commits: its position in rowSets. The zero one is none, so a
// set that is not listed panics when it is first used.
type slot struct{ at int }

func (s *slot) place(at int) { s.at = at }

func init() {
	for i, set := range rowSets {
		set.place(i + 1)
	}
}

// made is the state of a set in a commit, which is made when it is first used.
func made[S any](of slot, sets *[]any) *S {
	if *sets == nil {
		*sets = make([]any, len(rowSets))
	}
	if s, ok := (*sets)[of.at-1].(*S); ok {
		return s
	}
	s := new(S)
	(*sets)[of.at-1] = s
	return s
}

// used is the state of a set in a commit; nil if the commit does not use the set.
func used[S any](of slot, sets []any) *S {
	if sets == nil {
		return nil
	}
	s, _ := sets[of.at-1].(*S)
	return s
}
