package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// Name is the processor's name in the gateway's registry.
const Name = "sandbox"

// Options say which bank a [Processor] or a [Control] calls. URL, Secret and
// Transport are needed.
type Options struct {
	// URL is the bank's base address.
	URL string
	// Secret is shared with the bank.
	Secret string
	// PreviousSecret, if not "", is accepted in notices beside Secret.
	PreviousSecret string
	// Transport carries requests to it.
	Transport http.RoundTripper
	// Clock is for the budget; nil: the machine's.
	Clock env.Clock
	// Rate is the budget of requests per second; 0: none. A Control has none.
	Rate float64
	// Inside: the bank is in this process, and needs no registration for notices.
	Inside bool
	// Repeat is what the contract does with a repeated transfer; "" is RepeatReturnsFirst.
	Repeat bankapi.Repeat
	// Offline reports whether a charge may be generated without calling the
	// bank; nil: never.
	Offline func() bool
}

// Processor is the driver. It adds no timeouts: callers bound each call by its
// context.
type Processor struct {
	client  client
	control *Control
	secrets []string // accepted in notices
	inside  bool
	repeat  processor.Repeat
	asks    bool // for consent to transfers
	offline func() bool
}

var (
	_ processor.Charger        = (*Processor)(nil)
	_ processor.ChargeCanceler = (*Processor)(nil)
	_ processor.OfflineCharger = (*Processor)(nil)
	_ processor.Transferrer    = (*Processor)(nil)
	_ processor.Refunder       = (*Processor)(nil)
	_ processor.Defender       = (*Processor)(nil)
	_ processor.Notifier       = (*Processor)(nil)
	_ processor.Authorizer     = (*Processor)(nil)
	_ processor.Feeder         = (*Processor)(nil)

	_ processor.BalanceReader = (*Processor)(nil)

	_ processor.TestCardTaker = (*Processor)(nil)
	_ processor.Registrar     = (*Processor)(nil)
	_ processor.Inspector     = (*Processor)(nil)
	_ processor.Authenticator = (*Processor)(nil)
	_ processor.Budgeted      = (*Processor)(nil)
)

// NewProcessor returns the driver of a bank. The error says which option is
// missing or invalid.
func NewProcessor(o Options) (*Processor, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	control, err := NewControl(o)
	if err != nil {
		return nil, err
	}
	p := &Processor{client: c, control: control, secrets: []string{o.Secret}, inside: o.Inside, repeat: repeats[o.Repeat], asks: o.Repeat == bankapi.RepeatAsksConsent, offline: o.Offline}
	if o.PreviousSecret != "" {
		p.secrets = append(p.secrets, o.PreviousSecret)
	}
	return p, nil
}

// repeats are the bank's kinds of contracts, as kinds of processors.
var repeats = map[bankapi.Repeat]processor.Repeat{
	"":                         processor.RepeatReturnsFirst,
	bankapi.RepeatReturnsFirst: processor.RepeatReturnsFirst,
	bankapi.RepeatRejects:      processor.RepeatRejected,
	bankapi.RepeatPaysAgain:    processor.RepeatUnsafe,
	bankapi.RepeatAsksConsent:  processor.RepeatUnsafe,
}

// Control controls the bank of the account.
func (p *Processor) Control() *Control { return p.control }

// refundWindows are those of real processors: a Pix for 90 days, a card for 180. A boleto
// cannot be given back: its payer's account is not known.
var refundWindows = map[payment.Method]time.Duration{payment.PIX: 90 * 24 * time.Hour, payment.CreditCard: 180 * 24 * time.Hour}

// codeHosts are the hosts in the BR Codes of the bank.
var codeHosts = []string{bankapi.CodeHost}

// Profile implements [processor.Processor]. The quiet period need not cover
// the bank's longest delay of 30 minutes: unless the contract pays again, the bank pays
// at most one order under one id, so sending again is safe.
func (p *Processor) Profile() processor.Profile {
	return processor.Profile{
		Name:            Name,
		Methods:         payment.Methods,
		ChecksDocuments: false,
		CodeHosts:       codeHosts,
		CancelsCharges:  payment.Methods,
		Transfer:        processor.Effect{Repeat: p.repeat, QuietPeriod: 2 * time.Second, Consent: p.asks, Timeout: 5 * time.Second},
		RefundWindows:   refundWindows,
		Refund:          processor.Effect{Repeat: p.repeat, QuietPeriod: 2 * time.Second, Timeout: 5 * time.Second},
		Defense:         processor.Effect{Repeat: processor.RepeatReturnsFirst, QuietPeriod: 2 * time.Second, Timeout: 15 * time.Second},
		Charge:          processor.Effect{Repeat: processor.RepeatReturnsFirst, QuietPeriod: 2 * time.Second, Timeout: 4 * time.Second},
	}
}

// errOtherID means that the bank's answer is about something else.
var errOtherID = errors.New("sandbox: bank's answer is about another id or amount")

// termsOf is the bank's part of a charge: nothing about its payer.
func termsOf(r processor.ChargeRequest) bankapi.ChargeTerms {
	return bankapi.ChargeTerms{
		Method: bankapi.Method(r.Method), Amount: r.Amount, ExpiresAt: r.ExpiresAt.UTC(), DueDate: r.DueDate,
		Installments: r.Installments, MerchantName: r.MerchantName, MerchantCity: r.MerchantCity,
	}
}

// Charge implements [processor.Charger].
func (p *Processor) Charge(ctx context.Context, r processor.ChargeRequest, guard func() error) processor.ChargeAnswer {
	terms := termsOf(r)
	result := p.client.do(ctx, http.MethodPut, "/charges/"+url.PathEscape(r.ExternalID), terms, guard)
	body := parse[bankapi.Charge](&result)
	outcome := result.outcome()
	if outcome == processor.Done && (body.ExternalID != r.ExternalID || body.Amount != r.Amount || body.Method != terms.Method) {
		return processor.ChargeAnswer{Cause: errOtherID}
	}
	if outcome == processor.Done && (body.State == bankapi.ChargeCanceled || body.State == bankapi.ChargeFailed) {
		return processor.ChargeAnswer{Outcome: processor.Known, Cause: fmt.Errorf("sandbox: bank has an earlier charge, which is %s", body.State)}
	}
	answer := processor.ChargeAnswer{Outcome: outcome, Cause: result.cause()}
	switch outcome {
	case processor.Done:
		answer.Registering = body.State == bankapi.ChargeRegistering
		answer.Charge = chargeOf(body.Method, body.PIX, body.Boleto)
	case processor.Refused:
		answer.Failure = failureOf(result.code)
	case processor.Later:
		answer.Wait = result.wait
	}
	return answer
}

// QueryCharge implements [processor.Charger]. A charge that was generated
// offline and not yet paid is not found: the bank has not seen it.
func (p *Processor) QueryCharge(ctx context.Context, externalID string) processor.ChargeReport {
	result := p.client.do(ctx, http.MethodGet, "/charges/"+url.PathEscape(externalID), nil, nil)
	body := parse[bankapi.Charge](&result)
	lookup := result.lookup()
	if lookup != processor.Found {
		return processor.ChargeReport{Lookup: lookup, Cause: result.cause()}
	}
	if body.ExternalID != externalID {
		return processor.ChargeReport{Cause: errOtherID}
	}
	switch body.State {
	case bankapi.ChargeRegistering, bankapi.ChargeOpen, bankapi.ChargeAnalysis, bankapi.ChargeExpired, bankapi.ChargeCanceled, bankapi.ChargeFailed:
	default:
		return processor.ChargeReport{Cause: fmt.Errorf("sandbox: bank reports unknown state %q", body.State)}
	}
	report := processor.ChargeReport{
		Lookup: lookup, State: processor.ChargeState(body.State), Failure: validFailure(body.Failure),
		Charge: chargeOf(body.Method, body.PIX, body.Boleto), Attempt: max(0, body.Attempt),
	}
	for i := range body.Payments {
		if !validPayment(&body.Payments[i]) {
			return processor.ChargeReport{Cause: errAnswerForm}
		}
		report.Payments = append(report.Payments, paymentOf(&body.Payments[i]))
	}
	for _, d := range body.Disputes {
		if !validDispute(d) {
			return processor.ChargeReport{Cause: errAnswerForm}
		}
		report.Disputes = append(report.Disputes, disputeOf(d))
	}
	return report
}

// CancelCharge implements [processor.ChargeCanceler]. The bank refuses it only if the charge
// was paid, or is being paid by card.
func (p *Processor) CancelCharge(ctx context.Context, r processor.CancelRequest, guard func() error) processor.CancelAnswer {
	result := p.client.do(ctx, http.MethodPost, "/charges/"+url.PathEscape(r.ExternalID)+"/cancel", nil, guard)
	body := parse[bankapi.Charge](&result)
	answer := processor.CancelAnswer{Outcome: result.outcome(), NotFound: result.lookup() == processor.NotFound, Cause: result.cause()}
	switch {
	case answer.Outcome == processor.Done && body.ExternalID != r.ExternalID:
		return processor.CancelAnswer{Cause: errOtherID}
	case result.status == bankapi.CodeStateForbids.Status() && result.code == bankapi.CodeStateForbids:
		answer.Outcome = processor.Refused
	case answer.Outcome == processor.Later:
		answer.Wait = result.wait
	}
	return answer
}

func paymentOf(b *bankapi.Payment) processor.Payment {
	p := processor.Payment{ID: b.ID, ExternalID: b.ExternalID, EndToEndID: b.EndToEndID, Amount: b.Amount, PaidAt: b.PaidAt}
	if b.Card != nil && b.Card.Valid() {
		p.Card = &payment.CardDetail{Brand: b.Card.Brand, Last4: b.Card.Last4, Installments: b.Card.Installments}
	}
	return p
}

func disputeOf(d bankapi.Dispute) processor.Dispute {
	return processor.Dispute{
		ID: d.ID, PaymentID: d.PaymentID, Kind: payment.DisputeKind(d.Kind), Reason: d.Reason, Amount: d.Amount, State: processor.DisputeState(d.State),
		RespondBy: d.RespondBy, Blocked: d.Blocked, Lost: d.Lost,
	}
}

func failureOf(code bankapi.Code) *payment.Failure { return (*payment.Failure)(code.Failure()) }

// Transfer implements [processor.Transferrer].
func (p *Processor) Transfer(ctx context.Context, r processor.TransferRequest, guard func() error) processor.TransferAnswer {
	request := bankapi.TransferRequest{
		ExternalID: r.ExternalID, Amount: r.Amount, KeyType: r.KeyType, Key: r.Key,
		Name: r.Name, Document: r.Document, Description: r.Description,
	}
	result := p.client.do(ctx, http.MethodPost, "/transfers", request, guard)
	return orderAnswer(result, bankapi.Order{ExternalID: r.ExternalID, Amount: r.Amount})
}

// QueryTransfer implements [processor.Transferrer].
func (p *Processor) QueryTransfer(ctx context.Context, externalID string) processor.TransferReport {
	return p.queryOrder(ctx, "/transfers/", externalID)
}

// Refund implements [processor.Refunder].
func (p *Processor) Refund(ctx context.Context, r processor.RefundRequest, guard func() error) processor.TransferAnswer {
	request := bankapi.RefundRequest{ExternalID: r.ExternalID, PaymentID: r.PaymentID, Amount: r.Amount}
	result := p.client.do(ctx, http.MethodPost, "/refunds", request, guard)
	return orderAnswer(result, bankapi.Order{ExternalID: r.ExternalID, Amount: r.Amount})
}

// QueryRefund implements [processor.Refunder].
func (p *Processor) QueryRefund(ctx context.Context, _, externalID string) processor.TransferReport {
	return p.queryOrder(ctx, "/refunds/", externalID)
}

// orderAnswer reads the answer to an order; its id and amount must be those that
// were sent.
func orderAnswer(result response, sent bankapi.Order) processor.TransferAnswer {
	body := parse[bankapi.Order](&result)
	answer := processor.TransferAnswer{Outcome: result.outcome(), Wait: result.wait, Cause: result.cause()}
	switch answer.Outcome {
	case processor.Done:
		if body.ExternalID != sent.ExternalID || body.Amount != sent.Amount {
			return processor.TransferAnswer{Cause: errOtherID}
		}
		answer.Report = orderReport(&body)
		if answer.Report.Lookup != processor.Found {
			return processor.TransferAnswer{Cause: errAnswerForm}
		}
	case processor.Refused:
		answer.Failure, answer.Evidence = failureOf(result.code), result.evidence()
	case processor.Later, processor.Known:
		answer.Evidence, answer.Wait = result.evidence(), result.wait
	}
	return answer
}

func (p *Processor) queryOrder(ctx context.Context, path, externalID string) processor.TransferReport {
	result := p.client.do(ctx, http.MethodGet, path+url.PathEscape(externalID), nil, nil)
	body := parse[bankapi.Order](&result)
	lookup := result.lookup()
	if lookup != processor.Found {
		return processor.TransferReport{Lookup: lookup, Cause: result.cause()}
	}
	if body.ExternalID != externalID {
		return processor.TransferReport{Cause: errOtherID}
	}
	return orderReport(&body)
}

// orderReport reports what the body proves. An unknown state proves nothing.
func orderReport(b *bankapi.Order) processor.TransferReport {
	switch b.State {
	case bankapi.OrderProcessing, bankapi.OrderPaid, bankapi.OrderFailed:
	default:
		return processor.TransferReport{Cause: fmt.Errorf("sandbox: bank reports unknown state %q", b.State)}
	}
	if !isAmount(b.Amount) || !isTokenOrNone(b.ID) || !isTokenOrNone(b.PaymentID) || !isTokenOrNone(b.EndToEndID) || b.Returned < 0 || b.Returned > b.Amount ||
		b.State == bankapi.OrderPaid && b.EndToEndID == "" {
		return processor.TransferReport{Cause: errAnswerForm}
	}
	failure := validFailure(b.Failure)
	evidence := fmt.Sprintf("bank reports %s at %s", b.State, b.ChangedAt.Format(time.RFC3339))
	if b.EndToEndID != "" {
		evidence += " as " + b.EndToEndID
	}
	if failure != nil {
		evidence += ": " + failure.Code
	}
	return processor.TransferReport{
		Lookup: processor.Found, State: processor.TransferState(b.State), ProcessorID: b.ID, PaymentID: b.PaymentID, EndToEndID: b.EndToEndID,
		Amount: b.Amount, Returned: b.Returned, Failure: failure, Evidence: evidence,
	}
}
