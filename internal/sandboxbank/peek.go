package sandboxbank

import (
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// The bank's records, as another protocol of the same bank reads them: without faults.

// PeekCharge shows a charge; ok is false if there is none under this id.
func (b *Bank) PeekCharge(externalID string) (shown bankapi.Charge, ok bool, err error) {
	err = b.do(func(now time.Time) error {
		c := b.ledger.charges[externalID]
		if ok = c != nil; !ok {
			return nil
		}
		var err error
		shown, err = c.shown(now)
		return err
	})
	return shown, ok, err
}

// PeekOrder shows a transfer or refund that was accepted; ok is false if there is none under
// this id.
func (b *Bank) PeekOrder(subject bankapi.Subject, externalID string) (shown bankapi.Order, ok bool, err error) {
	err = b.do(func(time.Time) error {
		o := b.ledger.current(orderKey{subject: subject, externalID: externalID})
		if ok = o != nil && o.Refusal == ""; ok {
			shown = o.shown()
		}
		return nil
	})
	return shown, ok, err
}

// PeekDelayed reports whether a transfer or refund under this id waits in a queue of the bank, which
// shows it nowhere yet.
func (b *Bank) PeekDelayed(subject bankapi.Subject, externalID string) (waits bool, err error) {
	err = b.do(func(time.Time) error {
		for key := range b.ledger.delayed {
			waits = waits || key.subject == subject && key.externalID == externalID
		}
		return nil
	})
	return waits, err
}

// PeekPayment shows a payment with what was given back of it; ok is false if there is none
// under this id.
func (b *Bank) PeekPayment(id string) (shown bankapi.PaymentDetail, ok bool, err error) {
	err = b.do(func(time.Time) error {
		p := b.ledger.byPayment[id]
		if ok = p != nil; ok {
			shown = p.detail()
		}
		return nil
	})
	return shown, ok, err
}

// PeekPayments lists the payments that arrived from one time until another, in order.
func (b *Bank) PeekPayments(from, to time.Time) (list []bankapi.PaymentDetail, err error) {
	err = b.do(func(time.Time) error {
		for _, p := range b.ledger.payments {
			if !p.paidAt.Before(from) && !p.paidAt.After(to) {
				list = append(list, p.detail())
			}
		}
		return nil
	})
	return list, err
}

// PeekDefense reports whether a dispute has an answer.
func (b *Bank) PeekDefense(disputeID string) (has bool, err error) {
	err = b.do(func(time.Time) error {
		has = b.ledger.defenses[disputeID] != nil
		return nil
	})
	return has, err
}

// PeekTransfers lists the transfers that were accepted from one time until another, in order.
func (b *Bank) PeekTransfers(from, to time.Time) (list []bankapi.TransferEntry, err error) {
	err = b.do(func(time.Time) error {
		for _, o := range b.ledger.transfers {
			if !o.createdAt.Before(from) && !o.createdAt.After(to) {
				list = append(list, o.entry())
			}
		}
		return nil
	})
	return list, err
}

// detail is the payment with what was given back of it.
func (p *receipt) detail() bankapi.PaymentDetail {
	d := bankapi.PaymentDetail{Payment: p.shown()}
	for _, o := range p.refunds {
		if o.Refusal == "" {
			d.Refunds = append(d.Refunds, o.shown())
		}
	}
	for _, v := range p.disputes {
		d.Disputes = append(d.Disputes, v.shown())
	}
	return d
}
