// Package payment is pure: pay-in, payout, refund, dispute; their states and
// transition tables.
//
// The json tags of some types are the names of members in the JSON columns of
// the store, where nothing queries them. The JSON of the API is in wire.
package payment

import (
	"strings"
	"time"

	"github.com/porteira/porteira/internal/money"
)

// Currency is the only currency.
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

// Operation separates the name spaces of references: a pay-in and a payout may
// have the same referenceId.
type Operation string

// The operations.
const (
	OperationPayin  Operation = "payin"
	OperationPayout Operation = "payout"
	OperationRefund Operation = "refund"
	// OperationPayoutBatch is the namespace of the references of batches.
	OperationPayoutBatch Operation = "payout-batch"

	// OperationPublicPayin is pay-ins that are created without credentials: their references
	// cannot take one from the merchant.
	OperationPublicPayin Operation = "public-payin"
)

// OriginPublic is the origin of a pay-in that was created without credentials.
const OriginPublic = "public"

// Failure says why an attempt or an order failed; both texts are safe to show.
type Failure struct {
	Code    string // stable, snake_case
	Message string // for people
}

// Because is the failure with a reason that the processor named, if it is not empty.
func (f *Failure) Because(reason string) *Failure {
	if reason == "" {
		return f
	}
	return &Failure{f.Code, strings.TrimSuffix(f.Message, ".") + ": " + reason}
}

// PIXDetail is what a payer needs to pay by Pix.
type PIXDetail struct {
	QRCode    string // the copy-and-paste payload (BR Code)
	TxID      string
	ExpiresAt time.Time
}

// BoletoDetail is what a payer needs to pay a boleto.
type BoletoDetail struct {
	Barcode       string // 44 digits
	DigitableLine string // 47 digits
	DueDate       string // YYYY-MM-DD, São Paulo
	OurNumber     string
	PIXQRCode     string
}

// CardDetail is the known data of the card that paid, never its number, and where
// the payer enters the number.
type CardDetail struct {
	HostedURL    string // the processor's own page; empty: the checkout page
	Brand        string
	Last4        string
	Installments int
}

// PayinDetails are the parts of a pay-in that no rule reads. The store keeps
// them as one JSON document.
type PayinDetails struct {
	PIX            *PIXDetail
	Boleto         *BoletoDetail
	Card           *CardDetail
	Origin         string // OriginPublic; empty: created with credentials
	Description    string
	Metadata       map[string]string
	ReturnURL      string
	DueDate        string // YYYY-MM-DD, requested or by default
	Installments   int
	CardAttempts   int // that were refused
	IdempotencyKey string
	Prices         []Range // of the merchant for this method, when the order was created
}

// PersonalData is a pay-in's data about its payer: JSON as the merchant sent it,
// without white space; nil if it was not sent. The store seals it.
type PersonalData struct {
	Customer []byte // an object
	Items    []byte // an array
}

// Links are the addresses of a pay-in's pages. They are derived from its id and
// stored only in events.
type Links struct {
	Checkout string // the payer's page
	Bill     string // the PDF of a boleto
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
	ProcessorID string // the processor's own id, if it requires one
	WebhookURL  string
	Details     PayinDetails

	// WebhookDisabled: the receiver answered 410, so this order's events are no
	// longer delivered.
	WebhookDisabled bool

	// PaidAmount is what was received and applied to the order. It exceeds Amount by what was given back
	// before the order was paid in full.
	PaidAmount     money.Cents
	RefundedAmount money.Cents
	DisputedAmount money.Cents // set aside for disputes, or charged back
	// UnappliedAmount is what was received beyond the order and is not applied, returned or written off:
	// the sum of the open cases about it.
	UnappliedAmount money.Cents
	Fee             money.Cents
	EndToEndID      string
	Late            bool // paid after it expired or was canceled
	Failure         *Failure

	ExpiresAt time.Time
	PaidAt    time.Time
	CreatedAt time.Time // milliseconds, equal to the time in ID
	UpdatedAt time.Time
}

// LateAt reports whether a payment is late that is booked now: it came after the order had ended. A
// payment in time may be reported after its order has expired, so the time of the payment decides;
// without one it is late. A canceled order is paid late in any case: the merchant had ended it.
func (p *Payin) LateAt(paid time.Time) bool {
	return p.Status == PayinCanceled || p.Status == PayinExpired && (paid.IsZero() || !paid.Before(p.ExpiredAt()))
}

// PaidInFull reports whether payments have reached the amount, whatever was given back or disputed since.
func (p *Payin) PaidInFull() bool {
	switch p.Status {
	case PayinPaid, PayinPartiallyRefunded, PayinRefunded, PayinDisputed, PayinChargeback:
		return true
	default:
		return false
	}
}

// Lacking is what is missing of the amount of a pay-in, in cents. Until it is paid in full, what was
// given back does not count as paid.
func (p *Payin) Lacking() money.Cents {
	if p.PaidInFull() {
		return 0
	}
	return max(p.Amount-p.PaidAmount+p.RefundedAmount, 0)
}

// Refundable reports whether a refund of the pay-in can be requested: it has money that can be given
// back, unless refunds and disputes have all of it.
func (p *Payin) Refundable() bool {
	switch p.Status {
	case PayinPaid, PayinPartiallyRefunded, PayinDisputed, PayinChargeback:
		return true
	case PayinPending, PayinExpired, PayinCanceled, PayinFailed:
		return p.PaidAmount > 0
	default:
		return false
	}
}

// refundedOfFull is what was given back of a pay-in beyond what it had received in excess of its amount:
// what was given back before it was paid in full is not of what paid it.
func (p *Payin) refundedOfFull() money.Cents {
	return max(p.RefundedAmount-max(p.PaidAmount-p.Amount, 0), 0)
}

// PartlyRefunded and RefundedInFull report what was given back of a pay-in since it was paid in full.
func (p *Payin) PartlyRefunded() bool { return p.refundedOfFull() > 0 && !p.RefundedInFull() }

// RefundedInFull reports whether all that was paid was given back.
func (p *Payin) RefundedInFull() bool {
	return p.RefundedAmount > 0 && p.RefundedAmount >= p.PaidAmount
}

// ExpiredAt is when an EXPIRED pay-in expired: its processor may have ended it early.
func (p *Payin) ExpiredAt() time.Time {
	if p.UpdatedAt.Before(p.ExpiresAt) {
		return p.UpdatedAt
	}
	return p.ExpiresAt
}

// Ready reports whether the payer can be shown how to pay. A PIX or BOLETO that
// is not ready is not yet registered at the processor.
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
