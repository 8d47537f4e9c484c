package sandbox

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// analysisAfter is how long a card is looked at that is to be.
const analysisAfter = 5 * time.Second

// cardTry is an attempt to pay a charge with a test card, as the gateway asks
// for it. Neither it nor the books hold a card number.
type cardTry struct {
	Terms  chargeTerms        `json:"charge"`
	Result payment.CardResult `json:"result"`
	Card   payment.CardDetail `json:"card"`
}

// cardPaused is an attempt that waits: for the payer, or for the issuer.
type cardPaused struct {
	ExternalID string             `json:"externalId"`
	Attempt    int                `json:"attempt"`
	Result     payment.CardResult `json:"result"`
	Card       payment.CardDetail `json:"card"`
}

// cardAnswer is what became of an attempt.
type cardAnswer struct {
	ExternalID string `json:"externalId"`
	Attempt    int    `json:"attempt"`
	Challenge  bool   `json:"challenge,omitzero"`
}

// putCard takes an attempt. One that it knows by its number is not made again:
// that is what makes two clicks one payment. Whatever the numbers, a charge
// that is paid or in analysis takes none.
func (b *Bank) putCard(externalID string, attempt int, try cardTry) (answer cardAnswer, err error) {
	err = b.do(func(now time.Time) error {
		c, err := b.knownCharge(now, externalID, &try.Terms)
		if err != nil {
			return err
		}
		answer = cardAnswer{ExternalID: externalID, Attempt: attempt}
		switch {
		case c.terms.Method != payment.CreditCard || attempt < 1 || card(&try.Card) == nil:
			return codeRequestInvalid
		case c.challenge != nil && c.challenge.Attempt == attempt:
			answer.Challenge = true
			return nil
		case attempt <= c.attempt:
			return nil
		case len(c.payments) > 0 || c.stateAt(now) != processor.ChargeOpen || c.challenge != nil:
			return codeStateForbids
		}
		paused := cardPaused{ExternalID: externalID, Attempt: attempt, Result: try.Result, Card: try.Card}
		switch try.Result {
		case payment.CardChallenge:
			answer.Challenge = true
			return b.commit(now, &record{Challenge: &paused})
		case payment.CardAnalysisApproved, payment.CardAnalysisRefused:
			return b.commit(now, &record{Analysis: &paused, Notice: b.newID(now)})
		default:
			return b.decideCard(now, c, paused)
		}
	})
	return answer, err
}

// decideCard approves or refuses an attempt.
func (b *Bank) decideCard(now time.Time, c *charge, try cardPaused) error {
	if try.Result == payment.CardApproved {
		return b.commit(now, &record{Notice: b.newID(now), Payment: &paymentMade{
			ID: "card-" + b.newID(now), ExternalID: c.externalID, Amount: c.terms.Amount, Card: &try.Card, Attempt: try.Attempt,
		}})
	}
	code := failureCode(try.Result)
	if _, ok := failureTexts[code]; !ok {
		return codeRequestInvalid
	}
	return b.commit(now, &record{Notice: b.newID(now), ChargeEnd: &chargeEnd{
		ExternalID: c.externalID, State: processor.ChargeOpen, Failure: code, Attempt: try.Attempt,
	}})
}

// confirmCard ends an attempt that waits for its payer.
func (b *Bank) confirmCard(externalID string, attempt int, approve bool) (answer cardAnswer, err error) {
	err = b.do(func(now time.Time) error {
		c := b.books.charges[externalID]
		if c == nil {
			return codeChargeUnknown
		}
		answer = cardAnswer{ExternalID: externalID, Attempt: attempt}
		if c.challenge == nil || c.challenge.Attempt != attempt {
			if attempt <= c.attempt {
				return nil // it was decided before
			}
			return codeStateForbids
		}
		if c.stateAt(now) == processor.ChargeExpired {
			return codeStateForbids
		}
		try := *c.challenge
		if try.Result = payment.CardApproved; !approve {
			try.Result = payment.CardNotAuthenticated
		}
		return b.decideCard(now, c, try)
	})
	return answer, err
}

// endAnalysis decides a card that was looked at; the lock is held.
func (b *Bank) endAnalysis(now time.Time, c *charge) error {
	try := *c.analysis
	if try.Result == payment.CardAnalysisApproved {
		try.Result = payment.CardApproved
		return b.decideCard(now, c, try)
	}
	return b.commit(now, &record{Notice: b.newID(now), ChargeEnd: &chargeEnd{
		ExternalID: c.externalID, State: processor.ChargeFailed, Failure: failureCode(payment.CardAnalysisNegative), Attempt: try.Attempt,
	}})
}

// cardConfirmation is the payer's answer.
type cardConfirmation struct {
	Approve bool `json:"approve"`
}

func (b *Bank) serveCard(c call) reply {
	var try cardTry
	attempt, err := strconv.Atoi(c.request.PathValue("attempt"))
	if err != nil || decode(c.body, &try) != nil {
		return reply{err: codeRequestInvalid}
	}
	return answer(b.putCard(c.request.PathValue("externalId"), attempt, try))
}

func (b *Bank) serveConfirmCard(c call) reply {
	var r cardConfirmation
	attempt, err := strconv.Atoi(c.request.PathValue("attempt"))
	if err != nil || decode(c.body, &r) != nil {
		return reply{err: codeRequestInvalid}
	}
	return answer(b.confirmCard(c.request.PathValue("externalId"), attempt, r.Approve))
}

// PayByTestCard implements [processor.TestCardTaker].
func (p *Processor) PayByTestCard(ctx context.Context, r processor.TestCardRequest) processor.TestCardAnswer {
	return p.askCard(ctx, http.MethodPut, cardPath(r.Charge.ExternalID, r.Attempt), r.Charge.ExternalID,
		cardTry{Terms: termsOf(r.Charge), Result: r.Payment.Result, Card: r.Payment.Card})
}

// ConfirmTestCard implements [processor.TestCardTaker].
func (p *Processor) ConfirmTestCard(ctx context.Context, externalID string, attempt int, approve bool) processor.TestCardAnswer {
	return p.askCard(ctx, http.MethodPost, cardPath(externalID, attempt)+"/confirm", externalID, cardConfirmation{approve})
}

func (p *Processor) askCard(ctx context.Context, method, path, externalID string, body any) processor.TestCardAnswer {
	result := p.client.do(ctx, method, path, body, nil)
	said := parse[cardAnswer](&result)
	answer := processor.TestCardAnswer{Outcome: result.outcome(), Cause: result.cause()}
	if result.err == nil && result.status == http.StatusConflict && result.code == codeStateForbids {
		answer.Outcome = processor.Refused // under this number nothing happened, or will
	}
	if answer.Outcome == processor.Done {
		if said.ExternalID != externalID {
			return processor.TestCardAnswer{Cause: errOtherID}
		}
		answer.Challenge = said.Challenge
	}
	return answer
}

func cardPath(externalID string, attempt int) string {
	return "/charges/" + url.PathEscape(externalID) + "/cards/" + strconv.Itoa(attempt)
}
