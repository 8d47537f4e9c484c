package payout

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Old counters of limits are removed in passes over the merchants.
const (
	counterPassEvery = time.Hour
	countersPerRun   = 256
)

// counterPass is the progress of a pass. It starts over with each process.
type counterPass struct {
	merchants []payment.ID // still to be passed
	rest      time.Duration
	resting   bool // until rest, by the monotonic clock
}

// RemoveCounters is the step of the worker that removes the counters of limits of old days.
// It never requests an immediate further run.
func (s *Service) RemoveCounters(ctx context.Context) (int, error) {
	v, now := &s.counters, s.Env.Clock.Monotonic()
	if v.resting && now < v.rest {
		return 0, nil
	}
	if v.resting || v.merchants == nil {
		list, err := s.Store.Merchants(ctx)
		if err != nil {
			return 0, store.Problem(err)
		}
		v.resting, v.merchants = false, make([]payment.ID, len(list))
		for i := range list {
			v.merchants[i] = list[i].ID
		}
	}
	for len(v.merchants) > 0 {
		removed, err := s.removeCounters(ctx, v.merchants[0])
		if err != nil || removed > 0 { // the rest of them in the next run
			return 0, store.Problem(err)
		}
		v.merchants = v.merchants[1:]
	}
	v.resting, v.rest = true, now+s.Env.Random.Jitter(counterPassEvery, 10)
	return 0, nil
}

func (s *Service) removeCounters(ctx context.Context, merchant payment.ID) (removed int64, err error) {
	old, err := s.Store.HasOldCounters(ctx, merchant, s.Env.Clock.Now())
	if err != nil || !old { // then there is nothing to commit
		return 0, err
	}
	err = s.Store.Transact(ctx, func(tx *store.Tx) error {
		removed, err = tx.RemoveCounters(ctx, merchant, countersPerRun)
		return err
	})
	return removed, err
}
