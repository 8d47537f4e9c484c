package delivery

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// Taken counts the slots and entries that deliveries occupy: slots to send, claimed
// ones, fresh ones, and endpoints for which some wait.
func (s *Service) Taken() int {
	taken := s.Sending()
	s.Queue.mu.Lock()
	defer s.Queue.mu.Unlock()
	for _, n := range s.Queue.claimed {
		taken += n
	}
	return taken + len(s.Queue.fresh) + len(s.Queue.waiting)
}

// Sending is how many attempts are under way.
func (s *Service) Sending() int { return s.pool.Size() - s.pool.Free() }

// StartWaiting starts the deliveries that wait, as far as their receivers have free
// slots. When it returns, no other goroutine starts one of them until an attempt ends.
func (s *Service) StartWaiting(ctx context.Context) {
	s.Queue.mu.Lock()
	endpoints := slices.Collect(maps.Keys(s.Queue.waiting))
	s.Queue.mu.Unlock()
	for _, endpoint := range endpoints {
		s.startWaiting(ctx, endpoint)
	}
}

// Claimed is how many deliveries of a merchant are claimed.
func (s *Service) Claimed(merchant payment.ID) int {
	s.Queue.mu.Lock()
	defer s.Queue.mu.Unlock()
	return s.Queue.claimed[merchant]
}

// NewClaim builds the operation that claims due deliveries; claimed lists them.
func NewClaim(merchant, node payment.ID, limit int) (op write.Operation, claimed func() []store.Delivery) {
	v := &claim{merchant: merchant, node: node, limit: limit}
	return v, func() []store.Delivery { return v.claimed }
}

// NewReturn builds the operation that returns claimed deliveries without an attempt, due
// at a time.
func NewReturn(at time.Time, list ...store.Delivery) write.Operation {
	for i := range list {
		list[i].NextAt = at
	}
	return &returned{list}
}
