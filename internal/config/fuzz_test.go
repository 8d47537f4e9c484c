package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/config"
)

// FuzzLoad loads options from any file and environment. Valid settings are used, every
// invalid line is an error, no secret is shown, and the shown settings, written to a
// file, load as the same configuration.
func FuzzLoad(f *testing.F) {
	f.Add("listen = :1\n# x\n=\n a==b\r\n", "", uint8(0))
	f.Add("data=d\npublic-rate = 7\nallow-networks=10.0.0.0/8, ::1/128\nshutdown-timeout=3s\nlog-format=json", "PORTEIRA_PUBLIC_RATE=8", uint8(0))
	f.Add("database = postgres://u:hunter2hunter2@h/n?password=hunter2hunter2", "PORTEIRA_MASTER_KEY="+masterKey, uint8(1))
	f.Add("bank-secret = correct horse battery\nbase-url=https://a.example/", "PORTEIRA_BANK=http://b.example", uint8(1))
	f.Add("listen=[::1]:0", "PORTEIRA_BANK_SECRET=correct horse battery\nPORTEIRA_LISTN=x\nPORTEIRA_PORT=1", uint8(2))
	f.Add("log-level = debug\nlog-level = info", "PORTEIRA_LOG_LEVEL=", uint8(3))
	path := filepath.Join(f.TempDir(), "settings")
	f.Fuzz(func(t *testing.T, text, environ string, mode uint8) {
		if strings.Contains(text, "-file") || strings.Contains(environ, "_FILE") || strings.Contains(environ, "CONFIG") {
			return // it would read that file, which may be endless
		}
		s := config.Sources{
			Mode: config.Modes[int(mode)%len(config.Modes)], Flags: map[string]string{"config": path},
			Environ: append(strings.Split(environ, "\n"), "PORTEIRA_MASTER_KEY="+masterKey),
		}
		if s.Mode == config.Serve { // that a secret is weak is shown
			s.Environ = append(s.Environ, "PORTEIRA_ACCEPT_RISK=weak-bank-secret,weak-master-key")
		}
		c, shown, err := loadFile(t, s, text)
		inFile, invalid := settingsIn(text)
		if invalid && err == nil {
			t.Fatalf("an invalid file is accepted: %q", text)
		}
		for _, setting := range c.Settings() {
			if value := inFile[setting.Name]; err == nil && setting.Source == "file" && value != setting.Value && !setting.Secret &&
				setting.Name != "database" {
				t.Fatalf("%s is %q, and %q in the file", setting.Name, setting.Value, value)
			}
		}
		if _, same, _ := loadFile(t, s, otherSecrets(text)); same != shown || strings.Contains(shown, masterKey) {
			t.Fatalf("secrets are shown:\n%s\nand with others\n%s", shown, same)
		}
		if err == nil {
			again(t, path, s.Mode, c)
		}
	})
}

// loadFile loads settings with a file of this text, and returns how they are shown.
func loadFile(t *testing.T, s config.Sources, text string) (c *config.Config, shown string, err error) {
	t.Helper()
	if err := os.WriteFile(s.Flags["config"], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err = config.Load(s)
	for _, setting := range c.Settings() {
		shown += setting.Name + " = " + setting.Value + "\n"
	}
	return c, fmt.Sprint(shown, err), err
}

// otherSecrets replaces the secrets in a file by others of the same lengths.
func otherSecrets(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		name, value, set := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); set && (name == "bank-secret" || name == "master-key") {
			lines[i] = name + "=" + strings.Repeat("x", len(strings.TrimSpace(value)))
		}
	}
	return strings.Join(lines, "\n")
}

// settingsIn parses a file as documented; invalid is false only if each line is valid,
// apart from its value.
func settingsIn(text string) (settings map[string]string, invalid bool) {
	settings = map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if name == "" && !ok || strings.HasPrefix(name, "#") {
			continue
		}
		known := slices.ContainsFunc(config.Options, func(o config.Option) bool { return o.Name == name && name != "config" })
		if _, twice := settings[name]; !ok || !known || twice {
			invalid = true
		}
		settings[name] = strings.TrimSpace(value)
	}
	return settings, invalid
}

// again writes the shown settings to a file, and loads it.
func again(t *testing.T, path string, mode config.Mode, first *config.Config) {
	t.Helper()
	var text strings.Builder
	for _, s := range first.Settings() {
		if s.Name != "config" && !s.Secret && !strings.Contains(s.Value, config.Redacted) && s.Name != "master-key-file" {
			text.WriteString(s.Name + " = " + s.Value + "\n")
		}
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Sources{Mode: mode, Flags: map[string]string{"config": path}, Environ: []string{
		"PORTEIRA_MASTER_KEY=" + first.MasterKey.Reveal(), "PORTEIRA_BANK_SECRET=" + first.BankSecret.Reveal(),
	}})
	if err != nil {
		t.Fatalf("the shown settings are refused: %v\n%s", err, text.String())
	}
	for i, s := range c.Settings() {
		if before := first.Settings()[i]; before.Value != s.Value && s.Name != "config" && !strings.Contains(before.Value, config.Redacted) {
			t.Fatalf("%s was %q and is %q", s.Name, before.Value, s.Value)
		}
	}
}
