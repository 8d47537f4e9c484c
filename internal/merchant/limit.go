package merchant

import (
	"context"

	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// SetLimits changes the limits of a merchant, or with the zero id those of new merchants,
// and returns them. Nodes apply them within 2 s. Errors: problem kind validation_failed.
func (s *Service) SetLimits(ctx context.Context, id payment.ID, change func(l *limits.Limits)) (l limits.Limits, err error) {
	err = s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) error {
		if l, err = tx.Limits(ctx, id); err != nil {
			return err
		}
		change(&l)
		if err := l.Check(); err != nil {
			return problem.New(problem.ValidationFailed, "The limit "+err.Error()+".").With(err)
		}
		return tx.SetLimits(ctx, id, &l)
	})
	return l, store.Problem(err)
}

// Accept makes the settings of a merchant valid as they are: see [store.AdminTx.AcceptMerchant].
func (s *Service) Accept(ctx context.Context, id payment.ID) error {
	return store.Problem(s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) error { return tx.AcceptMerchant(ctx, id) }))
}

// Unlimited lifts all limits, as a change of [Service.SetLimits].
func Unlimited(l *limits.Limits) { *l = limits.Limits{} }
