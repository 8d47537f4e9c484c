package config_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/config"
)

var update = flag.Bool("update", false, "regenerate docs/configuration.md")

// masterKey is 32 bytes in base64.
const masterKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func load(t *testing.T, s config.Sources) *config.Config {
	t.Helper()
	c, err := config.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	dev := load(t, config.Sources{Mode: config.Dev})
	if dev.Listen != "127.0.0.1:8080" || dev.Database != filepath.Join("data", "porteira.db") ||
		dev.MasterKeyFile != filepath.Join("data", "master.key") || dev.PublicMerchant != "sandbox" ||
		!dev.AllowHTTPWebhooks || dev.OpsListen != "" || dev.ShutdownTimeout != 10*time.Second || dev.DeliveryRetention != 90*24*time.Hour || dev.LogJSON {
		t.Errorf("dev is %+v", dev)
	}
	if want := netip.MustParsePrefix("127.0.0.0/8"); len(dev.AllowNetworks) != 2 || dev.AllowNetworks[0] != want {
		t.Errorf("dev reaches %v", dev.AllowNetworks)
	}
	serve := load(t, config.Sources{Mode: config.Serve, Environ: []string{"PORTEIRA_MASTER_KEY=" + masterKey}})
	if serve.PublicMerchant != "" || serve.AllowHTTPWebhooks || serve.AllowNetworks != nil || serve.OpsListen == "" || !serve.LogJSON {
		t.Errorf("serve allows more than its options: %+v", serve)
	}
}

// IPv4 networks may be written in their IPv6 form: addresses of clients are not.
func TestNetworks(t *testing.T) {
	t.Parallel()
	const list = "::ffff:203.0.113.7/120, 10.1.2.3/8,2001:db8::7/64"
	c := load(t, config.Sources{Mode: config.Dev, Flags: map[string]string{"trusted-proxies": list, "allow-networks": list}})
	const want = "[203.0.113.0/24 10.0.0.0/8 2001:db8::/64]"
	if proxies, allowed := fmt.Sprint(c.TrustedProxies), fmt.Sprint(c.AllowNetworks); proxies != want || allowed != want {
		t.Errorf("networks are %s and %s, want %s", proxies, allowed, want)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"0": 0, "1d": 24 * time.Hour, "36h": 36 * time.Hour, "36500d": 36500 * 24 * time.Hour} {
		c := load(t, config.Sources{Mode: config.Dev, Flags: map[string]string{"delivery-retention": text}})
		if c.DeliveryRetention != want {
			t.Errorf("%s is %s", text, c.DeliveryRetention)
		}
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	file := write(t, "porteira.conf", "# the gateway\n\nlisten = :1\nlog-level=debug\n public-rate = 7 \npublic-merchant =\n")
	c := load(t, config.Sources{
		Mode:    config.Dev,
		Environ: []string{"PORTEIRA_CONFIG=" + file, "PORTEIRA_LISTEN=:2", "PORTEIRA_LOG_LEVEL=warn", "PORTEIRA_DATA=", "HOME=/root"},
		Flags:   map[string]string{"listen": ":3"},
	})
	if c.Listen != ":3" || c.LogLevel != slog.LevelWarn || c.PublicRate != 7 || c.PublicMerchant != "" || c.Data != "data" {
		t.Errorf("loaded %+v", c)
	}
	sources := map[string]string{}
	for _, s := range c.Settings() {
		sources[s.Name] = s.Source
	}
	for name, want := range map[string]string{"listen": "flag", "log-level": "environment", "public-rate": "file", "public-merchant": "file", "data": "default"} {
		if sources[name] != want {
			t.Errorf("%s comes from %s, want %s", name, sources[name], want)
		}
	}
}

// Each problem is one sentence that says how to fix it, and all are reported at once.
func TestFaults(t *testing.T) {
	t.Parallel()
	file := write(t, "porteira.conf", "lisen = :1\ngarbage\nlisten = :1\nlisten = :2\nconfig = x\n")
	for _, tt := range []struct {
		name string
		s    config.Sources
		want []string
	}{
		{"a misspelt variable", config.Sources{Mode: config.Dev, Environ: []string{"PORTEIRA_LISTN=:1"}}, []string{"unknown variable PORTEIRA_LISTN; did you mean PORTEIRA_LISTEN?"}},
		{"a variable of nothing", config.Sources{Mode: config.Dev, Environ: []string{"PORTEIRA_QQQQQQQQ=1"}}, []string{"porteira config lists"}},
		{"a variable in small letters", config.Sources{Mode: config.Dev, Environ: []string{"PORTEIRA_listen=:1"}}, []string{"unknown variable PORTEIRA_listen"}},
		{"a file", config.Sources{Mode: config.Dev, Flags: map[string]string{"config": file}}, []string{
			`:1: unknown option "lisen"; did you mean listen?`, `:2: the line must have the form`, ":4: listen is set twice", ":5: a file cannot include another file",
		}},
		{"no file", config.Sources{Mode: config.Dev, Flags: map[string]string{"config": file + ".not"}}, []string{"cannot read the settings file"}},
		{"two faults", config.Sources{Mode: config.Dev, Environ: []string{"PORTEIRA_LISTEN=8080", "PORTEIRA_LOG_LEVEL=loud"}}, []string{
			"listen (environment): write it as host:port", "log-level (environment): write debug, info, warn or error",
		}},
		{"no secrets in production", config.Sources{Mode: config.Serve, Environ: []string{"PORTEIRA_DATA=" + filepath.Dir(file), "PORTEIRA_ACCEPT_RISK=readable-secrets"}}, []string{"master-key is missing"}},
		{"a password that other users see", config.Sources{Mode: config.Dev, Flags: map[string]string{"database": "postgres://gw:p@127.0.0.1/n"}}, []string{"database (flag): other users of this machine can see a password in a flag: set PORTEIRA_DATABASE"}},
		{"a password in the parameters", config.Sources{Mode: config.Admin, Flags: map[string]string{"database": "postgresql://127.0.0.1/n?user=gw&password=p"}}, []string{"database (flag): other users"}},
		{"a PROXY header of anybody", config.Sources{Mode: config.Dev, Flags: map[string]string{"proxy-protocol": "true"}}, []string{"proxy-protocol needs trusted-proxies"}},
		{"a proxy that is no network", config.Sources{Mode: config.Dev, Flags: map[string]string{"trusted-proxies": "10.0.0.1"}}, []string{"trusted-proxies (flag): write networks as 10.0.0.0/8"}},
		{"a bank without its secret", config.Sources{Mode: config.Bank}, []string{"bank-secret is missing"}},
		{"a shared bank without its secret", config.Sources{Mode: config.Dev, Flags: map[string]string{"bank": "http://127.0.0.1:8090"}}, []string{"bank-secret is missing"}},
		{"a short secret", config.Sources{Mode: config.Bank, Environ: []string{"PORTEIRA_BANK_SECRET=short"}}, []string{"too short"}},
		{"two secrets", config.Sources{Mode: config.Bank, Environ: []string{"PORTEIRA_BANK_SECRET=0123456789abcdef", "PORTEIRA_BANK_SECRET_FILE=" + file}}, []string{"both set"}},
		{"two keys", config.Sources{Mode: config.Dev, Environ: []string{"PORTEIRA_MASTER_KEY=" + masterKey, "PORTEIRA_MASTER_KEY_FILE=" + file}}, []string{"both set"}},
		{"profiling for everybody", config.Sources{Mode: config.Dev, Flags: map[string]string{"profiling": "true"}}, []string{"ops-listen"}},
	} {
		_, err := config.Load(tt.s)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error is %v, want %q", tt.name, err, want)
			}
		}
		if err != nil && len(strings.Split(err.Error(), "\n")) != len(tt.want) {
			t.Errorf("%s: %d faults, want %d: %v", tt.name, len(strings.Split(err.Error(), "\n")), len(tt.want), err)
		}
	}
}

// Options refuse invalid values.
func TestValues(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"listen": {"8080", "127.0.0.1", "a:b", ":65536", ":-1"}, "ops-listen": {"x"},
		"base-url": {"gateway.example", "ftp://x", "https://u:p@x", "https://x?a"}, "bank": {"x"},
		"bank-secret": {"short"}, "public-rate": {"0", "-1", "many", "1.5", ""}, "max-in-flight": {"1"}, "delivery-retention": {"-1d", "1h", "d", "1.5d", "99999d", "forever", ""},
		"allow-http-webhooks": {"yes", "", "TRUE"}, "profiling": {"on"}, "allow-networks": {"10.0.0.0", "10.0.0.0/33"},
		"shutdown-timeout": {"10", "1ms", "1h", "-1s"}, "log-level": {"loud", "INFO+2"}, "log-format": {"xml"},
	} {
		for _, value := range values {
			if _, err := config.Load(config.Sources{Mode: config.Dev, Flags: map[string]string{name: value, "ops-listen": ":0"}}); name != "ops-listen" &&
				(err == nil || !strings.Contains(err.Error(), name+" (flag): ")) {
				t.Errorf("%s = %q is accepted: %v", name, value, err)
			}
		}
	}
}

func TestForeignVariables(t *testing.T) {
	t.Parallel()
	load(t, config.Sources{Mode: config.Dev, Environ: []string{
		"PORTEIRA_SERVICE_HOST=10.0.0.1", "PORTEIRA_PORT=tcp://10.0.0.1:80", "PORTEIRA_PORT_80_TCP=x", "PORTEIRA_TEST_POSTGRES_URL=x",
	}})
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	const bank = "a-secret-of-the-bank"
	c := load(t, config.Sources{Mode: config.Dev, Environ: []string{
		"PORTEIRA_MASTER_KEY=" + masterKey, "PORTEIRA_BANK_SECRET=" + bank,
		"PORTEIRA_DATABASE=postgres://me:hunter2@host/db?password=hunter2",
	}})
	if c.MasterKey.Reveal() != masterKey || c.BankSecret.Reveal() != bank || !strings.Contains(c.Database, "hunter2") {
		t.Fatal("the secrets were not loaded")
	}
	asJSON, err := json.Marshal([]any{c.BankSecret})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", c.BankSecret)
	shown := fmt.Sprintf("%v %+v %#v %s", c.Settings(), c.MasterKey, c.BankSecret, asJSON) + log.String()
	for _, secret := range []string{masterKey, bank, "hunter2"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%s is shown", secret)
		}
	}
	if !strings.Contains(shown, "postgres://me:[redacted]@host/db") {
		t.Errorf("the database is not shown: %s", shown)
	}
}

func TestSecretFile(t *testing.T) {
	t.Parallel()
	c := load(t, config.Sources{Mode: config.Bank, Flags: map[string]string{"bank-secret-file": write(t, "secret", "0123456789abcdef\n")}})
	if c.BankSecret.Reveal() != "0123456789abcdef" {
		t.Error("the secret has a line break, or the file was not read")
	}
}

// Every row of the table is complete.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range config.Options {
		o := &config.Options[i]
		if seen[o.Name] || o.Meaning == "" || o.Kind == "" || len(o.Modes) == 0 || strings.HasSuffix(o.Meaning, ".") {
			t.Errorf("%s: the row is incomplete or duplicate: %+v", o.Name, o)
		}
		seen[o.Name] = true
		if o.Secret && o.DefaultFor(config.Dev) != "" {
			t.Errorf("%s: a secret with a default", o.Name)
		}
		for _, m := range o.Modes {
			c, _ := config.Load(config.Sources{Mode: m})
			if !slices.ContainsFunc(c.Settings(), func(s config.Setting) bool { return s.Name == o.Name }) {
				t.Errorf("%s is not loaded for %s", o.Name, m)
			}
		}
	}
}

func TestDocumentIsFresh(t *testing.T) {
	t.Parallel()
	const path = "../../docs/configuration.md"
	if *update {
		if err := os.WriteFile(path, []byte(config.Markdown()), 0o644); err != nil { //nolint:gosec // documents are public
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != config.Markdown() {
		t.Errorf("docs/configuration.md is stale (%v): run go test ./internal/config -update", err)
	}
}
