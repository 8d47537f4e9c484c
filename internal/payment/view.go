package payment

import (
	"cmp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/money"
)

// TimeLayout is how the API writes a time: ISO 8601, UTC, milliseconds.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Stamp is a time as the API writes it; the zero time is absent.
type Stamp string

// StampOf formats t, or nothing where t is not set.
func StampOf(t time.Time) Stamp {
	if t.IsZero() {
		return ""
	}
	return Stamp(t.UTC().Format(TimeLayout))
}

type payinView struct {
	ID             ID                `json:"id"`
	ExternalID     string            `json:"externalId"`
	ProcessorID    string            `json:"processorId,omitempty"`
	ReferenceID    string            `json:"referenceId"`
	Status         PayinStatus       `json:"status"`
	Amount         money.Cents       `json:"amount"`
	Currency       string            `json:"currency"`
	PaymentMethod  Method            `json:"paymentMethod"`
	CheckoutURL    string            `json:"checkoutUrl,omitempty"`
	PIX            *pixView          `json:"pix,omitempty"`
	Boleto         *boletoView       `json:"boleto,omitempty"`
	Card           *cardView         `json:"card,omitempty"`
	Description    string            `json:"description,omitempty"`
	Metadata       map[string]string `json:"metadata,omitempty"`
	ReturnURL      string            `json:"returnUrl,omitempty"`
	WebhookURL     string            `json:"webhookUrl,omitempty"`
	PaidAmount     money.Cents       `json:"paidAmount,omitzero"`
	RefundedAmount money.Cents       `json:"refundedAmount,omitzero"`
	Fee            *money.Cents      `json:"fee,omitempty"`
	NetAmount      *money.Cents      `json:"netAmount,omitempty"`
	EndToEndID     string            `json:"endToEndId,omitempty"`
	Late           bool              `json:"late,omitzero"`
	Failure        *Failure          `json:"failure,omitempty"`
	ExpiresAt      Stamp             `json:"expiresAt,omitempty"`
	PaidAt         Stamp             `json:"paidAt,omitempty"`
	Version        int64             `json:"version"`
	CreatedAt      Stamp             `json:"createdAt"`
	UpdatedAt      Stamp             `json:"updatedAt"`
	Customer       jsontext.Value    `json:"customer,omitzero"`
	Items          jsontext.Value    `json:"items,omitzero"`
}

type pixView struct {
	QRCode    string `json:"qrcode"`
	TxID      string `json:"txid"`
	ExpiresAt Stamp  `json:"expiresAt"`
}

type boletoView struct {
	Barcode       string `json:"barcode"`
	DigitableLine string `json:"digitableLine"`
	DueDate       string `json:"dueDate"`
	OurNumber     string `json:"ourNumber"`
	PDFURL        string `json:"pdfUrl,omitempty"`
	PIXQRCode     string `json:"pixQrcode,omitempty"`
}

type cardView struct {
	CheckoutURL  string `json:"checkoutUrl,omitempty"`
	Brand        string `json:"brand,omitempty"`
	Last4        string `json:"last4,omitempty"`
	Installments int    `json:"installments,omitzero"`
}

// Links are the addresses of a pay-in's pages. They follow from its id, and
// are stored nowhere but in events.
type Links struct {
	Checkout string // the payer's page
	Bill     string // the bill as a PDF, for a BOLETO
}

// PersonalData is what a pay-in holds of its payer, as it was sent: stored
// sealed, shown only where it is asked for.
type PersonalData struct {
	Customer jsontext.Value `json:"customer,omitzero"`
	Items    jsontext.Value `json:"items,omitzero"`
}

// JSON is the pay-in as the API and its events show it. With personal data
// (GET with expand) that is shown too; events never carry it.
func (p *Payin) JSON(links Links, personal PersonalData) ([]byte, error) {
	v := payinView{
		ID: p.ID, ExternalID: p.ExternalID, ProcessorID: p.ProcessorID, ReferenceID: p.ReferenceID,
		Status: p.Status, Amount: p.Amount, Currency: Currency, PaymentMethod: p.Method,
		CheckoutURL: links.Checkout, Description: p.Details.Description, Metadata: p.Details.Metadata,
		ReturnURL: p.Details.ReturnURL, WebhookURL: p.WebhookURL,
		PaidAmount: p.PaidAmount, RefundedAmount: p.RefundedAmount,
		EndToEndID: p.EndToEndID, Late: p.Late, Failure: p.Failure,
		ExpiresAt: StampOf(p.ExpiresAt), PaidAt: StampOf(p.PaidAt), Version: p.Version,
		CreatedAt: StampOf(p.CreatedAt), UpdatedAt: StampOf(p.UpdatedAt),
		Customer: personal.Customer, Items: personal.Items,
	}
	if p.Details.PIX != nil {
		v.PIX = &pixView{p.Details.PIX.QRCode, p.Details.PIX.TxID, StampOf(p.Details.PIX.ExpiresAt)}
	}
	if b := p.Details.Boleto; b != nil {
		v.Boleto = &boletoView{b.Barcode, b.DigitableLine, b.DueDate, b.OurNumber, links.Bill, b.PIXQRCode}
	}
	if c := p.Details.Card; c != nil && p.Method == CreditCard {
		// The number is typed where the processor takes it, else on our page.
		v.Card = &cardView{cmp.Or(c.HostedURL, links.Checkout), c.Brand, c.Last4, c.Installments}
	}
	if !p.PaidAt.IsZero() {
		net := p.PaidAmount - p.Fee
		v.Fee, v.NetAmount = &p.Fee, &net
	}
	return json.Marshal(&v)
}

type payoutView struct {
	ID             ID               `json:"id"`
	ExternalID     string           `json:"externalId"`
	ProcessorID    string           `json:"processorId,omitempty"`
	ReferenceID    string           `json:"referenceId"`
	Status         PayoutStatus     `json:"status"`
	Amount         string           `json:"amount"`
	Currency       string           `json:"currency"`
	PIXKey         string           `json:"pixKey"`
	PIXKeyType     string           `json:"pixKeyType"`
	Approval       Approval         `json:"approval"`
	WebhookURL     string           `json:"webhookUrl,omitempty"`
	EndToEndID     string           `json:"endToEndId,omitempty"`
	Fee            string           `json:"fee,omitempty"`
	ReturnedAmount string           `json:"returnedAmount,omitempty"`
	Failure        *Failure         `json:"failure,omitempty"`
	CompletedAt    Stamp            `json:"completedAt,omitempty"`
	Version        int64            `json:"version"`
	CreatedAt      Stamp            `json:"createdAt"`
	UpdatedAt      Stamp            `json:"updatedAt"`
	Beneficiary    *beneficiaryView `json:"beneficiary,omitempty"`
}

type beneficiaryView struct {
	Name     string `json:"name"`
	Document string `json:"document"`
}

// JSON is the payout as the API and its events show it; the beneficiary only
// where it is asked for (GET with expand).
func (p *Payout) JSON(withBeneficiary bool) ([]byte, error) {
	v := payoutView{
		ID: p.ID, ExternalID: p.ExternalID, ProcessorID: p.ProcessorID, ReferenceID: p.ReferenceID,
		Status: p.Status, Amount: p.Amount.String(), Currency: Currency, PIXKey: p.Beneficiary.PIXKey,
		PIXKeyType: p.PIXKeyType, Approval: p.Approval, WebhookURL: p.WebhookURL,
		EndToEndID: p.EndToEndID, Failure: p.Failure, CompletedAt: StampOf(p.CompletedAt),
		Version: p.Version, CreatedAt: StampOf(p.CreatedAt), UpdatedAt: StampOf(p.UpdatedAt),
	}
	if p.Fee != 0 {
		v.Fee = p.Fee.String()
	}
	if p.ReturnedAmount != 0 {
		v.ReturnedAmount = p.ReturnedAmount.String()
	}
	if withBeneficiary {
		v.Beneficiary = &beneficiaryView{p.Beneficiary.Name, p.Beneficiary.Document}
	}
	return json.Marshal(&v)
}

// Event is news of one order for its merchant, numbered without gaps per
// merchant. Its body is frozen: every delivery carries the same bytes.
type Event struct {
	Merchant  ID
	Number    int64 // gapless per merchant, from 1
	ID        ID
	Type      EventType
	Subject   ID // the pay-in, payout or refund
	Version   int64
	CreatedAt time.Time
	Body      []byte
}

// eventIDPrefix begins every event id in the API.
const eventIDPrefix = "evt_"

// PublicEventID is an event's id as merchants see it: evt_ and 32 hex digits.
func PublicEventID(id ID) string {
	text := id.String()
	return eventIDPrefix + text[0:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
}

// ParseEventID reads what PublicEventID wrote; else ErrID.
func ParseEventID(s string) (ID, error) {
	if len(s) != len(eventIDPrefix)+32 || s[:len(eventIDPrefix)] != eventIDPrefix {
		return ID{}, ErrID
	}
	h := s[len(eventIDPrefix):]
	return ParseID(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}

// Envelope freezes the body of an event: its data is exactly what GET of the
// resource would answer at this moment.
func (e *Event) Envelope(data []byte) ([]byte, error) {
	return json.Marshal(struct {
		ID        string         `json:"id"`
		Type      EventType      `json:"type"`
		CreatedAt Stamp          `json:"createdAt"`
		Version   int64          `json:"version"`
		Data      jsontext.Value `json:"data"`
	}{PublicEventID(e.ID), e.Type, StampOf(e.CreatedAt), e.Version, data})
}
