package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/porteira/porteira/internal/cli"
	"github.com/porteira/porteira/internal/env"
)

// masterKey is 32 bytes in base64.
const masterKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// shell runs commands on one database.
type shell struct {
	t    *testing.T
	data string
	keys []string // environment, in place of masterKey
}

func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{t: t, data: filepath.Join(t.TempDir(), "data")} // which migrate creates, for its user only
	if out, _ := s.run(0, "migrate"); !regexp.MustCompile(`^Applied 1 migration; the schema is at version \d+\.\n$`).MatchString(out) {
		t.Errorf("migrate says %q", out)
	}
	return s
}

// changes are the parts of outputs that differ between runs.
var changes = []struct {
	pattern *regexp.Regexp
	mark    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`ptr_(key|secret)_[a-z2-7]+`), "PTR"},
	{regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`), "WHSEC"},
	{regexp.MustCompile(`, hash [0-9a-f]{64}`), ", hash HASH"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`due for \d+d`), "due for DAYS"},
	{regexp.MustCompile(`os:[^\s"]+`), "os:USER"},
	{regexp.MustCompile(` +`), " "},
}

// run runs a command, checks its exit code, and returns its output with the parts that
// differ between runs replaced.
func (s *shell) run(code int, args ...string) (stdout, stderr string) {
	s.t.Helper()
	out, errs := s.raw(code, args...)
	for _, c := range changes {
		out, errs = c.pattern.ReplaceAllString(out, c.mark), c.pattern.ReplaceAllString(errs, c.mark)
	}
	return strings.ReplaceAll(out, s.data, "DATA"), strings.ReplaceAll(errs, s.data, "DATA")
}

func (s *shell) raw(code int, args ...string) (stdout, stderr string) {
	s.t.Helper()
	var out, errs bytes.Buffer
	p := cli.Program{Args: args, Environ: append([]string{"PORTEIRA_DATA=" + s.data, "PORTEIRA_MASTER_KEY=" + masterKey}, s.keys...), Stdout: &out, Stderr: &errs}
	if got := p.Run(s.t.Context()); got != code {
		s.t.Errorf("%v ends with %d, want %d: %s%s", args, got, code, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// The details of a merchant are changed one by one.
func TestMerchantUpdate(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	const shown = " created TIME\n closed \n title Papelaria\n document \n colour \n logo \n"
	saved := func(name string) string {
		return "Saved merchant \"" + name + "\": running gateways follow within 2 seconds.\n\n id ID\n number 1\n name " + name + "\n city OLINDA\n accounts sandbox\n"
	}
	for _, tt := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"merchant update Loja --return-host WWW.loja.example --return-host shop.example --webhook-host hooks.loja.example --city OLINDA --title Papelaria", 0,
			saved("Loja") + " return hosts www.loja.example, shop.example\n webhook hosts hooks.loja.example\n" + shown, ""},
		{"merchant update Loja --return-host none --name Casa", 0, saved("Casa") + " return hosts \n webhook hosts hooks.loja.example\n" + shown, ""},
		{"merchant show Loja", 1, "", "porteira: merchant \"Loja\" not found: porteira merchant list lists all merchants\n"},
		{"merchant update Casa --return-host https://loja.example", 2, "",
			"porteira: \"https://loja.example\" is not a host: write its name without scheme, port or path, such as shop.example.\n"},
		{"merchant update Casa --city=", 2, "", "porteira: A merchant's city must have 1 to 255 bytes of printable characters.\n"},
		// The name is not changed without the brand, so the corrected command finds the merchant.
		{"merchant update Casa --name Nova --logo missing.png", 2, "", "porteira: cannot read the logo: open missing.png: no such file or directory\n"},
		{"merchant update Casa --name Nova --color red", 2, "", "porteira: The colour must have the form #rrggbb.\n"},
		{"merchant update Casa --name= --title Nova", 2, "", "porteira: A merchant's name must have 1 to 255 bytes of printable characters.\n"},
		{"merchant show Casa", 0, strings.TrimPrefix(saved("Casa"), "Saved merchant \"Casa\": running gateways follow within 2 seconds.\n\n") +
			" return hosts \n webhook hosts hooks.loja.example\n" + shown, ""},
	} {
		stdout, stderr := s.run(tt.code, strings.Fields(tt.args)...)
		if stdout != tt.stdout || stderr != tt.stderr {
			t.Errorf("%s\nwrites %q\nwant   %q\nand    %q\nwant   %q", tt.args, stdout, tt.stdout, stderr, tt.stderr)
		}
	}
}

// All commands on one database, in the order of a setup.
func TestCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const hashes = " payouts with their approvals, webhook endpoints, replaced prices, accounts, and the merchant's limits, hosts, routes and prices, are as the gateway wrote them\n"
	const verified = "Loja\n ok hashes 1" + hashes + " ok credentials 1 each credential is as the gateway wrote it\n\n" +
		"platform\n ok hashes 2" + hashes + " ok audit 6 changes of the configuration are numbered from 1 without a gap, and each hash covers its row and the row before\n\n" +
		"Last change of the audit 6, hash HASH.\nVerified 2 ledgers: no defects.\n"
	for _, tt := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"migrate", 0, "The schema is up to date.\n", ""},
		{"merchant list", 0, "NUMBER NAME CITY ACCOUNTS CREATED CLOSED ID\n", ""},
		{"merchant create Loja --city RECIFE --return-host loja.example", 0,
			"Created merchant \"Loja\".\n\n id ID\n number 1\n account sandbox\n webhook secret WHSEC\n\nNext, create a credential for its program: porteira credential create \"Loja\"\n", ""},
		{"merchant create Loja", 2, "", "porteira: A merchant with this name already exists.\n"},
		{"merchant list", 0, "NUMBER NAME CITY ACCOUNTS CREATED CLOSED ID\n1 Loja RECIFE sandbox TIME ID\n", ""},
		{"credential list Loja", 0, "No credentials: porteira credential create \"Loja\" creates one.\n", ""},
		{"dispute list Nobody", 1, "", "porteira: merchant \"Nobody\" not found: porteira merchant list lists all merchants\n"},
		{"payout list Loja", 0, "No payouts.\n", ""},
		{"payout list Loja --merchant Loja", 0, "No payouts.\n", ""},
		{"payout list Loja --merchant Nobody", 2, "", "porteira: the argument names merchant \"Loja\" and --merchant names \"Nobody\": write one of them\n"},
		{"dispute list --merchant Nobody", 1, "", "porteira: merchant \"Nobody\" not found: porteira merchant list lists all merchants\n"},
		{"credential create Loja --scope read --scope payin:write --allow-ip 10.0.0.1 --label till", 0,
			"Created a credential of merchant \"Loja\". The secret is shown only this once.\n\n x-api-key PTR\n x-api-secret PTR\n scopes read payin:write\n", ""},
		{"credential create Nobody", 1, "", "porteira: merchant \"Nobody\" not found: porteira merchant list lists all merchants\n"},
		{"credential create Loja --allow-ip here", 2, "", "porteira: \"here\" is neither an IP address nor a network: write 203.0.113.7 or 203.0.113.0/24\n"},
		{"credential create Loja --expires-in=-1h", 2, "", "porteira: --expires-in: write days or hours, such as 90d or 36h; at least 1h; porteira credential create --help explains it\n"},
		{"credential list Loja", 0, "X-API-KEY MERCHANT LABEL SCOPES FROM CREATED EXPIRES REVOKED CHANGED BY\nPTR Loja till read payin:write 10.0.0.1/32 TIME TIME os:USER\n", ""},
		{"credential rotate x", 1, "", "porteira: credential \"x\" not found, or revoked: porteira credential list MERCHANT lists them\n"},
		{"credential rotate x --overlap 8d", 2, "", "porteira: --overlap: write days or hours, from 0s to 7d, such as 24h; porteira credential rotate --help explains it\n"},
		{"credential rotate x --overlap=-1s", 2, "", "porteira: --overlap: write days or hours, from 0s to 7d, such as 24h; porteira credential rotate --help explains it\n"},
		{"credential revoke x", 1, "", "porteira: credential \"x\" not found, or already revoked: porteira credential list MERCHANT lists them\n"},
		{"merchant brand Loja", 0, " title \n document \n colour \n logo \n", ""},
		{"merchant brand Loja --title Livraria --document 11222333000181 --color #00AA77", 0,
			"Saved the brand of \"Loja\".\n\n title Livraria\n document 11222333000181\n colour #00aa77\n logo \n", ""},
		{"merchant brand Loja --color red", 2, "", "porteira: The colour must have the form #rrggbb.\n"},
		{"merchant brand Loja --document 11222333000182", 2, "", "porteira: The document must be a valid CPF (11 digits) or CNPJ (14 characters), without punctuation.\n"},
		{"merchant brand Loja --logo cli.go", 2, "", "porteira: The logo must be a PNG or JPEG of at most 1024 pixels per side.\n"},
		{"merchant brand Loja --logo nothing.png", 2, "", "porteira: cannot read the logo: open nothing.png: no such file or directory\n"},
		{"merchant close Loja", 0, "Closed merchant \"Loja\": its credentials are refused within 2 seconds.\n", ""},
		{"merchant close Loja", 1, "", "porteira: merchant \"Loja\" was closed at TIME\n"},
		{"credential create Loja", 1, "", "porteira: merchant \"Loja\" was closed at TIME: its credentials are refused\n"},
		{"case list", 0, "No open cases.\n", ""},
		{"case list --limit 0", 2, "", "porteira: --limit must be at least 1, not 0\n"},
		{"verify", 0, verified, ""},
		{"backup --to DATA/copy.db", 0, "Copied the database to DATA/copy.db. The copy does not contain the master key: back up the key separately.\n", ""},
		{"backup --to DATA/copy.db", 1, "", "porteira: DATA/copy.db already exists: choose another file\n"},
		{"verify --database DATA/copy.db", 0, verified, ""},
		{"verify --merchant Nobody", 1, "", "porteira: merchant \"Nobody\" not found: porteira merchant list lists all merchants\n"},
		{"verify --database DATA/none.db", 1, "", "porteira: database DATA/none.db not found: set its folder with --data, or its path with --database\n"},
		{"dev --listen nowhere", 2, "", "porteira: listen (flag): write it as host:port, such as 127.0.0.1:8080 or :8080\n"},
		{"dev --listen", 2, "", "porteira: --listen: write a value behind it; porteira dev --help explains it\n"},
		{"serve --listn :1", 2, "", "porteira: unknown flag --listn, did you mean \"--listen\"?; porteira serve --help explains it\n"},
		{"bench payin --concurrency 0", 2, "", "porteira: invalid options: concurrency must be 1 to 10000\n"},
		{"bench payin --database host=db", 2, "", "porteira: invalid options: database must be a PostgreSQL URL, postgres://user@host/name; without one the run uses SQLite\n"},
		{"bench payin --url 127.0.0.1:80", 2, "", "porteira: invalid options: write the gateway's address as http://host:port\n"},
		{"bench payin --url http://127.0.0.1:1 --merchants 2", 2, "", "porteira: invalid options: a running gateway (URL) allows one merchant only\n"},
		{"bank", 2, "", "porteira: bank-secret is missing: gateways verify the bank's notices with it; set PORTEIRA_BANK_SECRET to at least 16 characters, the same for the bank and its gateways\n"},
		{"open", 2, "", "porteira: unexpected argument open; porteira --help lists the commands\n"},
	} {
		args := strings.Fields(strings.ReplaceAll(tt.args, "DATA", s.data))
		stdout, stderr := s.run(tt.code, args...)
		if stdout != tt.stdout || stderr != tt.stderr {
			t.Errorf("%s\nwrites %q\nwant   %q\nand    %q\nwant   %q", tt.args, stdout, tt.stdout, stderr, tt.stderr)
		}
	}
}

// JSON output has everything that text output has, and is the only output.
func TestJSON(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	object := func(args ...string) (v map[string]any) {
		t.Helper()
		out, errs := s.raw(0, append(args, "--json")...)
		if err := json.Unmarshal([]byte(out), &v); err != nil || errs != "" {
			t.Fatalf("%v: %v in %s%s", args, err, out, errs)
		}
		return v
	}
	list := func(args ...string) (v []map[string]any) {
		t.Helper()
		out, _ := s.raw(0, append(args, "--json")...)
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Fatalf("%v: %v in %s", args, err, out)
		}
		return v
	}
	if v := object("migrate"); len(v["applied"].([]any)) != 0 {
		t.Errorf("migrate: %v", v)
	}
	m := object("merchant", "create", "Loja")
	if m["name"] != "Loja" || m["number"] != 1.0 || !strings.HasPrefix(m["webhookSecret"].(string), "whsec_") {
		t.Errorf("merchant: %v", m)
	}
	c := object("credential", "create", "Loja", "--expires-in", "1d")
	if c["expiresAt"] == nil || !strings.HasPrefix(c["apiSecret"].(string), "ptr_secret_") || len(c["scopes"].([]any)) != 5 {
		t.Errorf("credential: %v", c)
	}
	next := object("credential", "rotate", c["apiKey"].(string), "--overlap", "2h")
	if next["apiKey"] != c["apiKey"] || next["keyId"] != c["apiKey"] || next["apiSecret"] == c["apiSecret"] || next["apiSecret"] == nil || next["previousSecretEndsAt"] == nil {
		t.Errorf("rotated: %v", next)
	}
	if next = object("credential", "rotate", c["apiKey"].(string), "--overlap", "0s"); next["previousSecretEndsAt"] != nil {
		t.Errorf("rotated without overlap: %v", next)
	}
	if out, _ := s.run(0, "credential", "rotate", c["apiKey"].(string)); out != "Rotated PTR. The new secret is shown only this once.\n\n x-api-key PTR\n x-api-secret PTR\n previous secret ends TIME\n" {
		t.Errorf("rotate writes %q", out)
	}
	revoked := object("credential", "revoke", c["apiKey"].(string))
	if _, shown := revoked["apiSecret"]; shown || revoked["revokedAt"] == nil {
		t.Errorf("revoked: %v", revoked)
	}
	if v := list("credential", "list", "Loja"); len(v) != 1 || v[0]["revokedAt"] == nil {
		t.Errorf("credentials: %v", v)
	}
	if v := list("merchant", "list"); len(v) != 1 || v[0]["id"] != m["id"] {
		t.Errorf("merchants: %v", v)
	}
	if v := list("case", "list"); len(v) != 0 {
		t.Errorf("cases: %v", v)
	}
	if v := object("verify"); v["defects"] != 0.0 || len(v["merchants"].([]any)) != 2 {
		t.Errorf("verified: %v", v)
	}
	if v := list("config", "--for", "serve"); len(v) < 10 || strings.Contains(asText(v), masterKey) {
		t.Errorf("config: %v", v)
	}
	text, _ := s.run(0, "version")
	if flag, _ := s.run(0, "--version"); flag != text || !strings.HasPrefix(text, "porteira ") {
		t.Errorf("--version prints %q, version %q", flag, text)
	}
	if v := object("version"); v["go"] == "" {
		t.Errorf("version: %v", v)
	}
}

func asText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// exec changes the database without the program.
func (s *shell) exec(text string) {
	s.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(s.data, "porteira.db"))
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := db.ExecContext(s.t.Context(), text); err != nil {
		s.t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func TestCaseList(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	s.exec("INSERT INTO cases SELECT id, CAST(zeroblob(15) || x'01' AS BLOB), 'dispute_unexpected', id, 1990, '{\"status\":\"EXPIRED\"}', 0, '', '', 1700000000000000, 0 FROM merchants")
	out, _ := s.run(0, "case", "list")
	want := "TIME Loja dispute_unexpected R$ 19.90\n The processor reports a dispute of an order in status EXPIRED. Nothing was posted: compare the processor's statement.\n case 00000000-0000-0000-0000-000000000001\n subject ID\n"
	if !strings.Contains(out, want) || !strings.Contains(out, "TIME (no merchant) dispute_unexpected") ||
		!strings.HasSuffix(out, "\n2 open cases. porteira case show ID shows how to resolve one.\n") {
		t.Errorf("cases are\n%s", out)
	}
	out, _ = s.raw(0, "case", "list", "--json", "--limit", "1")
	if strings.Count(out, `"amount": 1990`) != 1 || strings.Count(out, `"status": "EXPIRED"`) != 1 {
		t.Errorf("cases are\n%s", out)
	}
}

// A defect is reported with its ledger and check, and in the exit code.
func TestVerifyDefect(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	s.exec("INSERT INTO balances SELECT id, 'available', 7, 0, 0, x'', 0 FROM merchants WHERE number = 1")
	out, _ := s.run(1, "verify")
	for _, want := range []string{
		"Loja\n DEFECT balances 0 each balance is the sum of its account's postings\n",
		"balances available: stored 7, postings add up to 0\n",
		"chain available: the balance is 7, the last entry left 0\n",
		"Verified 2 ledgers: 2 defects. Stop payouts, and find the cause before you change anything.\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("verify says\n%s\nwithout %q", out, want)
		}
	}
	out, _ = s.raw(1, "verify", "--json", "--merchant", "Loja")
	if !strings.Contains(out, `"defects": 2`) {
		t.Errorf("verify prints %s", out)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	out, _ := s.run(0, "config")
	for _, want := range []string{
		"OPTION VALUE FROM VARIABLE\n", "master-key [redacted] environment PORTEIRA_MASTER_KEY\n",
		"listen 127.0.0.1:8080 default PORTEIRA_LISTEN\n", "data\n folder of the SQLite database,",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("config lacks %q:\n%s", want, out)
		}
	}
	var stdout, stderr bytes.Buffer
	p := cli.Program{Args: []string{"config", "--for", "serve"}, Environ: []string{"PORTEIRA_DATA=/nowhere"}, Stdout: &stdout, Stderr: &stderr}
	if code := p.Run(t.Context()); code != 2 || stdout.Len() == 0 || !strings.Contains(stderr.String(), "master-key is missing") {
		t.Errorf("%d: %s%s", code, &stdout, &stderr)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	s := &shell{t: t, data: t.TempDir()}
	for _, args := range [][]string{nil, {"--help"}, {"dev", "--help"}, {"serve", "--help"}, {"merchant", "create", "--help"}, {"bench", "--help"}} {
		out, errs := s.run(0, args...)
		if !strings.Contains(out, "Usage: porteira") || errs != "" || strings.Contains(out, "--master-key=") {
			t.Errorf("%v writes %s%s", args, out, errs)
		}
	}
}

// dev prints commands without placeholders, which can be pasted.
func TestGreeting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	read, write := io.Pipe()
	p := cli.Program{Args: []string{"dev", "--listen", "127.0.0.1:0", "--data", t.TempDir()}, Stdout: write, Stderr: io.Discard}
	code := make(chan int, 1)
	go func() {
		code <- p.Run(ctx)
		_ = write.Close()
	}()
	var text strings.Builder
	for lines := bufio.NewScanner(read); lines.Scan() && !strings.Contains(text.String(), "Ctrl-C"); {
		text.WriteString(lines.Text() + "\n")
	}
	cancel()
	go func() { _, _ = io.Copy(io.Discard, read) }()
	if got := <-code; got != 0 {
		t.Errorf("ends with %d", got)
	}
	for _, word := range []string{"BASE", "KEY", "SECRET", "WEBHOOK", "FUNDS", "METRICS", "DATA"} {
		if regexp.MustCompile(`\b` + word + `\b`).MatchString(text.String()) {
			t.Errorf("%s is left in\n%s", word, &text)
		}
	}
	if !strings.Contains(text.String(), "curl http://127.0.0.1:") || !strings.Contains(text.String(), "R$ 1,000,000.00") {
		t.Errorf("the greeting is\n%s", &text)
	}
}

// The addresses that dev prints answer, and dev ends with its context.
func TestDev(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	read, write := io.Pipe()
	var stderr bytes.Buffer
	p := cli.Program{
		Args:   []string{"dev", "--json", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--log-level", "error"},
		Stdout: write, Stderr: &stderr,
	}
	code := make(chan int, 1)
	go func() { code <- p.Run(ctx) }()
	var g struct {
		BaseURL   string `json:"baseUrl"`
		APIKey    string `json:"apiKey"`
		APISecret string `json:"apiSecret"`
	}
	if err := json.NewDecoder(read).Decode(&g); err != nil {
		t.Fatal(err)
	}
	w := env.System(env.OutboundOptions{})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.BaseURL+"/balance", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", g.APIKey)
	r.Header.Set("X-Api-Secret", g.APISecret)
	answer, err := w.Processor.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), `"available":100000000`) {
		t.Errorf("balance is %s, %v", body, err)
	}
	w.Processor.(interface{ CloseIdleConnections() }).CloseIdleConnections()
	cancel()
	if got := <-code; got != 0 || stderr.Len() > 0 {
		t.Errorf("ends with %d: %s", got, &stderr)
	}
	goleak.VerifyNone(t, ignore)
}

// Accounts and routes, beside a gateway or without one.
func TestAccounts(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	secret := filepath.Join(s.data, "secret")
	if err := os.WriteFile(secret, []byte("a-secret-of-the-second-bank\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const own = " name sandbox\n driver sandbox\n merchant (all)\n state %s\n notices at /inbound/sandbox/TOKEN\n created TIME\n changed TIME by os:USER\n health not tested\n"
	const before = " name second\n driver sandbox\n merchant (all)\n state live\n base-url http://127.0.0.1:1\n bank-secret (sealed)\n notices at /inbound/second/TOKEN\n"
	const second = before + " created TIME\n changed TIME by os:USER\n health not tested\n"
	const rotating = before + " rotation the previous values stay valid until porteira account rotate second --finish\n new secrets not tried yet: porteira account test second\n created TIME\n changed TIME by os:USER\n health not tested\n"
	for _, tt := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"merchant create Loja", 0, "*", ""},
		{"account show sandbox", 0, fmt.Sprintf(own, "live"), ""},
		{"account show nobody", 1, "", "porteira: Account nobody not found: porteira account list lists all accounts.\n"},
		{"account add Second --driver bank", 2, "", "porteira: Invalid account: name must have 1 to 40 small letters, digits or hyphens, and not begin with a hyphen; driver is unknown: bank.\n"},
		{"account add second --driver sandbox", 2, "", "porteira: Invalid account: settings are those of the contract of account sandbox: its payments would be booked twice.\n"},
		{"account add second --driver sandbox --set base-url=here --secret other=@" + secret, 2, "", "porteira: Invalid account: secrets.other is unknown to the driver sandbox; " +
			"settings.base-url must be an absolute HTTP address; secrets.bank-secret must have at least 16 characters.\n"},
		{"account add second --driver sandbox --set base-url=http://127.0.0.1:1 --secret bank-secret=plain-text", 2, "",
			"porteira: secret bank-secret: write bank-secret=@FILE or bank-secret=env:NAME, because other users of this machine can see arguments\n"},
		{"account add second --driver sandbox --set base-url=http://127.0.0.1:1 --secret bank-secret=@" + secret, 0,
			"Added account second: running gateways open it within 2 seconds.\n\n" + second, ""},
		{"account add second --driver sandbox --set base-url=http://127.0.0.1:2 --secret bank-secret=@" + secret, 2, "", "porteira: An account with this name already exists.\n"},
		{"account list", 0, "NAME DRIVER MERCHANT STATE CERTIFICATE CREATED CHANGED VERSION HEALTH\nsandbox sandbox (all) live - TIME TIME 1 not tested\nsecond sandbox (all) live - TIME TIME 1 not tested\n", ""},
		{"account drain sandbox", 0, "Account sandbox is draining within 2 seconds: it takes no new orders.\n\n" + fmt.Sprintf(own, "draining"), ""},
		{"route test Loja --amount 1000", 1, " sandbox: account \"sandbox\" is draining, which does not allow payin\nNo account can take the order.\n", ""},
		{"account drain sandbox", 1, "", "porteira: The account is draining already.\n"},
		{"route set Loja --operation payin --method PIX sandbox,second:min=100:max=5000:share=30", 0,
			"Set. Running gateways follow within 2 seconds.\n\nOPERATION METHOD ACCOUNT MINIMUM MAXIMUM SHARE SINCE BY\npayin (every) sandbox \npayin PIX sandbox TIME os:USER\npayin PIX second R$ 1.00 R$ 50.00 30% TIME os:USER\npayout (every) sandbox \n", ""},
		{"route test Loja --amount 1000", 0, " sandbox: account \"sandbox\" is draining, which does not allow payin\n second: can take the order\n", ""},
		{"route test Loja --amount 5001", 1, " sandbox: account \"sandbox\" is draining, which does not allow payin\n" +
			" second: the amount is outside the limits of this route\nNo account can take the order.\n", ""},
		{"route test Loja --amount 0", 2, "", "porteira: --amount must be at least 1, not 0\n"},
		{"route test Loja --amount 1 --method CASH", 2, "", "porteira: --method must be PIX, CREDIT_CARD or BOLETO, not \"CASH\"\n"},
		{"route test Loja --amount 1 --operation payout --method BOLETO", 2, "", "porteira: --method of a payout must be PIX\n"},
		{"route set Loja --operation payin --method CASH second", 2, "", "porteira: The method is not one of this operation.\n"},
		{"route set Loja --operation payin second,second", 2, "", "porteira: Account second appears twice.\n"},
		{"route set Loja --operation payin", 2, "", "porteira: expected \"<accounts> ...\"; porteira route set --help explains it\n"},
		{"route set Loja --operation payin second:share=x", 2, "", "porteira: \"second:share=x\": write NAME:share=PERCENT:min=CENTS:max=CENTS\n"},
		{"route set Loja --operation payin --method PIX none", 0, "Set. Running gateways follow within 2 seconds.\n\nOPERATION METHOD ACCOUNT MINIMUM MAXIMUM SHARE SINCE BY\npayin (every) sandbox \npayout (every) sandbox \n", ""},
		{"account suspend sandbox", 0, "Account sandbox is suspended within 2 seconds: nothing is sent, and held money stays held until porteira account resume sandbox.\n\n" + fmt.Sprintf(own, "suspended"), ""},
		{"account resume sandbox", 0, "Account sandbox is live within 2 seconds: it takes new orders.\n\n" + fmt.Sprintf(own, "live"), ""},
		{"route set Loja --operation payout none", 0, "Set. Running gateways follow within 2 seconds.\n\nOPERATION METHOD ACCOUNT MINIMUM MAXIMUM SHARE SINCE BY\npayin (every) sandbox \n", ""},
		{"route test Loja --amount 1 --operation payout", 1, " Merchant \"Loja\" has no route for it: porteira route set\nNo account can take the order.\n", ""},
		{"route set Loja --operation payin none", 0, "Set. Running gateways follow within 2 seconds.\n\nNo routes: new orders of merchant \"Loja\" are refused. porteira route set sets them.\n", ""},
		{"account rotate second", 2, "", "porteira: name what to replace (--secret, --notice-token), or --finish\n"},
		{"account rotate second --finish", 1, "", "porteira: The account has no previous secrets.\n"},
		{"account rotate second --notice-token --secret bank-secret=@" + secret, 0,
			"Rotated. The previous values stay valid; once porteira account test second says that the new ones are accepted: porteira account rotate second --finish\n\n" + rotating, ""},
		{"account rotate second --finish --force", 0, "The previous secrets of account second are refused within 2 seconds.\n\n" + second, ""},
		{"account test second", 1, "*", ""},
		{"account test sandbox", 0, " ok account\n note bank: not called: the bank is that of the gateway's configuration, which only the gateway can reach\n" +
			" health in porteira account show sandbox says whether the gateway can read its lists.\n", ""},
	} {
		stdout, stderr := s.run(tt.code, strings.Fields(tt.args)...)
		stdout = regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(stdout, "TOKEN")
		if tt.stdout != "*" && stdout != tt.stdout || stderr != tt.stderr {
			t.Errorf("%s says\n%s%s\nwant\n%s%s", tt.args, stdout, stderr, tt.stdout, tt.stderr)
		}
		if strings.Contains(stdout+stderr, "a-secret-of") {
			t.Errorf("%s shows a secret", tt.args)
		}
	}
}
