// Package config is one table of options: name, default, meaning, secret or
// not; file, environment and flags; printed, checked and documented from the
// table.
//
// An option is set in a file of "name = value" lines, by an environment
// variable or by a flag; each outweighs the one before. A name that is in no
// row of the table is an error, as a setting that is misspelt is one that does
// not hold.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Mode is the kind of command that is being configured: each reads its own
// options, some with defaults of their own.
type Mode string

// The modes.
const (
	Dev   Mode = "dev"   // a gateway for trying things out, with its sandbox
	Serve Mode = "serve" // a gateway in production
	Bank  Mode = "bank"  // the sandbox's bank, as a process of its own
	Admin Mode = "admin" // a command beside a running gateway
)

// Modes lists every mode.
var Modes = []Mode{Dev, Serve, Bank, Admin}

// Config is what a command runs with. Paths are as they were given; durations
// and sizes are checked.
type Config struct {
	Mode Mode

	Listen    string // host:port
	OpsListen string // host:port; empty: on Listen, as in development
	BaseURL   string // without a slash at its end; empty: from the listener
	PublicURL string // likewise; empty: BaseURL

	Data          string // directory
	Database      string // path of an SQLite file, or a PostgreSQL URL
	MasterKey     Secret // empty: in MasterKeyFile
	MasterKeyFile string
	// RetiredMasterKeys are those of before, with commas between.
	RetiredMasterKeys Secret

	BankURL    string // without a slash at its end; empty: in this process
	BankSecret Secret

	PublicMerchant string
	PublicRate     int // orders per second and address

	AllowHTTPWebhooks bool
	AllowNetworks     []netip.Prefix

	DeliveryRetention time.Duration // 0: for ever

	MaxInFlight     int
	MaxConnections  int
	ShutdownTimeout time.Duration
	Profiling       bool

	LogLevel slog.Level
	LogJSON  bool

	settings []Setting
}

// Setting is one option as it was settled.
type Setting struct {
	*Option
	// Value is fit to be shown: secrets and passwords are blotted out.
	Value string
	// Source says where the value came from: "default", "file", "environment"
	// or "flag".
	Source string
}

// ShownDatabase is the database without its password.
func (c *Config) ShownDatabase() string { return withoutPassword(c.Database) }

// Settings lists every option of the mode in the order of the table.
func (c *Config) Settings() []Setting { return slices.Clone(c.settings) }

// Sources are where settings come from.
type Sources struct {
	Mode Mode
	// Environ is as os.Environ returns it.
	Environ []string
	// Flags holds the flags that were given, by the option's name.
	Flags map[string]string
}

// The sources of a setting, by weight.
const (
	fromDefault = "default"
	fromFile    = "file"
	fromEnviron = "environment"
	fromFlag    = "flag"
)

// Load settles every option of a mode. The error names all that is wrong, one
// sentence each; the Config then holds what could be settled, to be shown.
func Load(s Sources) (*Config, error) {
	c := &Config{Mode: s.Mode}
	given := map[string]Setting{}
	environ, faults := fromEnvironment(s.Environ)
	lines, fileFaults := fromPath(cmp.Or(s.Flags[fileOption], environ[fileOption]))
	faults = append(faults, fileFaults...)
	for _, layer := range []struct {
		source string
		values map[string]string
	}{{fromFile, lines}, {fromEnviron, environ}, {fromFlag, s.Flags}} {
		for name, value := range layer.values {
			if value == "" && layer.source == fromEnviron {
				continue // as shells and containers unset a variable
			}
			given[name] = Setting{Value: value, Source: layer.source}
		}
	}
	for i := range Options {
		o := &Options[i]
		if !slices.Contains(o.Modes, s.Mode) {
			continue
		}
		setting, ok := given[o.Name]
		if !ok {
			setting = Setting{Value: o.DefaultFor(s.Mode), Source: fromDefault}
		}
		if err := o.parse(c, setting.Value); err != nil {
			faults = append(faults, fmt.Errorf("%s (%s): %w", o.Name, setting.Source, err))
		}
		setting.Option = o
		c.settings = append(c.settings, setting)
	}
	faults = append(faults, c.finish()...)
	c.show()
	return c, errors.Join(faults...)
}

// fromPath reads the file of settings, if one was named.
func fromPath(path string) (map[string]string, []error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, []error{fmt.Errorf("the file of settings cannot be read: %w", err)}
	}
	return parseFile(path, string(text))
}

// finish settles what depends on other options, and says what is missing.
func (c *Config) finish() (faults []error) {
	if c.has("database") && c.Database == "" {
		c.Database = filepath.Join(c.Data, "porteira.db")
	}
	if c.MasterKey != "" && c.MasterKeyFile != "" {
		faults = append(faults, errors.New("master-key and master-key-file are both set: keep one"))
	}
	if c.has("master-key-file") && c.MasterKeyFile == "" {
		c.MasterKeyFile = filepath.Join(c.Data, "master.key")
	}
	if c.has("bank-secret-file") {
		faults = append(faults, c.readBankSecret()...)
	}
	given := c.BankSecret != "" || c.has("bank-secret") && c.setting("bank-secret").Value != "" // a faulty one was told of
	if c.Mode == Bank && !given {
		faults = append(faults, errors.New("bank-secret is missing: the gateways know that a notice is this bank's by it; set PORTEIRA_BANK_SECRET to the same 16 or more characters for both"))
	}
	if c.BankURL != "" && !given {
		faults = append(faults, errors.New("bank-secret is missing: notices of the shared bank are verified with it; set PORTEIRA_BANK_SECRET to the bank's own"))
	}
	if c.Profiling && c.OpsListen == "" {
		faults = append(faults, errors.New("profiling shows the inside of the process: give it a listener of its own by ops-listen"))
	}
	if c.Mode == Serve && c.MasterKey == "" {
		if _, err := os.Stat(c.MasterKeyFile); err != nil {
			faults = append(faults, fmt.Errorf("master-key is missing: personal data is sealed with it; put 32 bytes of base64 into %s (openssl rand -base64 32), or set PORTEIRA_MASTER_KEY", c.MasterKeyFile))
		}
	}
	return faults
}

func (c *Config) readBankSecret() []error {
	path := c.setting("bank-secret-file").Value
	if path == "" {
		return nil
	}
	if c.BankSecret != "" {
		return []error{errors.New("bank-secret and bank-secret-file are both set: keep one")}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return []error{fmt.Errorf("bank-secret-file cannot be read: %w", err)}
	}
	if err := bankSecret(c, strings.TrimSpace(string(text))); err != nil {
		return []error{fmt.Errorf("bank-secret-file: %w", err)}
	}
	return nil
}

// show makes the settings fit to be shown.
func (c *Config) show() {
	for i := range c.settings {
		s := &c.settings[i]
		switch {
		case s.Name == "database":
			s.Value = withoutPassword(c.Database)
		case s.Name == "master-key-file" && c.MasterKey == "":
			s.Value = c.MasterKeyFile
		case s.Secret && s.Value != "":
			s.Value = Redacted
		}
	}
}

// has says whether the mode has an option of that name.
func (c *Config) has(name string) bool { return c.setting(name) != nil }

func (c *Config) setting(name string) *Setting {
	for i := range c.settings {
		if c.settings[i].Name == name {
			return &c.settings[i]
		}
	}
	return nil
}
