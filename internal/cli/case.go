package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/store"
)

type caseCommand struct {
	settings

	List caseList `cmd:"" help:"List open cases, oldest first."`
}

type caseList struct {
	Limit int `default:"200" help:"Maximum number of cases to list."`
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
}

// Run lists the open cases.
func (c *caseList) Run(r *runner, root *commands) error {
	if c.Limit < 1 {
		return configError{fmt.Errorf("--limit must be at least 1, not %d", c.Limit)}
	}
	return r.admin(&root.Case.settings, func(a *app.Admin) error {
		list, err := a.Store.OpenCases(r.ctx, c.Limit)
		if err != nil {
			return err
		}
		merchants, err := a.Store.Merchants(r.ctx)
		if err != nil {
			return err
		}
		names := map[string]string{}
		for i := range merchants {
			names[merchants[i].ID.String()] = merchants[i].Name
		}
		views := make([]caseView, len(list))
		for i, v := range list {
			views[i] = caseView{
				ID: v.ID.String(), Merchant: names[v.Merchant.String()], Kind: string(v.Kind),
				Amount: int64(v.Amount), Params: v.Params, Text: caseText(&v), CreatedAt: v.CreatedAt,
			}
			if !v.Subject.IsZero() {
				views[i].Subject = v.Subject.String()
			}
		}
		return r.out.show(views, func(w io.Writer) { printCases(w, list, views) })
	})
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
		_, _ = fmt.Fprintf(w, "%s  %s  %s%s\n  %s\n", stamp(list[i].CreatedAt), merchant, list[i].Kind, amount, views[i].Text)
		if views[i].Subject != "" {
			_, _ = fmt.Fprintf(w, "  subject %s\n", views[i].Subject)
		}
	}
	_, _ = fmt.Fprintf(w, "\n%s.\n", plural(len(list), "open case", "open cases"))
}
