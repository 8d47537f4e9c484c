package httpapi_test

import (
	"context"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// storedRefund is a refund with the fingerprint of its request.
type storedRefund struct {
	payment.Refund
	fingerprint wire.Fingerprint
}

func (g *gateway) Refund(_ context.Context, merchant, id payment.ID) (payment.Refund, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.refundRows {
		if r.Merchant == merchant && r.ID == id {
			return r.Refund, nil
		}
	}
	return payment.Refund{}, store.ErrNotFound
}

func (g *gateway) Refunds(_ context.Context, merchant payment.ID, f store.Filter) (list []payment.Refund, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refundFilter = f
	for _, r := range slices.Backward(g.refundRows) {
		if r.Merchant == merchant && selects(f, r.ID, string(r.Status), r.ExternalID, r.CreatedAt) &&
			(f.Payin.IsZero() || f.Payin == r.Payin) && len(list) < f.Limit {
			list = append(list, r.Refund)
		}
	}
	return list, g.err
}

// refunds are the use cases of refunds.
type refunds struct{ *gateway }

func (g refunds) Create(ctx context.Context, m store.Merchant, payin payment.ID, q *wire.RefundRequest) (payment.Refund, bool, error) {
	if err := g.enter(); err != nil {
		return payment.Refund{}, false, err
	}
	if r, found, err := g.Replay(ctx, m, payin, q); found {
		return r, true, err
	}
	p, err := g.Payin(ctx, m.ID, payin)
	if err != nil {
		return payment.Refund{}, false, problem.New(problem.NotFound, "Not found.")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	amount := p.Amount
	if q.Amount.Set {
		amount = money.Cents(q.Amount.V)
	}
	now := g.env.Clock.Now().Truncate(time.Millisecond)
	r := payment.Refund{
		Merchant: m.ID, ID: g.env.IDs.NewID(now), Payin: payin, ExternalID: g.ExternalID(&m, payment.OperationRefund, q.ReferenceID.V),
		ReferenceID: q.ReferenceID.V, Origin: payment.RefundByMerchant, Amount: amount, Status: payment.RefundPending, Version: 1,
		Reason: q.Reason.V, CreatedAt: now, UpdatedAt: now,
	}
	g.refundRows = append(g.refundRows, storedRefund{r, q.Fingerprint})
	return r, false, nil
}

func (g refunds) Replay(_ context.Context, m store.Merchant, _ payment.ID, q *wire.RefundRequest) (payment.Refund, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.refundRows {
		if r.Merchant == m.ID && r.ReferenceID == q.ReferenceID.V {
			return r.Refund, true, q.Fingerprint.Conflict(r.fingerprint)
		}
	}
	return payment.Refund{}, false, nil
}

// RefundAction does nothing.
func (idle) RefundAction(context.Context, payment.ID, string) error { return nil }

func (s *controls) RefundAction(_ context.Context, id payment.ID, action string) error {
	return s.record("%s refund %d", action, id[0])
}
