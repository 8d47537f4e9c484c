package review

import (
	"context"
	"strconv"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// EndWait ends the wait of an account after a cold start by hand: one person proposes it, and another
// confirms it. r has the actor, reason and evidence. Errors: problem kinds validation_failed, and
// invalid_state if payouts of the account do not wait.
func (s *Service) EndWait(ctx context.Context, account string, r Request) (Result, error) {
	r.How = store.ResolvedCompared
	if err := invalid((&Resolve{Request: r.clean()}).texts(true)); err != nil {
		return Result{}, err
	}
	inst, err := s.Store.ReadInstallation(ctx)
	if err != nil {
		return Result{}, store.Problem(err)
	}
	frozen, err := s.Store.Frozen(ctx)
	if err != nil {
		return Result{}, store.Problem(err)
	}
	if !frozen(account) {
		return Result{}, errNotFrozen
	}
	v := store.Case{
		ID: store.CaseID("wait of account %s in history %d", account, inst.History), Kind: store.CaseAccountFrozen, Subject: store.FrozenAccount(account),
		Params: store.Params{"processor": account, "history": strconv.FormatInt(inst.History, 10)},
	}
	if err := s.Writer.Do(ctx, write.OpenCase{Case: v}); err != nil {
		return Result{}, err
	}
	r.Case = v.ID
	return s.Resolve(ctx, r)
}

var errNotFrozen = problem.New(problem.InvalidState, "The payouts of the account do not wait.")

func needsTransfers(v *Resolve, n *store.Needs) {
	k := store.Transfers(v.opened.Params["processor"])
	n.NewFeed(store.Feed{FeedKey: k}) // of a processor that does not list transfers
	n.Feed(k)
}

// checkFrozen returns a problem unless the account waits since the start that the case is about.
func checkFrozen(v *Resolve, l *store.Loaded) error {
	f, _ := l.Feed(store.Transfers(v.opened.Params["processor"]))
	switch {
	case strconv.FormatInt(v.history.Number, 10) != v.opened.Params["history"]:
		return problem.New(problem.InvalidState, "The gateway has started again since, and may run on an older copy of its database. Compare the transfers again, and propose it with porteira account resume.")
	case f.Cleared == v.history.Number:
		return errNotFrozen
	default:
		return nil
	}
}

// endWait lets the payouts and refunds of an account continue.
func endWait(v *Resolve, l *store.Loaded, c *store.Changes) error {
	f, _ := l.Feed(store.Transfers(v.opened.Params["processor"]))
	f.Cleared, f.ClearedAt = v.history.Number, l.Now()
	c.SetFeed(f)
	c.CloseCases(payment.ID{}, v.opened.Subject, v.opened.Kind, v.How) // and those of earlier histories
	return nil
}
