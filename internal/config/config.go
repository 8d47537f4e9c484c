// Package config has one table of options (name, default, meaning, secret or not),
// which are read from a file, the environment and flags, and printed, checked and
// documented from the table.
//
// An option is set in a file of "name = value" lines, by an environment variable or by a
// flag; later sources override earlier ones. An unknown name is an error, so that no
// misspelt setting is ignored.
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

// Mode is the kind of command. Each mode has its own options and defaults.
type Mode string

// The modes.
const (
	Dev   Mode = "dev"   // a gateway for development, with its sandbox
	Serve Mode = "serve" // a gateway in production
	Bank  Mode = "bank"  // the sandbox's bank, as a process of its own
	Admin Mode = "admin" // a command on the database of a gateway
)

// Modes lists every mode.
var Modes = []Mode{Dev, Serve, Bank, Admin}

// Config is the configuration of a command. Values are validated; paths are not
// resolved.
type Config struct {
	Mode Mode

	Listen    string // host:port
	OpsListen string // host:port; empty: on Listen, as in development
	BaseURL   string // without a trailing slash; empty: from the listener
	PublicURL string // likewise; empty: BaseURL

	Data          string // directory
	Database      string // path of an SQLite file, or a PostgreSQL URL
	MasterKey     Secret // empty: in MasterKeyFile
	MasterKeyFile string
	// RetiredMasterKeys are the previous master keys, separated by commas.
	RetiredMasterKeys Secret

	BankURL    string // without a trailing slash; empty: in this process
	BankSecret Secret
	BankAsaas  string // address of the bank's face as Asaas; empty: none
	APIPix     string // host:port of the sandbox bank's API Pix; empty: none

	PublicMerchant string
	PublicRate     int // orders per second and IP address
	PublicTotal    int // orders per second in all

	// Limits of one credential; 0: none.
	CredentialRate     int // requests per second
	CredentialBurst    int // 0: twice CredentialRate
	CredentialInFlight int

	TrustedProxies []netip.Prefix
	ProxyProtocol  bool

	AllowHTTPWebhooks bool
	AllowNetworks     []netip.Prefix

	DeliveryRetention time.Duration // 0: forever

	MaxInFlight              int
	MaxConnections           int
	MaxConnectionsPerAddress int // 0: a quarter of MaxConnections
	ShutdownTimeout          time.Duration
	Profiling                bool

	LogLevel slog.Level
	LogJSON  bool

	acceptedRisks []string
	settings      []Setting
}

// Setting is an option with its value.
type Setting struct {
	*Option
	// Value can be shown: secrets and passwords are redacted.
	Value string
	// Source is "default", "file", "environment" or "flag".
	Source string
}

// ShownDatabase is the database without its password.
func (c *Config) ShownDatabase() string { return withoutPassword(c.Database) }

// Settings lists every option of the mode in the order of the table.
func (c *Config) Settings() []Setting { return slices.Clone(c.settings) }

// Sources are the sources of settings besides the file.
type Sources struct {
	Mode Mode
	// Environ is as os.Environ returns it.
	Environ []string
	// Flags are the given flags by the option's name.
	Flags map[string]string
}

// The sources of a setting, in increasing precedence.
const (
	fromDefault = "default"
	fromFile    = "file"
	fromEnviron = "environment"
	fromFlag    = "flag"
)

// Load loads every option of a mode. The error lists all problems, one sentence each;
// the Config then has the valid options, for display.
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
				continue // an empty variable counts as unset
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

// fromPath reads the settings file, if there is one.
func fromPath(path string) (map[string]string, []error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, []error{fmt.Errorf("cannot read the settings file: %w", err)}
	}
	return parseFile(path, string(text))
}

// finish sets options that depend on others, and returns an error per missing option.
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
	given := c.BankSecret != "" || c.has("bank-secret") && c.setting("bank-secret").Value != "" // an invalid one is reported already
	if c.Mode == Bank && !given {
		faults = append(faults, errors.New("bank-secret is missing: gateways verify the bank's notices with it; set PORTEIRA_BANK_SECRET to at least 16 characters, the same for the bank and its gateways"))
	}
	if c.BankURL != "" && !given {
		faults = append(faults, errors.New("bank-secret is missing: the shared bank's notices are verified with it; set PORTEIRA_BANK_SECRET to the bank's secret"))
	}
	if c.has("database") && c.setting("database").Source == fromFlag && c.isPostgres() && strings.Contains(withoutPassword(c.Database), Redacted) {
		faults = append(faults, errors.New("database (flag): other users of this machine can see a password in a flag: set PORTEIRA_DATABASE, write it in the settings file, or keep the password in ~/.pgpass"))
	}
	if c.ProxyProtocol && len(c.TrustedProxies) == 0 {
		faults = append(faults, errors.New("proxy-protocol needs trusted-proxies: others could invent the addresses of clients; set the networks of your proxies"))
	}
	if c.Profiling && c.OpsListen == "" {
		faults = append(faults, errors.New("profiling exposes internals of the process: set ops-listen to serve it on a separate listener"))
	}
	if c.Mode == Serve && c.MasterKey == "" {
		if _, err := os.Stat(c.MasterKeyFile); err != nil {
			what := "personal data is sealed with it; for a new database write 32 bytes in base64 to %s (openssl rand -base64 32), or set PORTEIRA_MASTER_KEY"
			if _, err := os.Stat(strings.TrimPrefix(c.Database, "sqlite:")); err == nil {
				what = "restore to %s the key that this database was created with, or set PORTEIRA_MASTER_KEY to it; a new key cannot open it"
			}
			faults = append(faults, fmt.Errorf("master-key is missing: "+what, c.MasterKeyFile))
		}
	}
	if c.Mode == Serve {
		faults = append(faults, c.risksTaken()...)
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
		return []error{fmt.Errorf("cannot read bank-secret-file: %w", err)}
	}
	if err := bankSecret(c, strings.TrimSpace(string(text))); err != nil {
		return []error{fmt.Errorf("bank-secret-file: %w", err)}
	}
	return nil
}

// show redacts the settings and completes those with dependent values.
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

// has reports whether the mode has the option.
func (c *Config) has(name string) bool { return c.setting(name) != nil }

func (c *Config) setting(name string) *Setting {
	for i := range c.settings {
		if c.settings[i].Name == name {
			return &c.settings[i]
		}
	}
	return nil
}
