package account

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Refused credentials are tried again after half of the time since the suspension, within
// these bounds.
const (
	checkWaitMin = 15 * time.Second
	checkWaitMax = 5 * time.Minute
)

// checkTimeout bounds one try.
const checkTimeout = 10 * time.Second

// errChanged means that an account was changed meanwhile: the answer was about an earlier
// version.
var errChanged = errors.New("account: changed meanwhile")

// CheckCredentials is the step of the worker that suspends accounts whose processors refuse
// the credentials, and resumes the ones that it has suspended once they are accepted. An
// account that a person has suspended stays so. All are checked at once: a processor that
// does not answer delays no other. One run is always enough, so it returns 0.
func (r *Registry) CheckCredentials(ctx context.Context) (int, error) {
	var mu sync.Mutex
	var errs []error
	var calls sync.WaitGroup
	for _, id := range r.IDs() {
		v := r.get(id)
		driver, ok := v.proc.(processor.Authenticator)
		if !ok {
			continue
		}
		check := r.confirmRefusal
		switch {
		case v.account.Refused():
			check = r.tryAgain
		case v.account.State == payment.AccountSuspended || !driver.Refused():
			continue
		}
		calls.Go(func() {
			if err := check(ctx, &v.account, driver); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("account %s: %w", id, err))
			}
		})
	}
	calls.Wait()
	return 0, errors.Join(errs...)
}

// confirmRefusal suspends an account, with a case, if its processor refuses the credentials
// again.
func (r *Registry) confirmRefusal(ctx context.Context, a *store.Account, driver processor.Authenticator) error {
	cause := r.authenticate(ctx, driver)
	if !errors.Is(cause, processor.ErrCredentials) {
		return nil
	}
	err := r.changeVersion(ctx, a, "its processor refuses the credentials", func(tx *store.AdminTx, v *store.Account) {
		v.SuspendedFrom, v.State = v.State, payment.AccountSuspended
		v.SuspendedAt, v.CheckAt = tx.Now, tx.Now.Add(checkWaitMin)
	}, func(v *store.Account, c *store.Changes) {
		c.OpenCase(store.Case{
			Merchant: v.Merchant, ID: refusalCase(v), Kind: store.CaseAccountRefused,
			Params: store.Params{"account": v.ID, "since": v.SuspendedAt.UTC().Format(time.RFC3339)},
		})
	})
	if err == nil {
		r.log.ErrorContext(ctx, "account is suspended: its processor refuses the credentials", "account", a.ID, "cause", cause)
	}
	return r.followed(ctx, err)
}

// tryAgain resumes an account that the gateway has suspended if its processor accepts the
// credentials. One process at a time tries it.
func (r *Registry) tryAgain(ctx context.Context, a *store.Account, driver processor.Authenticator) error {
	claimed := false
	now, err := r.Store.Account(ctx, a.ID)
	if err != nil || !due(&now, r.Env.Clock.Now()) {
		return err
	}
	err = r.Store.Transact(ctx, func(tx *store.Tx) (err error) {
		claimed, err = tx.ClaimAccountCheck(ctx, a.ID, a.Version, tx.Now.Add(checkWait(a, tx.Now)))
		return err
	})
	if err != nil || !claimed {
		return store.Problem(err)
	}
	if r.authenticate(ctx, driver) != nil {
		return nil
	}
	err = r.changeVersion(ctx, a, "its processor accepts the credentials", func(_ *store.AdminTx, v *store.Account) { v.State, v.SuspendedFrom = v.SuspendedFrom, "" },
		func(v *store.Account, c *store.Changes) {
			c.CloseCase(v.Merchant, refusalCase(v), store.ResolvedByProof)
		})
	if err == nil {
		r.log.InfoContext(ctx, "account is resumed: its processor accepts the credentials", "account", a.ID)
	}
	return r.followed(ctx, err)
}

// authenticate tries the credentials once.
func (r *Registry) authenticate(ctx context.Context, driver processor.Authenticator) error {
	limited, cancel := r.Env.Clock.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return driver.Authenticate(limited)
}

// checkWait is the wait before the next try, at now.
func checkWait(a *store.Account, now time.Time) time.Duration {
	return min(max(now.Sub(a.SuspendedAt)/2, checkWaitMin), checkWaitMax)
}

// due reports whether credentials are to be tried now. A try that is further away than the
// wait was scheduled by a clock that was ahead.
func due(a *store.Account, now time.Time) bool {
	return a.Refused() && (!a.CheckAt.After(now) || a.CheckAt.After(now.Add(checkWait(a, now))))
}

// refusalCase is the id of the case about a suspension: always the same, so that it is opened
// once.
func refusalCase(a *store.Account) payment.ID {
	return store.CaseID("refused %s %d", a.ID, a.SuspendedAt.UnixMicro())
}

// changeVersion changes an account and its case in one commit, unless the account has
// another version by now: errChanged.
func (r *Registry) changeVersion(ctx context.Context, a *store.Account, why string, change func(tx *store.AdminTx, v *store.Account), review func(v *store.Account, c *store.Changes)) error {
	return r.Store.Administer(ctx, actor.Author{Actor: actor.System, Reason: why}, func(tx *store.AdminTx) error {
		next, err := tx.ChangeAccount(ctx, a.ID, func(v *store.Account) error {
			if v.Version != a.Version {
				return errChanged
			}
			change(tx, v)
			return nil
		})
		if err != nil {
			return err
		}
		return tx.Apply(ctx, &store.Needs{}, func(_ *store.Loaded, c *store.Changes) error {
			review(&next, c)
			return nil
		})
	})
}

// followed follows the table after a change; it is no error if another process was first.
func (r *Registry) followed(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, errChanged) {
		_, err = r.Follow(ctx)
	}
	return store.Problem(err)
}
