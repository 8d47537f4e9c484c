package wire

import (
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/problem"
)

// invalidFields lists the invalid fields as "field code".
func invalidFields(errs *Errors) []string {
	var out []string
	for _, e := range errs.List() {
		out = append(out, e.Field+" "+e.Code)
	}
	return out
}

func wantInvalid(t *testing.T, name string, errs *Errors, want ...string) {
	t.Helper()
	got := invalidFields(errs)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: invalid fields are %q, want %q", name, got, want)
	}
}

func TestErrorsNameEachCauseOnce(t *testing.T) {
	t.Parallel()
	var errs Errors
	errs.Add(At("", "customer"), problem.CodeInvalidType, "first")
	errs.Add(At("", "customer"), problem.CodeRequired, "again")
	errs.Add(At("customer", "name"), problem.CodeRequired, "below")
	errs.Add(At("customer.address", "city"), problem.CodeRequired, "far below")
	errs.Add(At("", "customers"), problem.CodeUnknownField, "beside")
	errs.add(joinIndex("items", 2), problem.CodeInvalidType, "an entry")
	errs.Add(atEntry("items", 2, "title"), problem.CodeRequired, "below the entry")
	errs.Add(atEntry("items", 20, "title"), problem.CodeRequired, "another entry")
	wantInvalid(t, "list", &errs, "customer invalid_type", "customers unknown_field",
		"items[2] invalid_type", "items[20].title required")
}

func TestPath(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path Path
		want string
	}{
		{At("", "amount"), "amount"},
		{At("customer.address", "zipCode"), "customer.address.zipCode"},
		{atEntry("items", 12, "unitPrice"), "items[12].unitPrice"},
		{atEntry("items", 0, ""), `items[0][""]`},
		{At("metadata", "order-id_2"), "metadata.order-id_2"},
		{At("metadata", "a.b"), `metadata["a.b"]`},
		{At("", ""), `[""]`},
		{At("", "x\u202ey\n"), `["x\u202ey\n"]`},
		{At("", strings.Repeat("ã", 50)), `["` + strings.Repeat("ã", 40) + `..."]`},
		{At("metadata", "4111 1111 1111 1111"), "metadata[...]"},
		{At("", "4111111111111111"), "[...]"},
		{At("metadata", "card_4111111111111111"), "metadata[...]"},
	} {
		if got := tt.path.String(); got != tt.want {
			t.Errorf("path is %s, want %s", got, tt.want)
		}
	}
}

func TestReference(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"a": true, "": false, strings.Repeat("ã", 128): true, strings.Repeat("a", 129): false,
		"../%00": true, "a\x00": false, "a\n": false, "\u202e": true, "😀": true, "a\u0085": false, "\x7f": false,
	} {
		if got := ValidReference(text); got != want {
			t.Errorf("ValidReference(%q) = %v", text, got)
		}
	}
}
