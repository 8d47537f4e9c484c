package store

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"net/netip"
	"net/url"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/payment"
)

// The fields of each noun, as the audit has them. Values of secrets are none of them: a change is
// recorded, and not what it was.

func (m *Merchant) auditFields() fields {
	return fieldsOf(struct {
		Name         string    `json:"name"`
		City         string    `json:"city"`
		ReturnHosts  []string  `json:"returnHosts"`
		WebhookHosts []string  `json:"webhookHosts"`
		ClosedAt     time.Time `json:"closedAt,omitzero"`
	}{m.Name, m.City, m.ReturnHosts, m.WebhookHosts, m.ClosedAt})
}

func (b *Brand) auditFields(before *Brand) fields {
	f := fieldsOf(struct {
		Title string `json:"title"`
		Color string `json:"color"`
	}{b.Title, b.Color})
	f.changed("document", b.Document != before.Document)
	f.changed("logo", !bytes.Equal(b.Logo, before.Logo))
	return f
}

func (c *Credential) auditFields() fields {
	return fieldsOf(struct {
		Label         string         `json:"label"`
		Scopes        []string       `json:"scopes"`
		AllowedIPs    []netip.Prefix `json:"allowedIps"`
		ExpiresAt     time.Time      `json:"expiresAt,omitzero"`
		PreviousUntil time.Time      `json:"previousSecretEndsAt,omitzero"`
		RevokedAt     time.Time      `json:"revokedAt,omitzero"`
	}{c.Label, c.Scopes, c.AllowedIPs, c.ExpiresAt, c.SecondUntil, c.RevokedAt})
}

func (a *Account) auditFields(before *Account) fields {
	f := fieldsOf(struct {
		Driver   string               `json:"driver"`
		State    payment.AccountState `json:"state"`
		Settings map[string]string    `json:"settings"`
	}{a.Driver, a.State, a.Settings})
	for name, secret := range a.Secrets.Current {
		f.changed("secrets."+name, !hmac.Equal([]byte(before.Secrets.Current[name]), []byte(secret)))
	}
	f.changed("noticeToken", !hmac.Equal([]byte(before.Secrets.NoticeToken), []byte(a.Secrets.NoticeToken)))
	previous := func(a *Account) bool { return len(a.Secrets.Previous) > 0 || a.Secrets.PreviousToken != "" }
	f.changed("previousSecrets", previous(before) && !previous(a))
	return f
}

// auditFields has the host of the URL alone: its path may have a token. e may be nil.
func (e *Endpoint) auditFields(other *Endpoint) fields {
	if e == nil {
		return nil
	}
	host := ""
	if u, err := url.Parse(e.URL); err == nil {
		host = u.Scheme + "://" + u.Host
	}
	f := fieldsOf(struct {
		Host          string    `json:"host"`
		Events        []string  `json:"events"`
		Description   string    `json:"description"`
		Enabled       bool      `json:"enabled"`
		PreviousUntil time.Time `json:"previousSecretEndsAt,omitzero"`
	}{host, e.Events, e.Description, e.Enabled, e.PreviousUntil})
	f.changed("url", other != nil && other.URL != e.URL)
	f.changed("secret", other != nil && !hmac.Equal(other.secret, e.secret))
	return f
}

// AuditEndpoint records a change of a webhook endpoint; before or after is nil if there is none.
func (c *Changes) AuditEndpoint(by actor.Author, action string, before, after *Endpoint) {
	e := cmp.Or(after, before)
	entry := newAudit(by, NounEndpoint, action, e.Merchant, e.ID.String(), before.auditFields(nil), after.auditFields(before))
	if entry.Before != entry.After {
		c.audit = append(c.audit, entry)
	}
}

// changed adds a field whose value is not recorded.
func (f fields) changed(name string, changed bool) {
	if changed {
		f[name] = jsontext.Value(changedValue)
	}
}

// priceFields are the fields of a price; none of nil.
func priceFields(p *payment.Price) fields {
	if p == nil {
		return nil
	}
	return fieldsOf(struct {
		BasisPoints    int64 `json:"basisPoints"`
		Fixed          cents `json:"fixed"`
		Minimum        cents `json:"minimum"`
		Maximum        cents `json:"maximum"`
		Days           int   `json:"days"`
		Business       bool  `json:"businessDays"`
		PerInstallment bool  `json:"perInstallment"`
		RefundsFee     bool  `json:"refundsFee"`
	}{p.BasisPoints, p.Fixed, p.Minimum, p.Maximum, p.Days, p.Business, p.PerInstallment, p.RefundsFee})
}

// routeFields are the fields of the routes of an operation and a method.
func routeFields(list []payment.Route) fields {
	type route struct {
		Account string `json:"account"`
		Minimum cents  `json:"minimum,omitzero"`
		Maximum cents  `json:"maximum,omitzero"`
		Share   int    `json:"share,omitzero"`
	}
	shown := make([]route, len(list))
	for i, r := range list {
		shown[i] = route{r.Account, r.Minimum, r.Maximum, r.Share}
	}
	return fieldsOf(map[string][]route{"accounts": shown})
}
