package flow

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// PaidNews is a processor's word on a merchant's charge, and the notice of it.
type PaidNews struct {
	ExternalID string
	Report     processor.ChargeReport
	Notice     store.Notice
}

// ReceiveTogether books news of one merchant's charges as one batch.
func (f *Flow) ReceiveTogether(ctx context.Context, merchant payment.ID, list []PaidNews) error {
	batch := make([]*task, len(list))
	for i := range list {
		v, err := f.newsOf(ctx, list[i].Notice.Processor, list[i].ExternalID, list[i].Report, &list[i].Notice)
		if err != nil {
			return err
		}
		batch[i] = &task{ctx: ctx, verb: receiveVerb, merchant: merchant, arg: v, done: make(chan struct{}, 1)}
	}
	return f.commitTogether(ctx, batch)
}

// SettleTogether books that a processor paid payouts of one merchant, as one batch.
func (f *Flow) SettleTogether(ctx context.Context, merchant payment.ID, sendings []Sending) error {
	batch := make([]*task, len(sendings))
	for i := range sendings {
		s := &sendings[i]
		v := &sent{flow: f, payout: s.Payout, number: s.Number, answer: processor.TransferAnswer{
			Outcome: processor.Done, Report: processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, EndToEndID: "E"},
		}}
		batch[i] = &task{ctx: ctx, verb: endSendVerb, merchant: merchant, arg: v, done: make(chan struct{}, 1)}
	}
	return f.commitTogether(ctx, batch)
}

// EndTogether records that receivers took deliveries of one merchant, as one batch.
func (f *Flow) EndTogether(ctx context.Context, merchant payment.ID, list []store.Delivery) error {
	batch := make([]*task, len(list))
	for i, d := range list {
		d.State = store.DeliveryDone
		v := &EndedDelivery{End: store.End{Delivery: d, Attempt: store.Attempt{Status: 200}}}
		batch[i] = &task{ctx: ctx, verb: endDeliveryVerb, merchant: merchant, arg: v, done: make(chan struct{}, 1)}
	}
	return f.commitTogether(ctx, batch)
}

// DelayTogether gives notices back that cannot be applied yet, as one batch.
func (f *Flow) DelayTogether(ctx context.Context, list []store.Notice) error {
	batch := make([]*task, len(list))
	for i := range list {
		batch[i] = &task{ctx: ctx, verb: endNoticeVerb, arg: &endedNotice{notice: list[i], again: time.Second}, done: make(chan struct{}, 1)}
	}
	return f.commitTogether(ctx, batch)
}

func (f *Flow) commitTogether(ctx context.Context, batch []*task) (err error) {
	f.lanes[0].commit(ctx, batch)
	for _, t := range batch {
		<-t.done
		err = errors.Join(err, t.err)
	}
	return err
}
