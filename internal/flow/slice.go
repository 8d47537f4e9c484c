package flow

import (
	"context"
	"errors"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Slice is a batch that its caller fills. A lane gathers what happens to wait
// together; who has many use cases at hand, such as a program that fills a store
// for measurements, puts them together itself and commits them at once, by the
// same verbs and the same rules. One goroutine fills a slice; several may fill
// slices of their own.
type Slice struct {
	flow  *Flow
	tasks []*task
}

// NewSlice returns an empty slice.
func (f *Flow) NewSlice() *Slice { return &Slice{flow: f} }

func (s *Slice) add(v *verb, merchant payment.ID, arg any) {
	s.tasks = append(s.tasks, &task{verb: v, merchant: merchant, arg: arg, done: make(chan struct{}, 1)})
}

// Len is how many use cases the slice holds.
func (s *Slice) Len() int { return len(s.tasks) }

// CreatePayin is [Flow.CreatePayin] for an order whose charge the processor
// mints without a call; another one stays unregistered. The order that it
// returns is whole once the slice is committed; its ids are known at once.
func (s *Slice) CreatePayin(m store.Merchant, r *wire.PayinRequest) (*payment.Payin, error) {
	c, _, err := s.flow.prepareCreate(m, r)
	if err != nil {
		return nil, err
	}
	c.out = c.in.Payin
	s.add(createPayinVerb, m.ID, c)
	return &c.out, nil
}

// ApplyCharge is [Flow.ApplyCharge] for a report that no notice brought.
func (s *Slice) ApplyCharge(ctx context.Context, name, externalID string, report processor.ChargeReport) error {
	v, err := s.flow.newsOf(ctx, name, externalID, report, nil)
	if err == nil {
		s.add(receiveVerb, v.merchant, v)
	}
	return err
}

// CancelPayin is [Flow.CancelPayin].
func (s *Slice) CancelPayin(merchant, id payment.ID) {
	s.add(cancelPayinVerb, merchant, &canceling{flow: s.flow, merchant: merchant, id: id})
}

// RequestPayout is [Flow.RequestPayout].
func (s *Slice) RequestPayout(m store.Merchant, r *wire.PayoutRequest) error {
	c, err := s.flow.prepareRequest(m, r)
	if err == nil {
		s.add(requestPayoutVerb, m.ID, c)
	}
	return err
}

// EndSend is [Flow.EndSend].
func (s *Slice) EndSend(v Sending, answer processor.TransferAnswer) {
	s.add(endSendVerb, v.Payout.Merchant, &sent{flow: s.flow, payout: v.Payout, number: v.Number, answer: answer})
}

// EndDelivery is [Flow.EndDelivery].
func (s *Slice) EndDelivery(v *EndedDelivery) { s.add(endDeliveryVerb, v.Delivery.Merchant, v) }

// note is a fact of the installation that goes with a slice.
type note struct{ name, value string }

var noteVerb = each("note", func(ctx context.Context, tx *store.Tx, n *note) error {
	return tx.SetSetting(ctx, n.name, n.value)
})

// Note writes a setting in the slice's own commit.
func (s *Slice) Note(name, value string) { s.add(noteVerb, payment.ID{}, &note{name, value}) }

// Commit makes the slice durable as a lane does, and empties it. Those whose
// request failed are told in the error; all others are committed.
func (s *Slice) Commit(ctx context.Context) error {
	if len(s.tasks) == 0 {
		return nil
	}
	newLane(s.flow).commit(context.WithoutCancel(ctx), s.tasks)
	var errs []error
	for _, t := range s.tasks {
		if t.err == nil {
			continue
		}
		if errs = append(errs, t.err); len(errs) == sliceErrorsMax {
			break
		}
	}
	s.tasks = s.tasks[:0]
	return public(errors.Join(errs...))
}

// sliceErrorsMax bounds how many failures of a slice are told.
const sliceErrorsMax = 10
