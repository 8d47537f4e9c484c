package store

import (
	"bytes"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// row is a row as a driver delivers it.
type row []any

func (r row) Scan(dest ...any) error {
	for i := range dest {
		if err := dest[i].(interface{ Scan(any) error }).Scan(r[i]); err != nil {
			return err
		}
	}
	return nil
}

// sample has a field of each kind of column.
type sample struct {
	text     payment.Method
	number   int
	flag     bool
	at       time.Time
	id, none payment.ID
	raw      []byte
	details  map[string]string
	failure  *payment.Failure
	words    []string
	networks []netip.Prefix
	latency  time.Duration
	secret   []byte
}

var sampleTable = newTable("samples", []string{"id"},
	textColumn("text", func(v *sample) *payment.Method { return &v.text }),
	intColumn("number", func(v *sample) *int { return &v.number }).as(mutable),
	flagColumn("flag", func(v *sample) *bool { return &v.flag }),
	timeColumn("at", func(v *sample) *time.Time { return &v.at }).as(mutable),
	idColumn("id", func(v *sample) *payment.ID { return &v.id }),
	optionalIDColumn("none", func(v *sample) *payment.ID { return &v.none }),
	bytesColumn("raw", func(v *sample) *[]byte { return &v.raw }),
	jsonColumn("details", func(v *sample) *map[string]string { return &v.details }),
	failureColumn("failure", func(v *sample) **payment.Failure { return &v.failure }),
	wordsColumn("words", func(v *sample) *[]string { return &v.words }),
	networksColumn("networks", func(v *sample) *[]netip.Prefix { return &v.networks }),
	latencyColumn("latency", func(v *sample) *time.Duration { return &v.latency }),
	bytesColumn("secret", func(v *sample) *[]byte { return &v.secret }).as(hidden),
)

// selectedOf is a stored row without its hidden columns, which are last here.
func selectedOf(stored []any) row { return row(stored[:len(stored)-1]) }

// A row is read as it was stored, without hidden columns.
func TestColumnsKeepTheirValues(t *testing.T) {
	t.Parallel()
	full := sample{
		text: payment.Boleto, number: -7, flag: true, at: time.Date(2026, 11, 20, 12, 0, 0, 123_456_000, time.UTC), id: payment.ID{1}, none: payment.ID{2},
		raw: []byte{0, 255}, details: map[string]string{"a": "ç"}, failure: &payment.Failure{Code: "c", Message: "m"}, words: []string{"a", "b"},
		networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}, latency: 1500 * time.Microsecond, secret: []byte("s"),
	}
	var got sample
	if err := sampleTable.scan(selectedOf(sampleTable.row(&full)), &got); err != nil {
		t.Fatal(err)
	}
	if got.text != full.text || got.number != full.number || !got.flag || !got.at.Equal(full.at) || got.id != full.id || got.none != full.none ||
		!bytes.Equal(got.raw, full.raw) || got.details["a"] != "ç" || *got.failure != *full.failure || !slices.Equal(got.words, full.words) ||
		!slices.Equal(got.networks, full.networks) || got.latency != full.latency || got.secret != nil {
		t.Errorf("%+v was read as %+v", full, got)
	}
	// The zero value is stored without NULL, and read as the zero value.
	stored, read := sampleTable.row(&sample{}), sample{number: 9}
	for i, v := range stored {
		if v == nil {
			t.Errorf("%s is stored as NULL", sampleTable.columns[i].Name)
		}
	}
	if err := sampleTable.scan(selectedOf(stored), &read); err != nil || read.text != "" || read.number != 0 || read.flag || !read.at.IsZero() || !read.none.IsZero() ||
		len(read.raw) != 0 || len(read.details) != 0 || read.failure != nil || len(read.words) != 0 || len(read.networks) != 0 || read.latency != 0 {
		t.Errorf("the zero value was read as %+v, %v", read, err)
	}
	if len(stored[5].([]byte)) != 0 || len(stored[4].([]byte)) != 16 {
		t.Errorf("zero ids are stored as %v and %v, want 16 bytes and none", stored[4], stored[5])
	}
}

// Values that were read stay unchanged if the driver reuses its memory.
func TestReadBytesAreCopied(t *testing.T) {
	t.Parallel()
	stored := sampleTable.row(&sample{raw: []byte("abc")})
	var got sample
	if err := sampleTable.scan(selectedOf(stored), &got); err != nil {
		t.Fatal(err)
	}
	copy(stored[6].([]byte), "xyz")
	if string(got.raw) != "abc" {
		t.Errorf("the bytes became %q", got.raw)
	}
}

// A value of another type, or one that cannot be read, is an error that stops the
// reader; a damaged id is the zero id, which matches nothing.
func TestUnreadableColumns(t *testing.T) {
	t.Parallel()
	for at, wrong := range []any{
		int64(1), "1", "1", "1", "id", "id", "raw", "{", "{", int64(1), "10.0.0.0", "1",
	} {
		stored := selectedOf(sampleTable.row(&sample{}))
		stored[at] = wrong
		var v sample
		if err := sampleTable.scan(stored, &v); err == nil {
			t.Errorf("%s reads %T %v", sampleTable.columns[at].Name, wrong, wrong)
		}
	}
	stored := selectedOf(sampleTable.row(&sample{}))
	stored[4] = []byte{1, 2, 3}
	v := sample{id: payment.ID{9}}
	if err := sampleTable.scan(stored, &v); err != nil || !v.id.IsZero() {
		t.Errorf("a damaged id is %v, %v", v.id, err)
	}
}

// An update writes the mutable columns only. Its keys are those of the row, or the values
// that were read if they are mutable.
func TestUpdatedColumns(t *testing.T) {
	t.Parallel()
	u := sampleTable.updateBy("", "text", "number", "id")
	row := u.row(&sample{text: "PIX", number: 7, at: time.UnixMicro(8), id: payment.ID{9}}, int64(6))
	id := payment.ID{9}
	if !reflect.DeepEqual(row, []any{"PIX", int64(6), id[:], int64(7), int64(8)}) {
		t.Errorf("%v", row)
	}
	defer func() {
		if cause, _ := recover().(string); !strings.Contains(cause, "samples has no column nothing") {
			t.Errorf("the panic is %q", cause)
		}
	}()
	sampleTable.updateBy("", "nothing")
}
