package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// spelling writes values as JSON, each time with random white space, order of
// members, escapes, and additional null members.
type spelling struct{ t *rapid.T }

func (s spelling) space() string {
	return rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(s.t, "space")
}

func (s spelling) text(v string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range v {
		if r < ' ' || r == '"' || r == '\\' || r < 0x7f && rapid.Bool().Draw(s.t, "escape") {
			fmt.Fprintf(&out, `\u%04X`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String() + `"`
}

func (s spelling) value(v any) string {
	var parts []string
	switch v := v.(type) {
	case string:
		return s.text(v)
	case []any:
		for _, e := range v {
			parts = append(parts, s.space()+s.value(e)+s.space())
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		for name, e := range v {
			parts = append(parts, s.space()+s.text(name)+s.space()+":"+s.value(e))
		}
		if rapid.Bool().Draw(s.t, "null member") {
			parts = append(parts, `"an absent one":null`)
		}
		parts = rapid.Permutation(parts).Draw(s.t, "order")
		return "{" + strings.Join(parts, ",") + s.space() + "}"
	default:
		return fmt.Sprint(v)
	}
}

func values(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.Map(rapid.StringN(0, 5, -1), func(s string) any { return s }),
		rapid.Map(rapid.IntRange(-3, 300), func(n int) any { return n }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
	)
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(scalar,
		rapid.Map(rapid.SliceOfN(values(depth-1), 0, 3), func(l []any) any { return l }),
		rapid.Map(objects(depth-1), func(m map[string]any) any { return m }),
	)
}

func objects(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.StringN(0, 4, -1), values(depth), 0, 4)
}

func canonicalOf(t *rapid.T, body string) []byte {
	tr := trees.Get().(*tree)
	defer tr.release()
	if err := tr.parse([]byte(body)); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(body)); err != nil {
		t.Fatal(err)
	}
	if got := tr.compact(0); !bytes.Equal(got, want.Bytes()) {
		t.Fatalf("compact form is %s, want %s", got, want.Bytes())
	}
	return tr.appendCanonical(nil, 0)
}

// Two bodies share a canonical form if and only if they mean the same.
func TestCanonicalForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := spelling{t}
		a := objects(3).Draw(t, "a")
		once, again := canonicalOf(t, s.value(a)), canonicalOf(t, s.value(a))
		if !bytes.Equal(once, again) {
			t.Fatalf("one value has two forms: %q and %q", once, again)
		}
		b := objects(2).Draw(t, "b")
		textA, _ := json.Marshal(a) // sorts members
		textB, _ := json.Marshal(b)
		if bytes.Equal(textA, textB) != bytes.Equal(once, canonicalOf(t, s.value(b))) {
			t.Fatalf("%s and %s: the forms are equal if and only if the values differ", textA, textB)
		}
	})
}

// The length of a name of 125 bytes is the code of a closing brace. These two
// bodies differ, but their forms would be equal without the comma before each
// member.
func TestCanonicalFormOfLongNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rest := strings.Repeat("x", 121)
		a := canonicalOf(t, `{"a":{},"b":"`+rest+`t}"}`)
		b := canonicalOf(t, `{"a":{"\u0001b\"{`+rest+`":true}}`)
		if bytes.Equal(a, b) {
			t.Fatal("two values share a form")
		}
		withoutCommas := func(form []byte) string { return strings.ReplaceAll(string(form), ",", "") }
		if withoutCommas(a) != withoutCommas(b) {
			t.Fatalf("the forms differ by more than commas: %q and %q", a, b)
		}
	})
}
