package asaas

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

const (
	pageSize  = 100 // rows (Asaas: the most)
	rowsPages = 3   // of the charges under one reference
)

var (
	errFilter = errors.New("asaas: the list has charges of other references: the filter was ignored")
	errPages  = errors.New("asaas: the list is too long to be read to its end")
)

// QueryCharge implements [processor.Charger].
func (p *Processor) QueryCharge(ctx context.Context, externalID string) processor.ChargeReport {
	return p.FindCharge(ctx, processor.Ref{ExternalID: externalID})
}

// FindCharge implements [processor.ChargeFinder].
func (p *Processor) FindCharge(ctx context.Context, ref processor.Ref) processor.ChargeReport {
	rows, lookup, cause := p.rows(ctx, ref)
	if lookup != processor.Found {
		return processor.ChargeReport{Lookup: lookup, Cause: cause}
	}
	report, err := p.report(ctx, ref.ExternalID, rows)
	if err != nil {
		return processor.ChargeReport{Cause: err}
	}
	return report
}

// rows reads the charges of an order. There are several of a card in instalments, one each.
func (p *Processor) rows(ctx context.Context, ref processor.Ref) ([]wirePayment, processor.Lookup, error) {
	if ref.ProcessorID != "" {
		r := p.client.get(ctx, "/payments/"+url.PathEscape(ref.ProcessorID))
		v := parse[wirePayment](&r)
		switch lookup := r.lookup(); {
		case lookup != processor.Found:
			return nil, lookup, r.cause()
		case v.ID != ref.ProcessorID || v.ExternalReference != ref.ExternalID:
			return nil, processor.LookupUnknown, errOtherID
		case v.Installment == "":
			return []wirePayment{v}, processor.Found, nil
		}
	}
	if !isExternalID(ref.ExternalID) {
		return nil, processor.NotFound, nil
	}
	var rows []wirePayment
	for offset, page := 0, 0; page < rowsPages; page++ {
		query := url.Values{"externalReference": {ref.ExternalID}, "limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(offset)}}
		r := p.client.get(ctx, "/payments?"+query.Encode())
		body := parse[list[wirePayment]](&r)
		if r.lookup() != processor.Found {
			if r.err == nil {
				r.err = r.cause()
			}
			return nil, processor.LookupUnknown, r.err
		}
		if body.HasMore == nil || *body.HasMore && len(body.Data) == 0 {
			return nil, processor.LookupUnknown, errAnswerForm
		}
		for i := range body.Data {
			if body.Data[i].ExternalReference != ref.ExternalID {
				return nil, processor.LookupUnknown, errFilter
			}
		}
		rows, offset = append(rows, body.Data...), offset+len(body.Data)
		switch {
		case *body.HasMore:
		case len(rows) == 0:
			return nil, processor.NotFound, nil
		default:
			return rows, processor.Found, nil
		}
	}
	return nil, processor.LookupUnknown, errPages
}

// report reports what the charges of an order prove.
func (p *Processor) report(ctx context.Context, externalID string, rows []wirePayment) (processor.ChargeReport, error) {
	r := processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeCanceled}
	for i := range rows {
		v := &rows[i]
		if err := v.check(); err != nil {
			return r, err
		}
		if !v.paid() {
			continue
		}
		paid, err := p.paymentOf(ctx, v, externalID, parts(rows, v))
		if err != nil {
			return r, err
		}
		r.Payments = append(r.Payments, paid)
		if d := v.dispute(); d != nil {
			r.Disputes = append(r.Disputes, *d)
		}
	}
	current := currentOf(rows)
	switch {
	case len(r.Payments) > 0:
		r.State = processor.ChargeOpen
	case current != nil && current.reproved():
		r.State, r.Failure = processor.ChargeFailed, &payment.Failure{Code: "analysis_refused", Message: "The payment was refused after analysis."}
	case current != nil:
		r.State = stages[current.Status]
	}
	if current == nil || len(r.Payments) > 0 && current.BillingType != string(payment.CreditCard) || r.State == processor.ChargeFailed {
		return r, nil
	}
	charge, ready, err := p.payable(ctx, current, externalID)
	if !ready && err == nil {
		r.State = processor.ChargeRegistering
		return r, nil
	}
	r.Charge = charge
	return r, err
}

// currentOf is the charge that stands for the others: one that was paid, else the oldest that
// was not deleted. Lists begin with the newest. nil if all were deleted.
func currentOf(rows []wirePayment) (current *wirePayment) {
	for i := range rows {
		v := &rows[i]
		if v.Deleted && !v.paid() {
			continue
		}
		if current == nil || v.paid() || !current.paid() {
			current = v
		}
	}
	return current
}

// parts is the number of instalments that a charge is one of; 1 without instalments.
func parts(rows []wirePayment, v *wirePayment) int {
	if v.Installment == "" {
		return 1
	}
	n := 0
	for i := range rows {
		if rows[i].Installment == v.Installment && !rows[i].Deleted {
			n++
		}
	}
	return max(1, n)
}

// paymentOf is the payment of a charge.
func (p *Processor) paymentOf(ctx context.Context, v *wirePayment, externalID string, installments int) (processor.Payment, error) {
	paidAt, _ := endOf(v.paidDay()) // which was checked
	if now := p.clock.Now(); paidAt.After(now) {
		paidAt = now // Asaas names days only
	}
	paid := processor.Payment{
		ID: v.ID, ExternalID: externalID, Amount: moneyOf(v.Value), PaidAt: paidAt, Card: v.card(installments), Cost: v.cost(),
	}
	var err error
	paid.EndToEndID, err = p.endToEndID(ctx, v)
	return paid, err
}

// endToEndID reads the id of the Pix that paid a charge; "" if it was not paid by Pix, or
// Asaas does not show it.
func (p *Processor) endToEndID(ctx context.Context, v *wirePayment) (string, error) {
	var id string
	if len(v.PixTransaction) == 0 || json.Unmarshal(v.PixTransaction, &id, anyText) != nil || !isToken(id) {
		return "", nil
	}
	r := p.client.get(ctx, "/pix/transactions/"+url.PathEscape(id))
	body := parse[struct {
		EndToEndID string `json:"endToEndIdentifier"`
	}](&r)
	switch {
	case r.err == nil && r.status == http.StatusOK:
		if !isTokenOrNone(body.EndToEndID) {
			return "", errAnswerForm
		}
		return body.EndToEndID, nil
	case r.err == nil && r.status >= 400 && r.status <= 499 && r.status != http.StatusTooManyRequests:
		return "", nil
	default:
		return "", r.cause()
	}
}
