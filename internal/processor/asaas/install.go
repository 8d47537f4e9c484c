package asaas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/processor"
)

// webhook is an address for notices at Asaas.
type webhook struct {
	ID          string   `json:"id,omitempty"`
	Name        string   `json:"name"`
	URL         string   `json:"url"`
	Email       string   `json:"email,omitempty"`
	Enabled     bool     `json:"enabled"`
	Interrupted bool     `json:"interrupted"`
	APIVersion  int      `json:"apiVersion,omitzero"`
	AuthToken   string   `json:"authToken,omitempty"`
	SendType    string   `json:"sendType,omitempty"`
	Events      []string `json:"events"`
}

// webhookName begins the names of our webhooks; the account's name follows.
const webhookName = "porteira "

// webhooks lists those of the account.
func (p *Processor) webhooks(ctx context.Context) ([]webhook, error) {
	body, err := page[webhook](ctx, p.client, "/webhooks?"+url.Values{"limit": {"100"}}.Encode())
	return body.Data, err
}

// ours is the webhook of this gateway's account; nil if there is none.
func (p *Processor) ours(list []webhook) *webhook {
	if i := slices.IndexFunc(list, func(w webhook) bool { return w.Name == webhookName+p.account }); i >= 0 {
		return &list[i]
	}
	return nil
}

// errInstalled means that Asaas did not take an address.
var errInstalled = errors.New("asaas: the webhook was not accepted")

// Install implements [processor.Installer]. It makes the account's webhook, or changes it, and
// starts its queue again if Asaas has interrupted it. Notices are sent side by side: one that
// fails must not delay the others.
func (p *Processor) Install(ctx context.Context, noticeURL string) error {
	list, err := p.webhooks(ctx)
	if err != nil {
		return err
	}
	want := webhook{
		Name: webhookName + p.account, URL: noticeURL, Email: p.email, Enabled: true, APIVersion: 3,
		AuthToken: p.tokens[0], SendType: "NON_SEQUENTIALLY", Events: events,
	}
	method, address := http.MethodPost, "/webhooks"
	if now := p.ours(list); now != nil {
		if !isToken(now.ID) {
			return errAnswerForm
		}
		method, address = http.MethodPut, "/webhooks/"+url.PathEscape(now.ID)
	}
	r := p.client.do(ctx, method, address, want, nil)
	made := parse[webhook](&r)
	switch {
	case r.outcome() != processor.Done:
		return fmt.Errorf("%w: %w: %s", errInstalled, r.cause(), shown(r.text, "no reason"))
	case made.URL != noticeURL || !made.Enabled || made.Interrupted:
		return fmt.Errorf("%w: it is shown as disabled, or with another address", errInstalled)
	}
	return nil
}

// Authenticate implements [processor.Authenticator]: it reads the balance.
func (p *Processor) Authenticate(ctx context.Context) error {
	r := p.client.get(ctx, balancePath)
	switch {
	case r.err == nil && (r.status == http.StatusUnauthorized || r.status == http.StatusForbidden):
		return fmt.Errorf("asaas: %w", processor.ErrCredentials)
	case r.lookup() != processor.Found:
		return fmt.Errorf("asaas: read the balance: %w", r.cause())
	}
	return nil
}

// Inspect implements [processor.Inspector].
func (p *Processor) Inspect(ctx context.Context) []processor.Finding {
	if _, err := p.money(ctx); err != nil {
		action := "Check base-url and that Asaas answers; account test again."
		if p.Refused() {
			action = "Check that the API key is of this base-url (production or sandbox), is enabled and allows this machine's address."
		}
		return []processor.Finding{{Check: "API key", Problem: err.Error(), Action: action, Stops: true}}
	}
	return append([]processor.Finding{{Check: "API key"}, p.inspectKeys(ctx)}, p.inspectCodes(ctx)...)
}

// inspectCodes checks the code of the last Pix that can be paid.
func (p *Processor) inspectCodes(ctx context.Context) []processor.Finding {
	body, err := page[wirePayment](ctx, p.client, "/payments?billingType=PIX&status=PENDING&limit=1")
	if err != nil || len(body.Data) == 0 {
		return nil
	}
	r := p.client.get(ctx, "/payments/"+url.PathEscape(body.Data[0].ID)+"/pixQrCode")
	if f := processor.InspectCode(strings.TrimSpace(parse[pixCode](&r).Payload)); f.Detail != "" {
		return []processor.Finding{f}
	}
	return nil
}

// Installed implements [processor.Installer].
func (p *Processor) Installed(ctx context.Context, noticeURL string) processor.Finding {
	v := processor.Finding{Check: "notices"}
	const install = "Run porteira account install."
	list, err := p.webhooks(ctx)
	now := p.ours(list)
	switch {
	case err != nil:
		v.Problem, v.Action = err.Error(), "Test again when Asaas answers; the API key must be allowed to read webhooks."
	case now == nil:
		v.Problem, v.Action = "Asaas has no webhook of this account.", install
	case now.Interrupted:
		v.Problem, v.Action = "Asaas has interrupted the queue of notices, because the gateway did not accept them for hours.", install+" Notices older than 14 days are lost; the lists of payments and transfers have them."
	case now.URL != noticeURL:
		v.Problem, v.Action = "The webhook has another address than this gateway's.", install
	case !now.Enabled:
		v.Problem, v.Action = "The webhook is disabled.", install
	case !hasAll(now.Events, events):
		v.Problem, v.Action = "The webhook does not send all events.", install
	}
	return v
}

func hasAll(list, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(event string) bool { return !slices.Contains(list, event) })
}

// inspectKeys checks that the account has a Pix key.
func (p *Processor) inspectKeys(ctx context.Context) processor.Finding {
	v := processor.Finding{Check: "Pix key"}
	body, err := page[struct {
		Status string `json:"status"`
	}](ctx, p.client, "/pix/addressKeys?status=ACTIVE")
	switch {
	case err != nil:
		v.Problem, v.Action = err.Error(), "Check that the API key may read Pix keys."
	case len(body.Data) == 0:
		v.Problem, v.Action = "The account has no Pix key, so its codes end at 23:59 of their day.", "Register a Pix key in Asaas' panel."
	}
	return v
}
