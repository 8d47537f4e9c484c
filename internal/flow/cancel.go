package flow

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// CancelPayin takes a pending pay-in back; a canceled one stays as it is. Money
// that comes all the same is booked, late. Errors: problem kinds not_found and
// invalid_state.
func (f *Flow) CancelPayin(ctx context.Context, merchant, id payment.ID) (p payment.Payin, err error) {
	v := canceling{flow: f, merchant: merchant, id: id}
	err = f.write(ctx, func(tx *store.Tx) error { return cancelPayin(ctx, tx, &v) })
	return v.out, err
}

// canceling is a pay-in on its way back.
type canceling struct {
	flow         *Flow
	merchant, id payment.ID
	out          payment.Payin
}

var cancelPayinVerb = each("cancel_payin", cancelPayin)

func cancelPayin(ctx context.Context, tx *store.Tx, v *canceling) error {
	p, err := tx.Payin(ctx, v.merchant, v.id)
	if v.out = p; err != nil || p.Status == payment.PayinCanceled {
		return err
	}
	moved, err := v.flow.movePayin(ctx, tx, &v.out, payment.OnCancel)
	if err == nil && !moved {
		err = problem.New(problem.InvalidState, "Only a PENDING pay-in can be canceled; this one is "+string(p.Status)+".")
	}
	return err
}

// CancelPayout takes a payout back that has not been handed to its processor,
// and gives its money back; a canceled one stays as it is. Errors as CancelPayin.
func (f *Flow) CancelPayout(ctx context.Context, merchant, id payment.ID) (p payment.Payout, err error) {
	err = f.write(ctx, func(tx *store.Tx) error {
		var err error
		if p, err = tx.Payout(ctx, merchant, id); err != nil || p.Status == payment.PayoutCanceled {
			return err
		}
		if p.Status == payment.PayoutPending && f.askFirst(&p) {
			return problem.New(problem.InvalidState, "It may have been sent before the database was restored from a backup; its processor is queried first.")
		}
		finish(&p)
		moved, err := movePayout(ctx, tx, &p, payment.OnCancel, ledger.ReleasePayout(p.Amount, p.Fee))
		if err == nil && !moved {
			err = problem.New(problem.InvalidState, "Only a PENDING payout can be canceled; this one is "+string(p.Status)+".")
		}
		return err
	})
	return p, err
}

// finish takes a payout out of the executor's hands.
func finish(p *payment.Payout) {
	p.Step, p.NextAt, p.ClaimedBy = payment.StepDone, time.Time{}, payment.ID{}
}
