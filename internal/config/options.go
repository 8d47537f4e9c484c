package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fileOption names the option that names the file of the others.
const fileOption = "config"

// Option is one row of the table.
type Option struct {
	// Name is the flag without its dashes, and the name in a file.
	Name string
	// Kind says in a word what a value is; it stands for it in help.
	Kind string
	// Default is the value where none is given.
	Default string
	// Else are the defaults of modes that have another.
	Else map[Mode]string
	// Meaning is a sentence for people.
	Meaning string
	// Secret values have no flag, as other users of a machine see those, and
	// are never shown.
	Secret bool
	// Modes are those that read the option.
	Modes []Mode

	parse func(c *Config, text string) error
}

// KindSwitch is the kind of options that are true or false.
const KindSwitch = "SWITCH"

// Env is the option's environment variable.
func (o *Option) Env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(o.Name, "-", "_"))
}

// DefaultFor is the default in a mode.
func (o *Option) DefaultFor(m Mode) string {
	if text, ok := o.Else[m]; ok {
		return text
	}
	return o.Default
}

var (
	gateways  = []Mode{Dev, Serve}
	listeners = []Mode{Dev, Serve, Bank}
	databases = []Mode{Dev, Serve, Admin}
)

// Options is the table.
var Options = []Option{
	{Name: fileOption, Kind: "FILE", Modes: Modes, parse: nothing,
		Meaning: "file of settings, one \"name = value\" a line"},

	{Name: "listen", Kind: "HOST:PORT", Default: "127.0.0.1:8080", Else: map[Mode]string{Bank: "127.0.0.1:8090"}, Modes: listeners,
		parse:   address(func(c *Config) *string { return &c.Listen }),
		Meaning: "where to listen; port 0 takes a free one. The default is reached from this machine only: put a proxy that speaks TLS in front"},
	{Name: "ops-listen", Kind: "HOST:PORT", Default: "", Else: map[Mode]string{Serve: "127.0.0.1:8081"}, Modes: gateways,
		parse:   address(func(c *Config) *string { return &c.OpsListen }),
		Meaning: "where the operator's /healthz, /readyz and /metrics are; empty serves them beside the API, as dev does"},
	{Name: "base-url", Kind: "URL", Modes: gateways, parse: webURL(func(c *Config) *string { return &c.BaseURL }),
		Meaning: "the address under which clients reach this gateway; empty takes the listener's own"},
	{Name: "public-url", Kind: "URL", Modes: gateways, parse: webURL(func(c *Config) *string { return &c.PublicURL }),
		Meaning: "the address that payers' browsers reach, below which every order has its page, as in checkoutUrl; empty takes base-url"},

	{Name: "data", Kind: "DIR", Default: "data", Modes: Modes, parse: text(func(c *Config) *string { return &c.Data }),
		Meaning: "folder of what this machine keeps: the SQLite database, the master key, the sandbox bank's journal, and the mark that betrays a restored backup"},
	{Name: "database", Kind: "FILE|URL", Modes: databases, parse: text(func(c *Config) *string { return &c.Database }),
		Meaning: "path of an SQLite file, or postgres://user@host/name; empty takes porteira.db in the data folder"},
	{Name: "master-key", Kind: "BASE64", Secret: true, Modes: databases, parse: secret(func(c *Config) *Secret { return &c.MasterKey }),
		Meaning: "32 bytes in base64, with which secrets and personal data are sealed. Without it a database cannot be read: keep a copy apart from the database's"},
	{Name: "retired-master-keys", Kind: "BASE64,…", Secret: true, Modes: gateways, parse: secret(func(c *Config) *Secret { return &c.RetiredMasterKeys }),
		Meaning: "master keys of before, with commas between: addresses of the payer's page that were made under them still lead there"},
	{Name: "master-key-file", Kind: "FILE", Modes: databases, parse: text(func(c *Config) *string { return &c.MasterKeyFile }),
		Meaning: "file that holds the master key; empty takes master.key in the data folder, which dev makes at its first start"},

	{Name: "bank", Kind: "URL", Modes: gateways, parse: webURL(func(c *Config) *string { return &c.BankURL }),
		Meaning: "address of a sandbox bank that several gateways share (porteira bank); empty runs one inside dev"},
	{Name: "bank-secret", Kind: "TEXT", Secret: true, Modes: listeners, parse: bankSecret,
		Meaning: "16 or more characters that the shared bank and its gateways know, and nobody else: it signs the bank's notices and opens its routes"},
	{Name: "bank-secret-file", Kind: "FILE", Modes: listeners, parse: nothing,
		Meaning: "file that holds the bank-secret"},

	{Name: "public-merchant", Kind: "NAME", Else: map[Mode]string{Dev: "sandbox"}, Modes: gateways, parse: text(func(c *Config) *string { return &c.PublicMerchant }),
		Meaning: "merchant whose pay-ins may be created without credentials; empty asks everybody for theirs"},
	{Name: "public-rate", Kind: "NUMBER", Default: "20", Modes: gateways,
		parse:   number(func(c *Config) *int { return &c.PublicRate }, 1, 1_000_000),
		Meaning: "pay-ins per second that one address may create without credentials; five times as many at once"},

	{Name: "allow-http-webhooks", Kind: KindSwitch, Default: "false", Else: map[Mode]string{Dev: "true"}, Modes: gateways,
		parse:   toggle(func(c *Config) *bool { return &c.AllowHTTPWebhooks }),
		Meaning: "let merchants name webhook addresses without TLS, at any port"},
	{Name: "allow-networks", Kind: "CIDR,…", Else: map[Mode]string{Dev: "127.0.0.0/8,::1/128"}, Modes: gateways, parse: networks,
		Meaning: "private networks that webhooks may reach all the same; all others are refused when connecting"},

	{Name: "delivery-retention", Kind: "DURATION", Default: "90d", Modes: gateways, parse: retention,
		Meaning: "how long webhook deliveries and their attempts are kept after their end, in days (90d) or hours; 0 keeps them for ever. Events are kept for ever in any case"},

	{Name: "max-in-flight", Kind: "NUMBER", Default: "4096", Modes: gateways,
		parse:   number(func(c *Config) *int { return &c.MaxInFlight }, 16, 1_000_000),
		Meaning: "requests in hand at once; beyond, new work is refused with 503 while reads and notices still pass"},
	{Name: "max-connections", Kind: "NUMBER", Default: "10000", Modes: gateways,
		parse:   number(func(c *Config) *int { return &c.MaxConnections }, 16, 1_000_000),
		Meaning: "connections to the API at once, each some 20 kB; beyond, and beyond half of the files that the process may open, new ones wait"},
	{Name: "shutdown-timeout", Kind: "DURATION", Default: "10s", Modes: listeners, parse: duration,
		Meaning: "how long what is under way may take to end after SIGTERM; a second signal ends at once"},
	{Name: "profiling", Kind: KindSwitch, Default: "false", Modes: gateways, parse: toggle(func(c *Config) *bool { return &c.Profiling }),
		Meaning: "serve /debug/pprof/ on the operator's listener, which must then be one of its own"},

	{Name: "log-level", Kind: "LEVEL", Default: "info", Else: map[Mode]string{Admin: "warn"}, Modes: Modes, parse: logLevel,
		Meaning: "least weight of what is logged: debug, info, warn or error"},
	{Name: "log-format", Kind: "FORMAT", Default: "json", Else: map[Mode]string{Dev: "text", Admin: "text"}, Modes: Modes, parse: logFormat,
		Meaning: "json for machines, text for people"},
}

// Of lists the options that a mode reads, in the order of the table.
func Of(m Mode) []*Option {
	var list []*Option
	for i := range Options {
		if slices.Contains(Options[i].Modes, m) {
			list = append(list, &Options[i])
		}
	}
	return list
}

func find(name string) (*Option, bool) {
	for i := range Options {
		if Options[i].Name == name {
			return &Options[i], true
		}
	}
	return nil, false
}

// nothing is for options that are settled elsewhere.
func nothing(*Config, string) error { return nil }

func text(dest func(*Config) *string) func(*Config, string) error {
	return func(c *Config, text string) error {
		*dest(c) = text
		return nil
	}
}

func secret(dest func(*Config) *Secret) func(*Config, string) error {
	return func(c *Config, text string) error {
		*dest(c) = Secret(text)
		return nil
	}
}

// bankSecretMin keeps a shared secret from being guessed.
const bankSecretMin = 16

func bankSecret(c *Config, text string) error {
	if text != "" && len(text) < bankSecretMin {
		return fmt.Errorf("it is too short; use %d or more characters", bankSecretMin)
	}
	c.BankSecret = Secret(text)
	return nil
}

func address(dest func(*Config) *string) func(*Config, string) error {
	return func(c *Config, text string) error {
		if text != "" {
			_, port, err := net.SplitHostPort(text)
			if n, e := strconv.ParseUint(port, 10, 16); err != nil || e != nil || n > 65535 {
				return errors.New("write it as host:port, such as 127.0.0.1:8080 or :8080")
			}
		}
		*dest(c) = text
		return nil
	}
}

func webURL(dest func(*Config) *string) func(*Config, string) error {
	return func(c *Config, text string) error {
		if text != "" {
			u, err := url.Parse(text)
			if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
				return errors.New("write it as https://host, without query or user")
			}
		}
		*dest(c) = strings.TrimRight(text, "/")
		return nil
	}
}

func number(dest func(*Config) *int, least, most int) func(*Config, string) error {
	return func(c *Config, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return fmt.Errorf("write a whole number from %d to %d", least, most)
		}
		*dest(c) = n
		return nil
	}
}

func toggle(dest func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, text string) error {
		switch text {
		case "true", "false":
			*dest(c) = text == "true"
			return nil
		}
		return errors.New("write true or false")
	}
}

// Bounds of the time to shut down.
const (
	shutdownMin = time.Second
	shutdownMax = 5 * time.Minute
)

func duration(c *Config, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < shutdownMin || d > shutdownMax {
		return fmt.Errorf("write a duration from %s to %s, such as 10s", shutdownMin, shutdownMax)
	}
	c.ShutdownTimeout = d
	return nil
}

// Bounds of how long deliveries are kept.
const (
	retentionMin = 24 * time.Hour
	retentionMax = 100 * 365 * 24 * time.Hour
)

// retention reads days, which [time.ParseDuration] does not know, or a duration.
func retention(c *Config, text string) error {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d != 0 && (d < retentionMin || d > retentionMax) {
		return errors.New("write a number of days or hours, such as 90d or 36h, a day at the least, or 0 for ever")
	}
	c.DeliveryRetention = d
	return nil
}

func networks(c *Config, text string) error {
	c.AllowNetworks = nil
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		p, err := netip.ParsePrefix(word)
		if err != nil {
			return errors.New("write networks as 10.0.0.0/8, with commas between")
		}
		c.AllowNetworks = append(c.AllowNetworks, p.Masked())
	}
	return nil
}

func logLevel(c *Config, text string) error {
	switch text {
	case "debug", "info", "warn", "error":
		return c.LogLevel.UnmarshalText([]byte(text))
	}
	return errors.New("write debug, info, warn or error")
}

func logFormat(c *Config, text string) error {
	if text != "json" && text != "text" {
		return errors.New("write json or text")
	}
	c.LogJSON = text == "json"
	return nil
}
