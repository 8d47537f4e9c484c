package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Limits of ranges that are sent again.
const (
	rangeMax      = 100_000 // events of one range
	rangesMax     = 10      // of a merchant at the same time
	partOfRange   = 64      // events in one commit
	rangesAtATime = 16      // of all merchants, in one run
)

// rangeWait is the time after which a merchant with rangesMax ranges may send a further range.
const rangeWait = time.Minute

// RedeliverRange sends the events of a range of time again: each to every URL that has it, or to
// one endpoint if it selects the event. A worker does it. It returns how many events it selected,
// including those that no URL has. by is who asks for it, for the audit. Errors: problem kinds validation_failed, invalid_state if the
// endpoint is disabled, and rate_limited if too many ranges of the merchant are not done.
func (s *Service) RedeliverRange(ctx context.Context, by actor.Actor, merchant payment.ID, r *wire.RedeliverRequest) (count int, err error) {
	v := store.Redelivery{Merchant: merchant, ID: s.Env.IDs.NewID(s.Env.Clock.Now()), Endpoint: r.Endpoint, Types: r.Types.V}
	selects := []string{"*"}
	if !r.Endpoint.IsZero() {
		e, err := s.Store.EndpointOf(ctx, merchant, r.Endpoint)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return 0, invalidRange("endpointId", problem.CodeNotAllowed, "is no webhook endpoint")
		case err != nil:
			return 0, store.Problem(err)
		case !e.Enabled:
			return 0, problem.New(problem.InvalidState, "The webhook endpoint is disabled. Enable it first: it then gets what it missed.")
		}
		selects = e.Events
	}
	found, err := s.Store.EventRange(ctx, merchant, r.From, r.To, rangeMax+1)
	if err != nil {
		return 0, store.Problem(err)
	}
	if found.Total > rangeMax {
		return 0, invalidRange("to", problem.CodeOutOfRange, "the range must have at most 100000 events")
	}
	v.Types = nil
	for t, n := range found.Types {
		if t.MatchedBy(selects) && (!r.Types.Set || t.MatchedBy(r.Types.V)) {
			v.Types = append(v.Types, string(t))
			count += n
		}
	}
	if count == 0 {
		return 0, nil
	}
	v.First, v.End, v.Next, v.Last = found.First, found.End, found.Next, found.Last
	err = s.Store.Administer(ctx, actor.Author{Actor: by}, func(tx *store.AdminTx) error {
		others, err := tx.AddRedelivery(ctx, v, r.From, r.To)
		if err == nil && others >= rangesMax {
			err = problem.New(problem.RateLimited, "Too many ranges of events are being sent again.").
				WithQuota(problem.Quota{Name: "ranges", Most: rangesMax}, rangeWait)
		}
		return err
	})
	if err == nil {
		s.Ranges.Wake()
	}
	return count, store.Problem(err)
}

func invalidRange(field, code, detail string) error {
	return problem.New(problem.ValidationFailed, "1 invalid field.").WithFields(problem.FieldError{Field: field, Code: code, Detail: detail})
}

// RedeliverRanges is the step of the worker that makes the events of ranges due again. A
// range that cannot be processed stops no other, and merchants take turns.
func (s *Service) RedeliverRanges(ctx context.Context) (did int, err error) {
	list, err := s.Store.Redeliveries(ctx, s.rangesAfter, rangesAtATime)
	if err != nil {
		return 0, err
	}
	var errs []error
	served := map[payment.ID]bool{}
	for _, v := range list {
		if !served[v.Merchant] { // the next run begins after the last of them
			served[v.Merchant], s.rangesAfter = true, v.Merchant
		}
		var n int
		err := s.Store.Transact(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.RedeliverPart(ctx, v, partOfRange)
			return err
		})
		if errors.Is(err, store.ErrNotFound) {
			continue // another process has done it
		}
		did += n
		errs = append(errs, err)
	}
	if did > 0 {
		s.Queue.waker.Wake()
	}
	return did, errors.Join(errs...)
}
