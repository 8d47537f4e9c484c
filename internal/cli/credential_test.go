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

// A network of IPv4 that is written as IPv6 allows the addresses that it names.
func TestAllowedNetworks(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	s.run(0, "credential", "create", "Loja", "--allow-ip", "::ffff:203.0.113.7", "--allow-ip", "::ffff:10.1.2.3/104", "--allow-ip", "2001:db8::7")
	if out, _ := s.run(0, "credential", "list", "Loja"); !strings.Contains(out, " 203.0.113.7/32 10.0.0.0/8 2001:db8::7/128 ") {
		t.Errorf("the list is %q", out)
	}
}

// The list names the credentials that are refused because their rows were changed.
func TestListOfChangedCredentials(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	s.run(0, "credential", "create", "Loja", "--label", "first", "--scope", "read")
	s.run(0, "credential", "create", "Loja", "--label", "second", "--scope", "read")
	s.exec("UPDATE credentials SET allowed_ips = 'junk' WHERE label = 'first'")
	out, _ := s.run(0, "credential", "list", "Loja")
	const want = "X-API-KEY MERCHANT LABEL SCOPES FROM CREATED EXPIRES REVOKED CHANGED BY\nPTR Loja first read TIME TIME os:USER CHANGED OUTSIDE: refused; revoke it\nPTR Loja second read TIME TIME os:USER\n"
	if out != want {
		t.Errorf("the list is %q, want %q", out, want)
	}
}
