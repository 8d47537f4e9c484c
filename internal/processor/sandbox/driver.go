package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/accounthttp"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// The settings and secrets of an account.
const (
	SettingBaseURL = "base-url"    // of the bank; without it the account has the gateway's own bank
	SecretBank     = "bank-secret" // shared with the bank; for base-url
	// SettingContract is the name of a further contract of the bank, and SettingRepeat what
	// it does with a repeated transfer: one of [bankapi.Repeats].
	SettingContract = "contract"
	SettingRepeat   = "repeat"
	// SettingRate is the account's budget of requests per second; without it there is none.
	SettingRate = "rate"
)

// secretMin is the minimum length of the bank's secret, in bytes.
const secretMin = 16

// Driver opens accounts at sandbox banks.
type Driver struct {
	// Own is the bank of the gateway's configuration; nil if it has none. An account
	// without base-url is there.
	Own *Options
}

var _ processor.Driver = Driver{}

// Kind implements [processor.Driver].
func (Driver) Kind() string { return Name }

// Contract implements [processor.Driver]: a bank's own, or one of its further contracts.
func (Driver) Contract(a processor.Account) string {
	return strings.TrimRight(a.Settings[SettingBaseURL], "/") + " " + a.Settings[SettingContract]
}

// ContractOf is the contract that an account names; name is "" if it is the bank's own.
func ContractOf(settings map[string]string) (repeat bankapi.Repeat, name string) {
	return cmp.Or(bankapi.Repeat(settings[SettingRepeat]), bankapi.RepeatReturnsFirst), settings[SettingContract]
}

// Open implements [processor.Driver].
func (d Driver) Open(a processor.Account, e processor.Env) (processor.Processor, error) {
	var fields []problem.FieldError
	fault := func(field, code, detail string) {
		fields = append(fields, problem.FieldError{Field: field, Code: code, Detail: detail})
	}
	unknown := func(kind string, given map[string]string, known ...string) {
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !slices.Contains(known, name) {
				fault(kind+"."+name, problem.CodeUnknownField, "is unknown to the driver sandbox")
			}
		}
	}
	unknown("settings", a.Settings, SettingBaseURL, SettingContract, SettingRepeat, SettingRate)
	unknown("secrets", a.Secrets, SecretBank)
	repeat, contract := ContractOf(a.Settings)
	if !slices.Contains(bankapi.Repeats, repeat) {
		fault("settings."+SettingRepeat, problem.CodeNotAllowed, "must be returns-first, rejects, pays-again or asks-consent")
	}
	if contract == "" && a.Settings[SettingRepeat] != "" {
		fault("settings."+SettingContract, problem.CodeRequired, "is missing: the bank's own contract returns the first transfer")
	}
	if contract != "" && !bankapi.IsContractName(contract) {
		fault("settings."+SettingContract, problem.CodeInvalidFormat, "must have 1 to 40 small letters, digits or hyphens, and not begin with a hyphen")
	}
	rate, err := accounthttp.ParseRate(a.Settings[SettingRate])
	if err != nil {
		fault("settings."+SettingRate, problem.CodeInvalidFormat, err.Error())
	}
	base, secret := a.Settings[SettingBaseURL], a.Secrets[SecretBank]
	switch {
	case base == "" && d.Own == nil:
		fault("settings."+SettingBaseURL, problem.CodeRequired, "is missing, and this gateway has no bank of its own (--bank)")
	case base == "" && secret != "":
		fault("secrets."+SecretBank, problem.CodeNotAllowed, "is for an account with base-url")
	case base != "" && (!bankapi.IsURL(base) || strings.ContainsAny(base, "?#")):
		fault("settings."+SettingBaseURL, problem.CodeInvalidFormat, "must be an absolute HTTP address")
	}
	if base != "" && len(secret) < secretMin {
		fault("secrets."+SecretBank, problem.CodeTooShort, "must have at least 16 characters")
	}
	if len(fields) > 0 {
		return nil, problem.New(problem.ValidationFailed, "Invalid account.").WithFields(fields...)
	}
	o := Options{URL: base, Secret: secret, Transport: e.Transport}
	if base == "" {
		o = *d.Own
	}
	o.Clock, o.Rate = e.Clock, rate
	o.PreviousSecret = a.Previous[SecretBank]
	if contract != "" { // which knows no charge that is generated offline
		o.URL, o.Repeat, o.Offline = strings.TrimRight(o.URL, "/")+bankapi.ContractPath(repeat, contract), repeat, nil
	}
	return NewProcessor(o)
}

// Register implements [processor.Registrar].
func (p *Processor) Register(ctx context.Context, noticeURL string, ttl time.Duration) error {
	if p.inside {
		return nil
	}
	return p.client.do(ctx, http.MethodPut, "/notify-urls", bankapi.Listener{URL: noticeURL, TTLSeconds: int64(ttl / time.Second)}, nil).cause()
}

// Refused implements [processor.Authenticator].
func (p *Processor) Refused() bool { return p.client.http.Refused() }

// BudgetLeft implements [processor.Budgeted].
func (p *Processor) BudgetLeft() (requests int, limited bool) { return p.client.http.BudgetLeft() }

// BudgetLow implements [processor.Budgeted].
func (p *Processor) BudgetLow() bool { return p.client.http.BudgetLow() }

// Authenticate implements [processor.Authenticator]: it reads the balance.
func (p *Processor) Authenticate(ctx context.Context) error {
	result := p.client.http.Do(ctx, accounthttp.Request{Method: http.MethodGet, Path: "/balance"})
	switch {
	case result.Refused():
		return fmt.Errorf("sandbox: %w", processor.ErrCredentials)
	case result.Answer == nil:
		return fmt.Errorf("sandbox: read the balance: %w", result.Cause)
	case result.Answer.Status != http.StatusOK:
		return fmt.Errorf("sandbox: read the balance: status %d", result.Answer.Status)
	}
	return nil
}

// Inspect implements [processor.Inspector]: it reads the first payment of the bank's list.
func (p *Processor) Inspect(ctx context.Context) []processor.Finding {
	if _, err := p.Read(ctx, processor.FeedPayments, ""); err != nil {
		return []processor.Finding{{
			Check: "bank", Problem: "The bank does not answer as it should: " + err.Error(),
			Action: "Check that the bank runs at base-url, and that bank-secret is its secret.", Stops: true,
		}}
	}
	return []processor.Finding{{Check: "bank"}}
}
