package flow

import (
	"context"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Doubt is what a claim leaves whose COMMIT is unknown.
func (f *Flow) Doubt() { f.doubt() }

// Work is a request of a merchant, for tests of batches.
type Work struct {
	Merchant payment.ID
	Run      func(tx *store.Tx) error
}

// Together commits works as one batch and returns what each is answered.
func (f *Flow) Together(ctx context.Context, works ...Work) []error {
	v := each("work", func(_ context.Context, tx *store.Tx, w Work) error { return w.Run(tx) })
	batch := make([]*task, len(works))
	for i, w := range works {
		batch[i] = &task{ctx: ctx, verb: v, merchant: w.Merchant, arg: w, done: make(chan struct{}, 1)}
	}
	f.lanes[0].commit(ctx, batch)
	errs := make([]error, len(batch))
	for i, t := range batch {
		<-t.done
		errs[i] = t.err
	}
	return errs
}

// Queue leaves a work to the first lane, as a request or as a duty; done is told
// when it is durable.
func (f *Flow) Queue(ctx context.Context, duty bool, w Work) (done <-chan struct{}, err error) {
	v := each("work", func(_ context.Context, tx *store.Tx, w Work) error { return w.Run(tx) })
	v.duty = duty
	t := &task{ctx: ctx, verb: v, merchant: w.Merchant, arg: w, done: make(chan struct{}, 1)}
	_, err = f.lanes[0].enqueue(t)
	return t.done, err
}

// CrowdedAfter says whether a lane is crowded whose batches found so many
// requests waiting.
func CrowdedAfter(waiting ...int) bool {
	var d depth
	for _, n := range waiting {
		d.note(n)
	}
	return d.crowded()
}
