package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

type payoutList struct {
	Merchant string               `arg:"" help:"The merchant's name."`
	Status   payment.PayoutStatus `help:"Only those with this status; those that need approval are PENDING." placeholder:"STATUS"`
}

// payoutView is a payout as the list shows it, without personal data.
type payoutView struct {
	ID          string               `json:"id"`
	ReferenceID string               `json:"referenceId"`
	Processor   string               `json:"processorId"`
	ExternalID  string               `json:"externalId"`
	Status      payment.PayoutStatus `json:"status"`
	Approval    payment.Approval     `json:"approval"`
	Amount      money.Cents          `json:"amount"` // cents
	CreatedAt   time.Time            `json:"createdAt"`
}

// payoutsListed bounds the list.
const payoutsListed = 200

// Run lists payouts.
func (c *payoutList) Run(r *runner, root *commands) error {
	return r.admin(&root.Payout.settings, func(a *app.Admin) error {
		m, err := merchantNamed(r, a, c.Merchant)
		if err != nil {
			return err
		}
		list, err := a.Store.Payouts(r.ctx, m.ID, store.Filter{Status: strings.ToUpper(string(c.Status)), Limit: payoutsListed + 1})
		if err != nil {
			return err
		}
		more := len(list) > payoutsListed
		list = list[:min(len(list), payoutsListed)]
		views, rows := make([]payoutView, len(list)), [][]string{{"CREATED", "ID", "REFERENCE", "AMOUNT", "STATUS", "APPROVAL", "ACCOUNT"}}
		for i := range list {
			p := &list[i]
			views[i] = payoutView{p.ID.String(), p.ReferenceID, p.Processor, p.ExternalID, p.Status, p.Approval, p.Amount, p.CreatedAt}
			rows = append(rows, []string{stamp(p.CreatedAt), p.ID.String(), p.ReferenceID, p.Amount.English(), string(p.Status), string(p.Approval), p.Processor})
		}
		return r.out.show(views, func(w io.Writer) {
			tableOr(w, rows, "No payouts.")
			if more {
				_, _ = fmt.Fprintf(w, "\nThe newest %d; there are more: GET /payouts lists all, or --status fewer.\n", payoutsListed)
			}
		})
	})
}
