package wire

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// boletoAmountMax is the largest amount of a BOLETO: a bar code has ten digits for
// it (FEBRABAN).
const boletoAmountMax money.Cents = 9_999_999_999

// Limits of a pay-in. Lengths are in characters.
const (
	descriptionMax   = 140
	metadataMax      = 20 // pairs
	metadataKeyMax   = 40
	metadataValueMax = 500
)

// PayinRequest is the body of POST /payin. Its members have the right types;
// Check validates their values.
type PayinRequest struct {
	Method       Field[string]
	Amount       Field[int64] // cents
	ReferenceID  Field[string]
	WebhookURL   Field[string]
	Customer     Field[CustomerRequest]
	Items        Field[[]ItemRequest]
	ExpiresIn    Field[int64]  // seconds, PIX
	DueDate      Field[string] // YYYY-MM-DD in São Paulo, BOLETO
	Installments Field[int64]  // the most that the payer may choose, CREDIT_CARD
	Description  Field[string]
	Metadata     Field[map[string]string]
	ReturnURL    Field[string]

	// Personal is customer and items as they were sent.
	Personal payment.PersonalData
	// Fingerprint distinguishes this request from a different one under its
	// reference.
	Fingerprint Fingerprint
	// IdempotencyKey is stored with the order and has no effect.
	IdempotencyKey string
	// Public: the request has no credentials.
	Public bool
}

// Operation is the name space of the request's reference.
func (r *PayinRequest) Operation() payment.Operation {
	if r.Public {
		return payment.OperationPublicPayin
	}
	return payment.OperationPayin
}

// Origin is the origin of the order; empty if the request has credentials.
func (r *PayinRequest) Origin() string {
	if r.Public {
		return payment.OriginPublic
	}
	return ""
}

// read reads the body of POST /payin.
func (r *PayinRequest) read(body value) {
	for v := range body.children() {
		switch v.name() {
		case "paymentMethod":
			r.Method = v.text()
		case "amount":
			r.Amount = v.integer()
		case "referenceId":
			r.ReferenceID = v.text()
		case "webhookUrl":
			r.WebhookURL = v.text()
		case "customer":
			if v.isObject() {
				r.Customer = Some(readCustomer(v))
				r.Personal.Customer = v.compact()
			}
		case "items":
			if v.isArray() {
				r.Items = Some(readItems(v))
				r.Personal.Items = v.compact()
			}
		case "expiresIn":
			r.ExpiresIn = v.integer()
		case "dueDate":
			r.DueDate = v.text()
		case "installments":
			r.Installments = v.integer()
		case "description":
			r.Description = v.text()
		case "metadata":
			r.Metadata = v.texts(metadataMax)
		case "returnUrl":
			r.ReturnURL = v.text()
		default:
			v.failUnknown()
		}
	}
}

// MayRepeat reports whether r, which has this problem, may repeat a request that
// was accepted before: its form and its reference are valid. r may be nil if the
// problem has another status than 422.
func (r *PayinRequest) MayRepeat(invalid *problem.Error) bool {
	return isWellFormed(invalid) && ValidReference(r.ReferenceID.V)
}

// Due is the due date of a BOLETO, YYYY-MM-DD in São Paulo; "" for other methods.
func (r *PayinRequest) Due(now time.Time) string {
	switch {
	case payment.Method(r.Method.V) != payment.Boleto:
		return ""
	case r.DueDate.Set:
		return r.DueDate.V
	default:
		return payment.DefaultDueDate(now)
	}
}

// ExpiresAt is when an order that is created at now stops waiting for payment. r
// must be valid.
func (r *PayinRequest) ExpiresAt(now time.Time) time.Time {
	pixLife := time.Duration(r.ExpiresIn.V) * time.Second
	return payment.ExpiresAt(payment.Method(r.Method.V), r.Due(now), pixLife, now)
}

func (r Rules) enables(m payment.Method) bool {
	return r.Methods == nil || slices.Contains(r.Methods, m)
}

// Check adds every invalid field of r to errs. It does not check whether the
// merchant may use the method.
func (r *PayinRequest) Check(rules Rules, errs *Errors) {
	method := r.checkMethod(errs)
	amountMax := money.Max
	if method == payment.Boleto {
		amountMax = boletoAmountMax
	}
	errs.amount(r.Amount, amountMax)
	errs.reference(r.ReferenceID)
	errs.webhookURL(r.WebhookURL, rules)
	if errs.require(At("", "customer"), r.Customer.Set) {
		r.Customer.V.check(rules, errs)
	}
	checkItems(r.Items.V, errs)
	r.checkMethodFields(method, rules, errs)
	if r.Description.Set {
		errs.text(At("", "description"), r.Description.V, descriptionMax)
	}
	if r.Metadata.Set {
		checkMetadata(r.Metadata.V, errs)
	}
	if r.ReturnURL.Set {
		p := At("", "returnUrl")
		if host, ok := errs.url(p, r.ReturnURL.V, rules.AllowHTTP); ok && !slices.Contains(rules.ReturnHosts, host) {
			errs.Add(p, problem.CodeNotAllowed, "must have a host that is registered for the merchant")
		}
	}
}

// checkMethod returns the method; "" if it is invalid.
func (r *PayinRequest) checkMethod(errs *Errors) payment.Method {
	p := At("", "paymentMethod")
	if !errs.require(p, r.Method.Set) {
		return ""
	}
	if m := payment.Method(r.Method.V); slices.Contains(payment.Methods, m) {
		return m
	}
	errs.Add(p, problem.CodeNotAllowed, "must be PIX, CREDIT_CARD or BOLETO")
	return ""
}

// checkMethodFields checks the fields that belong to one method. If the method
// is invalid, each is checked as if it belonged.
func (r *PayinRequest) checkMethodFields(method payment.Method, rules Rules, errs *Errors) {
	if r.ExpiresIn.Set && errs.belongs("expiresIn", method, payment.PIX) {
		errs.number(At("", "expiresIn"), r.ExpiresIn.V, int64(payment.PIXLifeMin/time.Second), int64(payment.PIXLifeMax/time.Second))
	}
	if r.DueDate.Set && errs.belongs("dueDate", method, payment.Boleto) {
		checkDueDate(r.DueDate.V, rules.Today, errs)
	}
	if r.Installments.Set && errs.belongs("installments", method, payment.CreditCard) {
		errs.number(At("", "installments"), r.Installments.V, 1, payment.InstallmentsMax)
	}
}

func (e *Errors) belongs(name string, method, owner payment.Method) bool {
	if method == "" || method == owner {
		return true
	}
	e.Add(At("", name), problem.CodeNotAllowed, "is only allowed for "+string(owner))
	return false
}

func checkDueDate(value, today string, errs *Errors) {
	p := At("", "dueDate")
	due, err := time.Parse(time.DateOnly, value)
	if err != nil {
		errs.Add(p, problem.CodeInvalidFormat, "must be a date (YYYY-MM-DD)")
		return
	}
	first, err := time.Parse(time.DateOnly, today)
	if err != nil || due.Before(first) || due.After(first.AddDate(1, 0, 0)) {
		errs.Add(p, problem.CodeOutOfRange, "must be between today and one year from today, in São Paulo")
	}
}

func checkMetadata(pairs map[string]string, errs *Errors) {
	const parent = "metadata"
	if len(pairs) > metadataMax {
		errs.Add(At("", parent), problem.CodeTooLong, "must have at most "+strconv.Itoa(metadataMax)+" pairs")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		p := At(parent, key)
		var inKey Errors
		if inKey.text(p, key, metadataKeyMax); len(inKey.list) > 0 {
			errs.Add(p, inKey.list[0].Code, "has a key that "+inKey.list[0].Detail)
			continue
		}
		errs.text(p, pairs[key], metadataValueMax)
	}
}

type payinView struct {
	ID             payment.ID          `json:"id"`
	ExternalID     string              `json:"externalId"`
	ProcessorID    string              `json:"processorId,omitempty"`
	ReferenceID    string              `json:"referenceId"`
	Origin         string              `json:"origin,omitempty"`
	Status         payment.PayinStatus `json:"status"`
	Amount         money.Cents         `json:"amount"`
	Currency       string              `json:"currency"`
	PaymentMethod  payment.Method      `json:"paymentMethod"`
	CheckoutURL    string              `json:"checkoutUrl,omitempty"`
	PIX            *pixView            `json:"pix,omitempty"`
	Boleto         *boletoView         `json:"boleto,omitempty"`
	Card           *cardView           `json:"card,omitempty"`
	Description    string              `json:"description,omitempty"`
	Metadata       map[string]string   `json:"metadata,omitempty"`
	ReturnURL      string              `json:"returnUrl,omitempty"`
	WebhookURL     string              `json:"webhookUrl,omitempty"`
	PaidAmount     money.Cents         `json:"paidAmount,omitzero"`
	RefundedAmount money.Cents         `json:"refundedAmount,omitzero"`
	DisputedAmount money.Cents         `json:"disputedAmount,omitzero"`
	Fee            *money.Cents        `json:"fee,omitempty"`
	NetAmount      *money.Cents        `json:"netAmount,omitempty"`
	EndToEndID     string              `json:"endToEndId,omitempty"`
	Late           bool                `json:"late,omitzero"`
	Failure        *failureView        `json:"failure,omitempty"`
	ExpiresAt      Timestamp           `json:"expiresAt,omitempty"`
	PaidAt         Timestamp           `json:"paidAt,omitempty"`
	Version        int64               `json:"version"`
	CreatedAt      Timestamp           `json:"createdAt"`
	UpdatedAt      Timestamp           `json:"updatedAt"`
	Customer       jsontext.Value      `json:"customer,omitzero"`
	Items          jsontext.Value      `json:"items,omitzero"`
	Attempts       []PayinAttempt      `json:"attempts,omitempty"`
}

// PayinAttempt is an account that an order was tried at.
type PayinAttempt struct {
	Account   string    `json:"account"`
	Outcome   string    `json:"outcome"`
	CreatedAt Timestamp `json:"createdAt"`
	UpdatedAt Timestamp `json:"updatedAt"`
}

// PayinExpansion is what a request asks for besides a pay-in.
type PayinExpansion struct {
	Personal payment.PersonalData
	Attempts []PayinAttempt
}

type pixView struct {
	QRCode    string    `json:"qrcode"`
	TxID      string    `json:"txid"`
	ExpiresAt Timestamp `json:"expiresAt"`
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

type failureView struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Payin is a pay-in as the API and its events show it. personal is shown too;
// events leave it empty. The error is invalid JSON in personal.
func Payin(p *payment.Payin, links payment.Links, personal payment.PersonalData) ([]byte, error) {
	return ExpandedPayin(p, links, PayinExpansion{Personal: personal})
}

// ExpandedPayin is a pay-in with what a request asks for besides it. Errors: as of [Payin].
func ExpandedPayin(p *payment.Payin, links payment.Links, more PayinExpansion) ([]byte, error) {
	v := payinView{
		ID: p.ID, ExternalID: p.ExternalID, ProcessorID: p.ProcessorID, ReferenceID: p.ReferenceID, Origin: p.Details.Origin,
		Status: p.Status, Amount: p.Amount, Currency: payment.Currency, PaymentMethod: p.Method,
		CheckoutURL: links.Checkout, Description: p.Details.Description, Metadata: p.Details.Metadata,
		ReturnURL: p.Details.ReturnURL, WebhookURL: p.WebhookURL,
		PaidAmount: p.PaidAmount, RefundedAmount: p.RefundedAmount, DisputedAmount: p.DisputedAmount,
		EndToEndID: p.EndToEndID, Late: p.Late, Failure: (*failureView)(p.Failure),
		ExpiresAt: TimestampOf(p.ExpiresAt), PaidAt: TimestampOf(p.PaidAt), Version: p.Version,
		CreatedAt: TimestampOf(p.CreatedAt), UpdatedAt: TimestampOf(p.UpdatedAt),
		Customer: more.Personal.Customer, Items: more.Personal.Items, Attempts: more.Attempts,
	}
	if p.Details.PIX != nil {
		v.PIX = &pixView{p.Details.PIX.QRCode, p.Details.PIX.TxID, TimestampOf(p.Details.PIX.ExpiresAt)}
	}
	if b := p.Details.Boleto; b != nil {
		v.Boleto = &boletoView{b.Barcode, b.DigitableLine, b.DueDate, b.OurNumber, links.Bill, b.PIXQRCode}
	}
	if c := p.Details.Card; c != nil && p.Method == payment.CreditCard {
		v.Card = &cardView{cmp.Or(c.HostedURL, links.Checkout), c.Brand, c.Last4, c.Installments}
	}
	if !p.PaidAt.IsZero() {
		net := p.PaidAmount - p.Fee
		v.Fee, v.NetAmount = &p.Fee, &net
	}
	return json.Marshal(&v)
}
