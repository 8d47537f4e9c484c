package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

type priceCommand struct {
	settings

	Set  priceSet  `cmd:"" help:"Set the price of a merchant's new orders of a method."`
	List priceList `cmd:"" help:"List a merchant's prices."`
}

// priceView is a price as the commands show it. Amounts are cents.
type priceView struct {
	Method           string `json:"method"`
	InstallmentsFrom int    `json:"installmentsFrom"`
	InstallmentsTo   int    `json:"installmentsTo"`
	BasisPoints      int64  `json:"basisPoints"`
	Fixed            int64  `json:"fixed"`
	Minimum          int64  `json:"minimum"`
	Maximum          int64  `json:"maximum"` // 0: none
	Settle           string `json:"settle"`  // D+n: calendar days, B+n: business days
	PerInstallment   bool   `json:"perInstallment"`
	RefundsFee       bool   `json:"refundsFee"`
	Since            string `json:"since"`
	By               string `json:"changedBy,omitempty"`
}

func viewPrice(p *payment.Price, by string) priceView {
	return priceView{
		string(p.Method), p.From, p.To, p.BasisPoints, int64(p.Fixed), int64(p.Minimum), int64(p.Maximum),
		settleText(p.Terms), p.PerInstallment, p.RefundsFee, p.Since.Format("2006-01-02T15:04:05Z"), by,
	}
}

func settleText(t payment.Terms) string {
	kind := "D+"
	if t.Business {
		kind = "B+"
	}
	return kind + strconv.Itoa(t.Days)
}

type priceSet struct {
	author

	Merchant       string      `arg:"" help:"The merchant's name."`
	Method         string      `enum:"PIX,CREDIT_CARD,BOLETO,PAYOUT" help:"PIX, CREDIT_CARD, BOLETO or PAYOUT." required:""`
	Installments   string      `help:"Instalments of card payments that have this price, such as 2-6; without it all." placeholder:"FROM-TO"`
	BasisPoints    basisPoints `help:"Part of the fee that depends on the amount: 100 is 1 %." placeholder:"N" required:""`
	Fixed          centsValue  `help:"Fixed part of the fee, added to the other." placeholder:"CENTS" required:""`
	Minimum        *centsValue `help:"The smallest fee; 0 is none." placeholder:"CENTS"`
	Maximum        *centsValue `help:"The largest fee; 0 is none." placeholder:"CENTS"`
	Settle         string      `help:"When the money becomes available: D+n after n calendar days, B+n after n business days of banks, D+0 at once." placeholder:"D+N|B+N"`
	PerInstallment *bool       `help:"Each instalment of a card payment settles this long after the previous one." negatable:""`
	RefundsFee     *bool       `help:"A refund gives its part of the fee back." negatable:""`
}

// Help is the part of the help that is about what is not named.
func (c *priceSet) Help() string {
	return "What is not named stays as in the price of the same method and instalments that is replaced, else as in the price of the smallest range that includes these instalments. " +
		"--settle and --per-installment are kept together: with --settle alone the money settles at once, not per instalment. " +
		"If the method has prices, and none of them includes these instalments, --settle must be named. The first price of a method settles at D+0 unless --settle says otherwise."
}

// unnamed are the terms that the command does not name.
func (c *priceSet) unnamed() merchant.Unnamed {
	return merchant.Unnamed{
		Minimum: c.Minimum == nil, Maximum: c.Maximum == nil, Settlement: c.Settle == "", PerInstallment: c.PerInstallment == nil, RefundsFee: c.RefundsFee == nil,
	}
}

// valueOf is the value of an argument; zero if it was not given.
func valueOf[T any](v *T) (value T) {
	if v != nil {
		value = *v
	}
	return value
}

// Run sets a price.
func (c *priceSet) Run(r *runner, root *commands) error {
	p, err := c.price()
	if err != nil {
		return configError{err}
	}
	return r.change(&root.Price.settings, &c.author, func(a *app.Admin) error {
		m, err := merchantNamed(r, a, c.Merchant)
		if err != nil {
			return err
		}
		changed, err := a.Merchants.SetPrice(r.ctx, m.ID, p, c.unnamed())
		if err != nil {
			return err
		}
		first := "Unchanged: this price holds already."
		if changed {
			first = "Set for new orders. Running gateways follow within 2 seconds."
		}
		return listPrices(r, a, c.Merchant, first)
	})
}

func (c *priceSet) price() (p payment.Price, err error) {
	p.Method = payment.Method(c.Method)
	p.Terms = payment.Terms{
		BasisPoints: int64(c.BasisPoints), Fixed: money.Cents(c.Fixed), Minimum: money.Cents(valueOf(c.Minimum)), Maximum: money.Cents(valueOf(c.Maximum)),
		PerInstallment: valueOf(c.PerInstallment), RefundsFee: valueOf(c.RefundsFee),
	}
	if c.Installments != "" {
		from, to, isRange := strings.Cut(c.Installments, "-")
		if !isRange {
			to = from
		}
		if p.From, err = strconv.Atoi(from); err == nil {
			p.To, err = strconv.Atoi(to)
		}
		if err != nil || p.From < 1 {
			return p, fmt.Errorf("--installments %q: write FROM-TO, such as 2-6", c.Installments)
		}
	}
	if c.Settle == "" {
		return p, nil
	}
	kind, days, _ := strings.Cut(c.Settle, "+")
	p.Days, err = strconv.Atoi(days)
	if err != nil || kind != "D" && kind != "B" {
		return p, fmt.Errorf("--settle %q: write D+n for calendar days or B+n for business days", c.Settle)
	}
	p.Business = kind == "B"
	return p, nil
}

type priceList struct {
	Merchant string `arg:"" help:"The merchant's name."`
}

// Run lists prices.
func (c *priceList) Run(r *runner, root *commands) error {
	return r.admin(&root.Price.settings, func(a *app.Admin) error { return listPrices(r, a, c.Merchant, "") })
}

func listPrices(r *runner, a *app.Admin, merchant, first string) error {
	m, err := merchantNamed(r, a, merchant)
	if err != nil {
		return err
	}
	last, err := a.Store.LastChanges(r.ctx, m.ID, store.NounPrice)
	if err != nil {
		return err
	}
	views := make([]priceView, len(m.Prices))
	rows := [][]string{{"METHOD", "INSTALLMENTS", "BASIS POINTS", "FIXED", "MINIMUM", "MAXIMUM", "SETTLES", "REFUNDS FEE", "SINCE", "BY"}}
	for i := range m.Prices {
		p := &m.Prices[i]
		by := last[store.PriceSubject(p)].Actor
		v := viewPrice(p, string(by))
		views[i] = v
		row := []string{v.Method, "", strconv.FormatInt(v.BasisPoints, 10), p.Fixed.English(), "", "", v.Settle, "", stamp(p.Since), by.Shown()}
		if p.Method == payment.CreditCard {
			row[1] = fmt.Sprintf("%d-%d", p.From, p.To)
		}
		if p.Minimum > 0 {
			row[4] = p.Minimum.English()
		}
		if p.Maximum > 0 {
			row[5] = p.Maximum.English()
		}
		if p.PerInstallment {
			row[6] += " per instalment"
		}
		if p.RefundsFee {
			row[7] = "yes"
		}
		rows = append(rows, row)
	}
	return r.out.show(views, func(w io.Writer) {
		if first != "" {
			_, _ = fmt.Fprintf(w, "%s\n\n", first)
		}
		tableOr(w, rows, fmt.Sprintf("No prices: nothing is charged, and what merchant %q receives is available at once. porteira price set sets one.", m.Name))
	})
}
