package delivery

import (
	"context"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// Redeliver sends an event again to each URL of its deliveries, with the complete
// schedule of attempts. Errors: problem kinds not_found, and invalid_state if it has
// no URL.
func (s *Service) Redeliver(ctx context.Context, merchant, event payment.ID) error {
	e, err := s.Store.Event(ctx, merchant, event)
	if err != nil {
		return store.Problem(err)
	}
	err = s.Store.Transact(ctx, func(tx *store.Tx) error {
		n, err := tx.Redeliver(ctx, &e)
		if err == nil && n == 0 {
			err = problem.New(problem.InvalidState, "The event has no URL, or is being delivered now.")
		}
		return err
	})
	if err == nil {
		s.Queue.waker.Wake()
	}
	return store.Problem(err)
}
