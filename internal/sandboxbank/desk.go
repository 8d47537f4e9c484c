package sandboxbank

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// Desk is the bank as a face of it uses it: a package that serves the bank in the shapes of a
// real processor. Its calls have no faults but the one that the face names, which it has drawn
// for the call that it serves. Errors are a [bankapi.Code], or internal.
type Desk struct{ bank *Bank }

// Desk returns the desk of the bank.
func (b *Bank) Desk() Desk { return Desk{b} }

// Now is the bank's time, UTC.
func (d Desk) Now() time.Time { return d.bank.Now() }

// NewID makes an id of the bank's own: a UUID.
func (d Desk) NewID() string { return d.bank.newID(d.bank.Now()) }

// Fault draws the fault of the next call of an operation; "" is none.
func (d Desk) Fault(op bankapi.Operation) bankapi.FaultKind { return d.bank.faults.draw(op) }

// CredentialsRefused reports whether the next call is to be answered 401.
func (d Desk) CredentialsRefused() bool { return d.bank.faults.refuseCredentials() }

// Pause waits for a time or, if it is negative, until ctx ends.
func (d Desk) Pause(ctx context.Context, by time.Duration) { d.bank.opts.Pause(ctx, by) }

// PutCharge registers a charge, or shows the one under this id.
func (d Desk) PutCharge(externalID string, terms bankapi.ChargeTerms, fault bankapi.FaultKind) (bankapi.Charge, error) {
	return d.bank.putCharge(externalID, terms, fault)
}

// Charge shows a charge.
func (d Desk) Charge(externalID string) (bankapi.Charge, error) { return d.bank.getCharge(externalID) }

// CancelCharge cancels an unpaid charge.
func (d Desk) CancelCharge(externalID string) (bankapi.Charge, error) {
	return d.bank.cancelCharge(externalID)
}

// ForceCharge forces an outcome of a charge: pay, expire, fail, dispute, win or lose.
func (d Desk) ForceCharge(externalID, action string, how bankapi.ForceCharge) (bankapi.Charge, error) {
	return d.bank.forceCharge(externalID, action, how)
}

// PutCard makes an attempt to pay a charge by card.
func (d Desk) PutCard(externalID string, number int, attempt bankapi.CardAttempt) (bankapi.CardAnswer, error) {
	return d.bank.putCard(externalID, number, attempt)
}

// PutTransfer accepts a transfer.
func (d Desk) PutTransfer(r bankapi.TransferRequest, fault bankapi.FaultKind) (bankapi.Order, error) {
	created, err := transferOrder(&r)
	if err != nil {
		return bankapi.Order{}, err
	}
	return d.put(created, fault)
}

// PutRefund accepts a refund.
func (d Desk) PutRefund(r bankapi.RefundRequest, fault bankapi.FaultKind) (bankapi.Order, error) {
	created, err := refundOrder(&r)
	if err != nil {
		return bankapi.Order{}, err
	}
	return d.put(created, fault)
}

func (d Desk) put(created orderCreated, fault bankapi.FaultKind) (bankapi.Order, error) {
	if fault == bankapi.Delayed {
		return bankapi.Order{}, d.bank.delay(created, d.bank.faults.delay())
	}
	return d.bank.putOrder(created, fault)
}

// Order shows a transfer or a refund.
func (d Desk) Order(subject bankapi.Subject, externalID string) (bankapi.Order, error) {
	return d.bank.getOrder(subject, externalID)
}

// Transfers lists the transfers that the bank accepted, oldest first, under one id, or all if
// it is "", after a cursor.
func (d Desk) Transfers(externalID, cursor string) (bankapi.TransferPage, error) {
	return d.bank.transfersAfter(transferQuery{externalID: externalID, cursor: cursor})
}

// ForceTransfer completes, fails or returns a transfer.
func (d Desk) ForceTransfer(externalID, action string) (bankapi.Order, error) {
	return d.bank.forceTransfer(externalID, action, 0)
}

// Balance is the money of the account.
func (d Desk) Balance() (bankapi.Balance, error) { return d.bank.balance() }

// Wake makes the bank fire its timers again, after a change.
func (d Desk) Wake() { d.bank.runAgain() }
