package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

type merchantCommand struct {
	settings

	Create merchantCreate `cmd:"" help:"Create a merchant."`
	List   merchantList   `cmd:"" help:"List merchants."`
	Show   merchantShow   `cmd:"" help:"Show a merchant: name, city, hosts, accounts, brand."`
	Update merchantUpdate `cmd:"" help:"Change a merchant's name, city, hosts or brand; running gateways follow within 2 seconds."`
	Brand  merchantBrand  `cmd:"" help:"Show or set a merchant's brand on the payer's page: title, document, colour and logo."`
	Accept merchantAccept `cmd:"" help:"Make a merchant's limits, hosts, routes and prices valid as they are, after somebody changed them in the database and you have compared them."`
	Close  merchantClose  `cmd:"" help:"Refuse a merchant's credentials from now on, once it has no money and nothing open; its orders continue."`
	Reopen merchantReopen `cmd:"" help:"Accept the credentials of a closed merchant again."`
}

// merchantView is a merchant as the commands show it.
type merchantView struct {
	ID            string     `json:"id"`
	Number        int64      `json:"number"`
	Name          string     `json:"name"`
	City          string     `json:"city"`
	Accounts      []string   `json:"accounts"` // of its routes
	ReturnHosts   []string   `json:"returnHosts"`
	WebhookHosts  []string   `json:"webhookHosts"`
	CreatedAt     time.Time  `json:"createdAt"`
	ClosedAt      *time.Time `json:"closedAt,omitempty"`
	WebhookSecret string     `json:"webhookSecret,omitempty"`
	Brand         *brandView `json:"brand,omitempty"`
}

func viewMerchant(m *store.Merchant) merchantView {
	v := merchantView{
		ID: m.ID.String(), Number: m.Number, Name: m.Name, City: m.City, Accounts: accountsOf(m.Routes),
		ReturnHosts: append([]string{}, m.ReturnHosts...), WebhookHosts: append([]string{}, m.WebhookHosts...), CreatedAt: m.CreatedAt,
	}
	if !m.ClosedAt.IsZero() {
		v.ClosedAt = &m.ClosedAt
	}
	return v
}

// accountsOf lists the accounts of routes, each once, in order.
func accountsOf(routes []payment.Route) []string {
	list := []string{}
	for _, r := range routes {
		if !slices.Contains(list, r.Account) {
			list = append(list, r.Account)
		}
	}
	return list
}

// sandboxAccount is the account of the sandbox's bank, which needs no account add.
const sandboxAccount = "sandbox"

type merchantCreate struct {
	author

	Name         string   `arg:""                                                        help:"The merchant's unique name, shown to payers."`
	City         string   `default:"BRASILIA"                                            help:"The merchant's city, which BR Codes require."`
	Account      string   `default:"sandbox" help:"The account of the merchant's orders; porteira route set sets others later." placeholder:"NAME"`
	ReturnHosts  []string `help:"Host that returnUrl may name; may be repeated." name:"return-host"                                     placeholder:"HOST"`
	WebhookHosts []string `help:"Host that webhookUrl of orders without credentials may name; may be repeated." name:"webhook-host" placeholder:"HOST"`
}

// Run creates a merchant.
func (c *merchantCreate) Run(r *runner, root *commands) error {
	return r.change(&root.Merchant.settings, &c.author, func(a *app.Admin) error {
		if c.Account == sandboxAccount {
			if _, err := a.EnsureSandbox(r.ctx); err != nil {
				return err
			}
		}
		m, err := a.Merchants.Create(r.ctx, store.Merchant{Name: c.Name, City: c.City, Routes: payment.AllRoutes(c.Account), ReturnHosts: c.ReturnHosts, WebhookHosts: c.WebhookHosts}, "")
		if err != nil {
			return err
		}
		v := viewMerchant(&m)
		if v.WebhookSecret, err = a.Store.WebhookSecret(r.ctx, m.ID); err != nil {
			return err
		}
		return r.out.show(v, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "Created merchant %q.\n\n", m.Name)
			table(w, [][]string{
				{"  id", v.ID}, {"  number", strconv.FormatInt(v.Number, 10)}, {"  account", strings.Join(v.Accounts, ", ")},
				{"  webhook secret", v.WebhookSecret},
			})
			_, _ = fmt.Fprintf(w, "\nNext, create a credential for its program: porteira credential create %q\n", m.Name)
		})
	})
}

type merchantList struct{}

// Run lists merchants.
func (c *merchantList) Run(r *runner, root *commands) error {
	return r.admin(&root.Merchant.settings, func(a *app.Admin) error {
		list, err := a.Store.Merchants(r.ctx)
		if err != nil {
			return err
		}
		views := make([]merchantView, len(list))
		for i := range list {
			views[i] = viewMerchant(&list[i])
		}
		return r.out.show(views, func(w io.Writer) {
			rows := [][]string{{"NUMBER", "NAME", "CITY", "ACCOUNTS", "CREATED", "CLOSED", "ID"}}
			for i := range list {
				m := &list[i]
				rows = append(rows, []string{
					strconv.FormatInt(m.Number, 10), m.Name, m.City, strings.Join(accountsOf(m.Routes), ", "), stamp(m.CreatedAt), stamp(m.ClosedAt), m.ID.String(),
				})
			}
			table(w, rows)
		})
	})
}

type merchantAccept struct {
	author

	Name string `arg:"" help:"The merchant's name, or platform for the limits of new merchants."`
}

// Run accepts the settings of a merchant.
func (c *merchantAccept) Run(r *runner, root *commands) error {
	by, err := c.named()
	if err != nil {
		return err
	}
	return r.changeAs(&root.Merchant.settings, by, func(a *app.Admin) error {
		m, err := merchantOrPlatform(r, a, c.Name)
		if err != nil {
			return err
		}
		if m.Damaged == nil {
			return fmt.Errorf("the settings of merchant %q are as the gateway wrote them", m.Name)
		}
		if err := a.Merchants.Accept(r.ctx, m.ID); err != nil {
			return err
		}
		return r.out.show(viewMerchant(&m), func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "Accepted the limits, hosts, routes and prices of merchant %q: new orders are accepted within 2 seconds.\n", m.Name)
		})
	})
}

// merchantNamed finds a merchant. If it is unknown, the error mentions the command that
// lists merchants.
func merchantNamed(r *runner, a *app.Admin, name string) (store.Merchant, error) {
	m, err := merchantOrPlatform(r, a, name)
	if err == nil && m.ID.IsZero() {
		err = errors.New("the platform is not a merchant: porteira merchant list lists all merchants")
	}
	return m, err
}

// merchantOrPlatform is merchantNamed for what the platform has too: limits and a ledger.
func merchantOrPlatform(r *runner, a *app.Admin, name string) (store.Merchant, error) {
	m, err := a.Store.MerchantByName(r.ctx, strings.TrimSpace(name))
	if isNotFound(err) {
		err = fmt.Errorf("merchant %q not found: porteira merchant list lists all merchants", name)
	}
	return m, err
}
