package cli

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

type credentialCommand struct {
	settings

	Create credentialCreate `cmd:"" help:"Create a credential for a merchant's program."`
	List   credentialList   `cmd:"" help:"List credentials of a merchant, or of all, with their last change."`
	Rotate credentialRotate `cmd:"" help:"Give a credential a new secret; the current one stays valid for a time."`
	Revoke credentialRevoke `cmd:"" help:"Revoke a credential: it is refused within 2 seconds."`
}

// credentialView is a credential as the commands show it.
type credentialView struct {
	APIKey     string         `json:"apiKey"`
	KeyID      string         `json:"keyId"` // the same, as GET /credential names it
	Secret     string         `json:"apiSecret,omitempty"`
	Label      string         `json:"label"`
	Scopes     []string       `json:"scopes"`
	AllowedIPs []netip.Prefix `json:"allowedIps"`
	CreatedAt  time.Time      `json:"createdAt"`
	ExpiresAt  *time.Time     `json:"expiresAt,omitempty"`
	RevokedAt  *time.Time     `json:"revokedAt,omitempty"`
	// PreviousUntil is the end of the secret before the last rotation.
	PreviousUntil *time.Time `json:"previousSecretEndsAt,omitempty"`
	// Merchant, ChangedAt and ChangedBy are in lists only.
	Merchant  string     `json:"merchant,omitempty"`
	ChangedAt *time.Time `json:"changedAt,omitempty"`
	ChangedBy string     `json:"changedBy,omitempty"`
	// Damaged means that the row was changed outside the gateway: it is refused.
	Damaged bool `json:"damaged,omitempty"`
}

func viewCredential(c *store.Credential) credentialView {
	v := credentialView{
		APIKey: c.KeyID, KeyID: c.KeyID, Label: c.Label, Scopes: c.Scopes,
		AllowedIPs: append([]netip.Prefix{}, c.AllowedIPs...), CreatedAt: c.CreatedAt,
		Damaged: c.Damaged != nil,
	}
	if len(c.SecondHash) > 0 {
		v.PreviousUntil = &c.SecondUntil
	}
	if !c.ExpiresAt.IsZero() {
		v.ExpiresAt = &c.ExpiresAt
	}
	if !c.RevokedAt.IsZero() {
		v.RevokedAt = &c.RevokedAt
	}
	return v
}

// lifetime is a positive duration in days or hours.
type lifetime time.Duration

// UnmarshalText implements [encoding.TextUnmarshaler].
func (l *lifetime) UnmarshalText(text []byte) error {
	d, err := config.ParseDays(string(text))
	if err != nil || d < time.Hour { // 3m would be minutes
		return errors.New("write days or hours, such as 90d or 36h; at least 1h")
	}
	*l = lifetime(d)
	return nil
}

// overlap is a duration in days or hours; 0 is none.
type overlap time.Duration

// UnmarshalText implements [encoding.TextUnmarshaler].
func (o *overlap) UnmarshalText(text []byte) error {
	d, err := config.ParseDays(string(text))
	if err != nil || d < 0 || d > merchant.OverlapMax {
		return errors.New("write days or hours, from 0s to 7d, such as 24h")
	}
	*o = overlap(d)
	return nil
}

type credentialCreate struct {
	author

	Merchant  string   `arg:""                                                                                 help:"The merchant's name."`
	Label     string   `help:"A label, shown by credential list."`
	Scopes    []string `enum:"payin:write,payout:write,payout:approve,refund:write,webhook:write,read" help:"A scope: ${enum}; may be repeated (default all but payout:approve)." name:"scope"           placeholder:"SCOPE"`
	AllowIPs  []string `help:"Address or network that may use the credential; may be repeated (default all)." name:"allow-ip"                                                    placeholder:"IP|CIDR"`
	ExpiresIn lifetime `help:"The credential's lifetime, in days or hours, such as 90d or 36h (default unlimited)."                        name:"expires-in"                                                  placeholder:"DURATION"`
}

// Run creates a credential and shows its secret, which is not stored.
func (c *credentialCreate) Run(r *runner, root *commands) error {
	n := merchant.NewCredential{Label: c.Label, Scopes: c.Scopes}
	for _, text := range c.AllowIPs {
		p, err := parseNetwork(text)
		if err != nil {
			return configError{err}
		}
		n.AllowedIPs = append(n.AllowedIPs, p)
	}
	return r.change(&root.Credential.settings, &c.author, func(a *app.Admin) error {
		m, err := merchantNamed(r, a, c.Merchant)
		if err != nil {
			return err
		}
		if err := checkOpen(&m); err != nil {
			return fmt.Errorf("%w: its credentials are refused", err)
		}
		n.Merchant = m.ID
		if c.ExpiresIn > 0 {
			n.ExpiresAt = a.Clock.Now().Add(time.Duration(c.ExpiresIn))
		}
		created, secret, err := a.Merchants.CreateCredential(r.ctx, n)
		if err != nil {
			return err
		}
		v := viewCredential(&created)
		v.Secret = secret
		return r.out.show(v, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "Created a credential of merchant %q. The secret is shown only this once.\n\n", m.Name)
			table(w, [][]string{{"  x-api-key", v.KeyID}, {"  x-api-secret", v.Secret}, {"  scopes", strings.Join(v.Scopes, " ")}})
		})
	})
}

// parseNetwork parses a network or an address.
func parseNetwork(text string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return env.UsualNetwork(p), nil
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither an IP address nor a network: write 203.0.113.7 or 203.0.113.0/24", text)
	}
	return env.UsualNetwork(netip.PrefixFrom(address, address.BitLen())), nil
}

type credentialList struct {
	Merchant string `arg:"" help:"The merchant's name (default all)." optional:""`
}

// Run lists credentials.
func (c *credentialList) Run(r *runner, root *commands) error {
	return r.admin(&root.Credential.settings, func(a *app.Admin) error {
		merchants, err := a.Store.Merchants(r.ctx)
		none := "No credentials: porteira credential create MERCHANT creates one."
		if err == nil && c.Merchant != "" {
			merchants = make([]store.Merchant, 1)
			merchants[0], err = merchantNamed(r, a, c.Merchant)
			none = fmt.Sprintf("No credentials: porteira credential create %q creates one.", merchants[0].Name)
		}
		if err != nil {
			return err
		}
		views := []credentialView{}
		for i := range merchants {
			list, err := credentialsOf(r, a, &merchants[i])
			if err != nil {
				return err
			}
			views = append(views, list...)
		}
		return r.out.show(views, func(w io.Writer) {
			rows := [][]string{{"X-API-KEY", "MERCHANT", "LABEL", "SCOPES", "FROM", "CREATED", "EXPIRES", "REVOKED", "CHANGED", "BY"}}
			for i := range views {
				rows = append(rows, credentialRow(&views[i]))
			}
			tableOr(w, rows, none)
		})
	})
}

func credentialRow(v *credentialView) []string {
	from := make([]string, len(v.AllowedIPs))
	for i, p := range v.AllowedIPs {
		from[i] = p.String()
	}
	at := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return stamp(*t)
	}
	row := []string{
		v.KeyID, v.Merchant, v.Label, strings.Join(v.Scopes, " "), strings.Join(from, " "),
		stamp(v.CreatedAt), at(v.ExpiresAt), at(v.RevokedAt), at(v.ChangedAt), v.ChangedBy,
	}
	if v.Damaged { // none of the cells before it counts
		row = append(row, "CHANGED OUTSIDE: refused; revoke it")
	}
	return row
}

// credentialsOf reads a merchant's credentials with their last changes, oldest first.
func credentialsOf(r *runner, a *app.Admin, m *store.Merchant) ([]credentialView, error) {
	list, err := a.Store.Credentials(r.ctx, m.ID)
	if err != nil {
		return nil, err
	}
	last, err := a.Store.LastChanges(r.ctx, m.ID, store.NounCredential)
	views := make([]credentialView, len(list))
	for i := range list {
		views[i] = viewCredential(&list[i])
		views[i].Merchant = m.Name
		if e, ok := last[list[i].KeyID]; ok {
			views[i].ChangedAt, views[i].ChangedBy = &e.CreatedAt, string(e.Actor)
		}
	}
	return views, err
}

type credentialRevoke struct {
	author

	Key string `arg:"" help:"The credential's x-api-key."`
}

// Run revokes a credential.
func (c *credentialRevoke) Run(r *runner, root *commands) error {
	return r.change(&root.Credential.settings, &c.author, func(a *app.Admin) error {
		err := a.Merchants.RevokeCredential(r.ctx, c.Key)
		if isNotFound(err) {
			return fmt.Errorf("credential %q not found, or already revoked: porteira credential list MERCHANT lists them", c.Key)
		}
		if err != nil {
			return err
		}
		revoked, err := a.Store.Credential(r.ctx, c.Key)
		if err != nil {
			return err
		}
		return r.out.show(viewCredential(&revoked), func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "Revoked %s: it is refused within 2 seconds.\n", c.Key)
		})
	})
}

func isNotFound(err error) bool {
	return errors.Is(err, store.ErrNotFound) || problem.Is(err, problem.NotFound)
}
