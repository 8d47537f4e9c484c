package query

import (
	"context"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Filter narrows a list of orders, newest first. Zero values do not narrow.
type Filter struct {
	Merchants []payment.ID // whose orders are listed
	Status    string
	Account   string    // at which the order is, or one part of a refund
	Since     time.Time // when the order was created
	Limit     int       // at most so many
}

// List is the newest orders of a filter. More: there are others. Partial: only the newest orders of
// each merchant were examined, because few of them match.
type List[T any] struct {
	Orders        []T
	More, Partial bool
}

const (
	// roundsMost bounds how many pages of a merchant's orders are read, of pageMost each: they
	// are filtered here if no index has them.
	roundsMost = 100
	pageMost   = 1000
)

// orders is how the orders of a kind are read.
type orders[T any] struct {
	operation payment.Operation
	page      func(ctx context.Context, merchant payment.ID, f store.Filter) ([]T, error)
	id        func(*T) payment.ID
	at        func(ctx context.Context, v *T, account string) (bool, error)
}

// Payins lists pay-ins.
func Payins(ctx context.Context, s *store.Store, f Filter) (List[payment.Payin], error) {
	return newest(ctx, s, f, orders[payment.Payin]{
		operation: payment.OperationPayin, page: s.Payins, id: func(p *payment.Payin) payment.ID { return p.ID },
		at: func(_ context.Context, p *payment.Payin, account string) (bool, error) {
			return p.Processor == account, nil
		},
	})
}

// Payouts lists payouts.
func Payouts(ctx context.Context, s *store.Store, f Filter) (List[payment.Payout], error) {
	return newest(ctx, s, f, orders[payment.Payout]{
		operation: payment.OperationPayout, page: s.Payouts, id: func(p *payment.Payout) payment.ID { return p.ID },
		at: func(_ context.Context, p *payment.Payout, account string) (bool, error) {
			return p.Processor == account, nil
		},
	})
}

// Refunds lists refunds.
func Refunds(ctx context.Context, s *store.Store, f Filter) (List[payment.Refund], error) {
	return newest(ctx, s, f, orders[payment.Refund]{
		operation: payment.OperationRefund, page: s.Refunds, id: func(p *payment.Refund) payment.ID { return p.ID },
		at: func(ctx context.Context, p *payment.Refund, account string) (bool, error) {
			parts, err := s.RefundParts(ctx, p.Merchant, p.ID)
			return slices.ContainsFunc(parts, func(part payment.RefundPart) bool { return part.Processor == account }), err
		},
	})
}

// Deliveries lists deliveries of events; Account is not a filter of them.
func Deliveries(ctx context.Context, s *store.Store, f Filter) (List[*store.Delivery], error) {
	wanted := store.DeliveryState(f.Status)
	f.Status = ""
	return newest(ctx, s, f, orders[*store.Delivery]{
		page: s.Deliveries, id: func(d **store.Delivery) payment.ID { return (*d).ID },
		at: func(_ context.Context, d **store.Delivery, _ string) (bool, error) {
			return wanted == "" || (*d).State == wanted, nil
		},
	})
}

// Disputes lists disputes; Account is not a filter of them.
func Disputes(ctx context.Context, s *store.Store, f Filter) (List[store.DefendedDispute], error) {
	var statuses []string
	if f.Status != "" {
		statuses = []string{f.Status}
	}
	return newest(ctx, s, f, orders[store.DefendedDispute]{
		page: func(ctx context.Context, merchant payment.ID, page store.Filter) ([]store.DefendedDispute, error) {
			return s.Disputes(ctx, merchant, store.DisputeFilter{Statuses: statuses, Before: page.Before, Limit: page.Limit})
		},
		id: func(d *store.DefendedDispute) payment.ID { return d.Dispute.ID },
		at: func(_ context.Context, d *store.DefendedDispute, _ string) (bool, error) {
			return !d.Dispute.CreatedAt.Before(f.Since), nil
		},
	})
}

// newest lists the newest orders of all merchants of a filter.
func newest[T any](ctx context.Context, s *store.Store, f Filter, of orders[T]) (list List[T], err error) {
	for _, m := range f.Merchants {
		part, partial, err := of.read(ctx, s, m, &f)
		if err != nil {
			return list, err
		}
		list.Orders, list.Partial = append(list.Orders, part...), list.Partial || partial
		slices.SortStableFunc(list.Orders, func(a, b T) int { return payment.CompareIDs(of.id(&b), of.id(&a)) })
		if len(list.Orders) > f.Limit { // of the next merchants, only newer ones are of interest
			list.Orders, list.More = list.Orders[:f.Limit], true
			f.Since = latest(f.Since, of.id(&list.Orders[f.Limit-1]).Time())
		}
	}
	return list, nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// read reads the newest orders of a merchant, and one more than the limit. partial: there may be
// others.
func (of orders[T]) read(ctx context.Context, s *store.Store, m payment.ID, f *Filter) (list []T, partial bool, err error) {
	page := store.Filter{Status: f.Status, CreatedFrom: f.Since, Limit: pageMost}
	filtered := f.Account != "" || of.operation == ""
	if !filtered {
		page.Limit = min(pageMost, f.Limit+1)
	}
	for range roundsMost {
		if page.Scans() {
			page.From = payment.ID{}
			if page.From, err = s.ScanFrom(ctx, m, of.operation, page); err != nil {
				return nil, false, err
			}
		}
		got, err := of.page(ctx, m, page)
		if err != nil {
			return nil, false, err
		}
		for i := range got {
			ok := true
			if filtered {
				if ok, err = of.at(ctx, &got[i], f.Account); err != nil {
					return nil, false, err
				}
			}
			if ok {
				list = append(list, got[i])
			}
			if len(list) > f.Limit {
				return list, false, nil
			}
		}
		switch {
		case len(got) == page.Limit:
			page.Before = of.id(&got[len(got)-1])
		case page.From.IsZero():
			return list, false, nil
		default:
			page.Before = page.From
		}
	}
	return list, true, nil
}
