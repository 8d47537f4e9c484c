package cli_test

import (
	"strings"
	"testing"
)

// An option of which the value is empty, as of a variable that is not set, is not taken for one
// that was left out.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja", "--return-host", "loja.example")
	before, _ := s.run(0, "merchant", "show", "Loja")
	for _, args := range [][]string{
		{"credential", "create", "Loja", "--scope", "read", "--allow-ip", ""},
		{"credential", "create", "Loja", "--scope="},
		{"merchant", "create", "Casa", "--webhook-host", ""},
		{"merchant", "update", "Loja", "--return-host", ""},
		{"limit", "set", "Loja", "--payin-minimum", ""},
		{"route", "set", "Loja", "--operation", "payin", ""},
	} {
		if out, errs := s.run(2, args...); out != "" || !strings.HasSuffix(errs, ": the value is empty: write one, or leave it out; porteira --help lists the commands\n") {
			t.Errorf("%q writes %q and %q", args, out, errs)
		}
	}
	if after, _ := s.run(0, "merchant", "show", "Loja"); after != before {
		t.Errorf("the merchant was %q and is %q", before, after)
	}
	if out, _ := s.run(0, "credential", "list", "Loja", "--json"); out != "[]\n" {
		t.Errorf("the credentials are %s", out)
	}
}
