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
	Processor   string               `json:"processor"`
	ExternalID  string               `json:"externalId"`
	Status      payment.PayoutStatus `json:"status"`
	Approval    payment.Approval     `json:"approval"`
	Amount      money.Cents          `json:"amount"` // cents
	CreatedAt   time.Time            `json:"createdAt"`
}

func viewPayout(p *payment.Payout) payoutView {
	return payoutView{p.ID.String(), p.ReferenceID, p.Processor, p.ExternalID, p.Status, p.ShownApproval(), p.Amount, p.CreatedAt}
}

// payoutsListed bounds the list.
const payoutsListed = 200

// Run lists payouts.
func (c *payoutList) Run(r *runner, root *commands) error {
	status, err := checkStatus(c.Status, payment.PayoutStatuses)
	if err != nil {
		return err
	}
	return r.admin(&root.Payout.settings, func(a *app.Admin) error {
		m, err := merchantNamed(r, a, c.Merchant)
		if err != nil {
			return err
		}
		list, err := a.Store.Payouts(r.ctx, m.ID, store.Filter{Status: status, Limit: payoutsListed + 1})
		if err != nil {
			return err
		}
		more := len(list) > payoutsListed
		list = list[:min(len(list), payoutsListed)]
		views, rows := make([]payoutView, len(list)), [][]string{{"CREATED", "ID", "REFERENCE", "AMOUNT", "STATUS", "APPROVAL", "ACCOUNT"}}
		for i := range list {
			p := &list[i]
			views[i] = viewPayout(p)
			rows = append(rows, []string{stamp(p.CreatedAt), p.ID.String(), p.ReferenceID, p.Amount.English(), string(p.Status), string(views[i].Approval), p.Processor})
		}
		err = r.out.show(views, func(w io.Writer) { tableOr(w, rows, "No payouts.") })
		r.sayMore(more, newestOf(payoutsListed, "/payout"))
		return err
	})
}

type payoutShow struct {
	ID string `arg:"" help:"The payout's id."`
}

// payoutDetail is a payout as an approver sees it.
type payoutDetail struct {
	payoutView

	Merchant    string            `json:"merchant"`
	PIXKeyType  string            `json:"pixKeyType"`
	PIXKey      string            `json:"pixKey"`
	Beneficiary payoutBeneficiary `json:"beneficiary"`
	EndToEndID  string            `json:"endToEndId,omitempty"`
	Given       int64             `json:"approvalsGiven"`  // by different persons
	Needed      int64             `json:"approvalsNeeded"` // of them; 0 if none is
	Record      []approvalView    `json:"record"`          // of the approval
}

type payoutBeneficiary struct {
	Name     string `json:"name"`
	Document string `json:"document"`
}

// Run shows a payout.
func (c *payoutShow) Run(r *runner, root *commands) error {
	return r.admin(&root.Payout.settings, func(a *app.Admin) error {
		p, err := findPayout(r, a, c.ID)
		if err != nil {
			return err
		}
		decided, err := viewDecided(r, a, &p)
		if err != nil {
			return err
		}
		v := payoutDetail{
			payoutView: viewPayout(&p), Merchant: decided.Merchant, PIXKeyType: p.PIXKeyType, PIXKey: p.Beneficiary.Key(),
			Beneficiary: payoutBeneficiary{p.Beneficiary.Name, p.Beneficiary.Document}, EndToEndID: p.EndToEndID,
			Given: decided.Given, Needed: decided.Needed, Record: decided.Record,
		}
		approval := string(v.Approval)
		if v.Approval == payment.ApprovalRequired {
			approval += fmt.Sprintf(", %d of %d given", v.Given, v.Needed)
		}
		return r.out.show(v, func(w io.Writer) {
			rows := [][]string{
				{"  payout", v.ID}, {"  merchant", v.Merchant}, {"  reference", v.ReferenceID}, {"  amount", p.Amount.English()}, {"  status", string(v.Status)},
				{"  approval", approval}, {"  Pix key", v.PIXKeyType + " " + oneLine(v.PIXKey)}, {"  beneficiary", oneLine(v.Beneficiary.Name)},
				{"  document", v.Beneficiary.Document}, {"  account", v.Processor}, {"  external id", v.ExternalID}, {"  created", stamp(v.CreatedAt)},
			}
			if v.EndToEndID != "" {
				rows = append(rows, []string{"  endToEndId", v.EndToEndID})
			}
			for _, d := range v.Record {
				rows = append(rows, []string{"  " + string(d.Action), strings.TrimSpace(strings.TrimPrefix(d.Actor, operatorPrefix) + " " + stamp(d.CreatedAt) + " " + oneLine(d.Reason))})
			}
			table(w, rows)
		})
	})
}
