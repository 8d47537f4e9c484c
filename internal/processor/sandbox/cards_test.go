package sandbox

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// try hands an attempt over and tells, in a word, what came of it.
func (r *rig) try(request processor.ChargeRequest, attempt int, result payment.CardResult) string {
	r.t.Helper()
	return outcomeOf(r.adapter.PayByTestCard(r.t.Context(), processor.TestCardRequest{
		Charge: request, Attempt: attempt,
		Payment: payment.CardPayment{Result: result, Card: payment.CardDetail{Brand: "visa", Last4: "1111", Installments: 2}},
	}))
}

func outcomeOf(a processor.TestCardAnswer) string {
	if a.Challenge {
		return "asks"
	}
	return a.Outcome.String()
}

// stands tells how a charge stands: state, payments, reason and attempt.
func (r *rig) stands(externalID string) string {
	r.t.Helper()
	report := r.adapter.QueryCharge(r.t.Context(), externalID)
	reason := "-"
	if report.Failure != nil {
		reason = report.Failure.Code
	}
	return fmt.Sprintf("%s %d %s %d", report.State, len(report.Payments), reason, report.Attempt)
}

func isWord(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// An attempt happens once under its number, also after the bank crashed.
func TestCardAttempts(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *BankOptions) { o.Path = filepath.Join(t.TempDir(), "journal") })
	request := r.chargeRequest(payment.CreditCard)
	id := request.ExternalID
	isWord(t, "refused", r.try(request, 1, payment.CardInsufficientFunds), "done")
	isWord(t, "stands", r.stands(id), "open 0 insufficient_funds 1")
	isWord(t, "the same again, with a good card", r.try(request, 1, payment.CardApproved), "done")
	isWord(t, "stands", r.stands(id), "open 0 insufficient_funds 1")
	isWord(t, "the same reason again", r.try(request, 2, payment.CardInsufficientFunds), "done")
	isWord(t, "stands", r.stands(id), "open 0 insufficient_funds 2")

	isWord(t, "asked", r.try(request, 3, payment.CardChallenge), "asks")
	isWord(t, "meanwhile another", r.try(request, 4, payment.CardApproved), "refused")
	isWord(t, "the same", r.try(request, 3, payment.CardApproved), "asks")
	if err := r.bank.Close(); err != nil {
		t.Fatal(err)
	}
	r.open()
	isWord(t, "after a crash, the same", r.try(request, 3, payment.CardApproved), "asks")
	isWord(t, "yes", outcomeOf(r.adapter.ConfirmTestCard(t.Context(), id, 3, true)), "done")
	isWord(t, "and no", outcomeOf(r.adapter.ConfirmTestCard(t.Context(), id, 3, false)), "done")
	isWord(t, "one more", r.try(request, 4, payment.CardApproved), "refused")
	report := r.adapter.QueryCharge(t.Context(), id)
	if len(report.Payments) != 1 || report.Payments[0].Amount != request.Amount || *report.Payments[0].Card != (payment.CardDetail{Brand: "visa", Last4: "1111", Installments: 2}) {
		t.Errorf("payments: %+v", report.Payments)
	}
}

func TestCardChallengeIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	request := r.chargeRequest(payment.CreditCard)
	r.try(request, 1, payment.CardChallenge)
	isWord(t, "no", outcomeOf(r.adapter.ConfirmTestCard(t.Context(), request.ExternalID, 1, false)), "done")
	isWord(t, "stands", r.stands(request.ExternalID), "open 0 authentication_failed 1")
	isWord(t, "of another attempt", outcomeOf(r.adapter.ConfirmTestCard(t.Context(), request.ExternalID, 2, true)), "refused")
}

// What is looked at is decided after a while, also by a bank that was away.
func TestCardAnalysis(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *BankOptions) { o.Path = filepath.Join(t.TempDir(), "journal") })
	good, bad := r.chargeRequest(payment.CreditCard), r.chargeRequest(payment.CreditCard)
	r.try(good, 1, payment.CardAnalysisApproved)
	r.try(bad, 1, payment.CardAnalysisRefused)
	isWord(t, "meanwhile another", r.try(good, 2, payment.CardApproved), "refused")
	r.step()
	isWord(t, "at first", r.stands(good.ExternalID), "analysis 0 - 0")
	if err := r.bank.Close(); err != nil {
		t.Fatal(err)
	}
	r.open()
	r.clock.Advance(analysisAfter + time.Second)
	r.step()
	isWord(t, "approved", r.stands(good.ExternalID), "open 1 - 0")
	isWord(t, "refused", r.stands(bad.ExternalID), "failed 0 analysis_refused 1")
	isWord(t, "one more", r.try(bad, 2, payment.CardApproved), "refused")
}

// What a card's attempt cannot be about is refused.
func TestCardAttemptsThatCannotBe(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	isWord(t, "a Pix", r.try(r.chargeRequest(payment.PIX), 1, payment.CardApproved), "refused")
	isWord(t, "no number", r.try(r.chargeRequest(payment.CreditCard), 0, payment.CardApproved), "refused")
	isWord(t, "no result", r.try(r.chargeRequest(payment.CreditCard), 1, "nonsense"), "refused")
	expired := r.chargeRequest(payment.CreditCard)
	r.clock.Advance(25 * time.Hour)
	isWord(t, "expired", r.try(expired, 1, payment.CardApproved), "refused")
	isWord(t, "nobody's", outcomeOf(r.adapter.ConfirmTestCard(t.Context(), r.newID(), 1, true)), "unknown")
}

// Attempts that the sandbox's control refuses count too.
func TestDeclinedAttemptsCount(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	request := r.chargeRequest(payment.CreditCard)
	for i := range 2 {
		if err := r.control.DeclineCard(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		isWord(t, "stands", r.stands(request.ExternalID), fmt.Sprintf("open 0 card_declined %d", i+1))
	}
	isWord(t, "the third", r.try(request, 3, payment.CardApproved), "done")
	isWord(t, "stands", r.stands(request.ExternalID), "open 1 card_declined 3")
}
