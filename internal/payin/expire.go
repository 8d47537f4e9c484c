package payin

import (
	"context"
	"errors"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/write"
)

// expireBatch is how many pay-ins expire in one commit.
const expireBatch = 256

// Expire is the step of the worker that expires overdue pay-ins. Expiry is
// informational: money that arrives later is still booked.
func (s *Service) Expire(ctx context.Context) (int, error) {
	due, err := s.Store.PayinsDue(ctx, s.Env.Clock.Now(), expireBatch)
	if err != nil || len(due) == 0 {
		return 0, store.Problem(err)
	}
	ops := make([]write.Operation, len(due))
	for i, ref := range due {
		ops[i] = &expire{ref: ref, links: s.Links}
	}
	errs := s.Writer.All(ctx, ops)
	for i := range errs {
		if store.Lasting(errs[i]) && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "pay-in cannot expire", "payin", due[i].ID, "error", errs[i])
			errs[i] = s.Writer.Do(ctx, write.OpenCase{Case: store.DamagedCase(due[i].Merchant, due[i].ID, "payins"), Park: true})
		}
	}
	err = errors.Join(errs...)
	did := 0
	for _, op := range ops {
		if op.(*expire).moved {
			did++
		}
	}
	return did, err
}

// expire is the expiry of one pay-in.
type expire struct {
	ref   store.Ref
	links transition.Links
	moved bool
}

// Merchant implements [write.Operation].
func (v *expire) Merchant() payment.ID { return v.ref.Merchant }

// Class implements [write.Operation].
func (v *expire) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *expire) Needs(n *store.Needs) {
	n.Payin(v.ref.Merchant, v.ref.ID)
	n.Charge(v.ref.Merchant, v.ref.ID)
	n.ExpectDeliveries(v.ref.Merchant, 1)
}

// Decide implements [write.Operation].
func (v *expire) Decide(l *store.Loaded, c *store.Changes) (err error) {
	v.moved = false
	p, ok := l.Payin(v.ref.Merchant, v.ref.ID)
	if !ok || p.ExpiresAt.After(l.Now()) { // it has changed since it was listed
		return nil
	}
	v.moved, err = transition.Payin(l, c, &p, v.links, payment.OnExpire)
	if v.moved {
		endCharge(l, c, &p)
	}
	return err
}
