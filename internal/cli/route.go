package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

type routeCommand struct {
	settings

	Set  routeSet  `cmd:"" help:"Set the accounts of a merchant's new orders, in order."`
	List routeList `cmd:"" help:"List a merchant's routes."`
	Test routeTest `cmd:"" help:"Show which account would take an order."`
}

// routeView is a route as the commands show it. Amounts are cents.
type routeView struct {
	Operation string `json:"operation"`
	Method    string `json:"method"` // "" is every method without routes of its own
	Account   string `json:"account"`
	Minimum   int64  `json:"minimum"`
	Maximum   int64  `json:"maximum"` // 0: none
	Share     int    `json:"share"`   // percent; 0: none

	ChangedBy string     `json:"changedBy,omitempty"`
	ChangedAt *time.Time `json:"changedAt,omitempty"`
}

func viewRoute(v payment.Route) routeView {
	return routeView{Operation: string(v.Operation), Method: string(v.Method), Account: v.Account, Minimum: int64(v.Minimum), Maximum: int64(v.Maximum), Share: v.Share}
}

func orEvery(method payment.Method) string {
	if method == "" {
		return "(every)"
	}
	return string(method)
}

type routeSet struct {
	author

	Merchant  string   `arg:"" help:"The merchant's name."`
	Accounts  []string `arg:"" help:"Accounts in order, as NAME[:share=PERCENT][:min=CENTS][:max=CENTS]; the word none removes the routes."`
	Operation string   `required:"" enum:"payin,payout" help:"The operation: payin or payout."`
	Method    string   `help:"The method, such as PIX; without it every method that has no routes of its own." placeholder:"METHOD"`
}

// Run sets routes.
func (c *routeSet) Run(r *runner, root *commands) error {
	var list []payment.Route
	names := strings.FieldsFunc(strings.Join(c.Accounts, ","), func(c rune) bool { return c == ',' })
	if slices.Equal(names, []string{"none"}) {
		names = nil
	}
	for _, text := range names {
		v, err := parseRoute(text)
		if err != nil {
			return configError{err}
		}
		list = append(list, v)
	}
	return r.change(&root.Route.settings, &c.author, func(a *app.Admin) error {
		m, err := merchantNamed(r, a, c.Merchant)
		if err != nil {
			return err
		}
		if err := a.Accounts.SetRoutes(r.ctx, &m, payment.Operation(c.Operation), payment.Method(c.Method), list); err != nil {
			return err
		}
		done := "Set. Running gateways follow within 2 seconds."
		if c.Operation == string(payment.OperationPayout) {
			if m, err = merchantNamed(r, a, c.Merchant); err != nil {
				return err
			}
			refused, err := whyNoPayouts(r, a, &m, nil)
			if err != nil {
				return err
			}
			if refused != "" { // such as an account that was added after the restore
				done += "\nNew payouts of this merchant are refused: " + refused + "."
			}
		}
		return listRoutes(r, a, c.Merchant, done)
	})
}

// parseRoute reads NAME[:share=PERCENT][:min=CENTS][:max=CENTS].
func parseRoute(text string) (payment.Route, error) {
	name, rest, more := strings.Cut(text, ":")
	v := payment.Route{Account: name}
	for more {
		var part string
		part, rest, more = strings.Cut(rest, ":")
		key, value, _ := strings.Cut(part, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil || n < 0:
			return v, fmt.Errorf("%q: write NAME:share=PERCENT:min=CENTS:max=CENTS", text)
		case key == "share" && n <= 100:
			v.Share = int(n)
		case key == "min":
			v.Minimum = money.Cents(n)
		case key == "max":
			v.Maximum = money.Cents(n)
		default:
			return v, fmt.Errorf("%q: write NAME:share=PERCENT:min=CENTS:max=CENTS", text)
		}
	}
	return v, nil
}

type routeList struct {
	Merchant string `arg:"" help:"The merchant's name."`
}

// Run lists routes.
func (c *routeList) Run(r *runner, root *commands) error {
	return r.admin(&root.Route.settings, func(a *app.Admin) error { return listRoutes(r, a, c.Merchant, "") })
}

func listRoutes(r *runner, a *app.Admin, merchant, first string) error {
	m, err := merchantNamed(r, a, merchant)
	if err != nil {
		return err
	}
	last, err := a.Store.LastChanges(r.ctx, m.ID, store.NounRoute)
	if err != nil {
		return err
	}
	views := []routeView{}
	rows := [][]string{{"OPERATION", "METHOD", "ACCOUNT", "MINIMUM", "MAXIMUM", "SHARE", "SINCE", "BY"}}
	for _, v := range m.Routes {
		view := viewRoute(v)
		row := []string{string(v.Operation), orEvery(v.Method), v.Account, "", "", "", "", ""}
		if e, ok := last[store.RouteSubject(v.Operation, v.Method)]; ok {
			view.ChangedBy, view.ChangedAt = string(e.Actor), &e.CreatedAt
			row[6], row[7] = stamp(e.CreatedAt), e.Actor.Shown()
		}
		views = append(views, view)
		if v.Minimum > 0 {
			row[3] = v.Minimum.English()
		}
		if v.Maximum > 0 {
			row[4] = v.Maximum.English()
		}
		if v.Share > 0 {
			row[5] = strconv.Itoa(v.Share) + "%"
		}
		rows = append(rows, row)
	}
	return r.out.show(views, func(w io.Writer) {
		if first != "" {
			_, _ = fmt.Fprintf(w, "%s\n\n", first)
		}
		tableOr(w, rows, fmt.Sprintf("No routes: new orders of merchant %q are refused. porteira route set sets them.", m.Name))
	})
}

type routeTest struct {
	Merchant  string     `arg:"" help:"The merchant's name."`
	Operation string     `default:"payin" enum:"payin,payout" help:"The operation: payin or payout (default payin)."`
	Method    string     `default:"PIX" help:"The method (default PIX)." placeholder:"METHOD"`
	Amount    centsValue `required:"" help:"The order's amount in cents." placeholder:"CENTS"`
}

// choiceView is a route, and why it cannot take the order; "" if it can. Note is why it would not
// be sent yet.
type choiceView struct {
	Account string `json:"account"`
	Problem string `json:"problem"`
	Note    string `json:"note,omitempty"`
}

// whyNot is why an account takes no order, for the operator: the cause, which a merchant does not
// see, if there is one.
func whyNot(err error) string {
	if e := problem.From(err); e.Cause != nil {
		return e.Cause.Error()
	}
	return detail(err)
}

// Run shows which account would take an order, and why others would not. The exit code is 1
// if none would.
func (c *routeTest) Run(r *runner, root *commands) error {
	switch {
	case c.Amount < 1:
		return configError{fmt.Errorf("--amount must be at least 1, not %d", c.Amount)}
	case !slices.Contains(payment.Methods, payment.Method(c.Method)):
		return configError{fmt.Errorf("--method must be PIX, CREDIT_CARD or BOLETO, not %q", c.Method)}
	case payment.Operation(c.Operation) == payment.OperationPayout && payment.Method(c.Method) != payment.PIX:
		return configError{errors.New("--method of a payout must be PIX")}
	}
	return r.admin(&root.Route.settings, func(a *app.Admin) error {
		m, err := merchantNamed(r, a, c.Merchant)
		if err != nil {
			return err
		}
		views, err := choices(r, a, &m, processor.NewOrder{
			Merchant: m.ID, Operation: payment.Operation(c.Operation), Method: payment.Method(c.Method), Amount: money.Cents(c.Amount),
		})
		if err != nil {
			return err
		}
		chosen := slices.ContainsFunc(views, func(v choiceView) bool { return v.Problem == "" })
		err = r.out.show(views, func(w io.Writer) {
			for _, v := range views {
				if v.Problem == "" {
					v.Problem = "can take the order"
				}
				if v.Note != "" {
					v.Problem += ", but " + v.Note
				}
				_, _ = fmt.Fprintf(w, "  %s: %s\n", v.Account, v.Problem)
			}
			if len(views) == 0 {
				_, _ = fmt.Fprintf(w, "  Merchant %q has no route for it: porteira route set\n", m.Name)
			}
			if !chosen {
				_, _ = fmt.Fprintln(w, "No account can take the order.")
			}
		})
		if err == nil && !chosen {
			err = errDefects
		}
		return err
	})
}

// choices are the routes of an order, and what prevents each.
func choices(r *runner, a *app.Admin, m *store.Merchant, o processor.NewOrder) ([]choiceView, error) {
	views := []choiceView{}
	for _, v := range payment.RoutesOf(m.Routes, o.Operation, o.Method) {
		view := choiceView{Account: v.Account}
		if err := processor.Eligible(a.Registry, v, o); err != nil {
			view.Problem = whyNot(err)
		}
		views = append(views, view)
	}
	if o.Operation != payment.OperationPayout {
		return views, nil
	}
	stopping, err := a.Store.StoppingCases(r.ctx)
	if err != nil {
		return nil, err
	}
	refused, err := whyNoPayouts(r, a, m, stopping)
	for i := range views {
		v := &views[i]
		v.Problem = cmp.Or(v.Problem, refused)
		for j := range stopping {
			if v.Problem == "" && stopping[j].StopsAccount == v.Account {
				v.Note = "sends it only once a case is resolved: porteira case show " + stopping[j].ID.String()
			}
		}
	}
	return views, err
}

// whyNoPayouts is why new payouts of a merchant are refused at every account; "" if they are not.
func whyNoPayouts(r *runner, a *app.Admin, m *store.Merchant, stopping []store.Case) (string, error) {
	for i := range stopping {
		if stopping[i].StopsPayouts && stopping[i].Merchant == m.ID {
			return "the merchant's payouts are stopped until a case is resolved: porteira case show " + stopping[i].ID.String(), nil
		}
	}
	awaited, err := a.AwaitedAccounts(r.ctx, m)
	if err == nil && len(awaited) > 0 {
		return "payouts wait after a restore until the lists of " + strings.Join(awaited, ", ") + " have been read: porteira account show " + awaited[0], nil
	}
	return "", err
}
