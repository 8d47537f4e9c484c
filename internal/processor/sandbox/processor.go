package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// Name is the processor's name in the gateway's registry.
const Name = "sandbox"

// Options say which bank a [Processor] or a [Control] calls.
type Options struct {
	// Bank is the bank in this process. The rest is then not needed.
	Bank *Bank
	// URL is the base address of a bank in a process of its own.
	URL string
	// Secret is shared with that bank.
	Secret string
	// Transport carries requests to it.
	Transport http.RoundTripper
}

// Processor is the adapter of the gateway to a [Bank], of this process or
// another. It adds no time-outs: callers bound each call by its context.
type Processor struct {
	client client
	secret string
	bank   *Bank // nil unless in this process
}

var (
	_ processor.Charger     = (*Processor)(nil)
	_ processor.Minter      = (*Processor)(nil)
	_ processor.Transferrer = (*Processor)(nil)
	_ processor.Refunder    = (*Processor)(nil)
	_ processor.Notifier    = (*Processor)(nil)
	_ processor.Collector   = (*Processor)(nil)
	_ processor.Monitor     = (*Processor)(nil)

	_ processor.TestCardTaker = (*Processor)(nil)
)

// NewProcessor returns the adapter to the bank that opts name.
func NewProcessor(opts Options) (*Processor, error) {
	c, err := newClient(opts)
	if err != nil {
		return nil, err
	}
	return &Processor{client: c, secret: c.secret, bank: opts.Bank}, nil
}

// Profile implements [processor.Processor]. The quiet period need not cover
// the bank's longest delay of 30 minutes: under one id the bank takes one
// order at most, so sending again is safe whenever it is done.
func (p *Processor) Profile() processor.Profile {
	return processor.Profile{
		Name:              Name,
		Methods:           payment.Methods,
		IdempotentByOurID: true,
		QuietPeriod:       2 * time.Second,
		ChecksDocuments:   false,
		ChargeTimeout:     4 * time.Second,
		TransferTimeout:   5 * time.Second,
	}
}

// errOtherID says that the bank answered about something else.
var errOtherID = errors.New("sandbox: bank's answer is about another id or amount")

// termsOf is what the bank is told of a charge: nothing about its payer.
func termsOf(r processor.ChargeRequest) chargeTerms {
	return chargeTerms{
		Method: r.Method, Amount: r.Amount, ExpiresAt: r.ExpiresAt.UTC(), DueDate: r.DueDate,
		Installments: r.Installments, MerchantName: r.MerchantName, MerchantCity: r.MerchantCity,
	}
}

// Charge implements [processor.Charger].
func (p *Processor) Charge(ctx context.Context, r processor.ChargeRequest) processor.ChargeAnswer {
	result := p.client.do(ctx, http.MethodPut, "/charges/"+url.PathEscape(r.ExternalID), termsOf(r), nil)
	body := parse[chargeBody](&result)
	outcome := result.outcome()
	if outcome == processor.Done && (body.ExternalID != r.ExternalID || body.Amount != r.Amount || body.Method != r.Method) {
		return processor.ChargeAnswer{Cause: errOtherID}
	}
	if outcome == processor.Done && !body.payable() {
		return processor.ChargeAnswer{Cause: errAnswerForm}
	}
	answer := processor.ChargeAnswer{Outcome: outcome, Cause: result.cause()}
	switch outcome {
	case processor.Done:
		answer.Charge = body.charge()
	case processor.Refused:
		answer.Failure = result.code.failure()
	}
	return answer
}

// QueryCharge implements [processor.Charger]. A charge that was minted and not
// yet paid is not found: the bank has not seen it.
func (p *Processor) QueryCharge(ctx context.Context, externalID string) processor.ChargeReport {
	result := p.client.do(ctx, http.MethodGet, "/charges/"+url.PathEscape(externalID), nil, nil)
	body := parse[chargeBody](&result)
	lookup := result.lookup()
	if lookup != processor.Found {
		return processor.ChargeReport{Lookup: lookup, Cause: result.cause()}
	}
	switch {
	case body.ExternalID != externalID:
		return processor.ChargeReport{Cause: errOtherID}
	case body.State != processor.ChargeOpen && body.State != processor.ChargeAnalysis &&
		body.State != processor.ChargeExpired && body.State != processor.ChargeFailed:
		return processor.ChargeReport{Cause: fmt.Errorf("sandbox: bank reports unknown state %q", body.State)}
	}
	report := processor.ChargeReport{
		Lookup: lookup, State: body.State, Charge: body.charge(), Failure: reason(body.Failure),
		Attempt: max(0, body.Attempt),
	}
	for _, paid := range body.Payments {
		if !paid.fits() {
			return processor.ChargeReport{Cause: errAnswerForm}
		}
		report.Payments = append(report.Payments, paid.payment())
	}
	for _, d := range body.Disputes {
		if !d.fits() {
			return processor.ChargeReport{Cause: errAnswerForm}
		}
		report.Disputes = append(report.Disputes, processor.Dispute{ID: d.ID, Amount: d.Amount, State: d.State})
	}
	return report
}

func (b chargeBody) charge() processor.Charge {
	c := processor.Charge{PIX: b.PIX, Boleto: b.Boleto}
	if b.Method == payment.CreditCard {
		c.Card = &payment.CardDetail{}
	}
	return c
}

func (b paymentBody) payment() processor.Payment {
	return processor.Payment{
		ID: b.ID, ExternalID: b.ExternalID, EndToEndID: b.EndToEndID,
		Amount: b.Amount, PaidAt: b.PaidAt, Card: card(b.Card),
	}
}

// Transfer implements [processor.Transferrer].
func (p *Processor) Transfer(ctx context.Context, r processor.TransferRequest, guard func() error) processor.TransferAnswer {
	request := transferRequest{
		ExternalID: r.ExternalID, Amount: r.Amount, KeyType: r.KeyType, Key: r.Key,
		Name: r.Name, Document: r.Document, Description: r.Description,
	}
	result := p.client.do(ctx, http.MethodPost, "/transfers", request, guard)
	return orderAnswer(result, orderBody{ExternalID: r.ExternalID, Amount: r.Amount})
}

// QueryTransfer implements [processor.Transferrer].
func (p *Processor) QueryTransfer(ctx context.Context, externalID string) processor.TransferReport {
	return p.queryOrder(ctx, "/transfers/", externalID)
}

// Refund implements [processor.Refunder].
func (p *Processor) Refund(ctx context.Context, r processor.RefundRequest, guard func() error) processor.TransferAnswer {
	request := refundRequest{ExternalID: r.ExternalID, PaymentID: r.PaymentID, Amount: r.Amount}
	result := p.client.do(ctx, http.MethodPost, "/refunds", request, guard)
	return orderAnswer(result, orderBody{ExternalID: r.ExternalID, Amount: r.Amount})
}

// QueryRefund implements [processor.Refunder].
func (p *Processor) QueryRefund(ctx context.Context, externalID string) processor.TransferReport {
	return p.queryOrder(ctx, "/refunds/", externalID)
}

// orderAnswer reads the answer to an order; asked is what it must be about.
func orderAnswer(result response, asked orderBody) processor.TransferAnswer {
	body := parse[orderBody](&result)
	answer := processor.TransferAnswer{Outcome: result.outcome(), Cause: result.cause()}
	switch answer.Outcome {
	case processor.Done:
		if body.ExternalID != asked.ExternalID || body.Amount != asked.Amount {
			return processor.TransferAnswer{Cause: errOtherID}
		}
		answer.Report = body.report()
		if answer.Report.Lookup != processor.Found {
			return processor.TransferAnswer{Cause: errAnswerForm}
		}
	case processor.Refused:
		answer.Failure, answer.Evidence = result.code.failure(), result.evidence()
	}
	return answer
}

func (p *Processor) queryOrder(ctx context.Context, path, externalID string) processor.TransferReport {
	result := p.client.do(ctx, http.MethodGet, path+url.PathEscape(externalID), nil, nil)
	body := parse[orderBody](&result)
	lookup := result.lookup()
	if lookup != processor.Found {
		return processor.TransferReport{Lookup: lookup, Cause: result.cause()}
	}
	if body.ExternalID != externalID {
		return processor.TransferReport{Cause: errOtherID}
	}
	return body.report()
}

// report is what the body proves. A state that is not known proves nothing.
func (b orderBody) report() processor.TransferReport {
	switch b.State {
	case processor.TransferProcessing, processor.TransferPaid, processor.TransferFailed:
	default:
		return processor.TransferReport{Cause: fmt.Errorf("sandbox: bank reports unknown state %q", b.State)}
	}
	if !isAmount(b.Amount) || !isTokenOrNone(b.EndToEndID) {
		return processor.TransferReport{Cause: errAnswerForm}
	}
	failure := reason(b.Failure)
	evidence := fmt.Sprintf("bank reports %s at %s", b.State, b.ChangedAt.Format(time.RFC3339))
	if b.EndToEndID != "" {
		evidence += " as " + b.EndToEndID
	}
	if failure != nil {
		evidence += ": " + failure.Code
	}
	return processor.TransferReport{
		Lookup: processor.Found, State: b.State, EndToEndID: b.EndToEndID, Amount: b.Amount,
		Returned: b.Returned, Failure: failure, Evidence: evidence,
	}
}

// Payments implements [processor.Collector].
func (p *Processor) Payments(ctx context.Context, cursor string) (page []processor.Payment, next string, err error) {
	result := p.client.do(ctx, http.MethodGet, "/payments?cursor="+url.QueryEscape(cursor), nil, nil)
	body := parse[paymentPage](&result)
	if result.lookup() != processor.Found {
		return nil, "", result.cause()
	}
	if !isTokenOrNone(body.NextCursor) {
		return nil, "", errAnswerForm
	}
	for _, paid := range body.Data {
		if !paid.fits() {
			return nil, "", errAnswerForm
		}
		page = append(page, paid.payment())
	}
	return page, body.NextCursor, nil
}
