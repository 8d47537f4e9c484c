package httpapi_test

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// storedBatch is a batch with the fingerprint of its request.
type storedBatch struct {
	payment.PayoutBatch
	fingerprint wire.Fingerprint
}

func (g *gateway) PayoutBatch(_ context.Context, merchant, id payment.ID) (payment.PayoutBatch, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, b := range g.batchRows {
		if b.Merchant == merchant && b.ID == id {
			return b.PayoutBatch, nil
		}
	}
	return payment.PayoutBatch{}, store.ErrNotFound
}

func (g *gateway) PayoutBatches(_ context.Context, merchant payment.ID, f store.Filter) (list []payment.PayoutBatch, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, b := range slices.Backward(g.batchRows) {
		if b.Merchant == merchant && selects(f, b.ID, "", b.ExternalID, b.CreatedAt) && len(list) < f.Limit {
			list = append(list, b.PayoutBatch)
		}
	}
	return list, g.err
}

func (g payouts) RequestBatch(ctx context.Context, m store.Merchant, r *wire.PayoutBatchRequest) (payment.PayoutBatch, bool, error) {
	if err := g.enter(); err != nil {
		return payment.PayoutBatch{}, false, err
	}
	if b, found, err := g.ReplayBatch(ctx, m, r); found {
		return b, true, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.env.Clock.Now().Truncate(time.Millisecond)
	n := int64(len(r.Items))
	b := payment.PayoutBatch{
		Merchant: m.ID, ID: g.env.IDs.NewID(now), ReferenceID: r.ReferenceID.V, ExternalID: g.ExternalID(&m, payment.OperationPayoutBatch, r.ReferenceID.V),
		Count: n, Version: 1, Counts: map[payment.PayoutStatus]int64{payment.PayoutPending: n}, CreatedAt: now, UpdatedAt: now,
	}
	for _, item := range r.Items {
		b.Amount += money.Cents(item.Amount.V)
	}
	g.batchRows = append(g.batchRows, storedBatch{b, r.Fingerprint})
	return b, false, nil
}

func (g payouts) ReplayBatch(_ context.Context, m store.Merchant, r *wire.PayoutBatchRequest) (payment.PayoutBatch, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, b := range g.batchRows {
		if b.Merchant == m.ID && b.ReferenceID == r.ReferenceID.V {
			return b.PayoutBatch, true, r.Fingerprint.Conflict(b.fingerprint)
		}
	}
	return payment.PayoutBatch{}, false, nil
}

// SearchTerm is a hash without a key.
func (g *gateway) SearchTerm(merchant payment.ID, field store.SearchField, value string) store.SearchTerm {
	sum := sha256.Sum256([]byte(merchant.String() + string(field) + value))
	return store.SearchTerm(sum[:16])
}

// ScanFrom is g.scanned.
func (g *gateway) ScanFrom(_ context.Context, _ payment.ID, op payment.Operation, _ store.Filter) (payment.ID, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.scannedOf = op
	return g.scanned, g.err
}
