package cli_test

import (
	"regexp"
	"strings"
	"testing"
)

// After a restore an account is shown as frozen until its transfers are read or a person
// has compared them.
func TestFrozenAccount(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	s.exec("UPDATE installation SET history = 1")
	for _, tt := range []struct {
		args, want string
		code       int
	}{
		{"account list", "sandbox sandbox (all) frozen ok", 0},
		{"account resume sandbox", "porteira: The account is live already. Its payouts wait after a restore: once the transfers are compared, use --transfers-compared.", 1},
		{"account suspend sandbox", " state suspended\n", 0},
		{"account resume sandbox", " state frozen\n", 0},
		{"account resume sandbox --transfers-compared", "Payouts of account sandbox continue within 2 seconds.", 0},
		{"account show sandbox", " state live\n", 0},
		{"account resume sandbox --transfers-compared", "porteira: The payouts of the account do not wait after a restore.", 1},
	} {
		stdout, stderr := s.run(tt.code, strings.Fields(tt.args)...)
		if got := regexp.MustCompile(` +`).ReplaceAllString(stdout+stderr, " "); !strings.Contains(got, tt.want) {
			t.Errorf("%s says %s", tt.args, got)
		}
	}
}
