package asaasface

import (
	"errors"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// refunds are those of a charge, the newest first.
func (f *Face) refunds(n *paymentNote) ([]refundView, error) {
	var list []refundView
	for _, r := range slices.Backward(f.book.refundsOf(n.ID)) {
		o, err := f.handlers.Order(bankapi.SubjectRefund, r.ID)
		if errors.Is(err, bankapi.CodeRefundUnknown) && r.Unconfirmed {
			list = append(list, refundView{DateCreated: r.Created, Status: "AWAITING_CRITICAL_ACTION_AUTHORIZATION", Value: reais(r.Value), Description: orNull(r.Description)})
			continue
		}
		if errors.Is(err, bankapi.CodeRefundUnknown) {
			continue // delayed
		}
		if err != nil {
			return nil, err
		}
		v := refundView{DateCreated: r.Created, Status: "PENDING", Value: reais(r.Value), Description: orNull(r.Description)}
		switch o.State {
		case bankapi.OrderPaid:
			v.Status = "DONE"
		case bankapi.OrderFailed:
			if o.ID == "" {
				continue // it was refused
			}
			v.Status = "CANCELLED"
		case bankapi.OrderProcessing:
		}
		list = append(list, v)
	}
	return list, nil
}

func (f *Face) postRefund(c *call) (any, error) {
	n, err := f.note(c)
	if err != nil {
		return nil, err
	}
	r := struct {
		Value       reais  `json:"value"`
		Description string `json:"description"`
	}{}
	if err := c.decode(&r); err != nil {
		return nil, err
	}
	charge, err := f.handlers.Charge(n.Charge)
	if err != nil {
		return nil, err
	}
	if len(charge.Payments) == 0 || n.Method == methodBill {
		return nil, refuse("invalid_action", "Esta cobrança não pode ser estornada.")
	}
	if r.Value == 0 {
		r.Value = reais(n.Value)
	}
	refunds, err := f.refunds(&n)
	if err != nil {
		return nil, err
	}
	left := n.Value
	for _, v := range refunds {
		if v.Status != "CANCELLED" {
			left -= money.Cents(v.Value)
		}
	}
	if r.Value < 1 || money.Cents(r.Value) > left {
		return nil, refuse("invalid_value", "O valor do estorno é maior que o valor disponível.")
	}
	id := strings.ReplaceAll(f.handlers.NewID(), "-", "")
	made := &refundNote{ID: id, Payment: n.ID, Value: money.Cents(r.Value), Created: timeOf(f.handlers.Now()), Description: r.Description, Unconfirmed: f.critical.Load()}
	if err := f.book.write(note{Refund: made}); err != nil { // first: the bank's notice needs it
		return nil, err
	}
	if made.Unconfirmed {
		return f.show(&n)
	}
	_, err = f.handlers.PutRefund(bankapi.RefundRequest{ExternalID: id, PaymentID: charge.Payments[0].ID, Amount: money.Cents(r.Value)}, c.fault)
	if err != nil {
		return nil, err
	}
	return f.show(&n)
}

// confirmRefunds confirms the refunds of a charge that wait for a person.
func (f *Face) confirmRefunds(n *paymentNote) error {
	charge, err := f.handlers.Charge(n.Charge)
	if err != nil {
		return err
	}
	for _, r := range f.book.refundsOf(n.ID) {
		if !r.Unconfirmed {
			continue
		}
		if _, err := f.handlers.PutRefund(bankapi.RefundRequest{ExternalID: r.ID, PaymentID: charge.Payments[0].ID, Amount: r.Value}, ""); err != nil {
			return err
		}
	}
	return nil
}
