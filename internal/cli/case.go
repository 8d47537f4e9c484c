package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

type caseCommand struct {
	settings

	List    caseList    `cmd:"" help:"List open cases: those that stop payouts first, then the oldest."`
	Show    caseShow    `cmd:"" help:"Show a case: what happened, what to check, and how it can be resolved."`
	Resolve caseResolve `cmd:"" help:"Resolve a case, or propose a resolution that a second person confirms."`
}

type caseList struct {
	Limit int `default:"200" help:"Maximum number of cases to list; the output says if there are more."`
}

// caseView is a case as the command shows it. Amounts are cents.
type caseView struct {
	ID        string       `json:"id"`
	Merchant  string       `json:"merchant"` // "" if unknown
	Kind      string       `json:"kind"`
	Subject   string       `json:"subject"` // id of the order or receipt
	Amount    int64        `json:"amount"`
	Params    store.Params `json:"params"`
	Text      string       `json:"text"`
	CreatedAt time.Time    `json:"createdAt"`

	StopsPayouts bool       `json:"stopsPayouts,omitempty"` // of the merchant, while it is open
	StopsAccount string     `json:"stopsAccount,omitempty"` // whose payouts are not sent while it is open
	Resolution   string     `json:"resolution,omitempty"`
	ClosedAt     *time.Time `json:"closedAt,omitempty"`
}

// Run lists the open cases.
func (c *caseList) Run(r *runner, root *commands) error {
	if c.Limit < 1 {
		return configError{fmt.Errorf("--limit must be at least 1, not %d", c.Limit)}
	}
	return r.admin(&root.Case.settings, func(a *app.Admin) error {
		list, more, err := openCases(r, a, c.Limit)
		if err != nil {
			return err
		}
		merchants, err := a.Store.Merchants(r.ctx)
		if err != nil {
			return err
		}
		names := map[payment.ID]string{}
		for i := range merchants {
			names[merchants[i].ID] = merchants[i].Name
		}
		views := make([]caseView, len(list))
		for i := range list {
			views[i] = viewCase(&list[i], names[list[i].Merchant])
		}
		err = r.out.show(views, func(w io.Writer) { printCases(w, list, views) })
		r.sayMore(more, "There are more open cases: --limit lists them.")
		return err
	})
}

// openCases are the open cases that stop payouts, and then the oldest of the others; more is true if
// the limit leaves some out.
func openCases(r *runner, a *app.Admin, limit int) (list []store.Case, more bool, err error) {
	list, err = a.Store.StoppingCases(r.ctx)
	if err != nil {
		return nil, false, err
	}
	oldest, err := a.Store.OpenCases(r.ctx, limit+1)
	for i := range oldest {
		if !stops(&oldest[i]) {
			list = append(list, oldest[i])
		}
	}
	if len(list) > limit {
		list, more = list[:limit], true
	}
	return list, more, err
}

// stops reports whether a case stops payouts while it is open, as [store.Store.StoppingCases].
func stops(v *store.Case) bool {
	return v.StopsPayouts || v.StopsAccount != "" || v.Kind == store.CaseAccountRefused
}

func viewCase(v *store.Case, merchant string) caseView {
	view := caseView{
		ID: v.ID.String(), Merchant: merchant, Kind: string(v.Kind), Amount: int64(v.Amount), Params: v.Params, Text: caseText(v),
		StopsPayouts: v.StopsPayouts, StopsAccount: v.StopsAccount, CreatedAt: v.CreatedAt, Resolution: string(v.Resolution),
	}
	if !v.Subject.IsZero() {
		view.Subject = v.Subject.String()
	}
	if !v.ClosedAt.IsZero() {
		view.ClosedAt = &v.ClosedAt
	}
	return view
}

func printCases(w io.Writer, list []store.Case, views []caseView) {
	if len(list) == 0 {
		_, _ = fmt.Fprintln(w, "No open cases.")
		return
	}
	for i := range list {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}
		amount, merchant := "", views[i].Merchant
		if list[i].Amount != 0 {
			amount = "  " + list[i].Amount.English()
		}
		if merchant == "" {
			merchant = "(no merchant)"
		}
		_, _ = fmt.Fprintf(w, "%s  %s  %s%s\n  %s\n  case %s\n", stamp(list[i].CreatedAt), merchant, list[i].Kind, amount, oneLine(views[i].Text), views[i].ID)
		if views[i].Subject != "" {
			_, _ = fmt.Fprintf(w, "  subject %s\n", views[i].Subject)
		}
		for _, effect := range stopTexts(&views[i]) {
			_, _ = fmt.Fprintf(w, "  stops %s\n", effect)
		}
	}
	_, _ = fmt.Fprintf(w, "\n%s. porteira case show ID shows how to resolve one.\n", plural(len(list), "open case", "open cases"))
}

// stopTexts are what a case stops while it is open.
func stopTexts(v *caseView) (list []string) {
	if v.ClosedAt != nil {
		return nil
	}
	if v.StopsPayouts {
		list = append(list, "the merchant's payouts, until it is resolved")
	}
	if v.StopsAccount != "" {
		list = append(list, "sending of payouts at account "+v.StopsAccount+", until it is resolved")
	}
	return list
}
