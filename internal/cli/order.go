package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/query"
)

// listFlags are the flags of every list of orders.
type listFlags struct {
	Merchant string     `help:"Only those of this merchant."                                                   placeholder:"NAME"`
	Since    sinceValue `help:"Only those created since then: 90m, 2h, 3d, or a time such as 2026-03-01T12:00:00Z." placeholder:"WHEN"`
	Limit    int        `default:"50"                                                                          help:"Maximum number to list; the output says if there are more."`
}

// merchantArgument names the merchant of a list without --merchant.
type merchantArgument struct {
	Argument string `arg:"" help:"The same as --merchant." name:"merchant" optional:""`
}

// of takes the merchant from the argument, if there is one.
func (f *listFlags) of(m merchantArgument) error {
	if m.Argument == "" {
		return nil
	}
	if f.Merchant != "" && f.Merchant != m.Argument {
		return configError{fmt.Errorf("the argument names merchant %q and --merchant names %q: write one of them", m.Argument, f.Merchant)}
	}
	f.Merchant = m.Argument
	return nil
}

// accountFlag narrows a list to orders at an account.
type accountFlag struct {
	Account string `help:"Only those at this account." placeholder:"ID"`
}

// listing is a list that is being made: its filter, and the names of merchants.
type listing struct {
	query.Filter

	names map[payment.ID]string
	now   time.Time
}

// open reads what a list needs.
func (f *listFlags) open(r *runner, a *app.Admin) (v listing, err error) {
	if f.Limit < 1 {
		return v, configError{fmt.Errorf("--limit must be at least 1, not %d", f.Limit)}
	}
	v.names, v.now = map[payment.ID]string{}, a.Clock.Now()
	v.Limit, v.Since = f.Limit, f.Since.from(v.now)
	if f.Merchant != "" {
		m, err := merchantNamed(r, a, f.Merchant)
		v.Merchants, v.names[m.ID] = []payment.ID{m.ID}, m.Name
		return v, err
	}
	merchants, err := a.Store.Merchants(r.ctx)
	for i := range merchants {
		v.Merchants = append(v.Merchants, merchants[i].ID)
		v.names[merchants[i].ID] = merchants[i].Name
	}
	return v, err
}

// at narrows the list to orders at an account.
func (v *listing) at(r *runner, a *app.Admin, account string) error {
	v.Account = account
	if account == "" {
		return nil
	}
	if _, err := a.Store.Account(r.ctx, account); isNotFound(err) {
		return fmt.Errorf("account %q not found: porteira account list lists all accounts", account)
	} else if err != nil {
		return err
	}
	return nil
}

// orderView is an order as operators' commands show it: as the API does, with personal data masked,
// and what merchants do not see. Amounts are cents.
type orderView struct {
	Merchant  string          `json:"merchant"`
	Payin     json.RawMessage `json:"payin,omitempty"`
	Payout    json.RawMessage `json:"payout,omitempty"`
	Refund    json.RawMessage `json:"refund,omitempty"`
	Account   string          `json:"account,omitempty"`
	Step      string          `json:"step,omitempty"`
	Lookups   int             `json:"lookups,omitempty"`
	NextAt    *time.Time      `json:"nextAt,omitempty"`
	ClaimedBy string          `json:"claimedBy,omitempty"` // the process that works on it

	*subjectView // if one order is shown
}

// sayRest says that a list leaves some out, or may.
func sayRest[T any](r *runner, list *query.List[T]) {
	switch {
	case list.Partial:
		r.sayMore(true, "Only the newest 100,000 of each merchant were examined: there may be more.")
	default:
		r.sayMore(list.More, fmt.Sprintf("The newest %d; there are more: --limit lists them.", len(list.Orders)))
	}
}

// readOrder reads an order by its id.
func readOrder(r *runner, a *app.Admin, text string, kind query.Kind, noun string) (*query.Subject, string, error) {
	id, err := payment.ParseID(strings.TrimSpace(text))
	if err != nil {
		return nil, "", configError{fmt.Errorf("%q is not the id of a %s: porteira find TEXT finds it by any other id", text, noun)}
	}
	merchant, err := query.OwnerOf(r.ctx, a.Store, id)
	if err == nil {
		var s *query.Subject
		if s, err = query.Explain(r.ctx, a.Store, merchant, id); err == nil && s.Kind == kind {
			m, err := a.Store.Merchant(r.ctx, merchant)
			return s, m.Name, err
		}
	}
	if err == nil || isNotFound(err) {
		err = fmt.Errorf("%s %s not found: porteira find TEXT finds it by any other id", noun, id)
	}
	return nil, "", err
}

// failureText is why an order failed.
func failureText(f *payment.Failure) string {
	if f == nil {
		return ""
	}
	return oneLine(f.Code + ": " + f.Message)
}

// claimText is who works on an order, or when somebody will.
func claimText(next time.Time, by string, now time.Time) string {
	switch {
	case by != "":
		return "in work by process " + by
	case !next.IsZero():
		return stamp(next) + ", " + within(next, now)
	default:
		return ""
	}
}

// printDamaged prints the readable part of an order whose row cannot be opened.
func printDamaged(w io.Writer, merchant string, s *query.Subject) {
	o := orderOf(s)
	pairs(w, [][]string{
		{o.Type, o.ID}, {"merchant", merchant}, {"reference", o.ReferenceID}, {"status", strings.TrimSpace(o.Status + " " + o.Step)},
		{"account", o.Processor}, {"external id", o.ExternalID}, {"processor id", o.ProcessorID},
	})
	_, _ = fmt.Fprintln(w, "\nIts row cannot be opened: porteira case list has a case about it.")
}
