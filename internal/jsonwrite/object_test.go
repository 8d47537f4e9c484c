package jsonwrite_test

import (
	"math"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/jsonwrite"
)

type inner struct {
	Text string `json:"text"`
	Int  int64  `json:"int,omitzero"`
}

type document struct {
	Text   string         `json:"text"`
	Maybe  string         `json:"maybe,omitempty"`
	Int    int64          `json:"int"`
	IfAny  int64          `json:"ifAny,omitzero"`
	Object *inner         `json:"object,omitempty"`
	Yes    bool           `json:"yes,omitzero"`
	Raw    map[string]int `json:"raw,omitempty"`
}

func (d *document) write(t *rapid.T) string {
	o := jsonwrite.New(16)
	o.Text("text", d.Text)
	o.TextIfAny("maybe", d.Maybe)
	o.Int("int", d.Int)
	o.IntIfAny("ifAny", d.IfAny)
	if d.Object != nil {
		o.Begin("object")
		o.Text("text", d.Object.Text)
		o.IntIfAny("int", d.Object.Int)
		o.End()
	}
	o.TrueIf("yes", d.Yes)
	if d.Raw != nil {
		raw, err := json.Marshal(d.Raw)
		if err != nil {
			t.Fatal(err)
		}
		o.Raw("raw", raw)
	}
	return string(o.Bytes())
}

// TestEqualsMarshal: an object is written byte for byte as reflection writes it.
func TestEqualsMarshal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := document{
			Text: rapid.String().Draw(t, "text"), Maybe: rapid.StringOf(rapid.Rune()).Draw(t, "maybe"),
			Int: rapid.Int64().Draw(t, "int"), IfAny: rapid.SampledFrom([]int64{0, 1, math.MinInt64}).Draw(t, "ifAny"), Yes: rapid.Bool().Draw(t, "yes"),
		}
		if rapid.Bool().Draw(t, "has object") {
			d.Object = &inner{Text: rapid.String().Draw(t, "inner text"), Int: rapid.Int64Range(-1, 1).Draw(t, "inner int")}
		}
		if rapid.Bool().Draw(t, "has raw") {
			d.Raw = map[string]int{"n": rapid.Int().Draw(t, "n")}
		}
		want, err := json.Marshal(&d)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.write(t); got != string(want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

// A processor's text may be in any encoding.
func TestInvalidTextIsReplaced(t *testing.T) {
	t.Parallel()
	o := jsonwrite.New(0)
	o.Text("text", "a\xffb")
	if got, want := string(o.Bytes()), `{"text":"a`+"\ufffd"+`b"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if strings.Contains(string(o.Bytes()), "\xff") {
		t.Error("the invalid byte is in the document")
	}
}
