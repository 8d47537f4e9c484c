package payin

import (
	"context"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// PayByTestCard sends an attempt to pay with a published test card to the processor,
// and books the processor's report, as a notice would. attempt is its number, from 1,
// which increases by one after each refused attempt. A repeated number is the same
// attempt, even with another card. challenge means that the payer must confirm first.
// Errors: problem kinds invalid_state if the order cannot be paid, or attempt is not
// its next number; processor_timeout if the result is unknown.
func (s *Service) PayByTestCard(ctx context.Context, m store.Merchant, p payment.Payin, attempt int, pay processor.TestCardPayment) (challenge bool, err error) {
	return s.tryTestCard(ctx, p, attempt, func(ctx context.Context, taker processor.TestCardTaker) processor.TestCardAnswer {
		return taker.PayByTestCard(ctx, processor.TestCardRequest{Charge: chargeRequest(&m, &p, payment.PersonalData{}), Attempt: attempt, Payment: pay})
	})
}

// ConfirmTestCard ends an attempt that the payer had to confirm: it is approved, or
// refused. Errors are those of PayByTestCard.
func (s *Service) ConfirmTestCard(ctx context.Context, p payment.Payin, attempt int, approve bool) error {
	_, err := s.tryTestCard(ctx, p, attempt, func(ctx context.Context, taker processor.TestCardTaker) processor.TestCardAnswer {
		return taker.ConfirmTestCard(ctx, p.ExternalID, attempt, approve)
	})
	return err
}

func (s *Service) tryTestCard(ctx context.Context, p payment.Payin, attempt int, try func(context.Context, processor.TestCardTaker) processor.TestCardAnswer) (challenge bool, err error) {
	proc, err := s.Processors.Of(p.Processor)
	if err != nil {
		return false, err
	}
	taker, ok := proc.(processor.TestCardTaker)
	charger, charges := proc.(processor.Charger)
	if !ok || !charges || p.Method != payment.CreditCard {
		return false, problem.New(problem.MethodNotEnabled, "The order's processor does not accept cards here.")
	}
	if p.Status != payment.PayinPending || attempt != p.Details.CardAttempts+1 || !p.ExpiresAt.After(s.Env.Clock.Now()) {
		return false, problem.New(problem.InvalidState, "The order cannot be paid by this attempt.")
	}
	limited, cancel := s.Env.Clock.WithTimeout(context.WithoutCancel(ctx), proc.Profile().Charge.Timeout)
	defer cancel()
	answer := try(limited, taker)
	switch answer.Outcome {
	case processor.Done:
	case processor.Refused:
		return false, problem.New(problem.InvalidState, "The processor does not accept this attempt.").With(answer.Cause)
	default:
		return false, problem.New(problem.ProcessorTimeout, "The result of the attempt is not known yet.").With(answer.Cause)
	}
	if answer.Challenge {
		return true, nil
	}
	// The processor's notice says the same. The first of the two is booked; the payer
	// need not wait for the notice.
	report := charger.QueryCharge(limited, p.ExternalID)
	if report.Lookup != processor.Found {
		return false, nil
	}
	return false, s.Receive(context.WithoutCancel(ctx), p.Processor, p.ExternalID, report, nil)
}
