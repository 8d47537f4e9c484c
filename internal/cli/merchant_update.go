package cli

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/store"
)

type merchantShow struct {
	Name string `arg:"" help:"The merchant's name."`
}

// Run shows a merchant.
func (c *merchantShow) Run(r *runner, root *commands) error {
	return r.admin(&root.Merchant.settings, func(a *app.Admin) error {
		m, err := merchantNamed(r, a, c.Name)
		if err != nil {
			return err
		}
		return showMerchant(r, a, &m, "")
	})
}

type merchantUpdate struct {
	author

	brandFlags

	Merchant     string   `arg:""                                                                                                              help:"The merchant's name."`
	Name         *string  `help:"The new name, shown to payers."                                                                               placeholder:"TEXT"`
	City         *string  `help:"The new city, which BR Codes require."                                                                        placeholder:"TEXT"`
	ReturnHosts  []string `help:"Host that returnUrl may name; may be repeated, replaces all; none removes them."                              name:"return-host"          placeholder:"HOST"`
	WebhookHosts []string `help:"Host that webhookUrl of orders without credentials may name; may be repeated, replaces all; none removes them." name:"webhook-host"         placeholder:"HOST"`
}

// Validate refuses a command without an option: it would say that something is saved.
func (c *merchantUpdate) Validate() error {
	if reflect.DeepEqual(*c, merchantUpdate{author: c.author, Merchant: c.Merchant}) {
		return errors.New("name at least one field")
	}
	return nil
}

// Run changes the given fields, all or none of them, and shows the merchant.
func (c *merchantUpdate) Run(r *runner, root *commands) error {
	u := merchant.Update{Name: c.Name, City: c.City}
	var err error
	if u.ReturnHosts, err = hostList(c.ReturnHosts); err != nil {
		return err
	}
	if u.WebhookHosts, err = hostList(c.WebhookHosts); err != nil {
		return err
	}
	return r.change(&root.Merchant.settings, &c.author, func(a *app.Admin) error {
		m, err := merchantNamed(r, a, c.Merchant)
		if err != nil {
			return err
		}
		if u.Brand, err = c.update(); err != nil {
			return err
		}
		if m, err = a.Merchants.Update(r.ctx, m.ID, u); err != nil {
			return err
		}
		return showMerchant(r, a, &m, fmt.Sprintf("Saved merchant %q: running gateways follow within 2 seconds.\n\n", m.Name))
	})
}

// hostList is the new list of hosts; nil if none was given.
func hostList(given []string) (list *[]string, err error) {
	switch {
	case len(given) == 0:
		return list, nil
	case len(given) == 1 && given[0] == merchant.NoHosts:
		return new([]string), nil
	case slices.Contains(given, merchant.NoHosts):
		return list, configError{fmt.Errorf("%s removes all hosts: write it alone", merchant.NoHosts)}
	default:
		return &given, nil
	}
}

// showMerchant shows a merchant, after a sentence.
func showMerchant(r *runner, a *app.Admin, m *store.Merchant, sentence string) error {
	b, err := a.Store.Brand(r.ctx, m.ID)
	if err != nil {
		return err
	}
	v := viewMerchant(m)
	v.Brand = &brandView{m.Name, b.Title, b.Document, b.Color, b.LogoType, len(b.Logo)}
	return r.out.show(v, func(w io.Writer) {
		_, _ = io.WriteString(w, sentence)
		rows := [][]string{
			{"  id", v.ID}, {"  number", strconv.FormatInt(v.Number, 10)}, {"  name", v.Name}, {"  city", v.City},
			{"  accounts", strings.Join(v.Accounts, ", ")}, {"  return hosts", strings.Join(v.ReturnHosts, ", ")},
			{"  webhook hosts", strings.Join(v.WebhookHosts, ", ")}, {"  created", stamp(m.CreatedAt)}, {"  closed", stamp(m.ClosedAt)},
		}
		table(w, append(rows, v.Brand.rows()...))
	})
}
