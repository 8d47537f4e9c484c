package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/query"
)

type findCommand struct {
	settings

	Merchant string `help:"Search the rows of this merchant alone." placeholder:"NAME"`

	Text string `arg:"" help:"An id of any kind, a reference, a code of a Pix or a boleto, a CPF or CNPJ, an e-mail address or a Pix key."`
}

// matchView is something that was found.
type matchView struct {
	What     string `json:"what"`
	ID       string `json:"id"`
	Merchant string `json:"merchant,omitempty"` // "": the platform's
	Status   string `json:"status,omitempty"`
	By       string `json:"foundBy"`
	Command  string `json:"command"` // that shows it
}

// Run finds what has an id, a code or personal data.
func (c *findCommand) Run(r *runner) error {
	if strings.TrimSpace(c.Text) == "" {
		return configError{errors.New("write what to find: an id, a reference, a code, a document, an e-mail address or a Pix key")}
	}
	return r.admin(&c.settings, func(a *app.Admin) error {
		merchants, err := a.Store.Merchants(r.ctx)
		if err != nil {
			return err
		}
		var of payment.ID
		if c.Merchant != "" {
			m, err := merchantNamed(r, a, c.Merchant)
			if err != nil {
				return err
			}
			of = m.ID
		}
		list, thorough, unread := query.Find(r.ctx, a.Store, c.Text, of)
		names := map[payment.ID]string{}
		for i := range merchants {
			names[merchants[i].ID] = merchants[i].Name
		}
		views := make([]matchView, len(list))
		for i, m := range list {
			views[i] = matchView{m.What, m.ID, names[m.Merchant], m.Status, m.By, "porteira " + m.Command}
		}
		err = r.out.show(views, func(w io.Writer) { printMatches(w, views) })
		r.sayMore(!thorough, "Only the newest pay-ins and payouts were searched for ids of processors and codes of boletos, 20,000 of a merchant and 200,000 in all: --merchant NAME searches those of one.")
		if err = errors.Join(err, unread); err == nil && len(views) == 0 {
			err = errors.New("nothing was found: personal data is found some seconds after its order was created, and ids of requests are in the log only")
		}
		return err
	})
}

func printMatches(w io.Writer, views []matchView) {
	for i := range views {
		v := &views[i]
		text := v.What + " " + v.ID
		if v.Merchant != "" && v.Merchant != v.ID {
			text += " of " + v.Merchant
		}
		if v.Status != "" {
			text += ", " + v.Status
		}
		_, _ = fmt.Fprintf(w, "%s\n  by %s: %s\n", oneLine(text), v.By, oneLine(v.Command))
	}
}
