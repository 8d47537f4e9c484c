package bankapi

import (
	"time"

	"github.com/porteira/porteira/internal/money"
)

// TransferRequest requests a Pix to a key.
type TransferRequest struct {
	ExternalID  string      `json:"externalId"`
	Amount      money.Cents `json:"amount"`
	KeyType     string      `json:"keyType"`
	Key         string      `json:"key"`
	Name        string      `json:"name"`
	Document    string      `json:"document"`
	Description string      `json:"description,omitempty"`
}

// RefundRequest requests a refund to a payer.
type RefundRequest struct {
	ExternalID string      `json:"externalId"`
	PaymentID  string      `json:"paymentId"`
	Amount     money.Cents `json:"amount"`
}

// OrderState is the state of a transfer or refund.
type OrderState string

// The states of a transfer or refund.
const (
	OrderProcessing OrderState = "processing"
	OrderPaid       OrderState = "paid"
	OrderFailed     OrderState = "failed"
)

// Order is a transfer or refund as the bank shows it.
type Order struct {
	ID         string      `json:"id,omitempty"` // the bank's own; none if it was refused
	ExternalID string      `json:"externalId"`
	PaymentID  string      `json:"paymentId,omitempty"` // of a refund
	Amount     money.Cents `json:"amount"`
	State      OrderState  `json:"state"`
	EndToEndID string      `json:"endToEndId,omitempty"`
	Returned   money.Cents `json:"returned,omitzero"` // in all
	Failure    *Failure    `json:"failure,omitempty"`
	CreatedAt  time.Time   `json:"createdAt"`
	ChangedAt  time.Time   `json:"changedAt"`
}

// TransferEntry is an entry of the list of transfers that the bank accepted.
type TransferEntry struct {
	ID         string      `json:"id"`
	ExternalID string      `json:"externalId"`
	Amount     money.Cents `json:"amount"`
	PIXKey     string      `json:"pixKey"`
	EndToEndID string      `json:"endToEndId"`
	Status     string      `json:"status"`            // processing, paid, failed or returned
	Returned   money.Cents `json:"returned,omitzero"` // in all
	CreatedAt  time.Time   `json:"createdAt"`
}

// RefundEntry is an entry of the list of refunds: one is added when a refund was paid, and
// when it failed afterwards.
type RefundEntry struct {
	ExternalID string      `json:"externalId"`
	PaymentID  string      `json:"paymentId"`
	EndToEndID string      `json:"endToEndId"` // of the return
	State      OrderState  `json:"state"`
	Amount     money.Cents `json:"amount"`
	Failure    *Failure    `json:"failure,omitempty"`
}

// RefundPage is a page of the list of refunds, oldest first.
type RefundPage struct {
	Data []RefundEntry `json:"data"`
	Listing
}

// Listing is how far a page of a list reaches.
type Listing struct {
	NextCursor string    `json:"nextCursor"`
	More       bool      `json:"more,omitzero"`    // the next page has entries already
	Through    time.Time `json:"through,omitzero"` // up to which the list is complete; absent if there is more
}

// TransferPage is a page of the list of transfers, oldest first.
type TransferPage struct {
	Data []TransferEntry `json:"data"`
	Listing
}

// Change is a later movement of money that was paid or sent: the returned amount
// of a transfer, or a dispute of a charge.
type Change struct {
	Subject    Subject     `json:"subject"`
	ExternalID string      `json:"externalId"`
	Returned   money.Cents `json:"returned,omitzero"` // of a transfer, in all
	Dispute    *Dispute    `json:"dispute,omitempty"` // of a charge
}

// ChangePage is a page of the list of changes, oldest first.
type ChangePage struct {
	Data []Change `json:"data"`
	Listing
}

// Balance is the money of the account at the bank, in cents: what it received, less what
// it sent and gave back. A transfer counts from its acceptance until it fails.
type Balance struct {
	Amount money.Cents `json:"amount"`
}
