package delivery

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Old deliveries are removed in ranges: one range in a commit, and as many in a run as
// a busy second creates.
const (
	removalRange  = 256
	removalRanges = 4 // in a run
	removalEvery  = time.Hour
)

// removal is the progress of a pass over the deliveries. It starts over with each
// process: removed deliveries cost nothing to pass.
type removal struct {
	before    time.Time    // older ones may be removed
	merchants []payment.ID // still to be passed, the current one first
	after     payment.ID   // the last delivery of that one that was read
	rest      time.Duration
	resting   bool // until rest, by the monotonic clock
}

// RemoveOld is the step of the worker that removes deliveries, and their attempts, that
// ended longer ago than the retention. It keeps unfinished ones, those with an open
// case, and all events. It never requests an immediate further run.
func (s *Service) RemoveOld(ctx context.Context) (int, error) {
	r, now := &s.removal, s.Env.Clock.Monotonic()
	if s.Retention <= 0 || r.resting && now < r.rest {
		return 0, nil
	}
	if len(r.merchants) == 0 {
		if err := s.beginRemoval(ctx); err != nil {
			return 0, err
		}
	}
	for ranges := 0; ranges < removalRanges && len(r.merchants) > 0; {
		old, err := s.removeRange(ctx, r.merchants[0], r.after, r.before)
		if err != nil {
			return 0, err
		}
		r.after = old.Last
		if old.Count < removalRange {
			r.merchants, r.after = r.merchants[1:], payment.ID{}
		}
		if old.Count > 0 {
			ranges++
		}
	}
	if r.resting = len(r.merchants) == 0; r.resting {
		r.rest = now + s.Env.Random.Jitter(removalEvery, 10)
	}
	return 0, nil
}

// Removing reports whether a pass over old deliveries is in progress. All of it uses
// the time at which it began.
func (s *Service) Removing() bool { return len(s.removal.merchants) > 0 }

// beginRemoval begins a pass over the deliveries of all merchants.
func (s *Service) beginRemoval(ctx context.Context) error {
	list, err := s.Store.Merchants(ctx)
	if err != nil {
		return err
	}
	r := &s.removal
	r.after = payment.ID{}
	err = s.Store.Transact(ctx, func(tx *store.Tx) error {
		r.before, err = tx.AllowRemoval(ctx, s.Env.Clock.Now().Add(-s.Retention), s.Retention)
		return err
	})
	if err != nil {
		return store.Problem(err)
	}
	for i := range list {
		r.merchants = append(r.merchants, list[i].ID)
	}
	return nil
}

// removeRange removes the finished ones of the next deliveries of a merchant, after the
// one with the id after.
func (s *Service) removeRange(ctx context.Context, merchant, after payment.ID, before time.Time) (store.OldDeliveries, error) {
	old, err := s.Store.OldDeliveries(ctx, merchant, after, before, removalRange)
	if err != nil || old.Finished == 0 { // then there is nothing to commit
		return old, store.Problem(err)
	}
	return old, store.Problem(s.Store.Transact(ctx, func(tx *store.Tx) error {
		_, err := tx.RemoveDeliveries(ctx, old, before)
		return err
	}))
}
