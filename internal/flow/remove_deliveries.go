package flow

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// BeginRemoval says that deliveries from before a time may go, as they are kept
// for so long. It returns the time before which they may: an earlier one where
// that moves too far at once; see [store.Tx.NoteRemoval].
func (f *Flow) BeginRemoval(ctx context.Context, before time.Time, kept time.Duration) (border time.Time, err error) {
	err = f.write(ctx, func(tx *store.Tx) error {
		border, err = tx.NoteRemoval(ctx, before, kept)
		return err
	})
	return border, err
}

// RemoveDeliveries looks at up to limit of a merchant's deliveries, behind the
// one with the id after, and removes those that have been finished since before
// a time. last is where to go on; looked says how many it looked at: fewer than
// limit where there are no more. [Flow.BeginRemoval] comes first.
func (f *Flow) RemoveDeliveries(ctx context.Context, merchant, after payment.ID, before time.Time, limit int) (last payment.ID, looked int, removed int64, err error) {
	old, err := f.store.OldDeliveries(ctx, merchant, after, before, limit)
	if err != nil {
		return after, 0, 0, public(err)
	}
	if old.Finished > 0 { // else there is nothing to commit
		err = f.write(ctx, func(tx *store.Tx) error {
			removed, err = tx.RemoveDeliveries(ctx, old, before)
			return err
		})
	}
	return old.Last, old.Count, removed, err
}
