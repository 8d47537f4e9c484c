package cli

import (
	"io"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/wire"
)

type refundCommand struct {
	settings

	List refundList `cmd:"" help:"List refunds, newest first."`
	Show refundShow `cmd:"" help:"Show a refund: its parts with their sends, cases and postings."`
}

type refundList struct {
	listFlags
	accountFlag

	Status payment.RefundStatus `help:"Only those with this status." placeholder:"STATUS"`
}

// Run lists refunds.
func (c *refundList) Run(r *runner, root *commands) error {
	status, err := checkStatus(c.Status, payment.RefundStatuses)
	if err != nil {
		return err
	}
	return list(r, &root.Refund.settings, &c.listFlags, lister[payment.Refund, orderView]{
		Filter: query.Filter{Status: status, Account: c.Account}, read: query.Refunds,
		head: []string{"CREATED", "ID", "STATUS", "AMOUNT", "ORIGIN", "MERCHANT"}, cut: [][]int{{5}}, none: "No refunds.",
		show: func(p *payment.Refund, names map[payment.ID]string, now time.Time) (orderView, []string, error) {
			v, err := viewRefund(p, names[p.Merchant])
			return v, []string{tableTime(p.CreatedAt, now), p.ID.String(), string(p.Status), p.Amount.Decimal(), string(p.Origin), names[p.Merchant]}, err
		},
	})
}

func viewRefund(p *payment.Refund, merchant string) (v orderView, err error) {
	v = orderView{Merchant: merchant}
	v.Refund, err = wire.Refund(p)
	return v, err
}

type refundShow struct {
	ID string `arg:"" help:"The refund's id: porteira find TEXT finds it by any other id."`
}

// Run shows a refund.
func (c *refundShow) Run(r *runner, root *commands) error {
	return r.admin(&root.Refund.settings, func(a *app.Admin) error {
		s, merchant, err := readOrder(r, a, c.ID, query.KindRefund, "refund")
		if err != nil {
			return err
		}
		more := viewSubject(s)
		if s.Refund == nil {
			return r.out.show(orderView{Merchant: merchant, subjectView: &more}, func(w io.Writer) {
				printDamaged(w, merchant, s)
				more.print(w)
			})
		}
		v, err := viewRefund(s.Refund, merchant)
		if err != nil {
			return err
		}
		v.subjectView = &more
		return r.out.show(v, func(w io.Writer) {
			p, rows := s.Refund, [][]string{}
			rows = append(rows, [][]string{
				{"refund", p.ID.String()}, {"merchant", merchant}, {"pay-in", p.Payin.String()}, {"reference", oneLine(p.ReferenceID)}, {"status", string(p.Status)},
				{"amount", p.Amount.English()}, {"origin", string(p.Origin)}, {"reason", oneLine(p.Reason)}, {"external id", p.ExternalID}, {"endToEndId", p.EndToEndID},
				{"created", stamp(p.CreatedAt)}, {"completed", stamp(p.CompletedAt)}, {"failure", failureText(p.Failure)},
			}...)
			if p.RefundedAmount != 0 && p.RefundedAmount != p.Amount {
				rows = append(rows, []string{"refunded", p.RefundedAmount.English()})
			}
			for i := range s.Parts {
				if !s.Parts[i].Ended() {
					rows = append(rows, []string{"next", claimText(s.Parts[i].NextAt, idIfAny(s.Parts[i].ClaimedBy), a.Clock.Now())})
					break
				}
			}
			pairs(w, rows)
			more.print(w)
		})
	})
}
