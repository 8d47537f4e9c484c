package payout

import (
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/write"
)

// NewCancel builds the operation that cancels a payout.
func (s *Service) NewCancel(merchant, id payment.ID) write.Operation {
	return &cancel{merchant: merchant, id: id, restoredAt: s.RestoredAt()}
}
