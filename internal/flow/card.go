package flow

import (
	"context"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// PayByTestCard hands an attempt to pay with a published test card to the
// processor, and books what the processor then says of the charge, as a notice
// would. attempt is the number of the try: 1, and one more after each that was
// refused. The same number again is the same try, whatever card it names.
// challenge says that the payer is to be asked first. Errors: problem kinds
// invalid_state where the order cannot be paid, or the number is not its next;
// processor_timeout where the result is not known.
func (f *Flow) PayByTestCard(ctx context.Context, m store.Merchant, p payment.Payin, attempt int, pay processor.TestCardPayment) (challenge bool, err error) {
	return f.tryTestCard(ctx, m, p, attempt, func(ctx context.Context, taker processor.TestCardTaker) processor.TestCardAnswer {
		return taker.PayByTestCard(ctx, processor.TestCardRequest{Charge: chargeRequest(&m, &p, payment.PersonalData{}), Attempt: attempt, Payment: pay})
	})
}

// ConfirmTestCard ends an attempt that asked the payer first: it is approved,
// or refused. Errors are those of PayByTestCard.
func (f *Flow) ConfirmTestCard(ctx context.Context, m store.Merchant, p payment.Payin, attempt int, approve bool) error {
	_, err := f.tryTestCard(ctx, m, p, attempt, func(ctx context.Context, taker processor.TestCardTaker) processor.TestCardAnswer {
		return taker.ConfirmTestCard(ctx, p.ExternalID, attempt, approve)
	})
	return err
}

func (f *Flow) tryTestCard(ctx context.Context, m store.Merchant, p payment.Payin, attempt int, try func(context.Context, processor.TestCardTaker) processor.TestCardAnswer) (challenge bool, err error) {
	proc, err := f.processorOf(p.Processor)
	if err != nil {
		return false, err
	}
	taker, ok := proc.(processor.TestCardTaker)
	charger, charges := proc.(processor.Charger)
	if !ok || !charges || p.Method != payment.CreditCard {
		return false, problem.New(problem.MethodNotEnabled, "The order's processor does not accept cards here.")
	}
	if p.Status != payment.PayinPending || attempt != p.Details.CardAttempts+1 || !p.ExpiresAt.After(f.env.Clock.Now()) {
		return false, problem.New(problem.InvalidState, "This attempt cannot pay the order.")
	}
	limited, cancel := f.env.Clock.WithTimeout(context.WithoutCancel(ctx), proc.Profile().ChargeTimeout)
	defer cancel()
	answer := try(limited, taker)
	switch answer.Outcome {
	case processor.Done:
	case processor.Refused:
		return false, problem.New(problem.InvalidState, "The processor did not accept this attempt.").With(answer.Cause)
	default:
		return false, problem.New(problem.ProcessorTimeout, "The result of the attempt is not known yet.").With(answer.Cause)
	}
	if answer.Challenge {
		return true, nil
	}
	// The processor's notice says the same. Whoever is first books it; the
	// payer need not wait for the notice.
	report := charger.QueryCharge(limited, p.ExternalID)
	if report.Lookup != processor.Found {
		return false, nil
	}
	return false, f.ApplyCharge(context.WithoutCancel(ctx), p.Processor, p.ExternalID, report, nil)
}
