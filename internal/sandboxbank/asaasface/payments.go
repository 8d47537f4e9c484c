package asaasface

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// Billing types.
const (
	methodPix  = "PIX"
	methodBill = "BOLETO"
	methodCard = "CREDIT_CARD"
)

// Statuses of a charge.
const (
	statusPending   = "PENDING"
	statusOverdue   = "OVERDUE"
	statusAnalysis  = "AWAITING_RISK_ANALYSIS"
	statusReceived  = "RECEIVED"
	statusConfirmed = "CONFIRMED"
	statusRefunded  = "REFUNDED"
	statusRefunding = "REFUND_IN_PROGRESS"
	statusDisputed  = "CHARGEBACK_REQUESTED"
)

// creditDays is when a card payment is credited, per instalment.
const creditDays = 32

// billMinimum is the least amount of a boleto.
const billMinimum = 500

// pageMax is the most rows of a page.
const pageMax = 100

// listBody is a page of a list.
type listBody struct {
	Object     string `json:"object"`
	HasMore    bool   `json:"hasMore"`
	TotalCount int    `json:"totalCount"`
	Limit      int    `json:"limit"`
	Offset     int    `json:"offset"`
	Data       any    `json:"data"`
}

// pageOf is the page of a list that a call asks for.
func pageOf[T any](c *call, rows []T) (any, error) {
	query := c.URL.Query()
	number := func(name string, otherwise, most int) (int, error) {
		text := query.Get(name)
		if text == "" {
			return otherwise, nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > most {
			return 0, refuse("invalid_"+name, "O parâmetro é inválido.")
		}
		return n, nil
	}
	limit, err1 := number("limit", 10, pageMax)
	offset, err2 := number("offset", 0, 1<<40)
	if err := errors.Join(err1, err2); err != nil {
		return nil, refuse("invalid_offset", "O parâmetro é inválido.")
	}
	from := min(offset, len(rows))
	to := min(from+limit, len(rows))
	data := rows[from:to]
	if data == nil {
		data = []T{}
	}
	return listBody{"list", to < len(rows), len(rows), limit, offset, data}, nil
}

// newPayment is the request of a charge.
type newPayment struct {
	Customer         string `json:"customer"`
	BillingType      string `json:"billingType"`
	Value            reais  `json:"value"`
	InstallmentCount int    `json:"installmentCount"`
	TotalValue       reais  `json:"totalValue"`
	DueDate          string `json:"dueDate"`
	Description      string `json:"description"`
	Reference        string `json:"externalReference"`
	DaysAfterDue     int    `json:"daysAfterDueDateToRegistrationCancellation"`
}

// payment is a charge.
type payment struct {
	Object              string       `json:"object"`
	ID                  string       `json:"id"`
	DateCreated         string       `json:"dateCreated"`
	Customer            string       `json:"customer"`
	CheckoutSession     *string      `json:"checkoutSession"`
	PaymentLink         *string      `json:"paymentLink"`
	Installment         string       `json:"installment,omitempty"`
	Value               reais        `json:"value"`
	NetValue            reais        `json:"netValue"`
	OriginalValue       *reais       `json:"originalValue"`
	InterestValue       *reais       `json:"interestValue"`
	Description         *string      `json:"description"`
	BillingType         string       `json:"billingType"`
	ConfirmedDate       *string      `json:"confirmedDate,omitempty"`
	CreditCard          *card        `json:"creditCard,omitempty"`
	PixTransaction      *string      `json:"pixTransaction"`
	Status              string       `json:"status"`
	DueDate             string       `json:"dueDate"`
	OriginalDueDate     string       `json:"originalDueDate"`
	PaymentDate         *string      `json:"paymentDate"`
	ClientPaymentDate   *string      `json:"clientPaymentDate"`
	InstallmentNumber   *int         `json:"installmentNumber"`
	InvoiceURL          string       `json:"invoiceUrl"`
	InvoiceNumber       string       `json:"invoiceNumber"`
	ExternalReference   *string      `json:"externalReference"`
	Deleted             bool         `json:"deleted"`
	Anticipated         bool         `json:"anticipated"`
	Anticipable         bool         `json:"anticipable"`
	CreditDate          *string      `json:"creditDate"`
	EstimatedCreditDate *string      `json:"estimatedCreditDate"`
	NossoNumero         *string      `json:"nossoNumero"`
	BankSlipURL         *string      `json:"bankSlipUrl"`
	PostalService       bool         `json:"postalService"`
	Refunds             []refundView `json:"refunds"`
	Chargeback          *chargeback  `json:"chargeback,omitempty"`
}

type card struct {
	Number string `json:"creditCardNumber"`
	Brand  string `json:"creditCardBrand"`
}

type chargeback struct {
	Status   string  `json:"status"`
	Reason   string  `json:"reason"`
	Deadline *string `json:"deadlineToSendDisputeDocuments"`
}

type refundView struct {
	DateCreated string  `json:"dateCreated"`
	Status      string  `json:"status"`
	Value       reais   `json:"value"`
	Description *string `json:"description"`
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// terms is the charge of a request at the bank.
func (f *Face) terms(r *newPayment, total money.Cents) bankapi.ChargeTerms {
	t := bankapi.ChargeTerms{
		Method: bankapi.Method(r.BillingType), Amount: total, Installments: r.InstallmentCount,
		ExpiresAt: f.handlers.Now().AddDate(2, 0, 0), MerchantName: "ASAAS SANDBOX",
	}
	if r.BillingType == methodBill {
		t.DueDate = r.DueDate
	}
	return t
}

// checkPayment returns why a charge is refused.
func (f *Face) checkPayment(r *newPayment, total money.Cents) error {
	customers := f.book.customersWhere(func(c *customerNote) bool { return c.ID == r.Customer })
	_, err := time.Parse(time.DateOnly, r.DueDate)
	switch {
	case len(customers) == 0:
		return refuse("invalid_customer", "Customer inválido ou não informado.")
	case r.BillingType != methodPix && r.BillingType != methodBill && r.BillingType != methodCard:
		return refuse("invalid_billingType", "Informe a forma de pagamento.")
	case total < 1 || r.BillingType == methodBill && total < billMinimum:
		return refuse("invalid_value", "O valor da cobrança é menor que o mínimo.")
	case r.InstallmentCount != 0 && (r.BillingType != methodCard || r.InstallmentCount < 2 || r.InstallmentCount > 21 || r.Value != 0):
		return refuse("invalid_installmentCount", "O número de parcelas é inválido.")
	case err != nil || r.DueDate < dayOf(f.handlers.Now()):
		return refuse("invalid_dueDate", "A data de vencimento é inválida.")
	case len(r.Description) > 500*4 || len(r.Reference) > 255:
		return refuse("invalid_object", "Um dos campos é longo demais.")
	}
	return nil
}

func (f *Face) postPayment(c *call) (any, error) {
	var r newPayment
	if err := c.decode(&r); err != nil {
		return nil, err
	}
	total := money.Cents(r.Value)
	if r.InstallmentCount > 0 {
		total = money.Cents(r.TotalValue)
	}
	if err := f.checkPayment(&r, total); err != nil {
		return nil, err
	}
	id := strings.ReplaceAll(f.handlers.NewID(), "-", "")
	if _, err := f.handlers.PutCharge(id, f.terms(&r, total), c.fault); err != nil {
		return nil, err
	}
	parts := max(1, r.InstallmentCount)
	notes := make([]note, parts)
	for i := range parts {
		n := &paymentNote{
			ID: "pay_" + id, Charge: id, Part: i + 1, Parts: parts, Customer: r.Customer, Method: r.BillingType,
			Value: total / money.Cents(parts), Created: dayOf(f.handlers.Now()), Due: r.DueDate, Description: r.Description, Reference: r.Reference,
		}
		if parts > 1 {
			n.ID, n.Installment, n.Due = "pay_"+id+"_"+strconv.Itoa(i+1), "ins_"+id, addDays(r.DueDate, 30*i)
		}
		if i == parts-1 {
			n.Value = total - n.Value*money.Cents(parts-1)
		}
		notes[parts-1-i].Payment = n // so that the first instalment is the newest
	}
	if err := f.book.write(notes...); err != nil {
		return nil, err
	}
	return f.show(notes[parts-1].Payment)
}

// show is a charge as the bank has it now.
func (f *Face) show(n *paymentNote) (*payment, error) {
	c, err := f.handlers.Charge(n.Charge)
	if err != nil {
		return nil, err
	}
	v := &payment{
		Object: "payment", ID: n.ID, DateCreated: n.Created, Customer: n.Customer, Installment: n.Installment, Value: reais(n.Value),
		NetValue: reais(n.Value - fee(n.Method, n.Value)), Description: orNull(n.Description), BillingType: n.Method, Status: statusPending,
		DueDate: n.Due, OriginalDueDate: n.Due, InvoiceURL: f.BaseURL + "/i/" + n.ID, InvoiceNumber: n.ID[len(n.ID)-8:],
		ExternalReference: orNull(n.Reference), Deleted: n.Deleted,
	}
	if n.Installment != "" {
		v.InstallmentNumber = &n.Part
	}
	if c.Boleto != nil {
		v.NossoNumero, v.BankSlipURL = &c.Boleto.OurNumber, orNull(v.InvoiceURL)
	}
	if v.Refunds, err = f.refunds(n); err != nil {
		return nil, err
	}
	f.setStatus(v, n, &c)
	return v, nil
}

// setStatus derives the status and dates of a charge from the bank's.
func (f *Face) setStatus(v *payment, n *paymentNote, c *bankapi.Charge) {
	today := dayOf(f.handlers.Now())
	if len(c.Payments) == 0 {
		switch {
		case c.State == bankapi.ChargeAnalysis:
			v.Status = statusAnalysis
		case c.State == bankapi.ChargeFailed:
			v.Status = statusRefunded // refused after analysis: it has no date of payment
		case n.Due < today:
			v.Status = statusOverdue
		}
		return
	}
	paid := c.Payments[0]
	day := dayOf(paid.PaidAt)
	credit := day
	v.Status, v.ClientPaymentDate = statusReceived, &day
	switch {
	case n.Method == methodCard:
		credit = addDays(day, creditDays*n.Part)
		v.ConfirmedDate = &day
		if paid.Card != nil {
			v.CreditCard = &card{paid.Card.Last4, strings.ToUpper(paid.Card.Brand)}
		}
		if today < credit {
			v.Status = statusConfirmed
		}
	case paid.EndToEndID != "":
		v.PixTransaction = &n.Charge
	}
	v.EstimatedCreditDate, v.CreditDate = &credit, &credit // also of a day to come
	if v.Status == statusReceived {
		v.PaymentDate = &credit
	}
	f.setRefunded(v)
	setDisputed(v, c)
}

// setRefunded shows a charge as refunded if all of it is.
func (f *Face) setRefunded(v *payment) {
	var done, all reais
	for _, r := range v.Refunds {
		if r.Status != "CANCELLED" {
			all += r.Value
		}
		if r.Status == "DONE" {
			done += r.Value
		}
	}
	switch {
	case done >= v.Value:
		v.Status = statusRefunded
	case all >= v.Value:
		v.Status = statusRefunding
	}
}

// setDisputed shows the last dispute of a charge.
func setDisputed(v *payment, c *bankapi.Charge) {
	if len(c.Disputes) == 0 {
		return
	}
	last := &c.Disputes[len(c.Disputes)-1]
	deadline := dayOf(last.RespondBy)
	v.Chargeback = &chargeback{Status: "REVERSED", Reason: "ABSENCE_OF_PRINT", Deadline: &deadline}
	switch last.State {
	case bankapi.DisputeOpen:
		v.Status, v.Chargeback.Status = statusDisputed, "REQUESTED"
	case bankapi.DisputeLost:
		v.Status, v.Chargeback.Status = statusRefunded, "DONE"
	case bankapi.DisputeWon, bankapi.DisputeReversed:
	}
}

// note finds the charge that a path names.
func (f *Face) note(c *call) (paymentNote, error) {
	n, ok := f.book.payment(c.PathValue("id"))
	if !ok {
		return n, errNotFound
	}
	return n, nil
}

func (f *Face) getPayment(c *call) (any, error) {
	n, err := f.note(c)
	if err != nil {
		return nil, err
	}
	return f.show(&n)
}

func (f *Face) listPayments(c *call) (any, error) {
	q := c.URL.Query()
	from := q.Get("dateCreated[ge]")
	notes := f.book.paymentsWhere(func(p *paymentNote) bool {
		return (!q.Has("externalReference") || p.Reference == q.Get("externalReference")) && p.Created >= from &&
			(!q.Has("customer") || p.Customer == q.Get("customer"))
	})
	rows := []*payment{}
	for i := range notes {
		v, err := f.show(&notes[i])
		if err != nil {
			return nil, err
		}
		if status := q.Get("status"); status != "" && (v.Status != status || v.Deleted) {
			continue
		}
		if paid := q.Get("paymentDate[ge]"); paid != "" && (v.PaymentDate == nil || *v.PaymentDate < paid) {
			continue
		}
		rows = append(rows, v)
	}
	return pageOf(c, rows)
}

func (f *Face) deletePayment(c *call) (any, error) {
	n, err := f.note(c)
	if err != nil {
		return nil, err
	}
	if n.Deleted {
		return nil, errNotFound
	}
	if _, err := f.handlers.CancelCharge(n.Charge); err != nil {
		return nil, refuse("invalid_action", "Esta cobrança não pode ser removida.")
	}
	n.Deleted = true
	if err := f.book.write(note{Payment: &n}); err != nil {
		return nil, err
	}
	return struct {
		Deleted bool   `json:"deleted"`
		ID      string `json:"id"`
	}{true, n.ID}, nil
}

func (f *Face) getPix(c *call) (any, error) {
	n, err := f.note(c)
	if err != nil {
		return nil, err
	}
	charge, err := f.handlers.Charge(n.Charge)
	if err != nil {
		return nil, err
	}
	payload := ""
	switch {
	case charge.PIX != nil:
		payload = charge.PIX.QRCode
	case charge.Boleto != nil:
		payload = charge.Boleto.PIXQRCode
	}
	if payload == "" || n.Deleted {
		return nil, refuse("invalid_action", "Não é possível gerar o QR Code desta cobrança.")
	}
	return struct {
		EncodedImage   string  `json:"encodedImage"`
		Payload        string  `json:"payload"`
		ExpirationDate string  `json:"expirationDate"`
		Description    *string `json:"description"`
	}{"iVBORw0KGgo=", payload, addDays(n.Due, 365) + " 23:59:59", orNull(n.Description)}, nil
}

func (f *Face) getBill(c *call) (any, error) {
	n, err := f.note(c)
	if err != nil {
		return nil, err
	}
	charge, err := f.handlers.Charge(n.Charge)
	if err != nil {
		return nil, err
	}
	if charge.Boleto == nil {
		return nil, refuse("invalid_action", "O boleto ainda não foi registrado.")
	}
	return struct {
		Line      string `json:"identificationField"`
		OurNumber string `json:"nossoNumero"`
		Barcode   string `json:"barCode"`
	}{charge.Boleto.DigitableLine, charge.Boleto.OurNumber, charge.Boleto.Barcode}, nil
}

func (f *Face) getTransaction(c *call) (any, error) {
	charge, err := f.handlers.Charge(c.PathValue("id"))
	if err != nil || len(charge.Payments) == 0 || charge.Payments[0].EndToEndID == "" {
		return nil, errNotFound
	}
	return struct {
		ID         string `json:"id"`
		EndToEndID string `json:"endToEndIdentifier"`
		Value      reais  `json:"value"`
		Status     string `json:"status"`
	}{c.PathValue("id"), charge.Payments[0].EndToEndID, reais(charge.Payments[0].Amount), "DONE"}, nil
}

func (f *Face) listKeys(c *call) (any, error) {
	type key struct {
		ID     string `json:"id"`
		Key    string `json:"key"`
		Type   string `json:"type"`
		Status string `json:"status"`
	}
	return pageOf(c, []key{{"key_1", "123e4567-e12b-12d1-a456-426655440000", "EVP", "ACTIVE"}})
}

func (f *Face) confirm(c *call) (any, error) {
	n, err := f.note(c)
	if err != nil {
		return nil, err
	}
	if err := f.pay(&n); err != nil {
		return nil, err
	}
	return f.show(&n)
}

// pay pays a charge in full, once.
func (f *Face) pay(n *paymentNote) error {
	charge, err := f.handlers.Charge(n.Charge)
	if err != nil {
		return err
	}
	if len(charge.Payments) > 0 || n.Deleted {
		return refuse("invalid_action", "Esta cobrança não pode ser confirmada.")
	}
	_, err = f.handlers.ForceCharge(n.Charge, "pay", bankapi.ForceCharge{})
	return err
}

// panelPayment forces what happens at an issuer or a bank: dispute, win or lose; or confirms the refunds
// of a charge as a person does.
func (f *Face) panelPayment(c *call) (any, error) {
	n, err := f.note(c)
	if err != nil {
		return nil, err
	}
	if c.PathValue("action") == "confirm-refunds" {
		if err := f.confirmRefunds(&n); err != nil {
			return nil, err
		}
		return f.show(&n)
	}
	if _, err := f.handlers.ForceCharge(n.Charge, c.PathValue("action"), bankapi.ForceCharge{}); err != nil {
		return nil, err
	}
	return f.show(&n)
}
