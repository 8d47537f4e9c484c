package apipix

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/apipixface"
)

// changed changes answers of the bank's face, by the end of their path.
type changed struct {
	handlerTransport
	answers map[string]*foreign
	ahead   time.Duration // of the bank's clock
}

// RoundTrip implements [http.RoundTripper].
func (c *changed) RoundTrip(r *http.Request) (*http.Response, error) {
	for end, answer := range c.answers {
		if strings.HasSuffix(r.URL.Path, end) {
			return reply(answer.status, answer.contentType, answer.body), nil
		}
	}
	answer, err := c.handlerTransport.RoundTrip(r)
	if err == nil {
		answer.Header.Set("Date", start.Add(c.ahead).Format(http.TimeFormat))
	}
	return answer, err
}

// problems are the findings that are wrong, each with a word of what to do.
func problems(t *testing.T, found []processor.Finding) string {
	t.Helper()
	var list []string
	for _, f := range found {
		if (f.Problem+f.Detail == "") != (f.Action == "") || f.Check == "" {
			t.Errorf("finding %+v", f)
		}
		if f.Problem != "" {
			list = append(list, f.Check)
		}
	}
	return strings.Join(list, " ")
}

// TestFindings: each thing that can be wrong with an account is a finding of its own, before an
// order fails by it.
func TestFindings(t *testing.T) {
	t.Parallel()
	forbidden := standard(http.StatusForbidden, "AcessoNegado", "")
	for name, c := range map[string]struct {
		answers map[string]*foreign
		ahead   time.Duration
		want    string
	}{
		"nothing":                        {},
		"a small skew":                   {ahead: 29 * time.Second},
		"the bank's clock is ahead":      {ahead: 31 * time.Second, want: "clock"},
		"the bank's clock is behind":     {ahead: -time.Hour, want: "clock"},
		"no token":                       {answers: map[string]*foreign{"/oauth/token": {status: 401, contentType: jsonType, body: "{}"}}, want: "connection"},
		"the token endpoint is a page":   {answers: map[string]*foreign{"/oauth/token": {status: 200, contentType: "text/html", body: "<html>"}}, want: "connection"},
		"the certificate is refused":     {answers: map[string]*foreign{"/v2/pix": {status: 403, contentType: "text/html", body: "<html>"}}, want: "connection"},
		"another service answers":        {answers: map[string]*foreign{"/v2/pix": {status: 200, contentType: "text/html", body: "<html>"}}, want: "connection"},
		"may not read payments":          {answers: map[string]*foreign{"/v2/pix": forbidden}, want: "payments"},
		"may not read charges":           {answers: map[string]*foreign{"/v2/cob": forbidden}, want: "charges"},
		"the key of another account":     {answers: map[string]*foreign{"/v2/webhook/" + apipixface.Key: forbidden}, want: "pix-key notices"},
		"may not read transfers":         {answers: map[string]*foreign{"/gn/pix/enviados": forbidden}, want: "transfers"},
		"may not read the balance":       {answers: map[string]*foreign{"/gn/saldo": forbidden}, want: "balance"},
		"may not read infractions":       {answers: map[string]*foreign{"/gn/infracoes": forbidden}}, // a note
		"may not read payments, nor cob": {answers: map[string]*foreign{"/v2/pix": forbidden, "/v2/cob": forbidden}, want: "payments charges"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, ProfileEfi)
			d := open(t, h.clock, &changed{handlerTransport{h.face.Handler()}, c.answers, c.ahead}, ProfileEfi, testBase).(*Efi)
			found := d.Inspect(t.Context())
			if c.want == "pix-key notices" {
				found = append(found, d.Installed(t.Context(), "https://gateway.invalid/inbound/bank/token"))
			}
			if got := problems(t, found); got != c.want {
				t.Errorf("wrong are %q, want %q: %+v", got, c.want, found)
			}
		})
	}
}

// TestCertificateIsFound: a certificate that ends within 30 days, or has ended, is a finding.
func TestCertificateIsFound(t *testing.T) {
	t.Parallel()
	h := newHarness(t, ProfileBacen)
	end := h.driver.(processor.Certified).CertificateEnd()
	for at, want := range map[time.Time]string{
		end.Add(-31 * 24 * time.Hour):               "",
		end.Add(-30*24*time.Hour + 100*time.Minute): "in 29 days",
		end.Add(-time.Hour):                         "in 0 days",
		end.Add(time.Hour):                          "has expired",
	} {
		_, clock := env.Virtual(at, 1)
		d := open(t, clock, handlerTransport{h.face.Handler()}, ProfileBacen, testBase).(processor.Inspector)
		if f := d.Inspect(t.Context())[0]; f.Check != "certificate" || (f.Problem == "") != (want == "") || !strings.Contains(f.Problem, want) {
			t.Errorf("at %s: %+v", at, f)
		}
	}
}

// A bank that does not answer is no reason to register the address again, which would replace
// that of another program.
func TestInstallationIsNotKnown(t *testing.T) {
	t.Parallel()
	_, clock := env.Virtual(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), 1)
	silent := handlerTransport{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })}
	d := open(t, clock, silent, ProfileEfi, testBase).(processor.Installer)
	if f := d.Installed(t.Context(), "https://gateway.invalid/inbound/bank/token"); f.Problem == "" || f.Action == "" || strings.Contains(f.Action, "install") {
		t.Errorf("a bank that does not answer: %+v", f)
	}
}

// TestInstallation: the address is registered at the bank, which tests it; one of another program
// is a finding, and is not shown.
func TestInstallation(t *testing.T) {
	t.Parallel()
	h := newHarness(t, ProfileEfi)
	d, ours := h.driver.(processor.Installer), "https://gateway.invalid/inbound/bank/token"
	if f := d.Installed(t.Context(), ours); f.Problem != "" {
		t.Errorf("installed: %+v", f)
	}
	if f := d.Installed(t.Context(), ours+"2"); f.Problem == "" || f.Action == "" || strings.Contains(f.Problem+f.Action, "token") {
		t.Errorf("another address: %+v", f)
	}
	h.receiver.status = http.StatusServiceUnavailable
	if err := d.Install(t.Context(), ours+"2"); err == nil || strings.Contains(err.Error(), "inbound") || !strings.Contains(err.Error(), "public-url") {
		t.Errorf("an address that the bank cannot reach: %v", err)
	}
	h.receiver.status = 0
	if f := d.Installed(t.Context(), ours); f.Problem != "" {
		t.Errorf("the earlier address stays: %+v", f)
	}
	if err := d.Install(t.Context(), ours+"2"); err != nil {
		t.Error(err)
	}
	if f := d.Installed(t.Context(), ours); f.Problem == "" {
		t.Error("the key has two addresses")
	}
	w := httptest.NewRecorder()
	h.face.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/webhook/x", http.NoBody))
	if w.Code == http.StatusOK {
		t.Error("the address is shown without a token")
	}
}

// The bank's own reason for an address that it refuses is shown. An answer that cannot be read may have registered
// the address: the bank is asked.
func TestInstallationIsExplained(t *testing.T) {
	t.Parallel()
	const ours = "https://gateway.invalid/inbound/bank/token"
	registered := &foreign{status: 200, contentType: jsonType, body: `{"webhookUrl":"` + ours + `","chave":"x"}`}
	for name, c := range map[string]struct {
		put, get *foreign
		want     string
	}{
		"refused":         {&foreign{status: 400, contentType: jsonType, body: `{"nome":"webhook_invalido","mensagem":"A URL informada não é HTTPS"}`}, registered, `"A URL informada não é HTTPS". Banks test`},
		"forbidden":       {standard(403, "AcessoNegado", ""), registered, "webhook.write"},
		"prose":           {&foreign{status: 201, contentType: "text/plain", body: "Webhook cadastrado"}, registered, ""},
		"prose, and none": {&foreign{status: 201, contentType: "text/plain", body: "Webhook cadastrado"}, standard(404, "WebhookNaoEncontrado", ""), "did not register"},
	} {
		d := newHostile(t, byMethod{http.MethodPut: c.put, http.MethodGet: c.get})
		err := d.Install(t.Context(), ours)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// byMethod answers requests by their method.
type byMethod map[string]*foreign

// RoundTrip implements [http.RoundTripper].
func (b byMethod) RoundTrip(r *http.Request) (*http.Response, error) { return b[r.Method].RoundTrip(r) }
