package sandboxbank

import (
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// analysisAfter is how long an analysis of a card takes.
const analysisAfter = 5 * time.Second

// putCard starts an attempt to pay by card. An attempt with a known number is not
// made again, so that two clicks are one payment. A charge that is paid or in
// analysis accepts no attempt with any number.
func (b *Bank) putCard(externalID string, number int, attempt bankapi.CardAttempt) (answer bankapi.CardAnswer, err error) {
	err = b.do(func(now time.Time) error {
		c, err := b.ensureCharge(now, externalID, &attempt.Terms)
		if err != nil {
			return err
		}
		answer = bankapi.CardAnswer{ExternalID: externalID, Attempt: number}
		switch {
		case c.terms.Method != bankapi.MethodCreditCard || number < 1 || !attempt.Card.Valid():
			return bankapi.CodeRequestInvalid
		case c.challenge != nil && c.challenge.Attempt == number:
			answer.Challenge = true
			return nil
		case number <= c.attempt:
			return nil
		case len(c.payments) > 0 || c.stateAt(now) != bankapi.ChargeOpen || c.challenge != nil:
			return bankapi.CodeStateForbids
		}
		pending := cardPending{ExternalID: externalID, Attempt: number, Result: attempt.Result, Card: attempt.Card}
		switch attempt.Result {
		case bankapi.CardChallenge:
			answer.Challenge = true
			return b.commit(now, &record{Challenge: &pending})
		case bankapi.CardAnalysisApproved, bankapi.CardAnalysisRefused:
			return b.commit(now, &record{Analysis: &pending, Notice: b.newID(now)})
		default:
			return b.decideCard(now, c, pending)
		}
	})
	return answer, err
}

// decideCard approves or refuses an attempt.
func (b *Bank) decideCard(now time.Time, c *charge, attempt cardPending) error {
	if attempt.Result == bankapi.CardApproved {
		return b.commit(now, &record{Notice: b.newID(now), Payment: &paymentReceived{
			ID: "card-" + b.newID(now), ExternalID: c.externalID, Amount: c.terms.Amount, Card: &attempt.Card, Attempt: attempt.Attempt,
		}})
	}
	code := bankapi.Code(attempt.Result)
	if !code.Known() {
		return bankapi.CodeRequestInvalid
	}
	return b.commit(now, &record{Notice: b.newID(now), ChargeEnd: &chargeEnded{
		ExternalID: c.externalID, State: bankapi.ChargeOpen, Failure: code, Attempt: attempt.Attempt,
	}})
}

// confirmCard ends an attempt that waits for its payer.
func (b *Bank) confirmCard(externalID string, number int, approve bool) (answer bankapi.CardAnswer, err error) {
	err = b.do(func(now time.Time) error {
		c := b.ledger.charges[externalID]
		if c == nil {
			return bankapi.CodeChargeUnknown
		}
		answer = bankapi.CardAnswer{ExternalID: externalID, Attempt: number}
		if c.challenge == nil || c.challenge.Attempt != number {
			if number <= c.attempt {
				return nil // it was decided before
			}
			return bankapi.CodeStateForbids
		}
		if c.stateAt(now) == bankapi.ChargeExpired {
			return bankapi.CodeStateForbids
		}
		attempt := *c.challenge
		if attempt.Result = bankapi.CardApproved; !approve {
			attempt.Result = bankapi.CardResult(bankapi.CodeNotAuthenticated)
		}
		return b.decideCard(now, c, attempt)
	})
	return answer, err
}

// endAnalysis decides an attempt whose analysis is over; the lock is held.
func (b *Bank) endAnalysis(now time.Time, c *charge) error {
	attempt := *c.analysis
	if attempt.Result == bankapi.CardAnalysisApproved {
		attempt.Result = bankapi.CardApproved
		return b.decideCard(now, c, attempt)
	}
	return b.commit(now, &record{Notice: b.newID(now), ChargeEnd: &chargeEnded{
		ExternalID: c.externalID, State: bankapi.ChargeFailed, Failure: bankapi.CodeAnalysisRefused, Attempt: attempt.Attempt,
	}})
}
