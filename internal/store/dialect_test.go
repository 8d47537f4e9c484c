package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// proof is one thing that both engines must do alike with the same SQL text.
type proof struct {
	name string
	run  func(t *testing.T, tx *store.Tx)
}

var proofs = []proof{
	{"parameters in any order, and more than once", parameters},
	{"RETURNING gives the new row", returning},
	{"ON CONFLICT leaves the old row, or changes it", onConflict},
	{"numbers are 64-bit integers to the last bit", integers},
	{"an empty blob is no NULL", blobs},
	{"texts are kept byte for byte", texts},
	{"blobs compare by bytes", blobOrder},
	{"a CASE keeps its column's type", caseType},
}

var errUndo = errors.New("undo")

func TestOneTextForBothEngines(t *testing.T) {
	t.Parallel()
	storetest.Each(t, env.System(env.OutboundOptions{}), func(t *testing.T, o store.Options) {
		t.Parallel()
		s := storetest.Open(t, o)
		for _, p := range proofs {
			t.Run(p.name, func(t *testing.T) {
				err := s.Write(t.Context(), func(tx *store.Tx) error {
					do(t, tx, `CREATE TABLE proof (id BIGINT NOT NULL PRIMARY KEY, word TEXT`+s.Bytewise()+` NOT NULL, raw BYTEA NOT NULL, n BIGINT NOT NULL)`)
					p.run(t, tx)
					return errUndo
				})
				if !errors.Is(err, errUndo) {
					t.Error(err)
				}
			})
		}
	})
}

func do(t *testing.T, tx *store.Tx, text string, args ...any) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func one[T any](t *testing.T, tx *store.Tx, text string, args ...any) (v T) {
	t.Helper()
	if err := tx.QueryRow(t.Context(), text, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func put(t *testing.T, tx *store.Tx, id int64, word string, raw []byte, n int64) {
	t.Helper()
	do(t, tx, "INSERT INTO proof (id, word, raw, n) VALUES ($1, $2, $3, $4)", id, word, raw, n)
}

func parameters(t *testing.T, tx *store.Tx) {
	do(t, tx, "INSERT INTO proof (id, word, raw, n) VALUES ($3, $1, $4, $2)", "w", int64(20), int64(1), []byte("r"))
	got := one[string](t, tx, "SELECT word FROM proof WHERE n = $2 AND id = $1 AND (n = $2 OR id = $2)", int64(1), int64(20))
	if got != "w" {
		t.Errorf("found %q", got)
	}
	do(t, tx, "UPDATE proof SET n = $2, word = $1 WHERE id = $3 AND word <> $1", "v", int64(7), int64(1))
	if got := one[int64](t, tx, "SELECT n FROM proof WHERE word = $1", "v"); got != 7 {
		t.Errorf("n is %d", got)
	}
	many, args := make([]string, 20), make([]any, 20) // $1 is not the beginning of $10
	for i := range many {
		many[len(many)-1-i] = fmt.Sprintf("$%d", i+1)
		args[i] = int64(i + 1)
	}
	if got := one[int64](t, tx, "SELECT count(*) FROM proof WHERE n IN ("+strings.Join(many, ", ")+")", args...); got != 1 {
		t.Errorf("of twenty parameters %d match", got)
	}
}

func returning(t *testing.T, tx *store.Tx) {
	if got := one[int64](t, tx, "INSERT INTO proof (id, word, raw, n) VALUES (1, 'a', $1, 5) RETURNING n", []byte{}); got != 5 {
		t.Errorf("inserted %d", got)
	}
	if got := one[int64](t, tx, "UPDATE proof SET n = n + $1 WHERE id = 1 RETURNING n", int64(2)); got != 7 {
		t.Errorf("updated to %d, want the new value", got)
	}
}

func onConflict(t *testing.T, tx *store.Tx) {
	put(t, tx, 1, "first", []byte{}, 1)
	res, err := tx.Exec(t.Context(), "INSERT INTO proof (id, word, raw, n) VALUES (1, 'second', $1, 9) ON CONFLICT DO NOTHING", []byte{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); n != 0 || err != nil {
		t.Errorf("a row that is left out counts as %d, %v", n, err)
	}
	const raise = `INSERT INTO proof (id, word, raw, n) VALUES ($1, 'new', $3, $2)
		ON CONFLICT (id) DO UPDATE SET n = proof.n + $2 RETURNING n`
	if got := one[int64](t, tx, raise, int64(1), int64(4), []byte{}); got != 5 {
		t.Errorf("raised to %d", got)
	}
	if got := one[int64](t, tx, raise, int64(2), int64(4), []byte{}); got != 4 {
		t.Errorf("begun at %d", got)
	}
	if got := one[string](t, tx, "SELECT word FROM proof WHERE id = 1"); got != "first" {
		t.Errorf("the old row became %q", got)
	}
}

func integers(t *testing.T, tx *store.Tx) {
	values := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64}
	for i, n := range values {
		put(t, tx, int64(i), "", []byte{}, n)
		if got := one[int64](t, tx, "SELECT n FROM proof WHERE id = $1 AND n = $2", int64(i), n); got != n {
			t.Errorf("%d came back as %d", n, got)
		}
	}
	rows, err := tx.Query(t.Context(), "SELECT n FROM proof ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var got []int64
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		got = append(got, n)
	}
	if !slices.Equal(got, values) {
		t.Errorf("sorted %d", got)
	}
}

func blobs(t *testing.T, tx *store.Tx) {
	for i, raw := range [][]byte{{}, {0}, {0, 255, 0}, []byte("text"), bytes.Repeat([]byte{7}, 100_000)} {
		put(t, tx, int64(i), "", raw, 0)
		if got := one[[]byte](t, tx, "SELECT raw FROM proof WHERE id = $1 AND raw = $2", int64(i), raw); !bytes.Equal(got, raw) {
			t.Errorf("%d bytes came back as %d", len(raw), len(got))
		}
	}
	if got := one[int64](t, tx, "SELECT count(*) FROM proof WHERE length(raw) > 0"); got != 4 {
		t.Errorf("%d blobs are not empty, want 4", got)
	}
	if got := one[int64](t, tx, "SELECT count(*) FROM proof WHERE length(raw) = 0 AND raw IS NOT NULL"); got != 1 {
		t.Errorf("%d blobs are empty, want 1", got)
	}
}

// The order of references is that of their bytes: capital letters come before
// small ones, accents after all of ASCII, whatever the server's language.
func texts(t *testing.T, tx *store.Tx) {
	sorted := []string{"", " a", "A", "B", "a", "a ", "ab", "a\u0301", "b", "~", "ß", "á", "ａ", "\ufffd", "😀"}
	for i, word := range sorted {
		put(t, tx, int64(i), word, []byte{}, int64(len(word)))
	}
	for i, word := range sorted {
		if got := one[int64](t, tx, "SELECT id FROM proof WHERE word = $1", word); got != int64(i) {
			t.Errorf("%q is found as number %d, want %d", word, got, i)
		}
		if got := one[int64](t, tx, "SELECT count(*) FROM proof WHERE word < $1", word); got != int64(i) {
			t.Errorf("%d texts sort before %q, want %d", got, word, i)
		}
	}
	if got := one[int64](t, tx, "SELECT count(*) FROM proof WHERE word >= $1 AND word < $2", "a", "a~"); got != 3 {
		t.Errorf("%d texts begin with a in ASCII, want 3", got)
	}
}

func blobOrder(t *testing.T, tx *store.Tx) {
	for i, raw := range [][]byte{{}, {0}, {0, 0}, {1}, {0x7f}, {0x80}, {0xff}, {0xff, 0}} {
		put(t, tx, int64(i), "", raw, 0)
		if got := one[int64](t, tx, "SELECT count(*) FROM proof WHERE raw < $1", raw); got != int64(i) {
			t.Errorf("%d blobs sort before %x, want %d", got, raw, i)
		}
	}
}

// PostgreSQL takes a parameter's type from its neighbours: beside a bare 0 it
// would be a 32-bit number, in which no time fits.
func caseType(t *testing.T, tx *store.Tx) {
	put(t, tx, 1, "a", []byte{}, 5)
	do(t, tx, "UPDATE proof SET n = CASE WHEN word = 'a' THEN $1 ELSE n END", int64(math.MaxInt64))
	if got := one[int64](t, tx, "SELECT n FROM proof"); got != math.MaxInt64 {
		t.Errorf("n is %d", got)
	}
}

// NUL ends a text in C: it must be refused or kept, never cut.
func TestNULIsNeverCut(t *testing.T) {
	t.Parallel()
	storetest.Each(t, env.System(env.OutboundOptions{}), func(t *testing.T, o store.Options) {
		t.Parallel()
		s := storetest.Open(t, o)
		const name = "a\x00b"
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.CreateMerchant(t.Context(), store.Merchant{Name: name}, "")
			return err
		})
		if err != nil {
			if errors.Is(err, store.ErrUnavailable) {
				t.Errorf("NUL is taken for a broken database: %v", err)
			}
			return
		}
		if m, err := s.MerchantByName(t.Context(), name); err != nil || m.Name != name {
			t.Errorf("%q, %v", m.Name, err)
		}
		if _, err := s.MerchantByName(t.Context(), "a"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the text was cut: %v", err)
		}
	})
}

func TestTimesAreMicrosecondsUTC(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{
		time.Date(2026, 2, 28, 23, 59, 59, 999_999_000, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("BRT", -3*3600)), {},
	} {
		if got := store.AtMicros(store.Micros(at)); !got.Equal(at) || got.Location() != time.UTC {
			t.Errorf("%v came back as %v", at, got)
		}
	}
	if store.Micros(time.Time{}) != 0 {
		t.Error("a time that is not set is not stored as 0")
	}
}

// A canceled request must not take the writer with it.
func TestWriteGoesOnAfterCanceledCaller(t *testing.T) {
	t.Parallel()
	storetest.Each(t, env.System(env.OutboundOptions{}), func(t *testing.T, o store.Options) {
		t.Parallel()
		s := storetest.Open(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		_ = s.Write(ctx, func(tx *store.Tx) error {
			cancel()
			return tx.SetSetting(ctx, "canceled", "1") // either way, whole or not at all
		})
		for range 3 {
			if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.SetSetting(t.Context(), "later", "1") }); err != nil {
				t.Fatal(err)
			}
		}
	})
}
