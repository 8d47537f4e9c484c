package asaas

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// newPayment is the request of a charge.
type newPayment struct {
	Customer          string  `json:"customer"`
	BillingType       string  `json:"billingType"`
	Value             *amount `json:"value,omitempty"`
	InstallmentCount  int     `json:"installmentCount,omitzero"`
	TotalValue        *amount `json:"totalValue,omitempty"`
	DueDate           string  `json:"dueDate"`
	Description       string  `json:"description,omitempty"`
	ExternalReference string  `json:"externalReference"`
	// DaysAfterDue is until when a boleto can be paid.
	DaysAfterDue *int `json:"daysAfterDueDateToRegistrationCancellation,omitempty"`
}

const codeInvalidCustomer = "invalid_customer"

func moneyOf(a amount) money.Cents { return money.Cents(a) }

// requestOf is the request of a charge. A Pix or a card has to be due on some day: the last
// on which its order can be paid.
func requestOf(customer string, r *processor.ChargeRequest) newPayment {
	value := amount(r.Amount)
	n := newPayment{
		Customer: customer, BillingType: string(r.Method), DueDate: dayOf(r.ExpiresAt), Description: r.Description, ExternalReference: r.ExternalID,
	}
	if r.Method == payment.CreditCard && r.Installments > 1 {
		n.InstallmentCount, n.TotalValue = r.Installments, &value
	} else {
		n.Value = &value
	}
	if r.Method == payment.Boleto {
		n.DueDate = r.DueDate
		if due, ok := endOf(r.DueDate); ok {
			days := max(0, int(r.ExpiresAt.Sub(due)/(24*time.Hour)))
			n.DaysAfterDue = &days
		}
	}
	return n
}

// Charge implements [processor.Charger]: the customer, the charge, and what its payer needs.
// A charge that was made without the latter is unknown: it is looked up.
func (p *Processor) Charge(ctx context.Context, r processor.ChargeRequest, guard func() error) processor.ChargeAnswer {
	c := p.customerOf(ctx, r.Personal.Customer, guard)
	if c.id == "" {
		answer := chargeAnswer(&c.response)
		if answer.Outcome == processor.Unknown { // no charge was requested
			answer.Outcome = processor.NotSent
		}
		return answer
	}
	result := p.client.do(ctx, http.MethodPost, "/payments", requestOf(c.id, &r), guard)
	made := parse[wirePayment](&result)
	if result.code == codeInvalidCustomer && c.known && result.outcome() == processor.Refused {
		p.customers.drop(c.reference)
		return processor.ChargeAnswer{Outcome: processor.NotSent, Cause: result.cause()}
	}
	if result.outcome() != processor.Done {
		return chargeAnswer(&result)
	}
	parts := made.Installment != "" || r.Installments > 1 && r.Method == payment.CreditCard
	if made.ExternalReference != r.ExternalID || made.BillingType != string(r.Method) || !parts && moneyOf(made.Value) != r.Amount {
		return processor.ChargeAnswer{Cause: errOtherID}
	}
	if err := made.check(); err != nil {
		return processor.ChargeAnswer{Cause: err}
	}
	charge, ready, err := p.payable(ctx, &made, r.ExternalID)
	if err != nil {
		return processor.ChargeAnswer{Cause: err}
	}
	return processor.ChargeAnswer{Outcome: processor.Done, Registering: !ready, Charge: charge}
}

func chargeAnswer(r *response) processor.ChargeAnswer {
	answer := processor.ChargeAnswer{Outcome: r.outcome(), Wait: r.wait, Cause: r.cause()}
	if answer.Outcome == processor.Refused {
		answer.Failure = r.failure()
	}
	return answer
}

// pixCode is the answer of pixQrCode.
type pixCode struct {
	Payload string `json:"payload"`
}

// billCode is the answer of identificationField.
type billCode struct {
	Line      string `json:"identificationField"`
	Barcode   string `json:"barCode"`
	OurNumber string `json:"nossoNumero"`
}

// payable reads what the payer of a charge needs, by further calls. ready is false while the
// charge is in registration.
func (p *Processor) payable(ctx context.Context, v *wirePayment, externalID string) (c processor.Charge, ready bool, err error) {
	c = processor.Charge{ProcessorID: v.ID}
	if v.Installment == "" {
		c.Amount = moneyOf(v.Value)
	}
	path := "/payments/" + url.PathEscape(v.ID)
	switch payment.Method(v.BillingType) {
	case payment.CreditCard:
		c.Card = &payment.CardDetail{HostedURL: v.InvoiceURL}
		return c, true, nil
	case payment.PIX:
		r := p.client.get(ctx, path+"/pixQrCode")
		code := parse[pixCode](&r)
		if r.lookup() != processor.Found {
			return c, false, r.cause()
		}
		c.PIX = &payment.PIXDetail{QRCode: strings.TrimSpace(code.Payload), TxID: externalID}
		return c, true, nil
	case payment.Boleto:
		return p.payableBill(ctx, v, c, path)
	default:
		return c, false, fmt.Errorf("%w: billing type", errAnswerForm)
	}
}

// payableBill reads the line of a boleto, which changes with every update of the charge, and
// its Pix, which not every account has.
func (p *Processor) payableBill(ctx context.Context, v *wirePayment, c processor.Charge, path string) (processor.Charge, bool, error) {
	r := p.client.get(ctx, path+"/identificationField")
	bill := parse[billCode](&r)
	if r.err == nil && r.code != "" && (r.status == http.StatusBadRequest || r.status == http.StatusNotFound) {
		return c, false, nil
	}
	if r.lookup() != processor.Found {
		return c, false, r.cause()
	}
	c.Boleto = &payment.BoletoDetail{
		Barcode: strings.TrimSpace(bill.Barcode), DigitableLine: lineDigits(bill.Line), DueDate: v.DueDate, OurNumber: strings.TrimSpace(bill.OurNumber),
	}
	r = p.client.get(ctx, path+"/pixQrCode")
	code := parse[pixCode](&r)
	switch {
	case r.lookup() == processor.Found:
		c.Boleto.PIXQRCode = strings.TrimSpace(code.Payload)
	case r.err != nil || r.code == "": // else it has none
		return c, false, r.cause()
	}
	return c, true, nil
}

// lineDigits is a line without what it may be shown with: points, spaces, hyphens.
func lineDigits(line string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, line)
}

// CancelCharge implements [processor.ChargeCanceler]: it reads the charges of the order and,
// unless that decides, deletes them: a charge that was requested again may exist twice.
func (p *Processor) CancelCharge(ctx context.Context, r processor.CancelRequest, guard func() error) processor.CancelAnswer {
	rows, lookup, cause := p.rows(ctx, processor.Ref{ExternalID: r.ExternalID})
	if lookup != processor.Found && r.ProcessorID != "" {
		rows, lookup, cause = p.rows(ctx, processor.Ref{ExternalID: r.ExternalID, ProcessorID: r.ProcessorID})
	}
	if lookup != processor.Found {
		return processor.CancelAnswer{NotFound: lookup == processor.NotFound, Cause: cause}
	}
	answer := processor.CancelAnswer{Outcome: processor.Done}
	for i := range rows {
		v := &rows[i]
		if v.paid() || v.Status == statusAnalysis {
			return processor.CancelAnswer{Outcome: processor.Refused}
		}
	}
	for i := range rows { // of a card in instalments there are several
		if rows[i].Deleted {
			continue
		}
		result := p.client.do(ctx, http.MethodDelete, "/payments/"+url.PathEscape(rows[i].ID), nil, guard)
		body := parse[deleted](&result)
		switch outcome := result.outcome(); {
		case outcome == processor.Done && body.Deleted && body.ID == rows[i].ID:
		case outcome == processor.Done:
			return processor.CancelAnswer{Cause: errOtherID}
		case outcome == processor.Refused: // it may have been paid meanwhile: the next attempt reads that
			return processor.CancelAnswer{Cause: result.cause()}
		default:
			return processor.CancelAnswer{Outcome: outcome, Wait: result.wait, Cause: result.cause()}
		}
	}
	return answer
}

// deleted is the answer to a deletion.
type deleted struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}
