package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/cli"
	"github.com/porteira/porteira/internal/env"
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

// dev runs porteira dev on the shell's database, or another one that args name, while it calls a
// function with its address.
func (s *shell) dev(use func(base string), args ...string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	read, write := io.Pipe()
	p := cli.Program{
		Args:    append([]string{"dev", "--json", "--listen", "127.0.0.1:0", "--log-level", "error"}, args...),
		Environ: []string{"PORTEIRA_DATA=" + s.data, "PORTEIRA_MASTER_KEY=" + masterKey}, Stdout: write, Stderr: io.Discard,
	}
	code := make(chan int, 1)
	go func() {
		code <- p.Run(ctx)
		_ = write.Close()
	}()
	var g struct {
		BaseURL string `json:"baseUrl"`
	}
	if err := json.NewDecoder(read).Decode(&g); err != nil {
		s.t.Fatal(err)
	}
	use(g.BaseURL)
	cancel()
	if got := <-code; got != 0 {
		s.t.Errorf("dev ends with %d", got)
	}
}

// A decision says whether it counted, who decided before, and how many people are missing.
func TestPayoutDecisionsByPersons(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.dev(func(string) {}) // which creates the merchant
	s.run(0, "limit", "set", "sandbox", "--approval-above", "100", "--approvals", "2", "--as", "chefe")
	ids := map[string]string{}
	s.dev(func(base string) {
		w := env.System(env.OutboundOptions{})
		for _, reference := range []string{"approved", "rejected"} {
			body := `{"amount":500,"pixKey":"maria@example.com","pixKeyType":"EMAIL","beneficiaryName":"Maria","beneficiaryDocument":"52998224725","referenceId":"` + reference + `"}`
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/payout", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {"sandbox_key"}, "X-Api-Secret": {"sandbox_secret"}}
			answer, err := w.Processor.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			var p struct {
				ID string `json:"id"`
			}
			if err := json.NewDecoder(answer.Body).Decode(&p); err != nil || p.ID == "" {
				t.Fatalf("answered %d: %v", answer.StatusCode, err)
			}
			_, ids[reference] = answer.Body.Close(), p.ID
		}
		w.Processor.(interface{ CloseIdleConnections() }).CloseIdleConnections()
	})
	const payout = `: payout ID of merchant "sandbox", R$ 5.00, is `
	for _, row := range []struct{ action, of, person, stdout string }{
		{"approve", "approved", "ana", "Approved as ana" + payout + "PENDING, approval required; 1 of 2 approvals: another person is needed.\n"},
		{"approve", "approved", "Ana", "Nothing changed, already approved by ana" + payout + "PENDING, approval required; 1 of 2 approvals: another person is needed.\n"},
		{"approve", "approved", "zeca", "Approved as zeca" + payout + "PENDING, approval approved.\n"},
		{"approve", "approved", "bia", "Nothing changed, already approved by ana and zeca" + payout + "PENDING, approval approved.\n"},
		{"reject", "rejected", "zeca", "Rejected as zeca" + payout + "CANCELED, approval rejected.\n"},
		{"reject", "rejected", "other", "Nothing changed, already rejected by zeca" + payout + "CANCELED, approval rejected.\n"},
	} {
		if stdout, _ := s.run(0, "payout", row.action, ids[row.of], "--as", row.person); stdout != row.stdout {
			t.Errorf("%s as %s prints\n%swant\n%s", row.action, row.person, stdout, row.stdout)
		}
		if shown, _ := s.run(0, "payout", "show", ids[row.of]); strings.Contains(shown, "\napproval required, 1 of 2 given\n") != strings.Contains(row.stdout, "1 of 2") {
			t.Errorf("after %s as %s it is shown as\n%s", row.action, row.person, shown)
		}
	}
	out, _ := s.run(0, "payout", "list", "--merchant", "sandbox")
	if !strings.HasPrefix(out, "CREATED ID STATUS STEP AMOUNT ACCOUNT REFERENCE\n") || strings.Count(out, "\n") != 3 ||
		!strings.Contains(out, " PENDING queued 5.00 sandbox approved\n") || !strings.Contains(out, " CANCELED rejected 5.00 sandbox rejected\n") {
		t.Errorf("payouts are\n%s", out)
	}
	if out, _ = s.raw(0, "payout", "list", "--status", "canceled", "--json"); strings.Count(out, `"id"`) != 1 || !strings.Contains(out, `"referenceId": "rejected"`) || strings.Contains(out, "maria") {
		t.Errorf("canceled payouts are\n%s", out)
	}
	s.wantRevealed(ids["rejected"])
	if out, _ = s.run(0, "payout", "list", "--status", "failed"); out != "No payouts.\n" {
		t.Errorf("failed payouts are\n%s", out)
	}
	out, _ = s.run(0, "payout", "approve", ids["approved"], "--as", "ana", "--json")
	for _, want := range []string{`"recorded": false`, `"approvalsGiven": 2`, `"approvalsNeeded": 2`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
}

// wantRevealed checks that a payout is shown with personal data only with a reason, which the audit has.
func (s *shell) wantRevealed(rejected string) {
	t := s.t
	t.Helper()
	s.exec("UPDATE payouts SET end_to_end_id = 'E5'")
	if out, _ := s.run(0, "payout", "show", rejected); strings.Contains(out, "maria@") || strings.Contains(out, "Maria") || strings.Contains(out, "52998224725") {
		t.Errorf("a payout is shown with personal data:\n%s", out)
	}
	s.run(2, "payout", "show", rejected, "--reveal", "--as", "ana")
	out, _ := s.run(0, "payout", "show", rejected, "--reveal", "--as", "ana", "--reason", "approval")
	if audit, _ := s.run(0, "audit", "list", "--limit", "1"); !strings.Contains(audit, "reveal") || !strings.Contains(audit, "ana") || !strings.Contains(audit, "approval") {
		t.Errorf("the audit lacks who saw the beneficiary:\n%s", audit)
	}
	for _, want := range []string{"\nendToEndId E5\n", "\nPix key EMAIL maria@example.com\n", "\nbeneficiary Maria\n", "\namount R$ 5.00\n", "\nrejected zeca TIME\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
