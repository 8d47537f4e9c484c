package httpapi_test

import (
	"context"
	"slices"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

func (g *gateway) Dispute(_ context.Context, merchant, id payment.ID) (payment.Dispute, *payment.Defense, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.disputeRows {
		if d.Merchant == merchant && d.ID == id {
			return d.Dispute, d.Defense, nil
		}
	}
	return payment.Dispute{}, nil, store.ErrNotFound
}

func (g *gateway) Disputes(_ context.Context, merchant payment.ID, f store.DisputeFilter) (list []store.DefendedDispute, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.disputeFilter = f
	for _, d := range slices.Backward(g.disputeRows) {
		if d.Merchant == merchant && (len(f.Statuses) == 0 || slices.Contains(f.Statuses, string(d.Status))) && (f.Kind == "" || f.Kind == string(d.Kind)) &&
			(f.Payin.IsZero() || f.Payin == d.Payin) && (f.Before.IsZero() || payment.CompareIDs(d.ID, f.Before) < 0) && len(list) < f.Limit {
			list = append(list, d)
		}
	}
	return list, g.err
}

// disputes are the use cases of disputes.
type disputes struct{ *gateway }

func (g disputes) Defend(ctx context.Context, merchant, id payment.ID, r *wire.DefenseRequest) (payment.Dispute, *payment.Defense, error) {
	d, _, err := g.Dispute(ctx, merchant, id)
	defense := r.Defense()
	d.Status, d.SubmittedAt = payment.DisputeSubmitted, d.CreatedAt
	return d, &defense, err
}

func (g disputes) Accept(ctx context.Context, merchant, id payment.ID) (payment.Dispute, *payment.Defense, error) {
	d, _, err := g.Dispute(ctx, merchant, id)
	d.Status = payment.DisputeLost
	return d, nil, err
}
