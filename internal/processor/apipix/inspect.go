package apipix

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/processor"
)

// certificateWarning is how long before its end a certificate is a finding.
const certificateWarning = 30 * 24 * time.Hour

// skewAllowed is the difference of clocks that is no finding.
const skewAllowed = 30 * time.Second

// codesBack is how far back charges are read for their codes.
const codesBack = 24 * time.Hour

// probe is a query that shows whether a permission is there.
type probe struct {
	check, path, scope string
	without            string // what is lost without an answer, if the account works without it
}

// Inspect implements [processor.Inspector].
func (p *Processor) Inspect(ctx context.Context) []processor.Finding {
	return p.inspect(ctx, p.probes())
}

// Inspect implements [processor.Inspector].
func (e *Efi) Inspect(ctx context.Context) []processor.Finding {
	now := e.clock.Now()
	return e.inspect(ctx, append(
		e.probes(),
		probe{check: "transfers", path: e.listPath(listSent, now.Add(-time.Minute), now, 0, ""), scope: "gn.pix.send.read"},
		probe{check: "balance", path: "/v2/gn/saldo", scope: "gn.balance.read"},
		probe{
			check: "infractions", path: infractionsPath(now.Add(-time.Minute), now, 0, 1), scope: "gn.infractions.read",
			without: "Disputes begin with the return, and cannot be defended here. Efí has no infractions in its test environment; in production",
		},
	))
}

func (p *Processor) probes() []probe {
	now := p.clock.Now()
	return []probe{
		{check: "payments", path: p.listPath(listReceived, now.Add(-time.Minute), now, 0, ""), scope: "pix.read"},
		{check: "charges", path: p.prefix + "/cob?inicio=" + url.QueryEscape(formatTime(now.Add(-codesBack))) + "&fim=" + url.QueryEscape(formatTime(now)) + "&paginacao.itensPorPagina=10", scope: "cob.read"},
		{check: "pix-key", path: p.webhookPath(), scope: "webhook.read"},
	}
}

// inspect checks the certificate offline, and the rest by queries: the first also checks the
// connection, the credentials and the clock.
func (p *Processor) inspect(ctx context.Context, probes []probe) []processor.Finding {
	findings := []processor.Finding{p.inspectCertificate()}
	for i, q := range probes {
		r := p.get(ctx, q.path)
		if i == 0 {
			findings = append(findings, connection(&r))
			if findings[len(findings)-1].Problem != "" {
				return findings
			}
			findings = append(findings, clock(&r))
		}
		findings = append(findings, q.finding(&r))
		if q.check == "charges" && r.ok() {
			findings = append(findings, inspectCodes(&r)...)
		}
	}
	return findings
}

// inspectCodes are the findings about the codes of charges that a bank lists.
func inspectCodes(r *response) (findings []processor.Finding) {
	body := parse[struct {
		Charges []struct {
			Code string `json:"pixCopiaECola"`
		} `json:"cobs"`
	}](&response{status: r.status, body: r.body})
	for _, c := range body.Charges {
		if f := processor.InspectCode(strings.TrimSpace(c.Code)); f.Detail != "" {
			return append(findings, f)
		}
	}
	return nil
}

func (p *Processor) inspectCertificate() processor.Finding {
	f := processor.Finding{Check: "certificate"}
	end := p.CertificateEnd()
	left := end.Sub(p.clock.Now())
	switch {
	case left <= 0:
		f.Problem = "It has expired on " + end.UTC().Format(time.DateOnly) + "."
	case left < certificateWarning:
		f.Problem = fmt.Sprintf("It expires on %s, in %d days.", end.UTC().Format(time.DateOnly), int(left/(24*time.Hour)))
	default:
		return f
	}
	f.Action = "Get another one from the bank, and replace it with porteira account rotate NAME --secret certificate=@FILE."
	return f
}

// connection is the finding about the connection and the credentials. A bank that takes the token
// and says in the API's words that it forbids a query lacks a permission only.
func connection(r *response) processor.Finding {
	f := processor.Finding{Check: "connection"}
	switch {
	case r.status == http.StatusForbidden && r.code != "":
	case r.refused:
		f.Stops = true
		f.Problem = "The bank refuses the credentials: " + r.cause().Error() + "."
		f.Action = "Check client-id, client-secret, that the certificate is of the same application and environment (production or test), and its permissions."
	case r.err != nil:
		f.Stops = true
		f.Problem = "The bank does not answer as the API Pix does: " + r.err.Error() + "."
		f.Action = "Check base-url (in the profile efi without the version), token-url, ca, and that the bank has enabled this certificate."
	}
	return f
}

func clock(r *response) processor.Finding {
	f := processor.Finding{Check: "clock"}
	if r.skew.Abs() > skewAllowed {
		f.Problem = fmt.Sprintf("The bank's clock differs from this machine's by %s.", r.skew.Round(time.Second))
		f.Action = "Set this machine's clock, by NTP."
	}
	return f
}

func (q *probe) finding(r *response) processor.Finding {
	f := processor.Finding{Check: q.check}
	if r.ok() || q.check == "pix-key" && r.lookup(subjectWebhook) == processor.NotFound {
		return f
	}
	if q.without != "" {
		f.Detail = "not read: " + r.cause().Error()
		f.Action = q.without + ", give the application the permission " + q.scope + "."
		return f
	}
	f.Problem = "The bank does not allow it: " + r.cause().Error() + "."
	f.Action = "Give the application the permission " + q.scope + " at the bank."
	if q.check == "pix-key" {
		f.Action += " The setting pix-key must be a key of this account."
	}
	return f
}

func (p *Processor) webhookPath() string { return p.prefix + "/webhook/" + escape(p.key) }

// Install implements [processor.Installer]: PUT /webhook/{chave}. A key has one address: it
// replaces any other one.
func (p *Processor) Install(ctx context.Context, noticeURL string) error {
	r := p.client.do(ctx, http.MethodPut, p.webhookPath(), webhook{noticeURL}, nil)
	answered := r.err == nil && !r.ok() && r.status != http.StatusNoContent
	if answered {
		return fmt.Errorf("the bank did not register the address: %w%s", r.cause(), r.whyNotInstalled())
	}
	f := p.Installed(ctx, noticeURL) // an answer that cannot be read may have registered it
	switch {
	case f.Problem == "":
		return nil
	case r.err != nil:
		return fmt.Errorf("the bank did not register the address: %w", r.err)
	default:
		return fmt.Errorf("apipix: after it was registered: %s", f.Problem)
	}
}

// whyNotInstalled is the bank's own text about an address that it refuses, and what to do.
func (r *response) whyNotInstalled() string {
	text := ""
	if r.message != "" {
		text = ", " + strconv.Quote(r.message)
	}
	if r.status == http.StatusForbidden {
		return text + ". Give the application the permission webhook.write"
	}
	return text + ". Banks test the address first: the gateway must run, and they must reach public-url"
}

// Installed implements [processor.Installer]. Another registered address is not shown:
// it is a secret of another program.
func (p *Processor) Installed(ctx context.Context, noticeURL string) processor.Finding {
	f := processor.Finding{Check: "notices"}
	r := p.get(ctx, p.webhookPath())
	body := parse[webhook](&r)
	switch lookup := r.lookup(subjectWebhook); {
	case lookup == processor.NotFound:
		f.Problem = "No address for notices is registered for the key."
	case lookup == processor.LookupUnknown:
		f.Problem = "The bank does not say which address is registered: " + r.cause().Error() + "."
		f.Action = "Test again when the bank answers; it must permit webhook.read."
		return f
	case body.URL != noticeURL:
		f.Problem = "Another address is registered for the key."
	default:
		return f
	}
	f.Action = "Register this gateway's with porteira account install NAME. A key has one address: it replaces any other one."
	return f
}
