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

	"github.com/porteira/porteira/internal/env"
)

// fileOption is the name of the option with the path of the file.
const fileOption = "config"

// Option is one row of the table.
type Option struct {
	// Name is the flag without its dashes, and the name in a file.
	Name string
	// Kind is the placeholder for the value in help texts.
	Kind string
	// Default is the value if none is given.
	Default string
	// Else are different defaults of modes.
	Else map[Mode]string
	// Meaning is the help text.
	Meaning string
	// Secret values have no flag, because other users of the machine can see flags, and
	// are never shown.
	Secret bool
	// Modes are the modes with the option.
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
		Meaning: "settings file: one \"name = value\" per line"},

	{Name: "listen", Kind: "HOST:PORT", Default: "127.0.0.1:8080", Else: map[Mode]string{Bank: "127.0.0.1:8090"}, Modes: listeners,
		parse:   address(func(c *Config) *string { return &c.Listen }),
		Meaning: "address to listen on, behind a TLS proxy; port 0 picks a free port"},
	{Name: "ops-listen", Kind: "HOST:PORT", Default: "", Else: map[Mode]string{Serve: "127.0.0.1:8081"}, Modes: gateways,
		parse:   address(func(c *Config) *string { return &c.OpsListen }),
		Meaning: "address of /healthz, /readyz and /metrics; if empty, the API listener serves them"},
	{Name: "base-url", Kind: "URL", Modes: gateways, parse: webURL(func(c *Config) *string { return &c.BaseURL }),
		Meaning: "URL of the API as clients reach it; if empty, the listener's address"},
	{Name: "public-url", Kind: "URL", Modes: append([]Mode{Admin}, gateways...), parse: webURL(func(c *Config) *string { return &c.PublicURL }),
		Meaning: "URL of payers' pages (checkoutUrl) as browsers reach it; if empty, base-url"},

	{Name: "data", Kind: "DIR", Default: "data", Modes: Modes, parse: text(func(c *Config) *string { return &c.Data }),
		Meaning: "folder of the SQLite database, the master key, the sandbox bank's journal and the epoch file, which detects a restored backup"},
	{Name: "database", Kind: "FILE|URL", Modes: databases, parse: text(func(c *Config) *string { return &c.Database }),
		Meaning: "SQLite file, or postgres://user@host/name; if empty, porteira.db in the data folder"},
	{Name: "master-key", Kind: "BASE64", Secret: true, Modes: databases, parse: secret(func(c *Config) *Secret { return &c.MasterKey }),
		Meaning: "32 bytes in base64 that seal secrets and personal data, which are lost without it: keep a copy apart from the database"},
	{Name: "retired-master-keys", Kind: "BASE64,…", Secret: true, Modes: databases, parse: secret(func(c *Config) *Secret { return &c.RetiredMasterKeys }),
		Meaning: "other master keys, separated by commas, that open what they sealed, until porteira rekey has sealed it again"},
	{Name: "master-key-file", Kind: "FILE", Modes: databases, parse: text(func(c *Config) *string { return &c.MasterKeyFile }),
		Meaning: "file with the master key; if empty, master.key in the data folder, which dev creates at its first start"},

	{Name: "bank", Kind: "URL", Modes: gateways, parse: webURL(func(c *Config) *string { return &c.BankURL }),
		Meaning: "URL of a shared sandbox bank (porteira bank); if empty, dev runs its own"},
	{Name: "bank-secret", Kind: "TEXT", Secret: true, Modes: listeners, parse: bankSecret,
		Meaning: "secret of at least 16 characters, shared by the bank and its gateways: it signs notices and protects the bank's routes"},
	{Name: "bank-secret-file", Kind: "FILE", Modes: listeners, parse: nothing,
		Meaning: "file with the bank-secret"},
	{Name: "api-pix", Kind: "HOST:PORT", Modes: []Mode{Bank}, parse: address(func(c *Config) *string { return &c.APIPix }),
		Meaning: "address of the sandbox bank as a bank of the API Pix, over TLS with client certificates; if empty, there is none"},

	{Name: "asaas", Kind: "HOST:PORT", Modes: []Mode{Bank}, parse: address(func(c *Config) *string { return &c.BankAsaas }),
		Meaning: "address of the sandbox bank with the API of Asaas, over TLS; if empty, there is none"},

	{Name: "public-merchant", Kind: "NAME", Else: map[Mode]string{Dev: "sandbox"}, Modes: gateways, parse: text(func(c *Config) *string { return &c.PublicMerchant }),
		Meaning: "merchant whose pay-ins can be created without credentials; if empty, credentials are required"},
	{Name: "public-rate", Kind: "NUMBER", Default: "20", Modes: gateways,
		parse:   number(func(c *Config) *int { return &c.PublicRate }, 1, 1_000_000),
		Meaning: "pay-ins per second and IP address without credentials; bursts of up to five times that"},
	{Name: "public-rate-total", Kind: "NUMBER", Default: "200", Modes: gateways,
		parse:   number(func(c *Config) *int { return &c.PublicTotal }, 1, 1_000_000),
		Meaning: "pay-ins per second without credentials in all, on each gateway; bursts of up to five times that"},

	{Name: "credential-rate", Kind: "NUMBER", Default: "0", Else: map[Mode]string{Serve: "200"}, Modes: gateways,
		parse:   number(func(c *Config) *int { return &c.CredentialRate }, 0, 1_000_000),
		Meaning: "requests per second of one credential, on each gateway; 0 is no limit"},
	{Name: "credential-burst", Kind: "NUMBER", Default: "0", Modes: gateways,
		parse:   number(func(c *Config) *int { return &c.CredentialBurst }, 0, 1_000_000),
		Meaning: "requests of one credential at once, beyond which credential-rate applies; 0 is twice credential-rate"},
	{Name: "credential-in-flight", Kind: "NUMBER", Default: "0", Else: map[Mode]string{Serve: "64"}, Modes: gateways,
		parse:   number(func(c *Config) *int { return &c.CredentialInFlight }, 0, 1_000_000),
		Meaning: "requests of one credential in flight, on each gateway; 0 is no limit"},

	{Name: "trusted-proxies", Kind: "CIDR,…", Modes: gateways, parse: networks(func(c *Config) *[]netip.Prefix { return &c.TrustedProxies }),
		Meaning: "networks of reverse proxies, whose headers Forwarded or X-Forwarded-For name the client: the right-most hop that is not a proxy. If empty, the peer of the connection is the client"},
	{Name: "proxy-protocol", Kind: KindSwitch, Default: "false", Modes: gateways, parse: toggle(func(c *Config) *bool { return &c.ProxyProtocol }),
		Meaning: "require the PROXY protocol, version 1 or 2, in connections of trusted-proxies, which must then be set"},

	{Name: "allow-http-webhooks", Kind: KindSwitch, Default: "false", Else: map[Mode]string{Dev: "true"}, Modes: gateways,
		parse:   toggle(func(c *Config) *bool { return &c.AllowHTTPWebhooks }),
		Meaning: "allow webhook URLs with http and any port; otherwise https on ports 443 and 80"},
	{Name: "allow-networks", Kind: "CIDR,…", Else: map[Mode]string{Dev: "127.0.0.0/8,::1/128"}, Modes: gateways, parse: networks(func(c *Config) *[]netip.Prefix { return &c.AllowNetworks }),
		Meaning: "private networks that webhooks may reach; others are refused when connecting"},

	{Name: "delivery-retention", Kind: "DURATION", Default: "90d", Modes: gateways, parse: retention,
		Meaning: "how long ended webhook deliveries and their attempts are kept, in days (90d) or hours; 0 keeps them forever. Events are always kept"},

	{Name: "max-in-flight", Kind: "NUMBER", Default: "4096", Modes: gateways,
		parse:   number(func(c *Config) *int { return &c.MaxInFlight }, 16, 1_000_000),
		Meaning: "requests in flight at once; more get 503. Writes may use four fifths; notices and health checks do not count"},
	{Name: "max-connections", Kind: "NUMBER", Default: "10000", Modes: gateways,
		parse:   number(func(c *Config) *int { return &c.MaxConnections }, 16, 1_000_000),
		Meaning: "open connections to the API; more wait, and idle ones are closed if nine tenths are open. It is limited to half of the files that the process may open. Each connection takes about 20 kB"},
	{Name: "max-connections-per-address", Kind: "NUMBER", Default: "0", Modes: gateways,
		parse:   number(func(c *Config) *int { return &c.MaxConnectionsPerAddress }, 0, 1_000_000),
		Meaning: "open connections of one IPv4 address or IPv6 /64. One more closes its longest idle connection, or is closed itself. 0 means a quarter of max-connections. It does not apply to trusted-proxies"},
	{Name: "shutdown-timeout", Kind: "DURATION", Default: "10s", Modes: listeners, parse: duration,
		Meaning: "time for work in progress after SIGTERM; a second signal exits at once"},
	{Name: "profiling", Kind: KindSwitch, Default: "false", Modes: gateways, parse: toggle(func(c *Config) *bool { return &c.Profiling }),
		Meaning: "serve /debug/pprof/ on ops-listen, which must then be set"},

	{Name: "accept-risk", Kind: "NAME,…", Modes: []Mode{Serve}, parse: acceptRisks,
		Meaning: "names of unsafe settings that serve would refuse; docs/configuration.md lists them"},

	{Name: "log-level", Kind: "LEVEL", Default: "info", Else: map[Mode]string{Admin: "warn"}, Modes: Modes, parse: logLevel,
		Meaning: "lowest level to log: debug, info, warn or error"},
	{Name: "log-format", Kind: "FORMAT", Default: "json", Else: map[Mode]string{Dev: "text", Admin: "text"}, Modes: Modes, parse: logFormat,
		Meaning: "format of log lines: json or text"},
}

// Of lists the options of a mode, in the order of the table.
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

// nothing is for options that are handled by finish.
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

// bankSecretMin is the minimum length of the bank's secret.
const bankSecretMin = 16

func bankSecret(c *Config, text string) error {
	if text != "" && len(text) < bankSecretMin {
		return fmt.Errorf("too short: use at least %d characters", bankSecretMin)
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
			return fmt.Errorf("write an integer from %d to %d", least, most)
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

// Bounds of the shutdown timeout.
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

// Bounds of the retention of deliveries.
const (
	retentionMin = 24 * time.Hour
	retentionMax = 100 * 365 * 24 * time.Hour
)

// ParseDays parses days, such as 90d, which [time.ParseDuration] does not support, or a
// duration.
func ParseDays(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

func retention(c *Config, text string) error {
	d, err := ParseDays(text)
	if err != nil || d != 0 && (d < retentionMin || d > retentionMax) {
		return errors.New("write days or hours, such as 90d or 36h, at least one day; or 0 to keep them forever")
	}
	c.DeliveryRetention = d
	return nil
}

func networks(dest func(*Config) *[]netip.Prefix) func(*Config, string) error {
	return func(c *Config, text string) error {
		list := dest(c)
		*list = nil
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word == "" {
				continue
			}
			p, err := netip.ParsePrefix(word)
			if err != nil {
				return errors.New("write networks as 10.0.0.0/8, separated by commas")
			}
			*list = append(*list, env.UsualNetwork(p))
		}
		return nil
	}
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
