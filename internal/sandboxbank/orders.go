package sandboxbank

import (
	"bytes"
	"crypto/sha256"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// pixKeyMax is the longest Pix key, in bytes.
const pixKeyMax = 77

// transferOrder is the bank's record of a transfer: of its receiver only the key,
// the rest as a digest, which distinguishes it from a different one under its id.
func transferOrder(r *bankapi.TransferRequest) (orderCreated, error) {
	if r.Key == "" || len(r.Key) > pixKeyMax || r.KeyType == "" || r.Name == "" || r.Document == "" {
		return orderCreated{}, bankapi.CodeRequestInvalid
	}
	created := orderCreated{Subject: bankapi.SubjectTransfer, ExternalID: r.ExternalID, Amount: r.Amount, Key: r.Key}
	err := created.digest(r)
	return created, err
}

func refundOrder(r *bankapi.RefundRequest) (orderCreated, error) {
	if r.PaymentID == "" {
		return orderCreated{}, bankapi.CodeRequestInvalid
	}
	created := orderCreated{Subject: bankapi.SubjectRefund, ExternalID: r.ExternalID, Amount: r.Amount, PaymentID: r.PaymentID}
	err := created.digest(r)
	return created, err
}

// digest checks the order and sets the digest of its request.
func (o *orderCreated) digest(request any) error {
	if !bankapi.IsExternalID(o.ExternalID) || o.Amount < 1 || o.Amount > money.Max {
		return bankapi.CodeRequestInvalid
	}
	content, err := json.Marshal(request)
	if err != nil {
		return bankapi.CodeRequestInvalid
	}
	sum := sha256.Sum256(content)
	o.Content = sum[:]
	return nil
}

func (o *order) shown() bankapi.Order {
	return bankapi.Order{
		ID: o.ID, ExternalID: o.ExternalID, PaymentID: o.PaymentID, Amount: o.Amount, State: o.state, EndToEndID: o.EndToEndID,
		Returned: o.returned, Failure: o.failure.Failure(), CreatedAt: o.createdAt, ChangedAt: o.changedAt,
	}
}

// entry is the order in the list of transfers.
func (o *order) entry() bankapi.TransferEntry {
	status := string(o.state)
	if o.returned == o.Amount {
		status = "returned"
	}
	return bankapi.TransferEntry{
		ID: o.ID, ExternalID: o.ExternalID, Amount: o.Amount, PIXKey: o.Key, EndToEndID: o.EndToEndID,
		Status: status, Returned: o.returned, CreatedAt: o.createdAt,
	}
}

// putOrder accepts an order, or shows the one under its id: an id has one order
// forever, accepted or refused.
func (b *Bank) putOrder(created orderCreated, fault bankapi.FaultKind) (shown bankapi.Order, err error) {
	err = b.do(func(now time.Time) error {
		if err := b.repeat(&created); err != nil {
			return err
		}
		key := created.key()
		if delayed := b.ledger.delayed[key]; delayed != nil && !bytes.Equal(delayed.Order.Content, created.Content) {
			return bankapi.CodeContentDiffers
		}
		o := b.ledger.orders[key]
		if o == nil {
			if err := b.accept(now, created, fault); err != nil {
				return err
			}
			o = b.ledger.orders[key]
		}
		switch {
		case !bytes.Equal(o.Content, created.Content):
			return bankapi.CodeContentDiffers
		case o.Refusal != "":
			return o.Refusal
		}
		shown = o.shown()
		return nil
	})
	return shown, err
}

// repeat decides about a transfer or refund whose id was used before, by the kind of the
// contract; the lock is held. A refused id never has an effect. A contract that asks for consent
// asks about transfers only, and pays a repeated refund again.
func (b *Bank) repeat(created *orderCreated) error {
	if b.asksConsent(created.Subject) {
		b.makeCopy(created)
		return nil
	}
	first := b.ledger.orders[created.key()]
	if first == nil || first.Refusal != "" {
		return nil
	}
	switch b.opts.Repeat {
	case bankapi.RepeatRejects:
		return bankapi.CodeIDInUse
	case bankapi.RepeatPaysAgain, bankapi.RepeatAsksConsent:
		for b.ledger.orders[created.key()] != nil {
			created.Copy++
		}
	}
	return nil
}

// accept records a new order as accepted or refused; the lock is held.
func (b *Bank) accept(now time.Time, created orderCreated, fault bankapi.FaultKind) error {
	switch {
	case fault == bankapi.Refuse && created.Subject == bankapi.SubjectTransfer:
		created.Refusal = bankapi.CodeAccountInvalid
	case fault == bankapi.Refuse:
		created.Refusal = bankapi.CodeRefundRefused
	case created.Subject == bankapi.SubjectRefund:
		created.Refusal = b.refundObjection(created)
	}
	if created.Refusal == "" {
		created.ID, created.EndToEndID = b.newID(now), b.newEndToEndID(now)
	}
	if fault.Notifies() {
		created.NotifyFault = fault
	}
	return b.commit(now, &record{Order: &created})
}

// refundObjection is why a refund cannot be accepted; "" if it can.
func (b *Bank) refundObjection(created orderCreated) bankapi.Code {
	p := b.ledger.byPayment[created.PaymentID]
	if p == nil {
		return bankapi.CodePaymentUnknown
	}
	if p.lastDispute(bankapi.DisputeOpen) != nil {
		return bankapi.CodePaymentDisputed
	}
	if created.Amount > p.refundable() {
		return bankapi.CodeRefundTooMuch
	}
	return ""
}

// delay queues an order, as may happen to a request that timed out. At most one
// order is queued under an id, unless the contract asks for consent: then it has the
// number of its copy already.
func (b *Bank) delay(created orderCreated, by time.Duration) error {
	return b.do(func(now time.Time) error {
		if b.asksConsent(created.Subject) {
			b.makeCopy(&created)
		}
		key := created.key()
		if b.ledger.orders[key] != nil || b.ledger.delayed[key] != nil {
			return nil
		}
		return b.commit(now, &record{Delayed: &orderDelayed{Order: created, Due: now.Add(by)}})
	})
}

// getOrder shows a transfer or refund; see current.
func (b *Bank) getOrder(subject bankapi.Subject, externalID string) (shown bankapi.Order, err error) {
	err = b.do(func(time.Time) error {
		o := b.ledger.current(orderKey{subject: subject, externalID: externalID})
		switch {
		case o != nil:
			shown = o.shown()
			return nil
		case subject == bankapi.SubjectTransfer:
			return bankapi.CodeTransferUnknown
		default:
			return bankapi.CodeRefundUnknown
		}
	})
	return shown, err
}

// changeOrder moves an order and announces it; the lock is held.
func (b *Bank) changeOrder(now time.Time, o *order, change orderChanged) error {
	change.Subject, change.ExternalID, change.Copy = o.Subject, o.ExternalID, o.Copy
	return b.commit(now, &record{OrderEnd: &change, Notice: b.newID(now)})
}

// forceTransfer completes, fails or returns a transfer, before or after it
// completes by itself. A repetition changes nothing; an outcome that contradicts
// an earlier one is refused. returned is the amount to return, 0 for all of it.
func (b *Bank) forceTransfer(externalID, action string, returned money.Cents) (shown bankapi.Order, err error) {
	err = b.do(func(now time.Time) error {
		o := b.ledger.current(orderKey{subject: bankapi.SubjectTransfer, externalID: externalID})
		if o == nil {
			return bankapi.CodeTransferUnknown
		}
		if !b.mayPay(o) && action != "fail" {
			return bankapi.CodeStateForbids
		}
		switch action {
		case "complete":
			err = b.endOrder(now, o, orderChanged{State: bankapi.OrderPaid})
		case "fail":
			err = b.endOrder(now, o, orderChanged{State: bankapi.OrderFailed, Failure: bankapi.CodeSettleAborted})
		case "return":
			err = b.returnOrder(now, o, returned)
		default:
			err = bankapi.CodeNotFound
		}
		shown = o.shown()
		return err
	})
	return shown, err
}

// endOrder ends an order that is in process.
func (b *Bank) endOrder(now time.Time, o *order, end orderChanged) error {
	switch o.state {
	case end.State:
		return nil
	case bankapi.OrderProcessing:
		return b.changeOrder(now, o, end)
	default:
		return bankapi.CodeStateForbids
	}
}

// returnOrder returns money of an order, as the receiver's bank may. One that
// is in process completes.
func (b *Bank) returnOrder(now time.Time, o *order, amount money.Cents) error {
	left := o.Amount - o.returned
	switch {
	case o.state == bankapi.OrderFailed:
		return bankapi.CodeStateForbids
	case left == 0:
		return nil
	case amount < 0 || amount > left:
		return bankapi.CodeRequestInvalid
	case amount == 0:
		amount = left
	}
	return b.changeOrder(now, o, orderChanged{State: bankapi.OrderPaid, Returned: o.returned + amount})
}
