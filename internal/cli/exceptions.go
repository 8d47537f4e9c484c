package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/porteira/porteira/internal/app"
)

type exceptionsCommand struct {
	settings

	List exceptionsList `cmd:"" help:"List what waits for a person, oldest first."`
}

type exceptionsList struct {
	Limit int `default:"200" help:"The most to list."`
}

// exceptionView is an exception as the command shows it. Amounts are cents.
type exceptionView struct {
	ID        string    `json:"id"`
	Merchant  string    `json:"merchant"` // "" where none could be found
	Kind      string    `json:"kind"`
	Subject   string    `json:"subject"` // id of the order or receipt
	Amount    int64     `json:"amount"`
	Detail    string    `json:"detail"`
	CreatedAt time.Time `json:"createdAt"`
}

// Run lists what needs a person, and why.
func (c *exceptionsList) Run(r *runner, root *commands) error {
	if c.Limit < 1 {
		return configError{fmt.Errorf("--limit %d lists nothing", c.Limit)}
	}
	return r.admin(&root.Exceptions.settings, func(a *app.Admin) error {
		list, err := a.Store.OpenExceptions(r.ctx, c.Limit)
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
		views := make([]exceptionView, len(list))
		for i, e := range list {
			views[i] = exceptionView{
				ID: e.ID.String(), Merchant: names[e.Merchant.String()], Kind: e.Kind,
				Amount: int64(e.Amount), Detail: e.Detail, CreatedAt: e.CreatedAt,
			}
			if !e.Subject.IsZero() {
				views[i].Subject = e.Subject.String()
			}
		}
		return r.out.show(views, func(w io.Writer) {
			if len(list) == 0 {
				_, _ = fmt.Fprintln(w, "Nothing waits for a person.")
				return
			}
			for i, e := range list {
				if i > 0 {
					_, _ = fmt.Fprintln(w)
				}
				amount := ""
				if e.Amount != 0 {
					amount = "  " + e.Amount.English()
				}
				_, _ = fmt.Fprintf(w, "%s  %s  %s%s\n  %s\n", stamp(e.CreatedAt), orPlatform(views[i].Merchant), e.Kind, amount, e.Detail)
				if views[i].Subject != "" {
					_, _ = fmt.Fprintf(w, "  about %s\n", views[i].Subject)
				}
			}
			_, _ = fmt.Fprintf(w, "\n%s for a person.\n", plural(len(list), "thing waits", "things wait"))
		})
	})
}

func orPlatform(name string) string {
	if name == "" {
		return "(no merchant)"
	}
	return name
}
