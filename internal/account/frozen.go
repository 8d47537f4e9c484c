package account

import (
	"context"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// Frozen returns whether payouts of an account wait, because the database was restored and
// the account's transfers are not read yet.
func (s *Service) Frozen(ctx context.Context) (func(id string) bool, error) {
	inst, err := s.Store.ReadInstallation(ctx)
	if err != nil {
		return nil, store.Problem(err)
	}
	if inst.History == 0 {
		return func(string) bool { return false }, nil
	}
	feeds, err := s.Store.Feeds(ctx)
	if err != nil {
		return nil, store.Problem(err)
	}
	cleared := store.Cleared(feeds, inst.History)
	return func(id string) bool { return !cleared[id] }, nil
}

// Compared lets the payouts of an account continue after a restore, on the decision of a
// person who has compared the processor's transfers: d has its actor, reason and evidence. The
// decision closes a case of its own. Errors: problem kinds not_found, invalid_state if they do
// not wait.
func (s *Service) Compared(ctx context.Context, id string, d store.Decision) (store.Account, error) {
	a, err := s.Find(ctx, id)
	if err != nil {
		return a, err
	}
	frozen, err := s.Frozen(ctx)
	if err != nil {
		return a, err
	}
	if !frozen(id) {
		return a, problem.New(problem.InvalidState, "The payouts of the account do not wait.")
	}
	now := s.Env.Clock.Now()
	v := store.Case{ID: s.Env.IDs.NewID(now), Kind: store.CaseAccountFrozen, Params: store.Params{"processor": id}}
	d.ID, d.Case, d.Action, d.Resolution, d.Params = s.Env.IDs.NewID(now), v.ID, store.DecisionResolved, store.ResolvedCompared, v.Params
	return a, store.Problem(s.Store.Transact(ctx, func(tx *store.Tx) error {
		if err := tx.ClearAccount(ctx, id); err != nil {
			return err
		}
		var n store.Needs
		n.Case(v.Merchant, v.ID)
		return tx.Apply(ctx, &n, func(_ *store.Loaded, c *store.Changes) error {
			c.OpenCase(v)
			c.AddDecision(d)
			c.CloseCase(v.Merchant, v.ID, d.Resolution)
			return nil
		})
	}))
}
