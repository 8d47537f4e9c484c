package flow

import (
	"context"
	"errors"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// ExpirePayins expires pay-ins whose time is over, up to limit of them, each
// in the commit that tells its merchant. Expiry is for people to see: money
// that comes later is booked all the same.
func (f *Flow) ExpirePayins(ctx context.Context, limit int) (int, error) {
	due, err := f.store.PayinsDue(ctx, f.env.Clock.Now(), limit)
	if err != nil || len(due) == 0 {
		return 0, public(err)
	}
	done := 0
	err = f.write(ctx, func(tx *store.Tx) error {
		done = 0
		for _, ref := range due {
			p, err := tx.Payin(ctx, ref.Merchant, ref.ID)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if p.ExpiresAt.After(tx.Now) {
				continue // somebody was faster
			}
			moved, err := f.movePayin(ctx, tx, &p, payment.OnExpire)
			if err != nil {
				return err
			}
			if moved {
				done++
			}
		}
		return nil
	})
	return done, err
}
