package apipix

import (
	"crypto/x509"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/accounthttp"
)

// Name is the driver's name in accounts.
const Name = "apipix"

// The settings of an account.
const (
	SettingBaseURL    = "base-url"  // without /v2 in the profile efi, as Efí has routes of several versions
	SettingTokenURL   = "token-url" // in the profile efi, base-url with /oauth/token if it is empty
	SettingScope      = "scope"     // that the token request names; most banks need none
	SettingClientID   = "client-id"
	SettingPIXKey     = "pix-key" // that receives the payments, and from which transfers are paid
	SettingProfile    = "profile"
	SettingNoticeAuth = "notice-auth"
	// SettingNoticeSubject names the certificates of notices, with semicolons between them; without
	// it each one of the authorities is accepted.
	SettingNoticeSubject = "notice-subject"
	SettingRate          = "rate"
	SettingCodeHosts     = "code-hosts" // in the bank's BR Codes, with commas between them; without it any
)

// The secrets of an account. The authorities are public, but are files like the others.
const (
	SecretClient      = "client-secret"
	SecretCertificate = "certificate"          // PEM with its key, or PKCS #12 in base64
	SecretPassword    = "certificate-password" // of PKCS #12
	SecretCA          = "ca"                   // PEM: authorities of the bank's server; without it the system's
	SecretNoticeCA    = "notice-ca"            // PEM: authorities of the certificate that notices come with
)

// The profiles.
const (
	ProfileBacen = "bacen"
	ProfileEfi   = "efi"
)

// How notices prove their sender: by the token in their address alone, or by a certificate too.
const (
	NoticeToken = "token"
	NoticeMTLS  = "mtls"
)

// Driver opens accounts at banks that serve the API Pix.
type Driver struct{}

var _ processor.Driver = Driver{}

// Kind implements [processor.Driver].
func (Driver) Kind() string { return Name }

// Contract implements [processor.Driver]: the application at the bank, whose token sees all
// payments of its account.
func (Driver) Contract(a processor.Account) string {
	return strings.TrimRight(a.Settings[SettingBaseURL], "/") + " " + a.Settings[SettingClientID]
}

// limits of settings, in bytes.
const (
	settingMax = 256
	pixKeyMax  = 77
)

// reader reads the settings and secrets of an account, and collects their faults.
type reader struct {
	account processor.Account
	faults  []problem.FieldError
}

func (r *reader) fault(field, code, detail string) {
	r.faults = append(r.faults, problem.FieldError{Field: field, Code: code, Detail: detail})
}

// onlyKnown refuses names that the driver does not have.
func (r *reader) onlyKnown(kind string, given map[string]string, known ...string) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			r.fault(kind+"."+name, problem.CodeUnknownField, "is unknown to the driver apipix")
		}
	}
}

// text reads a setting that must be there: visible ASCII.
func (r *reader) text(name string, limit int) string {
	value := r.account.Settings[name]
	switch {
	case value == "":
		r.fault("settings."+name, problem.CodeRequired, "is missing")
	case !isToken(value, limit):
		r.fault("settings."+name, problem.CodeInvalidFormat, "must be visible ASCII without spaces")
	}
	return value
}

// choice reads a setting that is one of a list; the first one is the default.
func (r *reader) choice(name string, list ...string) string {
	value := r.account.Settings[name]
	if value == "" {
		return list[0]
	}
	if !slices.Contains(list, value) {
		r.fault("settings."+name, problem.CodeNotAllowed, "must be "+strings.Join(list, " or "))
	}
	return value
}

// address reads a setting that is an HTTPS address; "" is other.
func (r *reader) address(name, other string) string {
	value := r.account.Settings[name]
	if value == "" && other != "" {
		return other
	}
	if value == "" {
		r.fault("settings."+name, problem.CodeRequired, "is missing")
		return ""
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		r.fault("settings."+name, problem.CodeInvalidFormat, "must be an https address without user, query and fragment")
	}
	return strings.TrimRight(value, "/")
}

// authorities reads PEM certificates of authorities; nil if the secret is empty.
func (r *reader) authorities(name string) *x509.CertPool {
	text := r.account.Secrets[name]
	if text == "" {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		r.fault("secrets."+name, problem.CodeInvalidFormat, "must be PEM certificates")
		return nil
	}
	return pool
}

// identity opens the certificate and the credentials of a set of secrets.
func (r *reader) identity(secrets map[string]string, i accounthttp.Identity, tokenURL, profile string) accounthttp.Identity {
	certificate, err := readCertificate(secrets[SecretCertificate], secrets[SecretPassword])
	switch {
	case secrets[SecretCertificate] == "":
		r.fault("secrets."+SecretCertificate, problem.CodeRequired, "is missing: the bank's certificate of this application, with its key")
	case err != nil:
		r.fault("secrets."+SecretCertificate, problem.CodeInvalidFormat, err.Error())
	}
	if secrets[SecretClient] == "" {
		r.fault("secrets."+SecretClient, problem.CodeRequired, "is missing")
	}
	i.Certificate = certificate
	i.Credentials = &accounthttp.Credentials{
		URL: tokenURL, ID: r.account.Settings[SettingClientID], Secret: secrets[SecretClient],
		Scope: r.account.Settings[SettingScope], JSON: profile == ProfileEfi,
	}
	return i
}

// Open implements [processor.Driver].
func (Driver) Open(a processor.Account, e processor.Env) (processor.Processor, error) {
	r := &reader{account: a}
	r.onlyKnown("settings", a.Settings, SettingBaseURL, SettingTokenURL, SettingScope, SettingClientID, SettingPIXKey, SettingProfile, SettingNoticeAuth, SettingNoticeSubject, SettingRate, SettingCodeHosts)
	r.onlyKnown("secrets", a.Secrets, SecretClient, SecretCertificate, SecretPassword, SecretCA, SecretNoticeCA)
	profile := r.choice(SettingProfile, ProfileBacen, ProfileEfi)
	noticeAuth := r.choice(SettingNoticeAuth, NoticeToken, NoticeMTLS)
	base := r.address(SettingBaseURL, "")
	ownToken := ""
	if profile == ProfileEfi && base != "" {
		ownToken = base + "/oauth/token"
	}
	token := r.address(SettingTokenURL, ownToken)
	r.text(SettingClientID, settingMax)
	key := r.text(SettingPIXKey, pixKeyMax)
	if scope := a.Settings[SettingScope]; len(scope) > 4*settingMax || !isText(scope) {
		r.fault("settings."+SettingScope, problem.CodeInvalidFormat, "must be names of scopes with spaces between them")
	}
	rate, err := accounthttp.ParseRate(a.Settings[SettingRate])
	if err != nil {
		r.fault("settings."+SettingRate, problem.CodeInvalidFormat, err.Error())
	}
	hosts, err := accounthttp.ParseHosts(a.Settings[SettingCodeHosts])
	if err != nil {
		r.fault("settings."+SettingCodeHosts, problem.CodeInvalidFormat, err.Error())
	}
	shared := accounthttp.Identity{Roots: r.authorities(SecretCA), Header: http.Header{}}
	if profile == ProfileEfi && noticeAuth == NoticeToken { // Efí reads it when an address for notices is registered
		shared.Header.Set("X-Skip-Mtls-Checking", "true")
	}
	from := r.sender(noticeAuth)
	o := accounthttp.Options{
		BaseURL: base, Transport: e.Transport, Clock: e.Clock, Rate: rate, AnswerLimit: answerLimit,
		Identity: r.identity(a.Secrets, shared, token, profile),
	}
	if len(r.faults) > 0 {
		return nil, problem.New(problem.ValidationFailed, "Invalid account.").WithFields(r.faults...)
	}
	if a.Previous[SecretClient] != "" && a.Previous[SecretCertificate] != "" {
		old := &reader{account: a}
		shared.Roots = old.authorities(SecretCA) // those of now: the bank's server has one certificate
		previous := old.identity(a.Previous, shared, token, profile)
		if len(old.faults) == 0 { // else what was replaced did not work
			o.Previous = &previous
		}
	}
	return newProcessor(o, profile, payee{key, hosts}, from)
}
