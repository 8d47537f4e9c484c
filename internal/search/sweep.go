package search

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// sweep is the progress of a pass over all lists. It starts over with each process.
type sweep struct {
	active  bool
	lists   []list        // still to be passed
	recent  bool          // up to now, and not only ids of safeAge
	after   payment.ID    // in the first of the lists; zero to begin at its position
	clock   time.Time     // the earliest of all processes as it began
	rest    time.Duration // by the monotonic clock
	resting bool
}

// indexRest carries on with the sweep, or begins one that is due. If a process with a slower clock than
// all before has begun meanwhile, the sweep starts over: its positions may be past that one's next orders.
func (s *Service) indexRest(ctx context.Context) error {
	v := &s.sweep
	clock, err := s.slowestClock(ctx)
	if err != nil {
		return err
	}
	if clock.Before(v.clock) {
		s.CatchUp(clock)
		v.active = false
	}
	if !v.active {
		due, err := s.beginSweep(ctx, clock)
		if err != nil || !due {
			return err
		}
	}
	var errs []error
	left := ordersPerRun
	for lists := merchantsPerRun * 2; lists > 0 && left > 0 && len(v.lists) > 0; lists-- {
		did, all, err := s.indexList(ctx, v.lists[0], left)
		errs = append(errs, err)
		left -= did
		if all || err != nil { // a list that fails is passed again by the next sweep
			v.lists, v.after = v.lists[1:], payment.ID{}
		}
	}
	if len(v.lists) == 0 {
		v.active, v.resting, v.rest = false, true, s.Env.Clock.Monotonic()+s.Env.Random.Jitter(sweepEvery, 10)
	}
	return errors.Join(errs...)
}

// slowestClock is the earliest clock of all processes.
func (s *Service) slowestClock(ctx context.Context) (time.Time, error) {
	nodes, err := s.Store.Nodes(ctx)
	clock := s.Env.Clock.Now()
	for i := range nodes {
		clock = earliest(clock, nodes[i].Clock)
	}
	return clock, store.Problem(err)
}

// beginSweep begins a sweep, if one is due. clock is the earliest one of all processes.
func (s *Service) beginSweep(ctx context.Context, clock time.Time) (due bool, err error) {
	v := &s.sweep
	s.mu.Lock()
	recent := s.restart
	s.mu.Unlock()
	if v.resting && !recent && s.Env.Clock.Monotonic() < v.rest {
		return false, nil
	}
	merchants, err := s.Store.Merchants(ctx)
	if err != nil {
		return false, store.Problem(err)
	}
	*v = sweep{active: true, recent: recent, clock: clock}
	if recent {
		s.mu.Lock()
		v.clock = earliest(v.clock, s.ended)
		s.restart, s.ended = false, time.Time{}
		s.mu.Unlock()
	}
	for i := range merchants {
		for _, op := range []payment.Operation{payment.OperationPayin, payment.OperationPayout} {
			v.lists = append(v.lists, list{merchants[i].ID, op})
		}
	}
	return true, nil
}

// indexList indexes up to limit orders of a list after its position; all means that it is
// done.
func (s *Service) indexList(ctx context.Context, l list, limit int) (did int, all bool, err error) {
	v := &s.sweep
	after := v.after
	if after.IsZero() {
		if after, err = s.Store.SearchPosition(ctx, l.merchant, l.operation); err != nil {
			return 0, false, store.Problem(err)
		}
	}
	safe := payment.MinIDAt(v.clock.Add(-safeAge))
	if v.recent && v.after.IsZero() && payment.CompareIDs(after, safe) > 0 { // a faster clock has moved it
		if err := s.Writer.Do(ctx, &moveBack{l, safe}); err != nil {
			return 0, false, err
		}
		after = safe.Before()
	}
	last := safe
	if v.recent {
		last = greatest
	}
	if payment.CompareIDs(after, last) >= 0 {
		return 0, true, nil
	}
	next, did, err := s.index(ctx, l, span{after, last}, limit, safe)
	v.after = next
	return did, next == last, err
}

// moveBack is the operation that moves the position of a list back to before an id.
type moveBack struct {
	list

	id payment.ID
}

// Merchant implements [write.Operation].
func (v *moveBack) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *moveBack) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *moveBack) Needs(*store.Needs) {}

// Decide implements [write.Operation].
func (v *moveBack) Decide(_ *store.Loaded, c *store.Changes) error {
	c.IndexAgain(v.merchant, v.operation, v.id)
	return nil
}

// greatest is not less than any id.
var greatest = func() (id payment.ID) {
	for i := range id {
		id[i] = 0xff
	}
	return id
}()
