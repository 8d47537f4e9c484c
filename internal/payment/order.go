// Package payment is pure: pay-in, payout, refund, dispute; their transition
// tables; validation of requests.
package payment

import (
	"time"

	"github.com/porteira/porteira/internal/money"
)

// Currency is the one currency there is.
const Currency = "BRL"

// Method is a way to pay a pay-in.
type Method string

// The methods.
const (
	PIX        Method = "PIX"
	CreditCard Method = "CREDIT_CARD"
	Boleto     Method = "BOLETO"
)

// Methods lists every method.
var Methods = []Method{PIX, CreditCard, Boleto}

// Operation separates the name spaces of references: one referenceId may name
// one pay-in and one payout.
type Operation string

// The operations.
const (
	OperationPayin  Operation = "payin"
	OperationPayout Operation = "payout"
)

// Failure says why an attempt or an order failed; both texts are safe to show.
type Failure struct {
	Code    string `json:"code"`    // stable, snake_case
	Message string `json:"message"` // for people
}

// PIXDetail is what a payer needs to pay by Pix.
type PIXDetail struct {
	QRCode    string    `json:"qrcode"` // the copy-and-paste payload (BR Code)
	TxID      string    `json:"txid"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// BoletoDetail is what a payer needs to pay a bill.
type BoletoDetail struct {
	Barcode       string `json:"barcode"`       // 44 digits
	DigitableLine string `json:"digitableLine"` // 47 digits
	DueDate       string `json:"dueDate"`       // YYYY-MM-DD, São Paulo
	OurNumber     string `json:"ourNumber"`
	PIXQRCode     string `json:"pixQrcode,omitempty"`
}

// CardDetail is what is known of the card that paid, never its number, and
// where the number is typed.
type CardDetail struct {
	HostedURL    string `json:"hostedUrl,omitempty"` // the processor's own page; empty: the payer's page
	Brand        string `json:"brand,omitempty"`
	Last4        string `json:"last4,omitempty"`
	Installments int    `json:"installments,omitempty"`
}

// PayinDetails are the parts of a pay-in that no rule reads: they are stored
// as one document.
type PayinDetails struct {
	PIX            *PIXDetail        `json:"pix,omitempty"`
	Boleto         *BoletoDetail     `json:"boleto,omitempty"`
	Card           *CardDetail       `json:"card,omitempty"`
	Description    string            `json:"description,omitempty"`
	Metadata       map[string]string `json:"metadata,omitempty"`
	ReturnURL      string            `json:"returnUrl,omitempty"`
	DueDate        string            `json:"dueDate,omitempty"` // YYYY-MM-DD, as it was asked for or by default
	Installments   int               `json:"installments,omitempty"`
	CardAttempts   int               `json:"cardAttempts,omitzero"` // that were refused
	IdempotencyKey string            `json:"idempotencyKey,omitempty"`
}

// Payin is an order to be paid by a customer. Times are UTC to the
// microsecond; a zero time means not yet.
type Payin struct {
	Merchant    ID
	ID          ID
	ExternalID  string
	ReferenceID string
	Method      Method
	Amount      money.Cents
	Status      PayinStatus
	Version     int64
	Processor   string
	ProcessorID string // the processor's own id, where it insists on one
	WebhookURL  string
	Details     PayinDetails

	// WebhookEnded: the receiver answered 410, so the order's news has no one
	// to go to any more.
	WebhookEnded bool

	PaidAmount     money.Cents // receipts counted to the order, at most Amount
	RefundedAmount money.Cents
	Fee            money.Cents
	EndToEndID     string
	Late           bool // paid after it expired or was canceled
	Failure        *Failure

	ExpiresAt time.Time
	PaidAt    time.Time
	CreatedAt time.Time // milliseconds, equal to the time in ID
	UpdatedAt time.Time
}

// Ready says whether the payer can be shown how to pay. A PIX or BOLETO that
// is not ready is still to be registered at the processor.
func (p *Payin) Ready() bool {
	switch p.Method {
	case PIX:
		return p.Details.PIX != nil
	case Boleto:
		return p.Details.Boleto != nil
	default:
		return p.Details.Card != nil
	}
}

// Approval says whether a payout needs, or had, an operator's consent.
type Approval string

// The approvals.
const (
	ApprovalNone     Approval = "none"
	ApprovalRequired Approval = "required"
	ApprovalApproved Approval = "approved"
	ApprovalRejected Approval = "rejected"
)

// Beneficiary is who a payout goes to: personal data, stored sealed.
type Beneficiary struct {
	Name      string `json:"name"`
	Document  string `json:"document"`
	PIXKey    string `json:"pixKey"`              // as it came
	NormalKey string `json:"normalKey,omitempty"` // as it is sent; absent where the two are equal
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

	WebhookEnded bool // as in Payin

	ReturnedAmount money.Cents
	EndToEndID     string
	Failure        *Failure

	// What the one executor keeps of it; merchants see none of this.
	Lookups   int       // questions asked since it was last sent
	NextAt    time.Time // when it is to be taken in hand next
	ClaimedBy ID        // the process that has it in hand

	SentAt      time.Time // when bytes may first have left
	CompletedAt time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Receipt is one payment that a processor reported: the truth about money
// that came in. It is unique by (Processor, ExternalID).
type Receipt struct {
	Merchant   ID
	ID         ID
	Payin      ID // zero when it fits no order
	Processor  string
	ExternalID string // the processor's id of the payment: endToEndId for Pix
	OrderID    string // the external id of the order that it names, if any
	EndToEndID string
	Amount     money.Cents
	Applied    money.Cents // the part that went to the order; the rest is unapplied
	PaidAt     time.Time
	CreatedAt  time.Time
}
