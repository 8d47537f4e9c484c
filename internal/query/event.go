package query

import (
	"context"
	"errors"
	"slices"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Events lists events of merchants, newest first. Status and Account are no filters of them.
func Events(ctx context.Context, s *store.Store, f Filter) (list List[payment.Event], err error) {
	for _, m := range f.Merchants {
		last, err := s.LastEvent(ctx, m)
		if err != nil {
			return list, err
		}
		for last > 0 && len(list.Orders) <= f.Limit*len(f.Merchants) { // numbers have no gaps
			first := max(last-int64(min(pageMost, f.Limit+1)), 0)
			page, err := s.Events(ctx, m, first, int(last-first))
			if err != nil {
				return list, err
			}
			older := slices.ContainsFunc(page, func(e payment.Event) bool { return e.CreatedAt.Before(f.Since) })
			page = slices.DeleteFunc(page, func(e payment.Event) bool { return e.CreatedAt.Before(f.Since) })
			list.Orders = append(list.Orders, page...)
			if last = first; older || len(page) > f.Limit {
				break
			}
		}
		slices.SortStableFunc(list.Orders, func(a, b payment.Event) int {
			if order := b.CreatedAt.Compare(a.CreatedAt); order != 0 {
				return order
			}
			return int(b.Number - a.Number)
		})
		if len(list.Orders) > f.Limit {
			list.Orders, list.More = list.Orders[:f.Limit], true
			f.Since = latest(f.Since, list.Orders[f.Limit-1].CreatedAt)
		}
	}
	return list, nil
}

// Delivered is an event with its deliveries and their attempts.
type Delivered struct {
	Event      payment.Event
	Deliveries []*store.Delivery
	Attempts   []store.Attempt // the last ones
}

// ExplainEvent reads an event by its id alone, or by that of one of its deliveries. Error:
// [store.ErrNotFound].
func ExplainEvent(ctx context.Context, s *store.Store, id payment.ID) (v Delivered, err error) {
	merchants, err := s.Merchants(ctx)
	if err != nil {
		return v, err
	}
	err = store.ErrNotFound
	for i := range merchants {
		if v.Event, err = eventOf(ctx, s, merchants[i].ID, id); !errors.Is(err, store.ErrNotFound) {
			break
		}
	}
	if err != nil {
		return v, err
	}
	if v.Deliveries, err = s.DeliveriesOf(ctx, v.Event.Merchant, v.Event.Number); err != nil {
		return v, err
	}
	v.Attempts, err = s.Attempts(ctx, v.Event.Merchant, v.Event.Number)
	return v, err
}

// eventOf reads an event by its id, or by that of a delivery.
func eventOf(ctx context.Context, s *store.Store, merchant, id payment.ID) (payment.Event, error) {
	e, err := s.Event(ctx, merchant, id)
	if !errors.Is(err, store.ErrNotFound) {
		return e, err
	}
	d, err := s.DeliveryOf(ctx, merchant, id)
	if err != nil {
		return e, err
	}
	return s.EventNumbered(ctx, merchant, d.EventNumber)
}
