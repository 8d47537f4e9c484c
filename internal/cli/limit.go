package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

type limitCommand struct {
	settings

	Set  limitSet  `cmd:"" help:"Set limits of a merchant's orders, or of new merchants (platform). The value none lifts a limit."`
	Show limitShow `cmd:"" help:"Show the limits of a merchant, or of new merchants (platform)."`
}

// limitValue is an option that sets a limit to a number, or lifts it with none.
type limitValue struct {
	given bool
	value *int64
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (v *limitValue) UnmarshalText(text []byte) error {
	v.given, v.value = true, nil
	if string(text) == "none" {
		return nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 {
		return errors.New("write a number, in cents if it is an amount, or none")
	}
	v.value = &n
	return nil
}

// amount sets a limit of an amount, if the option was given.
func (v limitValue) amount(to **money.Cents) {
	if v.given {
		*to = (*money.Cents)(v.value)
	}
}

// number sets a limit of a number, if the option was given.
func (v limitValue) number(to **int64) {
	if v.given {
		*to = v.value
	}
}

type limitSet struct {
	author

	Merchant string `arg:"" help:"The merchant's name; platform for the limits of new merchants."`

	PayinMinimum      []string   `help:"Least amount of a pay-in of a method, such as PIX=100; may be repeated." name:"payin-minimum" placeholder:"METHOD=CENTS"`
	PayinMaximum      []string   `help:"Largest amount of a pay-in of a method, such as PIX=100000; may be repeated." name:"payin-maximum" placeholder:"METHOD=CENTS"`
	PayoutMinimum     limitValue `help:"Least amount of a payout."                                                name:"payout-minimum"        placeholder:"CENTS"`
	PayoutMaximum     limitValue `help:"Largest amount of a payout."                                              name:"payout-maximum"        placeholder:"CENTS"`
	PayoutPerDay      limitValue `help:"Amount of all payouts of a day."                                          name:"payout-per-day"        placeholder:"CENTS"`
	PayoutPerNight    limitValue `help:"Amount of all payouts of a night, 20:00 to 06:00."                        name:"payout-per-night"      placeholder:"CENTS"`
	PerKeyPerDay      limitValue `help:"Amount of all payouts of a day to one Pix key."                           name:"per-key-per-day"       placeholder:"CENTS"`
	CountPerKeyPerDay limitValue `help:"Number of payouts of a day to one Pix key."                               name:"count-per-key-per-day" placeholder:"N"`
	NewKeyMaximum     limitValue `help:"Amount of all payouts to a new Pix key."                                  name:"new-key-maximum"       placeholder:"CENTS"`
	ApprovalAbove     limitValue `help:"Payouts above this amount need approval." name:"approval-above" placeholder:"CENTS"`
	Approvals         limitValue `help:"Approvals that such a payout needs, by different people: 1 or 2." name:"approvals" placeholder:"N"`
	NewKeyHours       limitValue `help:"Hours after its first payout in which a Pix key is new."                  name:"new-key-hours"         placeholder:"N"`
	Rate              limitValue `help:"Requests per second of one credential, on each gateway; none: credential-rate of the gateway." name:"rate" placeholder:"N"`
	Burst             limitValue `help:"Requests of one credential at once, beyond which the rate applies; none: twice the rate, or credential-burst." name:"burst" placeholder:"N"`
	InFlight          limitValue `help:"Requests of one credential in flight, on each gateway; none: credential-in-flight." name:"in-flight" placeholder:"N"`
}

// Validate refuses a command without an option: it would say that limits are set.
func (c *limitSet) Validate() error {
	if reflect.DeepEqual(*c, limitSet{author: c.author, Merchant: c.Merchant}) {
		return errors.New("name at least one limit")
	}
	return nil
}

// Run changes the limits that its options name.
func (c *limitSet) Run(r *runner, root *commands) error {
	minimums, err := ofMethods(c.PayinMinimum)
	if err != nil {
		return configError{err}
	}
	maximums, err := ofMethods(c.PayinMaximum)
	if err != nil {
		return configError{err}
	}
	by, err := c.author.author()
	if c.ApprovalAbove.given || c.Approvals.given { // without approval one person moves any amount
		by, err = c.named()
	}
	if err != nil {
		return err
	}
	return r.changeAs(&root.Limit.settings, by, func(a *app.Admin) error {
		m, err := merchantOrPlatform(r, a, c.Merchant)
		if err != nil {
			return err
		}
		m.Limits, err = a.Merchants.SetLimits(r.ctx, m.ID, func(l *limits.Limits) {
			setPayin(l, minimums, func(v *limits.Range) **money.Cents { return &v.Minimum })
			setPayin(l, maximums, func(v *limits.Range) **money.Cents { return &v.Maximum })
			c.setPayout(&l.Payout)
			c.setRequests(&l.Requests)
		})
		if err != nil {
			return err
		}
		return r.out.show(viewLimits(&m), func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "The limits of %s, in effect within 2 seconds:\n\n", limitsOf(&m))
			printLimits(w, &m.Limits)
		})
	})
}

func (c *limitSet) setPayout(p *limits.Payout) {
	c.PayoutMinimum.amount(&p.Minimum)
	c.PayoutMaximum.amount(&p.Maximum)
	c.PayoutPerDay.amount(&p.PerDay)
	c.PayoutPerNight.amount(&p.PerNight)
	c.PerKeyPerDay.amount(&p.PerKeyPerDay)
	c.CountPerKeyPerDay.number(&p.CountPerKeyPerDay)
	c.NewKeyMaximum.amount(&p.NewKeyMaximum)
	c.NewKeyHours.number(&p.NewKeyHours)
	c.ApprovalAbove.amount(&p.ApprovalAbove)
	c.Approvals.number(&p.Approvals)
}

func (c *limitSet) setRequests(q *limits.Requests) {
	c.Rate.number(&q.Rate)
	c.Burst.number(&q.Burst)
	c.InFlight.number(&q.InFlight)
}

// ofMethods parses METHOD=CENTS or METHOD=none.
func ofMethods(texts []string) (map[payment.Method]limitValue, error) {
	list := map[payment.Method]limitValue{}
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		method := payment.Method(strings.ToUpper(name))
		var v limitValue
		if !slices.Contains(payment.Methods, method) || v.UnmarshalText([]byte(value)) != nil {
			return nil, fmt.Errorf("%q is not a limit of a method: write PIX=100, in cents, or PIX=none; the methods are PIX, CREDIT_CARD and BOLETO", text)
		}
		list[method] = v
	}
	return list, nil
}

// setPayin sets one bound of methods; a method without bounds is left out.
func setPayin(l *limits.Limits, values map[payment.Method]limitValue, bound func(*limits.Range) **money.Cents) {
	for method, v := range values {
		of := l.Payin[method]
		v.amount(bound(&of))
		if l.Payin == nil {
			l.Payin = map[payment.Method]limits.Range{}
		}
		if l.Payin[method] = of; of == (limits.Range{}) {
			delete(l.Payin, method)
		}
	}
}

type limitShow struct {
	Merchant string `arg:"" help:"The merchant's name; platform for the limits of new merchants."`
}

// Run shows the limits of a merchant.
func (c *limitShow) Run(r *runner, root *commands) error {
	return r.admin(&root.Limit.settings, func(a *app.Admin) error {
		m, err := merchantOrPlatform(r, a, c.Merchant)
		if err != nil {
			return err
		}
		v := viewLimits(&m)
		if v.ChangedBy, v.ChangedAt, err = lastChange(r, a, m.ID, store.NounLimit, ""); err != nil {
			return err
		}
		return r.out.show(v, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "The limits of %s:\n\n", limitsOf(&m))
			printLimits(w, &m.Limits)
			if v.ChangedAt != nil {
				_, _ = fmt.Fprintf(w, "\nLast changed at %s by %s.\n", stamp(*v.ChangedAt), actor.Actor(v.ChangedBy).Shown())
			}
		})
	})
}

// limitsView is the limits of a merchant as GET /limits shows them, and of its requests.
type limitsView struct {
	Merchant string                          `json:"merchant"`
	Payin    map[payment.Method]limits.Range `json:"payin"`
	Payout   limits.Payout                   `json:"payout"`
	Requests limits.Requests                 `json:"requests,omitzero"`

	ChangedBy string     `json:"changedBy,omitempty"`
	ChangedAt *time.Time `json:"changedAt,omitempty"`
}

func viewLimits(m *store.Merchant) limitsView {
	v := limitsView{Merchant: m.Name, Payin: m.Limits.Payin, Payout: m.Limits.Payout, Requests: m.Limits.Requests}
	if v.Payin == nil {
		v.Payin = map[payment.Method]limits.Range{}
	}
	return v
}

func limitsOf(m *store.Merchant) string {
	if m.ID.IsZero() {
		return "new merchants"
	}
	return fmt.Sprintf("merchant %q", m.Name)
}

func printLimits(w io.Writer, l *limits.Limits) {
	var rows [][]string
	amount := func(name string, c *money.Cents) {
		if c != nil {
			rows = append(rows, []string{"  " + name, c.English()})
		}
	}
	number := func(name string, n *int64) {
		if n != nil {
			rows = append(rows, []string{"  " + name, strconv.FormatInt(*n, 10)})
		}
	}
	for _, method := range slices.Sorted(maps.Keys(l.Payin)) {
		amount("pay-in "+string(method)+", minimum", l.Payin[method].Minimum)
		amount("pay-in "+string(method)+", maximum", l.Payin[method].Maximum)
	}
	p := &l.Payout
	amount("payout, minimum", p.Minimum)
	amount("payout, maximum", p.Maximum)
	amount("payouts per day", p.PerDay)
	amount("payouts per night", p.PerNight)
	amount("payouts per key and day", p.PerKeyPerDay)
	number("number of payouts per key and day", p.CountPerKeyPerDay)
	amount("payouts to a new key", p.NewKeyMaximum)
	number("hours in which a key is new", p.NewKeyHours)
	amount("approval above", p.ApprovalAbove)
	number("approvals", p.Approvals)
	number("requests per second", l.Requests.Rate)
	number("requests at once", l.Requests.Burst)
	number("requests in flight", l.Requests.InFlight)
	if len(rows) == 0 {
		rows = [][]string{{"  no limits"}}
	}
	table(w, rows)
}
