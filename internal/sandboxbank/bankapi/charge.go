package bankapi

import (
	"time"

	"github.com/porteira/porteira/internal/money"
)

// Method is a way to pay a charge.
type Method string

// The methods.
const (
	MethodPIX        Method = "PIX"
	MethodBoleto     Method = "BOLETO"
	MethodCreditCard Method = "CREDIT_CARD"
)

// ChargeTerms are the body that registers a charge. Charges with equal terms are
// the same charge.
type ChargeTerms struct {
	Method       Method      `json:"method"`
	Amount       money.Cents `json:"amount"`
	ExpiresAt    time.Time   `json:"expiresAt"`
	DueDate      string      `json:"dueDate,omitempty"` // of a boleto, YYYY-MM-DD
	Installments int         `json:"installments,omitzero"`
	MerchantName string      `json:"merchantName,omitempty"`
	MerchantCity string      `json:"merchantCity,omitempty"`
}

// ChargeState is the state of a charge. Payments are listed separately.
type ChargeState string

// The states of a charge.
const (
	ChargeRegistering ChargeState = "registering"
	ChargeOpen        ChargeState = "open"
	ChargeAnalysis    ChargeState = "analysis"
	ChargeExpired     ChargeState = "expired"
	ChargeCanceled    ChargeState = "canceled"
	ChargeFailed      ChargeState = "failed"
)

// Charge is a charge as the bank shows it.
type Charge struct {
	ExternalID string      `json:"externalId"`
	Method     Method      `json:"method"`
	Amount     money.Cents `json:"amount"`
	State      ChargeState `json:"state"`
	ExpiresAt  time.Time   `json:"expiresAt"`
	PIX        *PIX        `json:"pix,omitempty"`
	Boleto     *Boleto     `json:"boleto,omitempty"`
	Payments   []Payment   `json:"payments,omitempty"`
	Disputes   []Dispute   `json:"disputes,omitempty"`
	Failure    *Failure    `json:"failure,omitempty"`
	Attempt    int         `json:"attempt,omitzero"` // by card, the last that was refused; from 1
}

// PIX is what a payer needs to pay by Pix.
type PIX struct {
	QRCode    string    `json:"qrcode"`
	TxID      string    `json:"txid"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Boleto is what a payer needs to pay a bill.
type Boleto struct {
	Barcode       string `json:"barcode"`
	DigitableLine string `json:"digitableLine"`
	DueDate       string `json:"dueDate"` // YYYY-MM-DD
	OurNumber     string `json:"ourNumber"`
	PIXQRCode     string `json:"pixQrcode,omitempty"`
}

// Payment is money received.
type Payment struct {
	ID         string      `json:"id"`
	ExternalID string      `json:"externalId"`
	EndToEndID string      `json:"endToEndId,omitempty"`
	Amount     money.Cents `json:"amount"`
	PaidAt     time.Time   `json:"paidAt"`
	Card       *Card       `json:"card,omitempty"`
}

// PaymentPage is a page of the list of payments, oldest first.
type PaymentPage struct {
	Data []Payment `json:"data"`
	Listing
}

// DisputeState is the state of a dispute.
type DisputeState string

// The states of a dispute.
const (
	DisputeOpen     DisputeState = "open"
	DisputeWon      DisputeState = "won"
	DisputeLost     DisputeState = "lost"
	DisputeReversed DisputeState = "reversed" // lost, then returned
)

// Dispute is a payer's dispute of a payment.
type Dispute struct {
	ID        string       `json:"id"`
	PaymentID string       `json:"paymentId"`
	Kind      string       `json:"kind"` // CHARGEBACK or MED
	Reason    string       `json:"reason,omitempty"`
	Amount    money.Cents  `json:"amount"`
	State     DisputeState `json:"state"`
	RespondBy time.Time    `json:"respondBy,omitzero"`
	Blocked   bool         `json:"blocked,omitzero"` // the money is kept back before any dispute
	Lost      money.Cents  `json:"lost,omitzero"`    // of a lost one; 0 is all of it
}

// DefenseRequest answers a dispute: with a defense or, with Accept, by giving up.
type DefenseRequest struct {
	Accept bool          `json:"accept,omitzero"`
	Text   string        `json:"text,omitempty"`
	Files  []DefenseFile `json:"files,omitempty"`
}

// DefenseFile is a document of a defense.
type DefenseFile struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Content []byte `json:"content"` // base64
}

// Defense is the answer to a dispute that the bank has. It shows nothing of its contents.
type Defense struct {
	DisputeID string    `json:"disputeId"`
	Accept    bool      `json:"accept"`
	Files     int       `json:"files"`
	CreatedAt time.Time `json:"createdAt"`
}

// PaymentDetail is a payment with what was given back of it, or is disputed.
type PaymentDetail struct {
	Payment

	Refunds  []Order
	Disputes []Dispute
}
