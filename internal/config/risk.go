package config

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Risk is an unsafe setting of production: serve refuses it, unless accept-risk names it.
type Risk struct {
	Name string
	// GivesUp is what the operator gives up by accepting it.
	GivesUp string

	// found says how c takes the risk, and what to do instead; "" if it does not.
	found func(c *Config) string
}

// Risks is the table, in the order in which they are reported.
var Risks = []Risk{
	{"clear-text-listen", "secrets and personal data are readable between the TLS proxy and this process", clearTextListen},
	{"public-metrics", "anyone who reaches the API can read its metrics: routes, counts and load", publicMetrics},
	{"public-profiling", "anyone who reaches ops-listen can read this process's memory, and slow it down", publicProfiling},
	{"any-proxy", "clients can forge the address that rates, blocks and allow-lists use", anyProxy},
	{"webhooks-to-any-network", "merchants can reach internal services and the cloud's metadata through webhook URLs", webhooksToAnyNetwork},
	{"http-webhooks", "events, and the data of orders in them, are sent in clear text", httpWebhooks},
	{"clear-text-urls", "payers and merchants are sent to addresses that anyone on the way can read and change", clearTextURLs},
	{"clear-text-bank", "orders and the bank's secret are readable on the way to the bank", clearTextBank},
	{"weak-bank-secret", "notices of the bank can be forged by guessing its secret", weakBankSecret},
	{"weak-master-key", "secrets and personal data in the database and its backups can be decrypted by guessing the key", weakMasterKey},
	{"readable-secrets", "other users of this machine can read the master key or the data", readableSecrets},
	{"unverified-database-tls", "customers' data is readable on the way to the database, whose identity is not proved", unverifiedDatabase},
}

// acceptRisks parses the names of accepted risks.
func acceptRisks(c *Config, text string) error {
	c.acceptedRisks = nil
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !slices.ContainsFunc(Risks, func(r Risk) bool { return r.Name == name }) {
			return fmt.Errorf("unknown risk %q; docs/configuration.md lists them", name)
		}
		c.acceptedRisks = append(c.acceptedRisks, name)
	}
	return nil
}

// risksTaken returns an error per risk that the settings take and the operator has not
// accepted.
func (c *Config) risksTaken() (faults []error) {
	for _, r := range Risks {
		if slices.Contains(c.acceptedRisks, r.Name) {
			continue
		}
		if found := r.found(c); found != "" {
			faults = append(faults, fmt.Errorf("%s; or accept with accept-risk %s that %s", found, r.Name, r.GivesUp))
		}
	}
	return faults
}

// AcceptedRisks lists the risks that the settings take and the operator has accepted.
func (c *Config) AcceptedRisks() (list []Risk) {
	for _, r := range Risks {
		if slices.Contains(c.acceptedRisks, r.Name) && r.found(c) != "" {
			list = append(list, r)
		}
	}
	return list
}

// isLocal reports whether a host is this machine.
func isLocal(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.Unmap().IsLoopback()
}

// isLocalListener reports whether an address to listen on, host:port, is for this machine
// only.
func isLocalListener(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && isLocal(host)
}

func clearTextListen(c *Config) string {
	if c.Listen == "" || isLocalListener(c.Listen) {
		return ""
	}
	return "listen serves clear text to other machines: listen on 127.0.0.1, behind a TLS proxy on this machine"
}

func publicMetrics(c *Config) string {
	if c.OpsListen != "" {
		return ""
	}
	return "ops-listen is empty, so the API's listener serves the metrics: set it, for example to 127.0.0.1:8081"
}

func publicProfiling(c *Config) string {
	if !c.Profiling || c.OpsListen == "" || isLocalListener(c.OpsListen) {
		return ""
	}
	return "profiling is served to other machines: set ops-listen to 127.0.0.1:8081"
}

// loopback is the networks of this machine.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// ProxyIsClient reports whether a proxy on this machine would be taken for the client. Right
// credentials are served nevertheless, so it is no [Risk].
func (c *Config) ProxyIsClient() bool {
	return isLocalListener(c.Listen) && !slices.ContainsFunc(c.TrustedProxies, func(p netip.Prefix) bool {
		return slices.ContainsFunc(loopback, p.Overlaps)
	})
}

// widest is the shortest prefix of a network of proxies: two halves of all addresses are all.
const widest = 8

func anyProxy(c *Config) string {
	for _, p := range c.TrustedProxies {
		if p.Bits() < widest {
			return "trusted-proxies has a network of all addresses, or of many: list only the networks of your proxies"
		}
	}
	return ""
}

// metadataNetworks are link-local: clouds serve credentials there.
var metadataNetworks = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("fd00:ec2::/32")}

func webhooksToAnyNetwork(c *Config) string {
	for _, p := range c.AllowNetworks {
		if p.Bits() == 0 || slices.ContainsFunc(metadataNetworks, p.Overlaps) {
			return "allow-networks has a network that contains link-local addresses, such as 169.254.169.254: list only the networks of your receivers"
		}
	}
	return ""
}

func httpWebhooks(c *Config) string {
	if !c.AllowHTTPWebhooks {
		return ""
	}
	return "allow-http-webhooks is true: set it to false"
}

// isClearText reports whether a URL is http to another machine.
func isClearText(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "http" && !isLocal(u.Hostname())
}

func clearTextURLs(c *Config) string {
	if !isClearText(c.BaseURL) && !isClearText(c.PublicURL) {
		return ""
	}
	return "base-url or public-url begins with http://: use https"
}

func clearTextBank(c *Config) string {
	if !isClearText(c.BankURL) {
		return ""
	}
	return "bank begins with http:// and is another machine: use https"
}

// Least numbers of different bytes in a secret. Random ones have more, but for a chance
// below one in a million.
const (
	secretVariety = 6
	keyVariety    = 16
)

func variety(text string) int {
	seen := map[byte]bool{}
	for i := range len(text) {
		seen[text[i]] = true
	}
	return len(seen)
}

func weakBankSecret(c *Config) string {
	if c.BankSecret == "" || variety(c.BankSecret.Reveal()) >= secretVariety {
		return ""
	}
	return "bank-secret repeats a few characters: use a random one (openssl rand -hex 32)"
}

func weakMasterKey(c *Config) string {
	text := c.MasterKey.Reveal()
	if text == "" {
		file, err := os.ReadFile(c.MasterKeyFile)
		if err != nil {
			return "" // reported as missing
		}
		text = string(file)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || variety(string(key)) >= keyVariety { // an invalid key is reported when it is used
		return ""
	}
	return "the master key repeats a few bytes: use a random one (openssl rand -base64 32)"
}

// readableByOthers reports whether other users may read a file or list a folder. Windows
// has no such modes.
func readableByOthers(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode()&(fs.ModePerm&0o077) != 0
}

func readableSecrets(c *Config) string {
	var paths []string
	if c.MasterKey == "" && readableByOthers(c.MasterKeyFile) {
		paths = append(paths, c.MasterKeyFile)
	}
	if readableByOthers(c.Data) {
		paths = append(paths, c.Data)
	}
	if path := c.setting("bank-secret-file").Value; path != "" && readableByOthers(path) {
		paths = append(paths, path)
	}
	if len(paths) == 0 {
		return ""
	}
	return "other users may read " + strings.Join(paths, " and ") + ": run chmod go= on it"
}

// isPostgres reports whether the database is a URL of PostgreSQL.
func (c *Config) isPostgres() bool {
	return strings.HasPrefix(c.Database, "postgres://") || strings.HasPrefix(c.Database, "postgresql://")
}

func unverifiedDatabase(c *Config) string {
	if !c.isPostgres() {
		return ""
	}
	server, err := pgconn.ParseConfig(c.Database)
	if err != nil {
		return "" // reported when it is opened
	}
	ways := []*pgconn.FallbackConfig{{Host: server.Host, TLSConfig: server.TLSConfig}}
	for _, way := range append(ways, server.Fallbacks...) {
		if filepath.IsAbs(way.Host) || isLocal(way.Host) {
			continue
		}
		if way.TLSConfig == nil || way.TLSConfig.InsecureSkipVerify {
			return "the connection to database host " + way.Host + " is not verified: add sslmode=verify-full to its URL"
		}
	}
	return ""
}
