package cli_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
		{"account list", "sandbox sandbox (all) frozen - TIME TIME 1 waits\n", 0},
		{"account resume sandbox", "porteira: The account is live already. Its payouts wait since the gateway's last start: once the transfers are compared, use --transfers-compared --reason TEXT --evidence TEXT.", 1},
		{"account suspend sandbox", " state suspended, frozen\n", 0},
		{"account show sandbox", " health payouts and refunds wait since the gateway's last start, ", 0},
		{"account drain sandbox", "it takes no new orders. Its payouts and refunds still wait since the gateway's last start; health says until when.\n", 0},
		{"account show sandbox --json", "\"state\": \"draining\",\n \"frozen\": true,\n", 0},
		{"account resume sandbox", " state frozen\n", 0},
		{"account resume sandbox --transfers-compared --as ana", "porteira: --reason: Required. --evidence: Required.", 2},
		{"account resume sandbox --evidence e", "belongs to --transfers-compared", 2},
		{"account resume sandbox --transfers-compared --reason r --evidence e", "name yourself with --as NAME", 2},
		{"account resume sandbox --transfers-compared --as ana --reason compared --evidence statement", "Proposed: the wait of account sandbox ends. Nothing has changed yet: another person must confirm it with the same command and another --as.", 0},
		{"account show sandbox", " state frozen\n", 0},
		{"case list", "account_frozen", 0},
		{"account resume sandbox --transfers-compared --as Ana --reason compared --evidence statement", "Another person, whose name looks different, must confirm it", 1},
		{"account resume sandbox --transfers-compared --as bia --reason compared --evidence statement", "Payouts of account sandbox continue within 2 seconds.", 0},
		{"account show sandbox", " state live\n", 0},
		{"account show sandbox", " health not tested\n", 0},
		{"case list", "No open cases", 0},
		{"verify", "decisions", 0},
		{"account resume sandbox --transfers-compared --as bia --reason compared --evidence statement", "porteira: The payouts of the account do not wait.", 1},
	} {
		stdout, stderr := s.run(tt.code, strings.Fields(tt.args)...)
		if got := regexp.MustCompile(` +`).ReplaceAllString(stdout+stderr, " "); !strings.Contains(got, tt.want) {
			t.Errorf("%s says %s", tt.args, got)
		}
	}
}

// The health of an account names the lists that cannot be read, since when and why; not one that
// its driver does not read.
func TestHealthNamesTheListsThatFail(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	for _, row := range []string{"'transfers', '', 1700000000000000, 5, x'', 12, 'no answer'", "'payments', '', 0, 5, x'', 0, ''", "'refunds', '', 0, 5, x'', 1, 'no answer'", "'changes', '', 0, 5, x'', 2, 'status 500'", "'costs', '', 0, 5, x'', 7, 'old'"} {
		s.exec("INSERT INTO feeds VALUES ('sandbox', " + row + ", 0, 0, 0, 5)")
	}
	const want = "these lists cannot be read: changes (2 failed reads): status 500; refunds (1 failed read), transfers (12 failed reads, complete until TIME): no answer"
	for _, args := range []string{"account list --json", "account show sandbox", "account show sandbox --json"} {
		if out, _ := s.run(0, strings.Fields(args)...); !strings.Contains(out, want) || strings.Contains(out, "costs") || strings.Contains(out, "payments") {
			t.Errorf("%s says %s", args, out)
		}
	}
	if out, _ := s.run(0, "account", "list"); !strings.Contains(out, " 1 failing\n") {
		t.Errorf("the table says %s", out)
	}
	s.exec("UPDATE feeds SET failures = 0, last_error = ''")
	if out, _ := s.run(0, "account", "show", "sandbox"); !strings.Contains(out, " health ok\n") {
		t.Errorf("once it was read: %s", out)
	}
}

// A refused secret is named, and what is wrong with it.
func TestRotateNamesTheInvalidSecret(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	secret := func(text string) string {
		s.t.Helper()
		path := filepath.Join(s.data, "secret")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "bank-secret=@" + path
	}
	s.run(0, "account", "add", "far", "--driver", "sandbox", "--set", "base-url=https://bank.example", "--secret", secret("0123456789abcdef"))
	if _, errs := s.run(2, "account", "rotate", "far", "--secret", secret("short")); errs != "porteira: Invalid account: secrets.bank-secret must have at least 16 characters.\n" {
		t.Errorf("rotate writes %q", errs)
	}
}

// The test of routes names the account because of which payouts are refused after a restore, and the
// case that stops payouts of the merchant or of an account.
func TestRouteTestNamesWhatStopsPayouts(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	s.run(0, "account", "add", "far", "--driver", "sandbox", "--set", "contract=far")
	s.exec("UPDATE installation SET history = 1, restored_at = 9000000000000000")
	s.exec("INSERT INTO feeds VALUES ('sandbox', 'transfers', '', 0, 5, x'', 0, '', 1, 1, 5, 5)")
	want := func(code int, operation, want string) {
		t.Helper()
		if out, _ := s.run(code, "route", "test", "Loja", "--amount", "100", "--operation", operation); out != want {
			t.Errorf("route test says %q, want %q", out, want)
		}
	}
	want(1, "payout", " sandbox: payouts wait after a restore until the lists of far have been read: porteira account show far\nNo account can take the order.\n")
	want(0, "payin", " sandbox: can take the order\n")
	for _, by := range []string{"ana", "bia"} {
		s.run(0, "account", "resume", "far", "--transfers-compared", "--as", by, "--reason", "r", "--evidence", "e")
	}
	want(0, "payout", " sandbox: can take the order\n")
	first, second := s.openCase(1, "payout_found", `{"reason":"paid_twice"}`), s.openCase(2, "contradiction", `{"reason":"paid_after_release"}`)
	s.exec("UPDATE cases SET stops_account = 'sandbox' WHERE kind = 'payout_found'")
	want(0, "payout", " sandbox: can take the order, but sends it only once a case is resolved: porteira case show "+first+"\n")
	if out, _ := s.run(0, "account", "show", "sandbox"); !strings.Contains(out, " health sends no payouts until a case is resolved: porteira case show "+first+"\n") {
		t.Errorf("account show says %s", out)
	}
	s.exec("UPDATE cases SET stops_payouts = 1 WHERE kind = 'contradiction'")
	want(1, "payout", " sandbox: the merchant's payouts are stopped until a case is resolved: porteira case show "+second+"\nNo account can take the order.\n")
	want(0, "payin", " sandbox: can take the order\n")
}

// An account that was added after the restore makes the payouts of its merchants wait too: setting
// the route says so.
func TestRouteSetNamesTheAccountThatPayoutsWaitFor(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	s.run(0, "account", "add", "late", "--driver", "sandbox", "--set", "contract=late")
	s.exec("UPDATE installation SET history = 1, restored_at = 1")
	s.exec("INSERT INTO feeds VALUES ('sandbox', 'transfers', '', 0, 5, x'', 0, '', 1, 1, 5, 5)")
	const warning = "\nNew payouts of this merchant are refused: payouts wait after a restore until the lists of late have been read: porteira account show late.\n"
	for _, tt := range []struct {
		operation, accounts string
		warns               bool
	}{{"payout", "sandbox", false}, {"payin", "sandbox,late", false}, {"payout", "sandbox,late", true}} {
		if out, _ := s.run(0, "route", "set", "Loja", tt.accounts, "--operation", tt.operation); strings.Contains(out, warning) != tt.warns {
			t.Errorf("route set of %s to %s says %q", tt.operation, tt.accounts, out)
		}
	}
}

// A file of accounts is applied once: the same file again changes nothing. An invalid
// account in it changes nothing.
func TestAccountApply(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	file, secret := filepath.Join(s.data, "accounts.json"), filepath.Join(s.data, "secret")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	second := func(port int, state string) string {
		return fmt.Sprintf(`{"id": "second", "driver": "sandbox", "merchant": "Loja", "state": %q, "settings": {"base-url": "http://127.0.0.1:%d"}, "secrets": {"bank-secret": "@%s"}}`,
			state, port, secret)
	}
	write(secret, "a-secret-of-the-second-bank")
	for i, tt := range []struct {
		file, args, want string
		code             int
	}{
		{second(1, ""), "--dry-run", " new second\nNothing was changed (--dry-run).\n", 0},
		{second(1, "closed") + "," + `{"id": "Third", "driver": "bank"}`, "", "porteira: second: Invalid account: state must be live, draining or suspended. " +
			"Third: Invalid account: name must have 1 to 40 small letters, digits or hyphens, and not begin with a hyphen; driver is unknown: bank.\n", 2},
		{second(1, "") + "," + strings.Replace(second(1, ""), "second", "third", 1), "", "porteira: third: Its contract is that of second: its payments would be booked twice.\n", 2},
		{second(1, "draining"), "", " new second\nApplied. Running gateways follow within 2 seconds.\n", 0},
		{second(1, ""), "", " same second\nApplied. Running gateways follow within 2 seconds.\n", 0},
		{second(1, "live"), "", " changed second: state from \"draining\" to \"live\"\n changed second: secrets.bank-secret\nApplied. Running gateways follow within 2 seconds.\n", 0},
		{second(1, "live"), "--json", "{\n \"applied\": true,\n \"changes\": []\n}\n", 0},
		{second(2, "live"), "", "porteira: second: The settings are of another contract, whose payments this account does not have: add another account. To correct one that was never used, suspend it first: porteira account suspend second.\n", 2},
		{`{"id": "sandbox", "driver": "sandbox", "merchant": "Loja"}`, "", "porteira: sandbox: The driver and the merchant of an account stay: add another account.\n", 2},
	} {
		if i == 5 {
			write(secret, "another-secret-of-the-second-bank")
		}
		write(file, `{"accounts": [`+tt.file+`]}`)
		stdout, stderr := s.run(tt.code, append([]string{"account", "apply", file}, strings.Fields(tt.args)...)...)
		if got := regexp.MustCompile(` +`).ReplaceAllString(stdout+stderr, " "); got != tt.want {
			t.Errorf("%d: apply says\n%s\nwant\n%s", i, got, tt.want)
		}
	}
	for text, want := range map[string]string{
		`{"accounts": [], "routes": []}`: "/routes is not a field",
		`{"accounts": [{"id": 5}]}`:      "/accounts/0/id must not be a JSON number",
		`{"accounts": [}`:                "jsontext: ",
	} {
		write(file, text)
		if _, stderr := s.run(2, "account", "apply", file); !strings.Contains(stderr, want) || strings.Contains(stderr, "Go ") {
			t.Errorf("%s: %s, want %q", text, stderr, want)
		}
	}
	if stdout, _ := s.run(0, "account", "show", "second", "--json"); !strings.Contains(stdout, `"rotating": true`) {
		t.Errorf("the replaced secret stays valid: %s", stdout)
	}
}

// An account that was added with a wrong contract is corrected while it was never used.
func TestAccountIsCorrected(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file, secret := filepath.Join(s.data, "accounts.json"), filepath.Join(s.data, "secret")
	declare := func(port int) {
		t.Helper()
		text := fmt.Sprintf(`{"accounts": [{"id": "second", "driver": "sandbox", "settings": {"base-url": "http://127.0.0.1:%d"}, "secrets": {"bank-secret": "@%s"}}]}`, port, secret)
		if err := errors.Join(os.WriteFile(secret, []byte("a-secret-of-the-second-bank"), 0o600), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	declare(1)
	s.run(0, "account", "apply", file)
	declare(2)
	if _, stderr := s.run(2, "account", "apply", file); !strings.Contains(stderr, "suspend it first: porteira account suspend second.") {
		t.Errorf("a live account: %s", stderr)
	}
	s.run(0, "account", "suspend", "second")
	if stdout, _ := s.run(0, "account", "apply", file); !strings.Contains(stdout, "127.0.0.1:2") {
		t.Errorf("one that was never used: %s", stdout)
	}
	s.exec("INSERT INTO feeds VALUES ('second', 'transfers', '', 5, 5, x'', 0, '', 0, 0, 0, 5)")
	declare(3)
	if _, stderr := s.run(2, "account", "apply", file); !strings.Contains(stderr, "or its lists were read") {
		t.Errorf("one that was used: %s", stderr)
	}
}

// The address for notices is registered at the processor, if the gateway has a public one.
func TestAccountInstall(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	registered := make(chan string, 1)
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		registered <- r.Method + " " + r.URL.Path + " " + string(body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(bank.Close)
	secret := filepath.Join(s.data, "secret")
	if err := os.WriteFile(secret, []byte("a-secret-of-the-second-bank"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(0, "account", "add", "second", "--driver", "sandbox", "--set", "base-url="+bank.URL, "--secret", "bank-secret=@"+secret)
	if _, stderr := s.run(1, "account", "install", "second"); stderr != "porteira: The gateway has no public URL: set --public-url.\n" {
		t.Errorf("without a public URL: %s", stderr)
	}
	s.run(0, "account", "install", "second", "--public-url", "https://pay.example")
	if got := <-registered; !regexp.MustCompile(`^PUT /notify-urls \{"url":"https://pay.example/inbound/second/[0-9a-f]{64}","ttlSeconds":120\}$`).MatchString(got) {
		t.Errorf("registered %s", got)
	}
	bank.Close()
	s.run(1, "account", "install", "second", "--public-url", "https://pay.example")
}

// A rotation ends only once the processor accepts the new secrets, without the previous ones; the test and the
// account say whether it does.
func TestRotationToWrongSecrets(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	secret := func(text string) string {
		path := filepath.Join(s.data, text)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "bank-secret=@" + path
	}
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), "wrong") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"data":[],"nextCursor":"","more":false,"balance":0}`))
	}))
	defer bank.Close()
	s.run(0, "account", "add", "far", "--driver", "sandbox", "--set", "base-url="+bank.URL, "--secret", secret("first-secret-of-the-bank"))
	s.run(0, "account", "rotate", "far", "--secret", secret("wrong-secret-of-the-bank"))
	for _, step := range []struct {
		args string
		code int
		want string
	}{
		{"account show far", 0, "not tried yet: porteira account test far"},
		{"account test far", 1, "new secrets: The processor refuses them"},
		{"account show far", 0, "refused at TIME"},
		{"account show far --json", 0, `"newSecrets": "refused"`},
		{"account rotate far --finish", 1, "The new secrets have not been accepted"},
		{"account rotate far --secret " + secret("second-secret-of-the-bank"), 0, "not tried yet"},
		{"account rotate far --finish", 0, "The previous secrets of account far are refused within 2 seconds."},
		{"account rotate far --secret " + secret("wrong-secret-of-the-bank"), 0, "not tried yet"},
		{"account rotate far --finish --force", 0, "The previous secrets"},
	} {
		stdout, stderr := s.run(step.code, strings.Fields(step.args)...)
		if !strings.Contains(stdout+stderr, step.want) {
			t.Errorf("%s says %s%s, want %q", step.args, stdout, stderr, step.want)
		}
	}
}
