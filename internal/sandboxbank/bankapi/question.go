package bankapi

import "github.com/porteira/porteira/internal/money"

// ConsentPath is what a bank appends to a gateway's address to ask about a transfer.
const ConsentPath = "/consent"

// Question asks for consent to a transfer that the bank has accepted and not executed. It is
// signed as a notice is, and no notice.
type Question struct {
	Transfer QuestionedTransfer `json:"transfer"`
}

// QuestionedTransfer is the transfer of a question.
type QuestionedTransfer struct {
	ID         string      `json:"id"`
	ExternalID string      `json:"externalId"`
	Amount     money.Cents `json:"amount"`
	PIXKey     string      `json:"pixKey"`
}

// ConsentStatus is a gateway's decision about a transfer.
type ConsentStatus string

// The decisions. Anything else decides nothing.
const (
	ConsentApproved ConsentStatus = "approved"
	ConsentRefused  ConsentStatus = "refused"
)

// Consent answers a question, with status 200.
type Consent struct {
	Status ConsentStatus `json:"status"`
	Reason string        `json:"reason,omitempty"` // of a refusal
}
