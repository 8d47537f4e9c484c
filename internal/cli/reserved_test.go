package cli_test

import (
	"strings"
	"testing"
)

// A word that removes a list is not accepted as a name in it: an account named none could not be routed,
// because route set would remove the routes.
func TestReservedNames(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja", "--return-host", "loja.example")
	for _, tt := range []struct{ args, want string }{
		{"account add none --driver sandbox", "porteira: Invalid account: name must not be none, which removes the routes in porteira route set"},
		{"merchant create Casa --return-host none", "porteira: No host may have the name none: it stands for no hosts in porteira merchant update.\n"},
		{"merchant create Casa --webhook-host casa.example --webhook-host None", "porteira: No host may have the name none: it stands for no hosts in porteira merchant update.\n"},
		{"merchant update Loja --return-host none --return-host casa.example", "porteira: none removes all hosts: write it alone\n"},
	} {
		if out, errs := s.run(2, strings.Fields(tt.args)...); out != "" || !strings.HasPrefix(errs, tt.want) {
			t.Errorf("%s says %q and %q, want %q", tt.args, out, errs, tt.want)
		}
	}
	if out, _ := s.run(0, "merchant", "show", "Loja"); !strings.Contains(out, " return hosts loja.example\n") {
		t.Errorf("the merchant is\n%s", out)
	}
}

// A status that does not exist is refused: else an operator who mistypes it would read that no payout
// waits for approval.
func TestUnknownStatuses(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	for noun, want := range map[string]string{
		"payout":  "porteira: --status must be one of PENDING, PROCESSING, COMPLETED, FAILED, CANCELED, RETURNED, not \"pendng\"\n",
		"dispute": "porteira: --status must be one of OPEN, SUBMITTED, WON, LOST, REVERSED, not \"pendng\"\n",
	} {
		if out, errs := s.run(2, noun, "list", "Loja", "--status", "pendng"); out != "" || errs != want {
			t.Errorf("%s list says %q and %q, want %q", noun, out, errs, want)
		}
	}
}
