package payin

import (
	"context"
	"errors"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/write"
)

// settleBatch is how many receivables settle in one commit.
const settleBatch = 256

// Settle is the step of the worker that makes pending money available, in the order of its times.
// Money that became due while no gateway ran, or while the clock was behind, settles in the next
// run. Nothing settles twice if the clock is set back.
func (s *Service) Settle(ctx context.Context) (int, error) {
	due, err := s.Store.ReceivablesDue(ctx, s.Env.Clock.Now(), settleBatch)
	if err != nil || len(due) == 0 {
		return 0, store.Problem(err)
	}
	ops := make([]write.Operation, len(due))
	for i, ref := range due {
		ops[i] = &settle{ref: ref}
	}
	errs := s.Writer.All(ctx, ops)
	did := 0
	for i := range errs {
		if store.Lasting(errs[i]) && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "receivable cannot settle", "receivable", due[i].ID, "error", errs[i])
			errs[i] = s.Writer.Do(ctx, write.OpenCase{Case: store.DamagedCase(due[i].Merchant, due[i].ID, "receivables"), Park: true})
		}
		if ops[i].(*settle).settled {
			did++
		}
	}
	return did, errors.Join(errs...)
}

// settle makes one receivable available.
type settle struct {
	ref     store.Ref
	settled bool
}

// Merchant implements [write.Operation].
func (v *settle) Merchant() payment.ID { return v.ref.Merchant }

// Class implements [write.Operation].
func (v *settle) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *settle) Needs(n *store.Needs) {
	n.Receivable(v.ref.Merchant, v.ref.ID)
	n.Balances(v.ref.Merchant)
}

// Decide implements [write.Operation].
func (v *settle) Decide(l *store.Loaded, c *store.Changes) error {
	v.settled = false
	r, ok := l.Receivable(v.ref.Merchant, v.ref.ID)
	if !ok || r.State != store.ReceivablePending || r.SettlesAt.After(l.Now()) { // it has changed since it was listed
		return nil
	}
	if net := r.Net(); net > 0 { // else all of it was taken
		if err := c.Post(r.Merchant, r.Payin, ledger.Settle(net).Of(r.ID)); err != nil {
			return err
		}
		if err := transition.RepayDebt(l, c, r.Merchant, r.Payin); err != nil {
			return err
		}
	}
	r.State, r.SettledAt = store.ReceivableSettled, l.Now()
	c.SetReceivable(r)
	v.settled = true
	return nil
}
