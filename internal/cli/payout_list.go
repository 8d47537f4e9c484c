package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/wire"
)

type payoutList struct {
	listFlags
	accountFlag

	Status payment.PayoutStatus `help:"Only those with this status; those that need approval are PENDING at step approval." placeholder:"STATUS"`
}

// Run lists payouts.
func (c *payoutList) Run(r *runner, root *commands) error {
	status, err := checkStatus(c.Status, payment.PayoutStatuses)
	if err != nil {
		return err
	}
	return list(r, &root.Payout.settings, &c.listFlags, lister[payment.Payout, orderView]{
		Filter: query.Filter{Status: status, Account: c.Account}, read: query.Payouts,
		head: []string{"CREATED", "ID", "STATUS", "STEP", "AMOUNT", "ACCOUNT", c.lastHead()}, cut: [][]int{{5, 6}, {3}}, none: "No payouts.",
		show: func(p *payment.Payout, names map[payment.ID]string, now time.Time) (orderView, []string, error) {
			masked := query.MaskPayout(*p)
			row := []string{tableTime(p.CreatedAt, now), p.ID.String(), string(p.Status), stepWord(p), p.Amount.Decimal(), p.Processor, c.last(names[p.Merchant], p.ReferenceID)}
			return viewPayout(&masked, names[p.Merchant]), row, nil
		},
	})
}

// stepWord is where a payout is on its way, or how its approval ended.
func stepWord(p *payment.Payout) string {
	if p.Approval == payment.ApprovalRejected || p.Step == payment.StepDone {
		return strings.TrimPrefix(string(p.ShownApproval()), string(payment.ApprovalNone))
	}
	return string(p.Step)
}

// viewPayout shows a payout, whose beneficiary is masked.
func viewPayout(p *payment.Payout, merchant string) orderView {
	return orderView{
		Merchant: merchant, Payout: wire.Payout(p, true), Account: p.Processor, Step: string(p.Step), Lookups: p.Lookups,
		NextAt: timeIfAny(p.NextAt), ClaimedBy: idIfAny(p.ClaimedBy),
	}
}

type payoutShow struct {
	reveal

	ID string `arg:"" help:"The payout's id: porteira find TEXT finds it by any other id."`
}

// payoutDetail is a payout with the record of its approval.
type payoutDetail struct {
	orderView

	Given  int64          `json:"approvalsGiven"`  // by different people
	Needed int64          `json:"approvalsNeeded"` // of them; 0 if none is
	Record []approvalView `json:"record"`          // of the approval
}

// Run shows a payout.
func (c *payoutShow) Run(r *runner, root *commands) error {
	if err := c.check(); err != nil {
		return err
	}
	return r.admin(&root.Payout.settings, func(a *app.Admin) error {
		s, merchant, err := readOrder(r, a, c.ID, query.KindPayout, "payout")
		if err != nil {
			return err
		}
		more := viewSubject(s)
		if s.Payout == nil {
			return r.out.show(orderView{Merchant: merchant, subjectView: &more}, func(w io.Writer) {
				printDamaged(w, merchant, s)
				more.print(w)
			})
		}
		decided, err := viewDecided(r, a, s.Payout)
		if err != nil {
			return err
		}
		shown := query.MaskPayout(*s.Payout)
		if c.Reveal {
			if err := c.record(r, a, s); err != nil {
				return err
			}
			shown = *s.Payout
		}
		v := payoutDetail{viewPayout(&shown, merchant), decided.Given, decided.Needed, decided.Record}
		v.subjectView = &more
		return r.out.show(v, func(w io.Writer) {
			printPayout(w, a, &shown, &v)
			more.print(w)
		})
	})
}

func printPayout(w io.Writer, a *app.Admin, p *payment.Payout, v *payoutDetail) {
	approval := strings.TrimPrefix(string(p.ShownApproval()), string(payment.ApprovalNone))
	if p.Approval == payment.ApprovalRequired && v.Needed > 0 {
		approval += fmt.Sprintf(", %d of %d given", v.Given, v.Needed)
	}
	rows := [][]string{
		{"payout", p.ID.String()}, {"merchant", v.Merchant}, {"reference", oneLine(p.ReferenceID)}, {"amount", p.Amount.English()},
		{"status", string(p.Status)}, {"step", string(p.Step)}, {"approval", approval}, {"next", claimText(p.NextAt, v.ClaimedBy, a.Clock.Now())},
		{"Pix key", p.PIXKeyType + " " + oneLine(p.Beneficiary.Key())}, {"beneficiary", oneLine(p.Beneficiary.Name)}, {"document", p.Beneficiary.Document},
		{"account", p.Processor}, {"external id", p.ExternalID}, {"processor id", p.ProcessorID}, {"endToEndId", p.EndToEndID},
		{"created", stamp(p.CreatedAt)}, {"first sent", stamp(p.SentAt)}, {"completed", stamp(p.CompletedAt)}, {"failure", failureText(p.Failure)},
	}
	if !p.Batch.IsZero() {
		rows = append(rows, []string{"batch", p.Batch.String()})
	}
	if p.ReturnedAmount != 0 {
		rows = append(rows, []string{"returned", p.ReturnedAmount.English()})
	}
	for _, d := range v.Record {
		rows = append(rows, []string{string(d.Action), strings.TrimSpace(d.Actor.Shown() + " " + stamp(d.CreatedAt) + " " + oneLine(d.Reason))})
	}
	pairs(w, rows)
}
