package sandboxcontrol

import (
	"context"
	"errors"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// refundActions are the actions on a refund, and the status that they lead to.
var refundActions = map[string]payment.RefundStatus{"complete": payment.RefundCompleted, "fail": payment.RefundFailed}

// RefundAction implements [httpapi.Sandbox]. A refund of several payments is forced in each of
// its parts.
func (c *Control) RefundAction(ctx context.Context, id payment.ID, name string) error {
	r, err := c.Store.FindRefund(ctx, id)
	if err != nil {
		return storeProblem(err)
	}
	if r.Status == payment.RefundFailed && name == "complete" {
		return impossible(name, string(r.Status))
	}
	parts, err := c.Store.RefundParts(ctx, r.Merchant, r.ID)
	if err != nil {
		return err
	}
	for i := range parts {
		if err := c.forceRefund(ctx, &parts[i], name); err != nil {
			return err
		}
	}
	return c.await(ctx, func() (bool, error) {
		now, err := c.Store.Refund(ctx, r.Merchant, r.ID)
		return now.Status == refundActions[name], err
	})
}

// forceRefund forces an outcome at the bank once the bank has the refund: it is sent within
// milliseconds.
func (c *Control) forceRefund(ctx context.Context, p *payment.RefundPart, action string) error {
	return c.await(ctx, func() (bool, error) {
		err := c.bankOf(p.Processor).Refund(ctx, p.ExternalID, action)
		if !errors.Is(err, bankapi.CodeRefundUnknown) {
			return true, bankProblem(err)
		}
		parts, err := c.Store.RefundParts(ctx, p.Merchant, p.Refund)
		if err != nil {
			return false, err
		}
		if now := parts[p.Number-1]; now.Ended() || now.State == payment.StepReview {
			return false, problem.New(problem.InvalidState, "The bank has no refund of this payment.")
		}
		return false, nil
	})
}
