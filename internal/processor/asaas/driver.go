package asaas

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/accounthttp"
)

// Name is the driver's name in accounts.
const Name = "asaas"

// The settings and secrets of an account.
const (
	SettingBaseURL    = "base-url"              // without it, that of production
	SettingAccount    = "account"               // the contract's number or document at Asaas
	SettingValidation = "withdrawal-validation" // on: Asaas asks for our consent to transfers
	SettingBudget     = "budget"                // requests in 12 hours; without it, 25,000
	SettingCodeHosts  = "code-hosts"            // in its BR Codes, with commas between them; without it any
	SettingEmail      = "email"                 // to which Asaas reports an interrupted queue of notices
	SecretKey         = "api-key"
	SecretToken       = "notice-token"
	SecretAuthority   = "ca" // PEM; without it the system's authorities are trusted
)

// productionURL is Asaas' address.
const productionURL = "https://api.asaas.com/v3"

// Limits of the settings.
const (
	keyPrefix          = "$aact_"
	tokenMin, tokenMax = 32, 255 // characters (Asaas, field authToken)
	budgetDefault      = 25_000  // requests of an account in 12 hours (Asaas)
	budgetLow          = 100
	budgetHigh         = 10_000_000
	budgetSeconds      = 12 * 60 * 60
	// budgetSaved is the part of the budget that may be used at once.
	budgetSaved = 5
)

// Driver opens accounts at Asaas.
type Driver struct{}

var _ processor.Driver = Driver{}

// Kind implements [processor.Driver].
func (Driver) Kind() string { return Name }

// Contract implements [processor.Driver].
func (Driver) Contract(a processor.Account) string {
	return cmp.Or(a.Settings[SettingBaseURL], productionURL) + " " + a.Settings[SettingAccount]
}

// options are the valid settings of an account.
type options struct {
	base       string
	validation bool
	budget     int
	email      string
	codeHosts  []string
	roots      *x509.CertPool
	tokens     []string // accepted in notices
}

// Open implements [processor.Driver].
func (Driver) Open(a processor.Account, e processor.Env) (processor.Processor, error) {
	o, fields := read(a)
	if len(fields) > 0 {
		return nil, problem.New(problem.ValidationFailed, "Invalid account.").WithFields(fields...)
	}
	if e.Clock == nil {
		e.Clock = env.NewSystemClock()
	}
	saved := o.budget / budgetSaved
	h := accounthttp.Options{
		BaseURL: o.base, Transport: e.Transport, Clock: e.Clock, Identity: identity(a.Secrets[SecretKey], o.roots),
		Rate: float64(o.budget-saved) / budgetSeconds, Saved: saved,
	}
	if previous := a.Previous[SecretKey]; previous != "" {
		i := identity(previous, o.roots)
		h.Previous = &i
	}
	c, err := accounthttp.New(h)
	if err != nil {
		return nil, err
	}
	calls := client{c}
	return &Processor{
		client: calls, clock: e.Clock, account: a.ID, options: o, customers: newRecent(), requested: newRecent(), transfers: newTransferList(calls, e.Clock),
	}, nil
}

func identity(key string, roots *x509.CertPool) accounthttp.Identity {
	h := http.Header{}
	h.Set("access_token", key)
	return accounthttp.Identity{Roots: roots, Header: h}
}

// read reads the settings and secrets, and lists every fault.
func read(a processor.Account) (o options, fields []problem.FieldError) {
	fault := func(field, code, detail string) {
		fields = append(fields, problem.FieldError{Field: field, Code: code, Detail: detail})
	}
	known := []string{
		"settings." + SettingBaseURL, "settings." + SettingAccount, "settings." + SettingValidation, "settings." + SettingBudget,
		"settings." + SettingEmail, "settings." + SettingCodeHosts, "secrets." + SecretKey, "secrets." + SecretToken, "secrets." + SecretAuthority,
	}
	for kind, given := range map[string]map[string]string{"settings.": a.Settings, "secrets.": a.Secrets} {
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !slices.Contains(known, kind+name) {
				fault(kind+name, problem.CodeUnknownField, "is unknown to the driver asaas")
			}
		}
	}
	var err error
	o.base = strings.TrimSuffix(cmp.Or(a.Settings[SettingBaseURL], productionURL), "/")
	if !isBaseURL(o.base) {
		fault("settings."+SettingBaseURL, problem.CodeInvalidFormat, "must be an https address without a query; http is allowed on this machine only")
	}
	switch a.Settings[SettingValidation] {
	case "", "off":
	case "on":
		o.validation = true
	default:
		fault("settings."+SettingValidation, problem.CodeNotAllowed, "must be on or off")
	}
	if o.budget, err = strconv.Atoi(cmp.Or(a.Settings[SettingBudget], strconv.Itoa(budgetDefault))); err != nil || o.budget < budgetLow || o.budget > budgetHigh {
		fault("settings."+SettingBudget, problem.CodeOutOfRange, "must be 100 to 10000000 requests in 12 hours")
	}
	if o.email = a.Settings[SettingEmail]; len(o.email) > emailMax || o.email != "" && !strings.Contains(o.email, "@") {
		fault("settings."+SettingEmail, problem.CodeInvalidFormat, "must be an email address")
	}
	if o.codeHosts, err = accounthttp.ParseHosts(a.Settings[SettingCodeHosts]); err != nil {
		fault("settings."+SettingCodeHosts, problem.CodeInvalidFormat, err.Error())
	}
	if key := a.Secrets[SecretKey]; !strings.HasPrefix(key, keyPrefix) || !isVisible(key, keyMax) {
		fault("secrets."+SecretKey, problem.CodeInvalidFormat, "must be an API key, which begins with $aact_: a shell removes that from an unquoted text")
	}
	o.tokens = []string{a.Secrets[SecretToken]}
	if token := o.tokens[0]; len(token) < tokenMin || !isVisible(token, tokenMax) {
		fault("secrets."+SecretToken, problem.CodeInvalidFormat, "must have 32 to 255 visible characters without spaces")
	}
	if previous := a.Previous[SecretToken]; previous != "" {
		o.tokens = append(o.tokens, previous)
	}
	if text := a.Secrets[SecretAuthority]; text != "" {
		if o.roots = x509.NewCertPool(); !o.roots.AppendCertsFromPEM([]byte(text)) {
			fault("secrets."+SecretAuthority, problem.CodeInvalidFormat, "must be certificates in PEM")
		}
	}
	return o, fields
}

// Longest texts of an account.
const (
	emailMax = 254
	keyMax   = 1024
)

// isVisible reports whether s has 1 to most visible ASCII characters, so that it can be a
// header.
func isVisible(s string, most int) bool {
	return s != "" && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// isBaseURL reports whether an address is safe for an API key.
func isBaseURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Host)
}

func isLoopback(host string) bool {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	address, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return name == "localhost" || err == nil && address.IsLoopback()
}

// reference is the externalReference of a payer's customer: the same in every process, so that a
// customer that was made before a crash is found. Another name with the same document is another
// customer.
func (p *Processor) reference(who payer) string {
	sum := sha256.Sum256([]byte("customer\x00" + p.account + "\x00" + who.Document + "\x00" + who.Name))
	return fmt.Sprintf("porteira-%x", sum[:12])
}

// errAnswerForm means that an answer is not what Asaas documents, and errOtherID that it is
// about something else.
var (
	errAnswerForm = errors.New("asaas: the answer does not have the documented form")
	errOtherID    = errors.New("asaas: the answer is about another id, amount or method")
)
