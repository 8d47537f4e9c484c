package wire

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/jsonwrite"
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
			r.Amount = v.cents()
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
		if u, ok := errs.url(p, r.ReturnURL.V, rules.AllowHTTP); ok && !slices.Contains(rules.ReturnHosts, u.Hostname()) {
			errs.Add(p, problem.CodeNotAllowed, "must have a host that is registered for the merchant: ask the operator to register it")
		}
	}
}

// checkMethod returns the method; "" if it is invalid.
func (r *PayinRequest) checkMethod(errs *Errors) payment.Method {
	p := At("", "paymentMethod")
	if !errs.requireText(p, r.Method) {
		return ""
	}
	if m := payment.Method(r.Method.V); slices.Contains(payment.Methods, m) {
		return m
	}
	errs.Add(p, problem.CodeNotAllowed, "must be PIX, CREDIT_CARD or BOLETO, in capitals")
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

// Payin is a pay-in as the API and its events show it. personal is shown too;
// events leave it empty. The error is invalid JSON in personal.
func Payin(p *payment.Payin, links payment.Links, personal payment.PersonalData) ([]byte, error) {
	return ExpandedPayin(p, links, PayinExpansion{Personal: personal})
}

// payinSize is more than the bytes of most pay-ins.
const payinSize = 1024

// ExpandedPayin is a pay-in with what a request asks for besides it. Errors: as of [Payin].
func ExpandedPayin(p *payment.Payin, links payment.Links, more PayinExpansion) ([]byte, error) {
	o := jsonwrite.New(payinSize)
	o.Text("id", p.ID.String())
	o.Text("externalId", p.ExternalID)
	o.TextIfAny("processorId", p.ProcessorID)
	o.Text("referenceId", p.ReferenceID)
	o.TextIfAny("origin", p.Details.Origin)
	o.Text("status", string(p.Status))
	o.Int("amount", int64(p.Amount))
	o.Text("currency", payment.Currency)
	o.Text("paymentMethod", string(p.Method))
	o.TextIfAny("checkoutUrl", links.Checkout)
	writeCharge(o, p, links)
	o.TextIfAny("description", p.Details.Description)
	if len(p.Details.Metadata) > 0 {
		if err := writeJSON(o, "metadata", p.Details.Metadata); err != nil {
			return nil, err
		}
	}
	o.TextIfAny("returnUrl", p.Details.ReturnURL)
	o.TextIfAny("webhookUrl", p.WebhookURL)
	writePaid(o, p)
	writeFailure(o, p.Failure)
	writeTime(o, "expiresAt", p.ExpiresAt)
	writeTime(o, "paidAt", p.PaidAt)
	o.Int("version", p.Version)
	writeTime(o, "createdAt", p.CreatedAt)
	writeTime(o, "updatedAt", p.UpdatedAt)
	if err := writeExpansion(o, &more); err != nil {
		return nil, err
	}
	return o.Bytes(), nil
}

// writeCharge writes what the payer pays.
func writeCharge(o *jsonwrite.Object, p *payment.Payin, links payment.Links) {
	if d := p.Details.PIX; d != nil {
		o.Begin("pix")
		o.Text("qrcode", d.QRCode)
		o.Text("txid", d.TxID)
		o.Text("expiresAt", string(TimestampOf(d.ExpiresAt)))
		o.End()
	}
	if d := p.Details.Boleto; d != nil {
		o.Begin("boleto")
		o.Text("barcode", d.Barcode)
		o.Text("digitableLine", d.DigitableLine)
		o.Text("dueDate", d.DueDate)
		o.Text("ourNumber", d.OurNumber)
		o.TextIfAny("pdfUrl", links.Bill)
		o.TextIfAny("pixQrcode", d.PIXQRCode)
		o.End()
	}
	if d := p.Details.Card; d != nil && p.Method == payment.CreditCard {
		o.Begin("card")
		o.TextIfAny("checkoutUrl", cmp.Or(d.HostedURL, links.Checkout))
		o.TextIfAny("brand", d.Brand)
		o.TextIfAny("last4", d.Last4)
		o.IntIfAny("installments", int64(d.Installments))
		o.End()
	}
}

// writePaid writes what was paid, given back and disputed. The fee is shown once the order is
// paid, although it may be 0, and once it was charged on a part.
func writePaid(o *jsonwrite.Object, p *payment.Payin) {
	o.IntIfAny("paidAmount", int64(p.PaidAmount))
	o.IntIfAny("refundedAmount", int64(p.RefundedAmount))
	o.IntIfAny("disputedAmount", int64(p.DisputedAmount))
	o.IntIfAny("unappliedAmount", int64(p.UnappliedAmount))
	if !p.PaidAt.IsZero() || p.Fee > 0 {
		o.Int("fee", int64(p.Fee))
		o.Int("netAmount", int64(p.PaidAmount-p.Fee))
	}
	o.TextIfAny("endToEndId", p.EndToEndID)
	o.TrueIf("late", p.Late)
}

// writeExpansion writes personal data, which is JSON as the merchant sent it, and attempts.
func writeExpansion(o *jsonwrite.Object, more *PayinExpansion) error {
	for _, member := range [...]struct {
		name  string
		value jsontext.Value
	}{{"customer", more.Personal.Customer}, {"items", more.Personal.Items}} {
		if member.value == nil {
			continue
		}
		if !member.value.IsValid() {
			return fmt.Errorf("wire: the stored %s is not JSON", member.name)
		}
		o.Raw(member.name, member.value)
	}
	if len(more.Attempts) == 0 {
		return nil
	}
	return writeJSON(o, "attempts", more.Attempts)
}
