package checkout

import (
	"context"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// Sandbox is what the strip of the sandbox controls. Act returns once its
// effect can be seen.
type Sandbox interface {
	// Act lets something happen to a pay-in: pay, expire or refuse. A card that
	// is refused leaves the order to be tried again.
	Act(ctx context.Context, id payment.ID, action string) error
}

// simulate does what a button of the sandbox's strip says.
func (p *Pages) simulate(v *visit) error {
	if p.sandbox == nil || v.payin.Processor != p.sandboxProcessor {
		return errNotFound
	}
	switch v.part {
	case "pay", "expire", "refuse":
	default:
		return errNotFound
	}
	// Two clicks are one payment, as they would be at a bank: the second finds the
	// first under way, or what came of it.
	if _, under := p.acting.LoadOrStore(v.payin.ID, true); under {
		return v.goTo(pagePath + v.token)
	}
	defer p.acting.Delete(v.payin.ID)
	now, err := p.reader.Payin(v.r.Context(), v.payin.Merchant, v.payin.ID)
	if err != nil {
		return err
	}
	if now.Status != payment.PayinPending {
		return v.goTo(pagePath + v.token)
	}
	err = p.sandbox.Act(v.r.Context(), v.payin.ID, v.part)
	if err != nil && !problem.Is(err, problem.InvalidState) {
		return err
	}
	return v.goTo(pagePath + v.token) // which shows the state that forbids it, if one does
}
