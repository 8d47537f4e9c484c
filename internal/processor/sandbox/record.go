package sandbox

import (
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// record is one line of the journal: a change of the books that happens as a
// whole or not at all. Exactly one of its parts is set, besides At and Notice.
type record struct {
	At        time.Time      `json:"at"` // the bank's time, UTC
	Charge    *chargeMade    `json:"charge,omitempty"`
	ChargeEnd *chargeEnd     `json:"chargeEnd,omitempty"`
	Payment   *paymentMade   `json:"payment,omitempty"`
	Dispute   *disputeMoved  `json:"dispute,omitempty"`
	Challenge *cardPaused    `json:"challenge,omitempty"`
	Analysis  *cardPaused    `json:"analysis,omitempty"`
	Order     *orderMade     `json:"order,omitempty"`
	OrderEnd  *orderEnd      `json:"orderEnd,omitempty"`
	Delayed   *orderDelayed  `json:"delayed,omitempty"`
	Listener  *listenerMoved `json:"listener,omitempty"`
	// Offset is how far the bank's clock runs ahead, in microseconds.
	Offset int64 `json:"offset,omitzero"`
	// Settled are ids of notices that were delivered or given up.
	Settled []string `json:"settled,omitempty"`
	// Notice is the id of the notice that announces the change, if one does.
	Notice string `json:"notice,omitempty"`
}

// chargeMade registers a charge, or (with Refusal) notes for good that one
// was refused.
type chargeMade struct {
	ExternalID  string      `json:"externalId"`
	Terms       chargeTerms `json:"terms"`
	Refusal     failureCode `json:"refusal,omitempty"`
	NotifyFault Kind        `json:"notifyFault,omitempty"`
}

// chargeTerms are what makes one charge the same as another.
type chargeTerms struct {
	Method       payment.Method `json:"method"`
	Amount       money.Cents    `json:"amount"`
	ExpiresAt    time.Time      `json:"expiresAt"`
	DueDate      string         `json:"dueDate,omitempty"`
	Installments int            `json:"installments,omitzero"`
	MerchantName string         `json:"merchantName,omitempty"`
	MerchantCity string         `json:"merchantCity,omitempty"`
}

// chargeEnd expires or fails a charge. An attempt that failed leaves it open.
type chargeEnd struct {
	ExternalID string                `json:"externalId"`
	State      processor.ChargeState `json:"state"`
	Failure    failureCode           `json:"failure,omitempty"`
	Attempt    int                   `json:"attempt,omitzero"` // of a card, from 1
}

// paymentMade is money that came in for a charge.
type paymentMade struct {
	ID         string              `json:"id"`
	ExternalID string              `json:"externalId"`
	EndToEndID string              `json:"endToEndId,omitempty"`
	Amount     money.Cents         `json:"amount"`
	Card       *payment.CardDetail `json:"card,omitempty"`
	Attempt    int                 `json:"attempt,omitzero"` // of a card, from 1
}

// disputeMoved opens a dispute of a payment, or moves one.
type disputeMoved struct {
	ID         string                 `json:"id"`
	ExternalID string                 `json:"externalId"`
	PaymentID  string                 `json:"paymentId"`
	Amount     money.Cents            `json:"amount"`
	State      processor.DisputeState `json:"state"`
}

// orderMade takes an order to send money, or (with Refusal) notes for good
// that it was refused: an id once refused never has an effect.
type orderMade struct {
	Kind        processor.Subject `json:"kind"` // transfer or refund
	ExternalID  string            `json:"externalId"`
	Content     []byte            `json:"content"` // SHA-256 of what was asked for
	Amount      money.Cents       `json:"amount"`
	Key         string            `json:"key,omitempty"`       // transfers
	PaymentID   string            `json:"paymentId,omitempty"` // refunds
	EndToEndID  string            `json:"endToEndId,omitempty"`
	Refusal     failureCode       `json:"refusal,omitempty"`
	NotifyFault Kind              `json:"notifyFault,omitempty"`
}

// orderEnd moves an order: paid, failed, or paid and sent back in part or in
// whole.
type orderEnd struct {
	Kind       processor.Subject       `json:"kind"`
	ExternalID string                  `json:"externalId"`
	State      processor.TransferState `json:"state"`
	Returned   money.Cents             `json:"returned,omitzero"` // in all
	Failure    failureCode             `json:"failure,omitempty"`
}

// orderDelayed is an order that waits in a queue until Due, though its caller
// was told nothing.
type orderDelayed struct {
	Order orderMade `json:"order"`
	Due   time.Time `json:"due"`
}

// listenerMoved registers an address for notices until Expires.
type listenerMoved struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}
