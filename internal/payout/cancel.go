package payout

import (
	"context"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// Cancel cancels a payout that was not sent, and releases its money; a canceled one
// stays canceled. Errors: problem kinds not_found and invalid_state.
func (s *Service) Cancel(ctx context.Context, merchant, id payment.ID) (payment.Payout, error) {
	op := &cancel{merchant: merchant, id: id, past: s.past()}
	err := s.Writer.Do(ctx, op)
	if err != nil && ctx.Err() != nil { // the commit may still be running
		return payment.Payout{}, err
	}
	return op.payout, err
}

// cancel is the operation that cancels a payout.
type cancel struct {
	merchant, id payment.ID
	past         past
	payout       payment.Payout
}

// Merchant implements [write.Operation].
func (v *cancel) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *cancel) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *cancel) Needs(n *store.Needs) {
	n.Payout(v.merchant, v.id)
	n.Balances(v.merchant)
	n.ExpectDeliveries(v.merchant, 1)
}

// Decide implements [write.Operation].
func (v *cancel) Decide(l *store.Loaded, c *store.Changes) error {
	p, ok := l.Payout(v.merchant, v.id)
	if !ok {
		return notFound(v.merchant, v.id)
	}
	v.payout = p
	if p.Status == payment.PayoutCanceled {
		return nil
	}
	sent, err := sentBeforeRestore(l, &p, v.past)
	switch {
	case err != nil:
		return err
	case p.Status == payment.PayoutPending && sent:
		return problem.New(problem.InvalidState, "This payout may have been sent before the gateway's last start. Cancel it again once the list of transfers at its processor has been read.")
	}
	outgoing.Finish(&v.payout)
	moved, err := transition.Payout(l, c, &v.payout, payment.OnCancel, ledger.ReleasePayout(p.Amount, p.Fee))
	if err == nil && !moved {
		v.payout = p
		err = problem.New(problem.InvalidState, "Only a PENDING payout can be canceled; this one is "+string(p.Status)+".")
	}
	if moved {
		c.CloseCases(p.Merchant, p.ID, store.CasePayoutWaiting, store.ResolvedByCancel)
	}
	return err
}
