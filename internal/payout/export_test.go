package payout

import (
	"context"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
	"github.com/porteira/porteira/internal/write"
)

// NewCancel builds the operation that cancels a payout.
func (s *Service) NewCancel(merchant, id payment.ID) write.Operation {
	return &cancel{merchant: merchant, id: id, past: s.past()}
}

// SetOpenBatches sets how many open batches a run looks at, until the returned function is
// called.
func SetOpenBatches(n int) (reset func()) {
	was := openBatches
	openBatches = n
	return func() { openBatches = was }
}

// RefuseEarly is why a batch is refused before its operation is built; nil if it is not.
func (s *Service) RefuseEarly(ctx context.Context, m store.Merchant, r *wire.PayoutBatchRequest) error {
	_, payouts, err := s.newBatch(&m, r)
	if err != nil {
		return err
	}
	return s.refuseEarly(ctx, &m, payouts)
}
