package flow

import (
	"context"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// ClaimDeliveries takes up to limit due deliveries of a merchant in hand, which
// is the record of an attempt of each.
func (f *Flow) ClaimDeliveries(ctx context.Context, merchant payment.ID, limit int) (list []store.Delivery, err error) {
	err = f.claim(ctx, merchant, func(tx *store.Tx, node payment.ID) error {
		list, err = tx.ClaimDeliveries(ctx, merchant, node, limit)
		for i := range list {
			list[i].ClaimedBy = node
		}
		return err
	})
	return list, err
}

// EndedDelivery is how an attempt ended, and what follows.
type EndedDelivery struct {
	store.End      // State and NextAt as they are to be
	Gone      bool // the receiver wants no more news of this order
}

var endDeliveryVerb = &verb{name: "end_delivery", duty: true, still: true, run: endDeliveries}

// endDeliveries records the ends of one merchant's attempts. Where a receiver
// wants no more news, that comes between those before and those after it.
func endDeliveries(ctx context.Context, tx *store.Tx, tasks []*task) error {
	for first := 0; first < len(tasks); {
		var ends []store.End
		end, gone := first, false
		for ; end < len(tasks) && !gone; end++ {
			v := tasks[end].arg.(*EndedDelivery)
			ends, gone = append(ends, v.End), v.Gone
		}
		finished, err := tx.FinishDeliveries(ctx, ends)
		if err != nil {
			return err
		}
		for i := range finished {
			if err := endDelivery(ctx, tx, tasks[first+i].arg.(*EndedDelivery), finished[i]); err != nil {
				return err
			}
		}
		first = end
	}
	return nil
}

// endDelivery tells a person of a delivery that was given up, or no more.
func endDelivery(ctx context.Context, tx *store.Tx, v *EndedDelivery, finished store.Finished) (err error) {
	d := v.Delivery
	if v.Gone {
		if err := tx.EndDeliveries(ctx, d.Merchant, d.Subject, d.URL); err != nil {
			return err
		}
	}
	switch {
	case finished.State == store.DeliveryExhausted:
		err = tx.GiveUpDelivery(ctx, d, finished.Exception, store.Exception{
			Merchant: d.Merchant, Kind: store.ExceptionWebhook, Subject: d.Subject,
			Detail: "The merchant's receiver took an event in none of its attempts: " + payment.PublicEventID(d.Event.ID) + ". Mend the receiver, then redeliver.",
		})
	case finished.Exception.IsZero(): // nobody was told to look after it
	case finished.State == store.DeliveryDone:
		err = tx.CloseException(ctx, d.Merchant, finished.Exception, "The receiver took the event when it was sent again.")
	case finished.State == store.DeliveryEnded:
		err = tx.CloseException(ctx, d.Merchant, finished.Exception, "The receiver wants no more news of this order.")
	}
	if err == nil && v.Gone { // nobody need look after the order's other news either
		err = tx.CloseExceptions(ctx, d.Merchant, d.Subject, store.ExceptionWebhook)
	}
	return err
}

// EndDelivery records how an attempt ended.
func (f *Flow) EndDelivery(ctx context.Context, v *EndedDelivery) error {
	return f.submit(ctx, endDeliveryVerb, v.Delivery.Merchant, v)
}

// returnVerb gives deliveries of a merchant's back; a task has many of them.
var returnVerb = &verb{name: "return_deliveries", duty: true, still: true, run: func(ctx context.Context, tx *store.Tx, tasks []*task) error {
	for _, t := range tasks {
		for _, d := range t.arg.([]store.Delivery) {
			if err := tx.ReturnDelivery(ctx, d, d.NextAt, d.ClaimedBy); err != nil {
				return err
			}
		}
	}
	return nil
}}

// ReturnDeliveries gives claimed deliveries of one merchant back untried, each to
// be taken at its NextAt: their receivers have no place free. They share a commit,
// or a receiver that is away would take one for each.
func (f *Flow) ReturnDeliveries(ctx context.Context, merchant payment.ID, list []store.Delivery) error {
	return f.submit(ctx, returnVerb, merchant, list)
}

// Redeliver sends an event again, to everywhere it was to go, with the whole
// schedule of attempts before it. Errors: problem
// kinds not_found, and invalid_state where it goes nowhere.
func (f *Flow) Redeliver(ctx context.Context, merchant, event payment.ID) error {
	e, err := f.store.Event(ctx, merchant, event)
	if err != nil {
		return public(err)
	}
	return f.write(ctx, func(tx *store.Tx) error {
		n, err := tx.Redeliver(ctx, &e)
		if err == nil && n == 0 {
			err = problem.New(problem.InvalidState, "The event has no webhook URL, or is being delivered.")
		}
		return err
	})
}
