package sandbox

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// Brands of test cards.
const (
	visa       = "visa"
	mastercard = "mastercard"
	elo        = "elo"
	amex       = "amex"
	hipercard  = "hipercard"
)

// testCards are the test numbers documented by Stripe, Braintree, Asaas, Pagar.me
// and Mercado Pago; their results are ours.
var testCards = []processor.TestCard{
	{Number: "4111111111111111", Brand: visa, Result: string(bankapi.CardApproved)},
	{Number: "5555555555554444", Brand: mastercard, Result: string(bankapi.CardApproved)},
	{Number: "6362970000457013", Brand: elo, Result: string(bankapi.CardApproved)},
	{Number: "378282246310005", Brand: amex, Result: string(bankapi.CardApproved)},
	{Number: "6062825624254001", Brand: hipercard, Result: string(bankapi.CardApproved)},
	{Number: "5200828282828210", Brand: mastercard, Result: string(bankapi.CardApproved), SplitResult: string(bankapi.CodeNoInstallments)},
	{Number: "4000000000003220", Brand: visa, Result: string(bankapi.CardChallenge)},
	{Number: "4000000000000036", Brand: visa, Result: string(bankapi.CardAnalysisApproved)},
	{Number: "4000000000000044", Brand: visa, Result: string(bankapi.CardAnalysisRefused)},
	{Number: "4000000000009995", Brand: visa, Result: string(bankapi.CodeInsufficientFunds)},
	{Number: "4000000000006975", Brand: visa, Result: string(bankapi.CodeLimitExceeded)},
	{Number: "4000000000000069", Brand: visa, Result: string(bankapi.CodeCardExpired)},
	{Number: "4000000000000127", Brand: visa, Result: string(bankapi.CodeCardCodeInvalid)},
	{Number: "4000000000000002", Brand: visa, Result: string(bankapi.CodeDoNotHonor)},
	{Number: "4100000000000019", Brand: visa, Result: string(bankapi.CodeSuspectedFraud)},
	{Number: "4000000000009987", Brand: visa, Result: string(bankapi.CodeLostOrStolen)},
	{Number: "378734493671000", Brand: amex, Result: string(bankapi.CodeCardBlocked)},
	{Number: "4000111111111115", Brand: visa, Result: string(bankapi.CodeCardInvalid)},
	{Number: "5105105105105100", Brand: mastercard, Result: string(bankapi.CodeIssuerUnavailable)},
	{Number: "4000000000000119", Brand: visa, Result: string(bankapi.CodeProcessingError)},
}

// TestCards implements [processor.TestCardTaker].
func (*Processor) TestCards() []processor.TestCard { return testCards }

// PayByTestCard implements [processor.TestCardTaker].
func (p *Processor) PayByTestCard(ctx context.Context, r processor.TestCardRequest) processor.TestCardAnswer {
	card := bankapi.Card{Brand: r.Payment.Card.Brand, Last4: r.Payment.Card.Last4, Installments: r.Payment.Card.Installments}
	return p.tryCard(ctx, http.MethodPut, cardPath(r.Charge.ExternalID, r.Attempt), r.Charge.ExternalID,
		bankapi.CardAttempt{Terms: termsOf(r.Charge), Result: bankapi.CardResult(r.Payment.Result), Card: card})
}

// ConfirmTestCard implements [processor.TestCardTaker].
func (p *Processor) ConfirmTestCard(ctx context.Context, externalID string, attempt int, approve bool) processor.TestCardAnswer {
	return p.tryCard(ctx, http.MethodPost, cardPath(externalID, attempt)+"/confirm", externalID, bankapi.CardConfirmation{Approve: approve})
}

func (p *Processor) tryCard(ctx context.Context, method, path, externalID string, in any) processor.TestCardAnswer {
	result := p.client.do(ctx, method, path, in, nil)
	body := parse[bankapi.CardAnswer](&result)
	answer := processor.TestCardAnswer{Outcome: result.outcome(), Cause: result.cause()}
	if result.err == nil && result.status == http.StatusConflict && result.code == bankapi.CodeStateForbids {
		answer.Outcome = processor.Refused // this number has and will have no effect
	}
	if answer.Outcome == processor.Done {
		if body.ExternalID != externalID {
			return processor.TestCardAnswer{Cause: errOtherID}
		}
		answer.Challenge = body.Challenge
	}
	return answer
}

func cardPath(externalID string, attempt int) string {
	return "/charges/" + url.PathEscape(externalID) + "/cards/" + strconv.Itoa(attempt)
}
