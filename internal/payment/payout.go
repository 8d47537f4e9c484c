package payment

import (
	"time"

	"github.com/porteira/porteira/internal/money"
)

// Approval is whether a payout needs, or had, an operator's approval.
type Approval string

// The approvals.
const (
	ApprovalNone     Approval = "none"
	ApprovalRequired Approval = "required"
	ApprovalApproved Approval = "approved"
	ApprovalRejected Approval = "rejected"
)

// Beneficiary is the recipient of a payout: personal data, which the store seals
// as one JSON document.
type Beneficiary struct {
	Name      string
	Document  string
	PIXKey    string // as the merchant sent it
	NormalKey string // as sent to a processor; absent if the two are equal
}

// Key is the Pix key in the form that is sent to a processor.
func (b Beneficiary) Key() string {
	if b.NormalKey != "" {
		return b.NormalKey
	}
	return b.PIXKey
}

// Payout is an order to send a Pix. Times as in Payin.
type Payout struct {
	Merchant    ID
	ID          ID
	ExternalID  string
	ReferenceID string
	Amount      money.Cents
	Fee         money.Cents
	Status      PayoutStatus
	Step        PayoutStep
	Version     int64
	Processor   string
	ProcessorID string
	PIXKeyType  string
	WebhookURL  string
	Approval    Approval
	Beneficiary Beneficiary

	WebhookDisabled bool // as in Payin

	ReturnedAmount money.Cents
	EndToEndID     string
	Failure        *Failure

	// State of the executor, which merchants do not see.
	Lookups   int       // look-ups since it was last sent
	NextAt    time.Time // when it is next due
	ClaimedBy ID        // the node that has claimed it

	SentAt      time.Time // when bytes may first have left
	CompletedAt time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time
}
