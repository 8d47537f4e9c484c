package payin

import (
	"context"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// Cancel cancels a pending pay-in; a canceled one stays canceled. A payment that still
// arrives is booked as late. Errors: problem kinds not_found and invalid_state.
func (s *Service) Cancel(ctx context.Context, merchant, id payment.ID) (payment.Payin, error) {
	op := s.NewCancel(merchant, id)
	err := s.Writer.Do(ctx, op)
	if err == nil {
		s.ChargeWaker.Wake()
	}
	if err != nil && ctx.Err() != nil { // the commit may still be running
		return payment.Payin{}, err
	}
	return op.payin, err
}

// Cancel is the operation that cancels a pay-in.
type Cancel struct {
	merchant, id payment.ID
	payin        payment.Payin
	links        transition.Links
}

// NewCancel builds the operation that cancels a pay-in.
func (s *Service) NewCancel(merchant, id payment.ID) *Cancel {
	return &Cancel{merchant: merchant, id: id, links: s.Links}
}

// Merchant implements [write.Operation].
func (v *Cancel) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *Cancel) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *Cancel) Needs(n *store.Needs) {
	n.Payin(v.merchant, v.id)
	n.Charge(v.merchant, v.id)
	n.ExpectDeliveries(v.merchant, 1)
}

// Decide implements [write.Operation].
func (v *Cancel) Decide(l *store.Loaded, c *store.Changes) error {
	p, ok := l.Payin(v.merchant, v.id)
	if !ok {
		return notFound(v.merchant, v.id)
	}
	v.payin = p
	if p.Status == payment.PayinCanceled {
		return nil
	}
	moved, err := transition.Payin(l, c, &v.payin, v.links, payment.OnCancel)
	if err == nil && !moved {
		err = problem.New(problem.InvalidState, "Only a PENDING pay-in can be canceled; this one is "+string(p.Status)+".")
	}
	if err == nil {
		endCharge(l, c, &v.payin)
	}
	return err
}
