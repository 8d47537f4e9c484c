package sandboxcontrol

import (
	"context"
	"errors"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// payoutActions are the actions on a payout, and the status that they lead to.
var payoutActions = map[string]struct {
	trigger payment.Trigger
	status  payment.PayoutStatus
}{
	"complete": {payment.OnComplete, payment.PayoutCompleted},
	"fail":     {payment.OnFail, payment.PayoutFailed},
	"return":   {payment.OnReturn, payment.PayoutReturned},
}

// PayoutAction implements [httpapi.Sandbox].
func (c *Control) PayoutAction(ctx context.Context, id payment.ID, name string) error {
	p, err := c.Store.FindPayout(ctx, id)
	if err != nil {
		return storeProblem(err)
	}
	action := payoutActions[name]
	if p.Status == payment.PayoutPending && action.trigger != payment.OnReturn {
		// It is sent to the bank within milliseconds.
		if err := c.await(ctx, func() (bool, error) {
			p, err = c.Store.Payout(ctx, p.Merchant, p.ID)
			return p.Status != payment.PayoutPending, err
		}); err != nil {
			return err
		}
	}
	if _, legal := payment.PayoutTable.Next(p.Status, action.trigger); !legal {
		return impossible(name, string(p.Status))
	}
	if err := c.forceTransfer(ctx, &p, name); err != nil {
		return err
	}
	return c.await(ctx, func() (bool, error) {
		now, err := c.Store.Payout(ctx, p.Merchant, p.ID)
		return now.Status == action.status, err
	})
}

// forceTransfer forces an outcome at the bank once the bank has the transfer:
// the intent to send is durable shortly before the bank is called.
func (c *Control) forceTransfer(ctx context.Context, p *payment.Payout, action string) error {
	return c.await(ctx, func() (bool, error) {
		before, err := c.Store.Payout(ctx, p.Merchant, p.ID) // first: the bank may get it meanwhile
		if err != nil {
			return false, err
		}
		err = c.bankOf(p.Processor).Transfer(ctx, p.ExternalID, action, 0)
		if !errors.Is(err, bankapi.CodeTransferUnknown) {
			return true, bankProblem(err)
		}
		if before.Step != payment.StepIntent {
			return false, problem.New(problem.InvalidState, "The bank has no transfer of this payout, which is "+string(before.Status)+".")
		}
		return false, nil
	})
}
