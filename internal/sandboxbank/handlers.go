package sandboxbank

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// Handlers are the bank's operations for a face, which serves the bank in the shapes of a real
// processor. A call has no fault but the one that the face has drawn and names. Errors are a
// [bankapi.Code], or internal.
type Handlers struct{ bank *Bank }

// Handlers returns the handlers of the bank.
func (b *Bank) Handlers() Handlers { return Handlers{b} }

// Now is the bank's time, UTC.
func (h Handlers) Now() time.Time { return h.bank.Now() }

// NewID makes an id of the bank's own: a UUID.
func (h Handlers) NewID() string { return h.bank.newID(h.bank.Now()) }

// Fault draws the fault of the next call of an operation; "" is none.
func (h Handlers) Fault(op bankapi.Operation) bankapi.FaultKind { return h.bank.faults.draw(op) }

// CredentialsRefused reports whether the next call is to be answered 401.
func (h Handlers) CredentialsRefused() bool { return h.bank.faults.refuseCredentials() }

// Pause waits for a time or, if it is negative, until ctx ends.
func (h Handlers) Pause(ctx context.Context, by time.Duration) { h.bank.opts.Pause(ctx, by) }

// PutCharge registers a charge, or shows the one under this id.
func (h Handlers) PutCharge(externalID string, terms bankapi.ChargeTerms, fault bankapi.FaultKind) (bankapi.Charge, error) {
	return h.bank.putCharge(externalID, terms, fault)
}

// Charge shows a charge.
func (h Handlers) Charge(externalID string) (bankapi.Charge, error) {
	return h.bank.getCharge(externalID)
}

// CancelCharge cancels an unpaid charge.
func (h Handlers) CancelCharge(externalID string) (bankapi.Charge, error) {
	return h.bank.cancelCharge(externalID)
}

// ForceCharge forces an outcome of a charge: pay, expire, fail, dispute, win or lose.
func (h Handlers) ForceCharge(externalID, action string, how bankapi.ForceCharge) (bankapi.Charge, error) {
	return h.bank.forceCharge(externalID, action, how)
}

// PutCard makes an attempt to pay a charge by card.
func (h Handlers) PutCard(externalID string, number int, attempt bankapi.CardAttempt) (bankapi.CardAnswer, error) {
	return h.bank.putCard(externalID, number, attempt)
}

// PutTransfer accepts a transfer.
func (h Handlers) PutTransfer(r bankapi.TransferRequest, fault bankapi.FaultKind) (bankapi.Order, error) {
	created, err := transferOrder(&r)
	if err != nil {
		return bankapi.Order{}, err
	}
	return h.put(created, fault)
}

// PutRefund accepts a refund.
func (h Handlers) PutRefund(r bankapi.RefundRequest, fault bankapi.FaultKind) (bankapi.Order, error) {
	created, err := refundOrder(&r)
	if err != nil {
		return bankapi.Order{}, err
	}
	return h.put(created, fault)
}

func (h Handlers) put(created orderCreated, fault bankapi.FaultKind) (bankapi.Order, error) {
	if fault == bankapi.Delayed {
		return bankapi.Order{}, h.bank.delay(created, h.bank.faults.delay())
	}
	return h.bank.putOrder(created, fault)
}

// Order shows a transfer or a refund.
func (h Handlers) Order(subject bankapi.Subject, externalID string) (bankapi.Order, error) {
	return h.bank.getOrder(subject, externalID)
}

// Transfers lists the transfers that the bank accepted, oldest first, under one id, or all if
// it is "", after a cursor.
func (h Handlers) Transfers(externalID, cursor string) (bankapi.TransferPage, error) {
	return h.bank.transfersAfter(transferQuery{externalID: externalID, cursor: cursor})
}

// ForceTransfer completes, fails or returns a transfer.
func (h Handlers) ForceTransfer(externalID, action string) (bankapi.Order, error) {
	return h.bank.forceTransfer(externalID, action, 0)
}

// Balance is the money of the account.
func (h Handlers) Balance() (bankapi.Balance, error) { return h.bank.balance() }

// Wake makes the bank fire its timers again, after a change.
func (h Handlers) Wake() { h.bank.runAgain() }
