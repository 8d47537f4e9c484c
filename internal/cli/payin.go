package cli

import (
	"io"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/wire"
)

type payinCommand struct {
	settings

	List payinList `cmd:"" help:"List pay-ins, newest first."`
	Show payinShow `cmd:"" help:"Show a pay-in: payments, calls to its processor, refunds, disputes, cases and postings."`
}

type payinList struct {
	listFlags
	accountFlag

	Status payment.PayinStatus `help:"Only those with this status." placeholder:"STATUS"`
}

// Run lists pay-ins.
func (c *payinList) Run(r *runner, root *commands) error {
	status, err := checkStatus(c.Status, payment.PayinStatuses)
	if err != nil {
		return err
	}
	return list(r, &root.Payin.settings, &c.listFlags, lister[payment.Payin, orderView]{
		Filter: query.Filter{Status: status, Account: c.Account}, read: query.Payins,
		head: []string{"CREATED", "ID", "STATUS", "METHOD", "AMOUNT", "ACCOUNT", c.lastHead()}, cut: [][]int{{5, 6}, {2}}, none: "No pay-ins.",
		show: func(p *payment.Payin, names map[payment.ID]string, now time.Time) (orderView, []string, error) {
			v, err := viewPayin(p, names[p.Merchant], nil)
			return v, []string{tableTime(p.CreatedAt, now), p.ID.String(), string(p.Status), methodWord(p.Method), p.Amount.Decimal(), p.Processor, c.last(names[p.Merchant], p.ReferenceID)}, err
		},
	})
}

// methodWord is a method in a table.
func methodWord(m payment.Method) string {
	if m == payment.CreditCard {
		return "CARD"
	}
	return string(m)
}

// viewPayin shows a pay-in; customer is masked, and may be nil.
func viewPayin(p *payment.Payin, merchant string, customer []byte) (v orderView, err error) {
	v = orderView{Merchant: merchant, Account: p.Processor}
	v.Payin, err = wire.Payin(p, payment.Links{}, payment.PersonalData{Customer: customer})
	return v, err
}

type payinShow struct {
	reveal

	ID string `arg:"" help:"The pay-in's id: porteira find TEXT finds it by any other id."`
}

// Run shows a pay-in.
func (c *payinShow) Run(r *runner, root *commands) error {
	if err := c.check(); err != nil {
		return err
	}
	return r.admin(&root.Payin.settings, func(a *app.Admin) error {
		s, merchant, err := readOrder(r, a, c.ID, query.KindPayin, "pay-in")
		if err != nil {
			return err
		}
		more := viewSubject(s)
		if s.Payin == nil {
			return r.out.show(orderView{Merchant: merchant, subjectView: &more}, func(w io.Writer) {
				printDamaged(w, merchant, s)
				more.print(w)
			})
		}
		personal, err := a.Store.PayinPersonal(r.ctx, s.Merchant, s.ID)
		if err != nil {
			return err
		}
		customer := query.MaskCustomer(personal.Customer)
		if c.Reveal {
			if err := c.record(r, a, s); err != nil {
				return err
			}
			customer = personal.Customer
		}
		v, err := viewPayin(s.Payin, merchant, customer)
		if err != nil {
			return err
		}
		v.subjectView = &more
		return r.out.show(v, func(w io.Writer) {
			printPayin(w, s.Payin, merchant, customer)
			more.print(w)
		})
	})
}

func printPayin(w io.Writer, p *payment.Payin, merchant string, customer []byte) {
	rows := [][]string{
		{"pay-in", p.ID.String()}, {"merchant", merchant}, {"reference", oneLine(p.ReferenceID)}, {"status", string(p.Status)},
		{"method", string(p.Method)}, {"amount", p.Amount.English()}, {"account", p.Processor}, {"external id", p.ExternalID}, {"processor id", p.ProcessorID},
		{"endToEndId", p.EndToEndID}, {"payer", oneLine(query.CustomerLine(customer))}, {"created", stamp(p.CreatedAt)}, {"expires", stamp(p.ExpiresAt)}, {"paid", stamp(p.PaidAt)},
	}
	if p.PaidAmount != 0 {
		rows = append(rows, []string{"paid amount", p.PaidAmount.English()}, []string{"fee", p.Fee.English()})
	}
	if p.RefundedAmount != 0 {
		rows = append(rows, []string{"refunded", p.RefundedAmount.English()})
	}
	if p.DisputedAmount != 0 {
		rows = append(rows, []string{"disputed", p.DisputedAmount.English()})
	}
	if p.UnappliedAmount != 0 {
		rows = append(rows, []string{"unapplied", p.UnappliedAmount.English()})
	}
	if d := p.Details.PIX; d != nil && d.TxID != p.ExternalID {
		rows = append(rows, []string{"txid", d.TxID})
	}
	if d := p.Details.Boleto; d != nil {
		rows = append(rows, []string{"our number", d.OurNumber}, []string{"digitable line", d.DigitableLine}, []string{"due", d.DueDate})
	}
	if p.Late {
		rows = append(rows, []string{"late", "paid after it had ended"})
	}
	if p.WebhookDisabled {
		rows = append(rows, []string{"webhooks", "disabled by the receiver's 410"})
	}
	pairs(w, append(rows, []string{"failure", failureText(p.Failure)}))
}
