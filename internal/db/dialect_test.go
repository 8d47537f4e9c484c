package db_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/porteira/porteira/internal/db"
)

// sameOnBoth are effects that both engines share with the same SQL text.
var sameOnBoth = []struct {
	name string
	run  func(t *testing.T, tx *db.Tx)
}{
	{"parameters in any order, and more than once", parameters},
	{"RETURNING gives the new row", returning},
	{"ON CONFLICT leaves the old row, or changes it", onConflict},
	{"numbers are 64-bit integers to the last bit", integers},
	{"an empty blob is not NULL", blobs},
	{"texts are kept byte for byte", texts},
	{"blobs compare by bytes", blobOrder},
	{"a CASE keeps its column's type", caseType},
}

var errUndo = errors.New("undo")

func TestOneTextForBothEngines(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		for _, same := range sameOnBoth {
			t.Run(same.name, func(t *testing.T) {
				err := d.Write(t.Context(), func(tx *db.Tx) error {
					same.run(t, tx)
					return errUndo
				})
				if !errors.Is(err, errUndo) {
					t.Error(err)
				}
			})
		}
	})
}

func run(t *testing.T, tx *db.Tx, text string, args ...any) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func one[T any](t *testing.T, tx *db.Tx, text string, args ...any) (v T) {
	t.Helper()
	if err := tx.QueryRow(t.Context(), text, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func put(t *testing.T, tx *db.Tx, id int64, word string, raw []byte, n int64) {
	t.Helper()
	run(t, tx, "INSERT INTO samples (id, word, raw, n) VALUES ($1, $2, $3, $4)", id, word, raw, n)
}

func parameters(t *testing.T, tx *db.Tx) {
	run(t, tx, "INSERT INTO samples (id, word, raw, n) VALUES ($3, $1, $4, $2)", "w", int64(20), int64(1), []byte("r"))
	got := one[string](t, tx, "SELECT word FROM samples WHERE n = $2 AND id = $1 AND (n = $2 OR id = $2)", int64(1), int64(20))
	if got != "w" {
		t.Errorf("found %q", got)
	}
	run(t, tx, "UPDATE samples SET n = $2, word = $1 WHERE id = $3 AND word <> $1", "v", int64(7), int64(1))
	if got := one[int64](t, tx, "SELECT n FROM samples WHERE word = $1", "v"); got != 7 {
		t.Errorf("n is %d", got)
	}
	many, args := make([]string, 20), make([]any, 20) // $1 is not the beginning of $10
	for i := range many {
		many[len(many)-1-i] = fmt.Sprintf("$%d", i+1)
		args[i] = int64(i + 1)
	}
	if got := one[int64](t, tx, "SELECT count(*) FROM samples WHERE n IN ("+strings.Join(many, ", ")+")", args...); got != 1 {
		t.Errorf("of twenty parameters %d match", got)
	}
}

func returning(t *testing.T, tx *db.Tx) {
	if got := one[int64](t, tx, "INSERT INTO samples (id, word, raw, n) VALUES (1, 'a', $1, 5) RETURNING n", []byte{}); got != 5 {
		t.Errorf("inserted %d", got)
	}
	if got := one[int64](t, tx, "UPDATE samples SET n = n + $1 WHERE id = 1 RETURNING n", int64(2)); got != 7 {
		t.Errorf("updated to %d, want the new value", got)
	}
}

func onConflict(t *testing.T, tx *db.Tx) {
	put(t, tx, 1, "first", []byte{}, 1)
	n, err := tx.ExecCount(t.Context(), "INSERT INTO samples (id, word, raw, n) VALUES (1, 'second', $1, 9) ON CONFLICT DO NOTHING", []byte{})
	if n != 0 || err != nil {
		t.Errorf("a row that is left out counts as %d, %v", n, err)
	}
	const raise = `INSERT INTO samples (id, word, raw, n) VALUES ($1, 'new', $3, $2)
		ON CONFLICT (id) DO UPDATE SET n = samples.n + $2 RETURNING n`
	if got := one[int64](t, tx, raise, int64(1), int64(4), []byte{}); got != 5 {
		t.Errorf("raised to %d", got)
	}
	if got := one[int64](t, tx, raise, int64(2), int64(4), []byte{}); got != 4 {
		t.Errorf("inserted as %d", got)
	}
	if got := one[string](t, tx, "SELECT word FROM samples WHERE id = 1"); got != "first" {
		t.Errorf("the old row became %q", got)
	}
}

func integers(t *testing.T, tx *db.Tx) {
	values := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64}
	for i, n := range values {
		put(t, tx, int64(i), "", []byte{}, n)
		if got := one[int64](t, tx, "SELECT n FROM samples WHERE id = $1 AND n = $2", int64(i), n); got != n {
			t.Errorf("%d was read as %d", n, got)
		}
	}
	rows, err := tx.Query(t.Context(), "SELECT n FROM samples ORDER BY n")
	got, err := db.Collect(rows, err, func(r db.Scanner) (n int64, err error) { return n, r.Scan(&n) })
	if err != nil || !slices.Equal(got, values) {
		t.Errorf("sorted %d, %v", got, err)
	}
}

func blobs(t *testing.T, tx *db.Tx) {
	for i, raw := range [][]byte{{}, {0}, {0, 255, 0}, []byte("text"), bytes.Repeat([]byte{7}, 100_000)} {
		put(t, tx, int64(i), "", raw, 0)
		if got := one[[]byte](t, tx, "SELECT raw FROM samples WHERE id = $1 AND raw = $2", int64(i), raw); !bytes.Equal(got, raw) {
			t.Errorf("%d bytes were read as %d", len(raw), len(got))
		}
	}
	if got := one[int64](t, tx, "SELECT count(*) FROM samples WHERE length(raw) > 0"); got != 4 {
		t.Errorf("%d blobs are not empty, want 4", got)
	}
	if got := one[int64](t, tx, "SELECT count(*) FROM samples WHERE length(raw) = 0 AND raw IS NOT NULL"); got != 1 {
		t.Errorf("%d blobs are empty, want 1", got)
	}
}

// The order of references is that of their bytes: capital letters come before
// small ones, accents after all of ASCII, in any language of the server.
func texts(t *testing.T, tx *db.Tx) {
	sorted := []string{"", " a", "A", "B", "a", "a ", "ab", "a\u0301", "b", "~", "ß", "á", "ａ", "\ufffd", "😀"}
	for i, word := range sorted {
		put(t, tx, int64(i), word, []byte{}, int64(len(word)))
	}
	for i, word := range sorted {
		if got := one[int64](t, tx, "SELECT id FROM samples WHERE word = $1", word); got != int64(i) {
			t.Errorf("%q is found as number %d, want %d", word, got, i)
		}
		if got := one[int64](t, tx, "SELECT count(*) FROM samples WHERE word < $1", word); got != int64(i) {
			t.Errorf("%d texts sort before %q, want %d", got, word, i)
		}
	}
	if got := one[int64](t, tx, "SELECT count(*) FROM samples WHERE word >= $1 AND word < $2", "a", "a~"); got != 3 {
		t.Errorf("%d texts begin with a in ASCII, want 3", got)
	}
}

func blobOrder(t *testing.T, tx *db.Tx) {
	for i, raw := range [][]byte{{}, {0}, {0, 0}, {1}, {0x7f}, {0x80}, {0xff}, {0xff, 0}} {
		put(t, tx, int64(i), "", raw, 0)
		if got := one[int64](t, tx, "SELECT count(*) FROM samples WHERE raw < $1", raw); got != int64(i) {
			t.Errorf("%d blobs sort before %x, want %d", got, raw, i)
		}
	}
}

// PostgreSQL infers a parameter's type from its neighbours: next to a bare 0 it
// would be a 32-bit number, too small for a time.
func caseType(t *testing.T, tx *db.Tx) {
	put(t, tx, 1, "a", []byte{}, 5)
	run(t, tx, "UPDATE samples SET n = CASE WHEN word = 'a' THEN $1 ELSE n END", int64(math.MaxInt64))
	if got := one[int64](t, tx, "SELECT n FROM samples"); got != math.MaxInt64 {
		t.Errorf("n is %d", got)
	}
}

// NUL ends a text in C: it must be refused or kept, never cut.
func TestNULIsNeverCut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		const name = "a\x00b"
		if err := writeNote(t, d, name, name); err != nil {
			if errors.Is(err, db.ErrUnavailable) {
				t.Errorf("NUL is taken for a broken database: %v", err)
			}
			return
		}
		wantNote(t, d, name, name)
		wantNote(t, d, "a", "")
	})
}

// The meaning of PostgreSQL's errors. Codes: PostgreSQL manual, appendix A.
func TestPostgresErrorClasses(t *testing.T) {
	t.Parallel()
	d := open(t, prepare(t, "postgres", systemEnv()))
	for code, want := range map[string]string{
		"40001": "retryable", "40P01": "retryable", "55P03": "retryable",
		"08006": "broken", "53100": "broken", "53300": "broken", "57P01": "broken", "57P03": "broken", "57014": "broken", "58030": "broken", "25006": "broken",
		"23505": "failed", "23514": "failed", "42601": "failed", "22021": "failed", "XX000": "failed", "25P02": "failed",
	} {
		if got := d.Classify(&pgconn.PgError{Code: code, Severity: "ERROR"}); got != want {
			t.Errorf("%s is %s, want %s", code, got, want)
		}
	}
	if got := d.Classify(io.ErrUnexpectedEOF); got != "broken" {
		t.Errorf("a broken connection is %s", got)
	}
	for _, c := range []struct {
		err     error
		unknown bool
	}{
		{io.ErrUnexpectedEOF, true},
		{&pgconn.PgError{Code: "57P01", SeverityUnlocalized: "FATAL"}, true},
		{&pgconn.PgError{Code: "57P02", SeverityUnlocalized: "WARNING"}, true},
		{&pgconn.PgError{Code: "53100", SeverityUnlocalized: "PANIC"}, true},
		{&pgconn.PgError{Code: "53100", SeverityUnlocalized: "ERROR"}, false},
		{&pgconn.PgError{Code: "40001", SeverityUnlocalized: "ERROR"}, false},
		{&pgconn.PgError{Code: "23505", SeverityUnlocalized: "ERROR"}, false},
	} {
		if got := d.CommitError(c.err); errors.Is(got, db.ErrCommitUnknown) != c.unknown {
			t.Errorf("%v at COMMIT: %v", c.err, got)
		}
	}
}

// The clauses that lock rows, which SQLite does not need.
func TestLockClauses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *db.DB) {
		must(t, writeNote(t, d, "name", "value"))
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			for clause, want := range map[string]string{
				tx.ForUpdate(): " FOR UPDATE", tx.NoKeyUpdate("t"): " FOR NO KEY UPDATE OF t",
				tx.SkipLocked(): " FOR NO KEY UPDATE SKIP LOCKED", tx.KeyShare("t"): " FOR KEY SHARE OF t",
			} {
				if d.Engine() == "sqlite" {
					want = ""
				}
				if clause != want {
					t.Errorf("the clause is %q, want %q", clause, want)
				}
				if got := one[string](t, tx, "SELECT t.value FROM notes t WHERE t.name = $1"+clause, "name"); got != "value" {
					t.Errorf("with%s the note is %q", clause, got)
				}
			}
			return nil
		}))
	})
}
