package config_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/config"
)

// safe are settings of production that take no risk, in a folder of the test.
func safe(t *testing.T, flags ...string) config.Sources {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	s := config.Sources{Mode: config.Serve, Environ: []string{"PORTEIRA_MASTER_KEY=" + masterKey, "PORTEIRA_BANK_SECRET=correct horse battery"}, Flags: map[string]string{
		"data": data, "bank": "https://bank.example", "public-url": "https://pay.example", "trusted-proxies": "127.0.0.0/8",
	}}
	for i := 0; i < len(flags); i += 2 {
		s.Flags[flags[i]] = flags[i+1]
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// takers are settings that take a risk; "" is no risk.
var takers = []struct{ risk, name, value string }{
	{"", "listen", "[::1]:0"},
	{"", "listen", "localhost:8080"},
	{"", "ops-listen", ":8081"}, // metrics are for a network of the operator's
	{"", "base-url", "http://127.0.0.1:8080"},
	{"", "bank", "http://127.0.0.1:8090"},
	{"", "allow-networks", "10.0.0.0/8,fd00:1::/32"},
	{"", "database", "postgres://gw@127.0.0.1/porteira"},
	{"", "database", "postgres://gw@localhost/porteira"},
	{"", "database", "postgres:///porteira?host=/run/postgresql"},
	{"", "database", "postgres://gw@db.example/porteira?sslmode=verify-full"},
	{"clear-text-listen", "listen", ":8080"},
	{"clear-text-listen", "listen", "0.0.0.0:8080"},
	{"clear-text-listen", "listen", "192.0.2.1:8080"},
	{"public-metrics", "ops-listen", ""},
	{"", "trusted-proxies", "10.0.0.0/8,127.0.0.1/32"},
	{"", "trusted-proxies", "::1/128"},
	{"any-proxy", "trusted-proxies", "10.0.0.0/8,0.0.0.0/0"},
	{"any-proxy", "trusted-proxies", "0.0.0.0/1,128.0.0.0/1"},
	{"any-proxy", "trusted-proxies", "::/0"},
	{"any-proxy", "trusted-proxies", "::ffff:0:0/96"},
	{"webhooks-to-any-network", "allow-networks", "10.0.0.0/8,0.0.0.0/0"},
	{"webhooks-to-any-network", "allow-networks", "::/0"},
	{"webhooks-to-any-network", "allow-networks", "169.254.169.254/32"},
	{"webhooks-to-any-network", "allow-networks", "128.0.0.0/1"},
	{"webhooks-to-any-network", "allow-networks", "::ffff:169.254.0.0/112"},
	{"http-webhooks", "allow-http-webhooks", "true"},
	{"clear-text-urls", "public-url", "http://pay.example"},
	{"clear-text-urls", "base-url", "http://api.example"},
	{"clear-text-bank", "bank", "http://bank.example"},
	{"unverified-database-tls", "database", "postgres://gw@db.example/porteira"},
	{"unverified-database-tls", "database", "postgres://gw@db.example/porteira?sslmode=require"},
	{"unverified-database-tls", "database", "postgresql://gw@127.0.0.1,db.example/porteira"},
	{"unverified-database-tls", "database", "postgres://gw@127.0.0.1/porteira?host=db.example"},
}

// wantRisk loads settings: they are refused for one risk, and accepted with its name.
func wantRisk(t *testing.T, what, risk string, s config.Sources) {
	t.Helper()
	_, err := config.Load(s)
	if risk == "" {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	if err == nil || strings.Count(err.Error(), "accept-risk") != 1 || !strings.Contains(err.Error(), "accept-risk "+risk+" that") {
		t.Errorf("%s: %v, want the risk %s", what, err, risk)
	}
	s.Environ = append(s.Environ, "PORTEIRA_ACCEPT_RISK="+risk)
	if _, err := config.Load(s); err != nil {
		t.Errorf("%s, accepted: %v", what, err)
	}
}

// Production refuses each unsafe setting, unless the operator names its risk. Other
// modes have no such rule.
func TestRisks(t *testing.T) {
	t.Parallel()
	for _, v := range takers {
		wantRisk(t, v.name+"="+v.value, v.risk, safe(t, v.name, v.value))
	}
	wantRisk(t, "profiling", "", safe(t, "profiling", "true"))
	wantRisk(t, "public profiling", "public-profiling", safe(t, "profiling", "true", "ops-listen", "0.0.0.0:8081"))
	weak := safe(t)
	weak.Environ[1] = "PORTEIRA_BANK_SECRET=aaaaaaaaaaaaaaaa"
	wantRisk(t, "a bank secret of one letter", "weak-bank-secret", weak)
	weak = safe(t)
	weak.Environ[0] = "PORTEIRA_MASTER_KEY=" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	wantRisk(t, "a master key of zeros", "weak-master-key", weak)

	open := safe(t)
	if err := os.Chmod(open.Flags["data"], 0o755); err != nil {
		t.Fatal(err)
	}
	wantRisk(t, "a readable folder", "readable-secrets", open)
	open = safe(t)
	open.Environ = open.Environ[1:]
	key := filepath.Join(open.Flags["data"], "master.key")
	if err := os.WriteFile(key, []byte(masterKey), 0o600); err != nil {
		t.Fatal(err)
	}
	wantRisk(t, "a key of the owner's", "", open)
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	wantRisk(t, "a readable key", "readable-secrets", open)
}

// All risks are reported at once, and an unknown name is an error.
func TestRisksAreReportedTogether(t *testing.T) {
	t.Parallel()
	s := safe(t, "listen", ":1", "ops-listen", "", "allow-http-webhooks", "true", "allow-networks", "::/0", "base-url", "http://a.example",
		"bank", "http://b.example", "database", "postgres://db.example/n")
	_, err := config.Load(s)
	if err == nil || strings.Count(err.Error(), "accept-risk") != 7 {
		t.Errorf("answered %v, want 7 risks", err)
	}
	s.Flags["accept-risk"] = "clear-text-listen,clear-text-lisen"
	if _, err := config.Load(s); err == nil || !strings.Contains(err.Error(), `unknown risk "clear-text-lisen"`) {
		t.Errorf("answered %v", err)
	}
	for _, r := range config.Risks {
		if !strings.Contains(config.Markdown(), "| `"+r.Name+"` | "+r.GivesUp+" |") {
			t.Errorf("risk %s is not documented", r.Name)
		}
	}
}
