package delivery

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// NewReturned builds the operation that returns claimed deliveries of one merchant.
func NewReturned(list []store.Delivery) write.Operation { return &returned{list} }

// Reschedule returns claimed deliveries, due after about wait.
func (s *Service) Reschedule(ctx context.Context, list []store.Delivery, wait time.Duration) {
	s.reschedule(ctx, list, wait)
}
