package cli_test

import (
	"strings"
	"testing"
)

func TestPayoutApproval(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	const id = "01a1fc88-370d-71db-9c03-c351fb553c2e"
	for _, row := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"payout approve " + id + " --as ana", 1, "porteira: payout ID not found\n"},
		{"payout reject " + id + " --as ana --reason no --json", 1, "porteira: payout ID not found\n"},
		{"payout approve x --as ana", 2, "porteira: \"x\" is not the id of a payout\n"},
		{"payout approve", 2, "*"},
	} {
		stdout, stderr := s.run(row.code, strings.Fields(row.args)...)
		if stdout != "" || row.stderr != "*" && stderr != row.stderr {
			t.Errorf("%s: %q %q, want %q", row.args, stdout, stderr, row.stderr)
		}
	}
}
