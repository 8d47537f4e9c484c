package checkout

import (
	"context"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// Sandbox performs the actions of the sandbox strip.
type Sandbox interface {
	// Act performs an action on a pay-in: pay, expire or refuse. It returns
	// once the effect is visible. After a refused card the order can be paid
	// again.
	Act(ctx context.Context, id payment.ID, action string) error
}

// sandboxAction performs the action of a button of the sandbox strip.
func (p *Pages) sandboxAction(req *request) error {
	if p.sandbox == nil || req.payin.Processor != p.sandboxProcessor {
		return errNotFound
	}
	switch req.param {
	case "pay", "expire", "refuse":
	default:
		return errNotFound
	}
	// Two clicks are one payment, as at a bank: the second click finds the
	// first action in flight or its result.
	if _, running := p.actionsInFlight.LoadOrStore(req.payin.ID, true); running {
		return req.redirect(pagePath + req.token)
	}
	defer p.actionsInFlight.Delete(req.payin.ID)
	current, err := p.reader.Payin(req.r.Context(), req.payin.Merchant, req.payin.ID)
	if err != nil {
		return err
	}
	if current.Status != payment.PayinPending {
		return req.redirect(pagePath + req.token)
	}
	err = p.sandbox.Act(req.r.Context(), req.payin.ID, req.param)
	if err != nil && !problem.Is(err, problem.InvalidState) {
		return err
	}
	return req.redirect(pagePath + req.token) // the page shows the state that forbids the action
}
