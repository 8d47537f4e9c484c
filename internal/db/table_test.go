package db_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/db"
)

// The tables of these tests as the statements see them.
var (
	itemKeys   = []db.Column{{Name: "merchant_id", Kind: "bytea"}, {Name: "id", Kind: "bigint"}}
	itemNumber = []db.Column{{Name: "n", Kind: "bigint"}}

	noteTable = db.NewTable("notes", []string{"name"}, db.Column{Name: "name", Kind: "text"}, db.Column{Name: "value", Kind: "text"})
	itemTable = db.NewTable("items", []string{"merchant_id", "id"}, itemKeys[0], itemKeys[1], db.Column{Name: "word", Kind: "text"}, itemNumber[0])

	itemUpdate  = db.NewRowUpdate("items", itemKeys, itemNumber, nil, "")
	itemChecked = db.NewRowUpdate("items", itemKeys, itemNumber, []db.Column{{Name: "least", Kind: "bigint"}, {Name: "not", Kind: "text"}},
		" AND t.n >= {least} AND t.word <> {not}")
	itemByID      = db.NewKeySelect("t.merchant_id, t.id, t.word, t.n", "items", itemKeys, "", "t.merchant_id, t.id")
	dueByMerchant = db.NewKeySelect("t.merchant_id, t.id, t.word, t.n", "items", itemKeys[:1], " AND t.n > 0", "t.merchant_id, t.id")
	itemDelete    = db.NewRowDelete("items", itemKeys)
)

// merchant is the id of a merchant, as it is stored.
func merchant(n int) []byte { return fmt.Appendf(nil, "merchant %d", n) }

// item is a row of items in the form of Insert.
func item(m int, id int64, word string, n int64) []any { return []any{merchant(m), id, word, n} }

// itemRow is a row of items, as it is read.
type itemRow struct {
	itemKey

	word string
	n    int64
}

type itemKey struct {
	merchant string
	id       int64
}

func keyOf(row []any) itemKey { return itemKey{string(row[0].([]byte)), row[1].(int64)} }

func scanItem(r db.Scanner) (v itemRow, err error) {
	var m []byte
	err = r.Scan(&m, &v.id, &v.word, &v.n)
	v.merchant = string(m)
	return v, err
}

func compareItems(a, b itemRow) int {
	return cmp.Or(strings.Compare(a.merchant, b.merchant), cmp.Compare(a.id, b.id))
}

// Insert leaves out rows whose unique key is taken, by any unique key of the table,
// also by an earlier row of the same call.
func TestInsert(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		insert := func(want []bool, rows ...[]any) {
			t.Helper()
			must(t, d.Write(t.Context(), func(tx *db.Tx) error {
				added, err := tx.Insert(t.Context(), itemTable, rows...)
				if err != nil || !slices.Equal(added, want) {
					t.Errorf("added %v, %v, want %v", added, err, want)
				}
				return nil
			}))
		}
		insert(nil)
		insert([]bool{true}, item(1, 1, "a", 1))
		insert([]bool{false}, item(1, 1, "b", 2))
		insert([]bool{false, true, true, false, true},
			item(1, 2, "a", 3), // the word is taken
			item(1, 3, "c", 4),
			item(2, 1, "a", 5), // another merchant's
			item(1, 3, "c", 6), // taken by the second row
			item(1, 4, "", 0))
		rows, err := d.Query(t.Context(), "SELECT merchant_id, id, word, n FROM items ORDER BY merchant_id, id")
		got, err := db.Collect(rows, err, scanItem)
		one, two := string(merchant(1)), string(merchant(2))
		want := []itemRow{{itemKey{one, 1}, "a", 1}, {itemKey{one, 3}, "c", 4}, {itemKey{one, 4}, "", 0}, {itemKey{two, 1}, "a", 5}}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("stored %v, %v, want %v", got, err, want)
		}
	})
}

// InsertNew refuses rows of which one is not new, and names the table. The caller
// rolls back.
func TestInsertNew(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		insert := func(rows ...[]any) error {
			return d.Write(t.Context(), func(tx *db.Tx) error { return tx.InsertNew(t.Context(), noteTable, rows...) })
		}
		must(t, insert())
		must(t, insert([]any{"a", "1"}, []any{"b", "1"}))
		for _, rows := range [][][]any{
			{{"a", "2"}}, {{"c", "2"}, {"b", "2"}}, {{"d", "2"}, {"d", "2"}},
		} {
			if err := insert(rows...); !errors.Is(err, db.ErrConflict) || !strings.Contains(err.Error(), "notes") {
				t.Errorf("%v: %v", rows, err)
			}
		}
		wantNote(t, d, "a", "1")
		wantNote(t, d, "c", "")
		wantNote(t, d, "d", "")
		// A row that the schema rejects is another error.
		err := d.Write(t.Context(), func(tx *db.Tx) error { return tx.InsertNew(t.Context(), itemTable, item(1, 1, "a", -1)) })
		if err == nil || errors.Is(err, db.ErrConflict) || errors.Is(err, db.ErrUnavailable) {
			t.Errorf("a row that violates a CHECK: %v", err)
		}
	})
}

// InsertNew of many rows: each is stored, or none if one is not new or is rejected, wherever it is.
func TestInsertNewMany(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		const n = 2*db.SomeRows + 3
		insert := func(change func(rows [][]any)) error {
			rows := make([][]any, n)
			for i := range rows {
				rows[i] = item(1, int64(i), fmt.Sprint("word ", i), int64(i)+1)
			}
			change(rows)
			return d.Write(t.Context(), func(tx *db.Tx) error { return tx.InsertNew(t.Context(), itemTable, rows...) })
		}
		count := func() (stored int64) {
			must(t, d.QueryRow(t.Context(), "SELECT count(*) FROM items").Scan(&stored))
			return stored
		}
		for i := range int64(n) {
			twice := func(rows [][]any) { rows[i] = item(1, (i+1)%n, "twice", 1) }
			if err := insert(twice); !errors.Is(err, db.ErrConflict) || !strings.Contains(err.Error(), "items") {
				t.Errorf("row %d twice: %v", i, err)
			}
			rejected := func(rows [][]any) { rows[i] = item(1, i, "rejected", -1) }
			if err := insert(rejected); err == nil || errors.Is(err, db.ErrConflict) || errors.Is(err, db.ErrUnavailable) {
				t.Errorf("row %d violates a CHECK: %v", i, err)
			}
			if stored := count(); stored != 0 {
				t.Fatalf("after a refusal: %d rows", stored)
			}
		}
		must(t, insert(func([][]any) {}))
		var wrong int64
		must(t, d.QueryRow(t.Context(), "SELECT count(*) FROM items WHERE word <> 'word ' || id OR n <> id + 1 OR merchant_id <> $1", merchant(1)).Scan(&wrong))
		if stored := count(); stored != n || wrong != 0 {
			t.Errorf("%d rows of %d, %d of them wrong", stored, n, wrong)
		}
	})
}

// Update compares each row with the values that it gives for the checks, and names
// the rows that do not match; the others are changed.
func TestUpdateWithChecks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		must(t, d.Write(ctx, func(tx *db.Tx) error {
			return tx.InsertNew(ctx, itemTable, item(1, 1, "a", 10), item(1, 2, "b", 20), item(2, 1, "a", 30))
		}))
		update := func(want []int, rows ...[]any) {
			t.Helper()
			must(t, d.Write(ctx, func(tx *db.Tx) error {
				missed, err := tx.Update(ctx, itemChecked, rows...)
				if err != nil || !slices.Equal(missed, want) {
					t.Errorf("missed %v, %v, want %v", missed, err, want)
				}
				return nil
			}))
		}
		wantItems := func(want ...int64) {
			t.Helper()
			rows, err := d.Query(ctx, "SELECT merchant_id, id, word, n FROM items ORDER BY merchant_id, id")
			list, err := db.Collect(rows, err, scanItem)
			var got []int64
			for _, v := range list {
				got = append(got, v.n)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("stored %v, %v, want %v", got, err, want)
			}
		}
		row := func(m int, id, n, least int64, not string) []any { return []any{merchant(m), id, n, least, not} }
		update(nil)
		update(nil, row(1, 1, 11, 10, "b"))
		update([]int{0}, row(1, 1, 12, 12, "b")) // less than the least
		update([]int{0}, row(1, 1, 12, 0, "a"))  // the excluded word
		update([]int{0}, row(3, 1, 12, 0, ""))   // no such row
		wantItems(11, 20, 30)
		update([]int{1, 3}, row(2, 1, 31, 30, "b"), row(1, 2, 21, 20, "b"), row(1, 1, 12, 11, "b"), row(2, 2, 5, 0, ""))
		wantItems(12, 20, 31)
		update(nil, row(2, 1, 0, 31, "b"), row(1, 2, 22, 20, "a"))
		wantItems(12, 22, 0)
	})
}

// Rows that Select reads are locked until the transaction ends; those of a
// read-only select are not.
func TestSelectLocks(t *testing.T) {
	t.Parallel()
	d := open(t, prepare(t, "postgres", systemEnv()))
	ctx := t.Context()
	must(t, d.Write(ctx, func(tx *db.Tx) error { return tx.InsertNew(ctx, itemTable, item(1, 1, "a", 1), item(1, 2, "b", 1)) }))
	both := [][]any{{merchant(1), int64(1)}, {merchant(1), int64(2)}}
	for _, keys := range [][][]any{both[:1], both} {
		for name, c := range map[string]struct {
			by     *db.KeySelect
			locked bool
		}{"locking": {itemByID, true}, "read-only": {itemByID.ReadOnly(), false}} {
			must(t, d.Write(ctx, func(tx *db.Tx) error {
				if list, err := db.Select(ctx, tx, c.by, keys, scanItem); err != nil || len(list) != len(keys) {
					t.Errorf("%s: read %v, %v", name, list, err)
				}
				err := write(t, d, "SET LOCAL lock_timeout = '10ms'", "UPDATE items SET n = n + 1 WHERE id = 1")
				if errors.Is(err, db.ErrUnavailable) != c.locked || !c.locked && err != nil {
					t.Errorf("%s select of %d rows: another transaction's update: %v", name, len(keys), err)
				}
				return nil
			}))
		}
	}
}

// model is what the items must be, and what each call must report.
type model map[itemKey]itemRow

func (m model) insert(row []any) bool {
	v := itemRow{keyOf(row), row[2].(string), row[3].(int64)}
	for k, other := range m {
		if k == v.itemKey || k.merchant == v.merchant && other.word == v.word {
			return false
		}
	}
	m[v.itemKey] = v
	return true
}

func (m model) update(row []any) bool {
	v, ok := m[keyOf(row)]
	if !ok || len(row) > 3 && (v.n < row[3].(int64) || v.word == row[4].(string)) {
		return false
	}
	v.n = row[2].(int64)
	m[v.itemKey] = v
	return true
}

func (m model) rows(where func(itemRow) bool) (list []itemRow) {
	for _, v := range m {
		if where(v) {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, compareItems)
	return list
}

// Random calls with one row and with several have the same effect on both engines:
// that of the model, row by row.
func TestRowsTogetherAreRowsOneByOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		rapid.Check(t, func(r *rapid.T) {
			m := model{}
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				r.Repeat(map[string]func(*rapid.T){
					"insert":  func(r *rapid.T) { insertSome(t.Context(), r, tx, m) },
					"update":  func(r *rapid.T) { updateSome(t.Context(), r, tx, m, itemUpdate, false) },
					"checked": func(r *rapid.T) { updateSome(t.Context(), r, tx, m, itemChecked, true) },
					"select":  func(r *rapid.T) { selectSome(t.Context(), r, tx, m) },
					"delete": func(r *rapid.T) {
						keys := drawKeys(r)
						if err := tx.Delete(t.Context(), itemDelete, keys...); err != nil {
							r.Fatal(err)
						}
						for _, key := range keys {
							delete(m, keyOf(key))
						}
					},
					"": func(r *rapid.T) {
						rows, err := tx.Query(t.Context(), "SELECT merchant_id, id, word, n FROM items ORDER BY merchant_id, id")
						got, err := db.Collect(rows, err, scanItem)
						if want := m.rows(func(itemRow) bool { return true }); err != nil || !slices.Equal(got, want) {
							r.Fatalf("stored %v, %v, want %v", got, err, want)
						}
					},
				})
				return errUndo
			})
			if !errors.Is(err, errUndo) {
				r.Fatal(err)
			}
		})
	})
}

// drawKeys draws keys of items that differ.
func drawKeys(r *rapid.T) (keys [][]any) {
	for _, k := range rapid.SliceOfNDistinct(rapid.IntRange(0, 11), 0, 6, rapid.ID[int]).Draw(r, "keys") {
		keys = append(keys, []any{merchant(k % 2), int64(k/2) - 1})
	}
	return keys
}

func drawWord(r *rapid.T) string {
	return rapid.SampledFrom([]string{"", "a", "A", "á", "b c", "'", "$1", "\n"}).Draw(r, "word")
}

func drawNumber(r *rapid.T) int64 { return rapid.Int64Range(0, 1<<62).Draw(r, "n") }

func insertSome(ctx context.Context, r *rapid.T, tx *db.Tx, m model) {
	var rows [][]any
	var want []bool
	for _, key := range drawKeys(r) {
		rows = append(rows, append(key, drawWord(r), drawNumber(r)))
	}
	for _, row := range rows {
		want = append(want, m.insert(row))
	}
	if got, err := tx.Insert(ctx, itemTable, rows...); err != nil || !slices.Equal(got, want) {
		r.Fatalf("added %v, %v, want %v", got, err, want)
	}
}

func updateSome(ctx context.Context, r *rapid.T, tx *db.Tx, m model, u *db.RowUpdate, checked bool) {
	var rows [][]any
	var want []int
	for i, row := range drawKeys(r) {
		row = append(row, drawNumber(r))
		if checked {
			row = append(row, drawNumber(r), drawWord(r))
		}
		if rows = append(rows, row); !m.update(row) {
			want = append(want, i)
		}
	}
	if got, err := tx.Update(ctx, u, rows...); err != nil || !slices.Equal(got, want) {
		r.Fatalf("missed %v, %v, want %v", got, err, want)
	}
}

func selectSome(ctx context.Context, r *rapid.T, tx *db.Tx, m model) {
	keys := drawKeys(r)
	by, where := itemByID, func(v itemRow) bool {
		return slices.ContainsFunc(keys, func(key []any) bool { return keyOf(key) == v.itemKey })
	}
	if rapid.Bool().Draw(r, "due") {
		keys = [][]any{{merchant(0)}, {merchant(1)}}[:rapid.IntRange(0, 2).Draw(r, "merchants")]
		by, where = dueByMerchant, func(v itemRow) bool {
			return v.n > 0 && slices.ContainsFunc(keys, func(key []any) bool { return string(key[0].([]byte)) == v.merchant })
		}
	}
	if rapid.Bool().Draw(r, "read only") {
		by = by.ReadOnly()
	}
	got, err := db.Select(ctx, tx, by, keys, scanItem)
	slices.SortFunc(got, compareItems) // SQLite takes the keys one by one
	if want := m.rows(where); err != nil || !slices.Equal(got, want) {
		r.Fatalf("selected %v, %v, want %v", got, err, want)
	}
}

// Two keys of the same columns have the same text only if they are equal.
func TestKeyTexts(t *testing.T) {
	t.Parallel()
	key := rapid.Custom(func(r *rapid.T) []any {
		some := rapid.SampledFrom([]string{"", "\x00", "\x01", "a", "ab", "\x01a", "a\x01"})
		return []any{[]byte(some.Draw(r, "blob")), some.Draw(r, "text"), rapid.SampledFrom([]int64{0, 1, -1, 64, 1 << 40}).Draw(r, "n"), some.Draw(r, "last")}
	})
	rapid.Check(t, func(r *rapid.T) {
		from := rapid.IntRange(0, 3).Draw(r, "from")
		a, b := key.Draw(r, "a")[from:], key.Draw(r, "b")[from:]
		if equal := fmt.Sprint(a...) == fmt.Sprint(b...) && fmt.Sprintf("%q", a) == fmt.Sprintf("%q", b); (db.KeyText(a) == db.KeyText(b)) != equal {
			r.Fatalf("%q and %q have the texts %q and %q", a, b, db.KeyText(a), db.KeyText(b))
		}
	})
}

// A table whose keys are not among its columns is a fault of the program.
func TestTableWithoutItsKeys(t *testing.T) {
	t.Parallel()
	defer func() {
		if cause := recover(); cause == nil || !strings.Contains(fmt.Sprint(cause), "notes") {
			t.Errorf("the panic is %v", cause)
		}
	}()
	db.NewTable("notes", []string{"name"}, db.Column{Name: "value", Kind: "text"})
}
