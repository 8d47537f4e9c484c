package sandboxbank

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// Results of the attempts in these tests.
const (
	approved     = string(bankapi.CardApproved)
	challenged   = string(bankapi.CardChallenge)
	thenApproved = string(bankapi.CardAnalysisApproved)
	thenRefused  = string(bankapi.CardAnalysisRefused)
	noFunds      = string(bankapi.CodeInsufficientFunds)
)

// try sends an attempt and returns its outcome.
func (h *harness) try(request processor.ChargeRequest, attempt int, result string) string {
	h.t.Helper()
	return outcomeOf(h.driver.PayByTestCard(h.t.Context(), processor.TestCardRequest{
		Charge: request, Attempt: attempt,
		Payment: processor.TestCardPayment{Result: result, Card: payment.CardDetail{Brand: "visa", Last4: "1111", Installments: 2}},
	}))
}

func outcomeOf(a processor.TestCardAnswer) string {
	if a.Challenge {
		return "challenge"
	}
	return a.Outcome.String()
}

// charge describes a charge: state, payments, reason and attempt.
func (h *harness) charge(externalID string) string {
	h.t.Helper()
	report := h.driver.QueryCharge(h.t.Context(), externalID)
	reason := "-"
	if report.Failure != nil {
		reason = report.Failure.Code
	}
	return fmt.Sprintf("%s %d %s %d", report.State, len(report.Payments), reason, report.Attempt)
}

func is(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// An attempt happens once under its number, also after a crash of the bank.
func TestCardAttempts(t *testing.T) {
	t.Parallel()
	h := newHarness(t, onDisk(t))
	request := h.chargeRequest(payment.CreditCard)
	id := request.ExternalID
	is(t, "refused", h.try(request, 1, noFunds), "done")
	is(t, "charge", h.charge(id), "open 0 insufficient_funds 1")
	is(t, "the same again, with a good card", h.try(request, 1, approved), "done")
	is(t, "charge", h.charge(id), "open 0 insufficient_funds 1")
	is(t, "the same reason again", h.try(request, 2, noFunds), "done")
	is(t, "charge", h.charge(id), "open 0 insufficient_funds 2")

	is(t, "asked", h.try(request, 3, challenged), "challenge")
	is(t, "meanwhile another", h.try(request, 4, approved), "refused")
	is(t, "the same", h.try(request, 3, approved), "challenge")
	h.reopen()
	is(t, "after a crash, the same", h.try(request, 3, approved), "challenge")
	is(t, "yes", outcomeOf(h.driver.ConfirmTestCard(t.Context(), id, 3, true)), "done")
	is(t, "and no", outcomeOf(h.driver.ConfirmTestCard(t.Context(), id, 3, false)), "done")
	is(t, "one more", h.try(request, 4, approved), "refused")
	report := h.driver.QueryCharge(t.Context(), id)
	if len(report.Payments) != 1 || report.Payments[0].Amount != request.Amount || *report.Payments[0].Card != (payment.CardDetail{Brand: "visa", Last4: "1111", Installments: 2}) {
		t.Errorf("payments: %+v", report.Payments)
	}
}

func TestCardChallengeIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	request := h.chargeRequest(payment.CreditCard)
	h.try(request, 1, challenged)
	is(t, "no", outcomeOf(h.driver.ConfirmTestCard(t.Context(), request.ExternalID, 1, false)), "done")
	is(t, "charge", h.charge(request.ExternalID), "open 0 authentication_failed 1")
	is(t, "of another attempt", outcomeOf(h.driver.ConfirmTestCard(t.Context(), request.ExternalID, 2, true)), "refused")
}

// A card in analysis is decided after a while, also across a restart.
func TestCardAnalysis(t *testing.T) {
	t.Parallel()
	h := newHarness(t, onDisk(t))
	good, bad := h.chargeRequest(payment.CreditCard), h.chargeRequest(payment.CreditCard)
	h.try(good, 1, thenApproved)
	h.try(bad, 1, thenRefused)
	is(t, "meanwhile another", h.try(good, 2, approved), "refused")
	h.step()
	is(t, "at first", h.charge(good.ExternalID), "analysis 0 - 0")
	h.reopen()
	h.clock.Advance(analysisAfter + time.Second)
	h.step()
	is(t, "approved", h.charge(good.ExternalID), "open 1 - 0")
	is(t, "refused", h.charge(bad.ExternalID), "failed 0 analysis_refused 1")
	is(t, "one more", h.try(bad, 2, approved), "refused")
}

// An invalid attempt is refused.
func TestInvalidCardAttempts(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	is(t, "a Pix", h.try(h.chargeRequest(payment.PIX), 1, approved), "refused")
	is(t, "no number", h.try(h.chargeRequest(payment.CreditCard), 0, approved), "refused")
	is(t, "no result", h.try(h.chargeRequest(payment.CreditCard), 1, "nonsense"), "refused")
	expired := h.chargeRequest(payment.CreditCard)
	h.clock.Advance(25 * time.Hour)
	is(t, "expired", h.try(expired, 1, approved), "refused")
	is(t, "unknown charge", outcomeOf(h.driver.ConfirmTestCard(t.Context(), h.newID(), 1, true)), "unknown")
}

// Attempts that the control refuses count too.
func TestDeclinedAttemptsCount(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	request := h.chargeRequest(payment.CreditCard)
	for i := range 2 {
		if err := h.control.Charge(t.Context(), request, "fail", bankapi.ForceCharge{Attempt: true}); err != nil {
			t.Fatal(err)
		}
		is(t, "charge", h.charge(request.ExternalID), fmt.Sprintf("open 0 card_declined %d", i+1))
	}
	is(t, "the third", h.try(request, 3, approved), "done")
	is(t, "charge", h.charge(request.ExternalID), "open 1 card_declined 3")
}
