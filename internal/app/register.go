package app

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
)

// register renews the gateway's registrations for notices at banks of other processes, and
// the clock of the shared one.
func (a *App) register(ctx context.Context) (int, error) {
	err := registerAll(ctx, a.env.Clock, a.accounts, a.NoticeURL)
	if a.bank != nil && a.bank.inside == nil {
		err = errors.Join(err, a.bank.control.SetOffset(ctx, a.clock.Offset()))
	}
	return 0, err
}

// checkAccounts checks the credentials of accounts, and when their certificates expire.
func (a *App) checkAccounts(ctx context.Context) (int, error) {
	_, err := a.accounts.CheckCredentials(ctx)
	_, other := a.accounts.CheckCertificates(ctx)
	return 0, errors.Join(err, other)
}

// registerAll registers the address of each account for notices, all at once: a bank that
// does not answer delays no other.
func registerAll(ctx context.Context, clock env.Clock, accounts processor.Accounts, noticeURL func(ctx context.Context, id string) (string, error)) error {
	var mu sync.Mutex
	var errs []error
	var calls sync.WaitGroup
	limited, cancel := clock.WithTimeout(ctx, registerTimeout)
	defer cancel()
	for _, id := range accounts.IDs() {
		registrar, ok := accounts.Find(id).(processor.Registrar)
		if !ok {
			continue
		}
		calls.Go(func() {
			url, err := noticeURL(limited, id)
			if err == nil {
				err = registrar.Register(limited, url, registerFor)
			}
			if err != nil {
				mu.Lock()
				errs = append(errs, fmt.Errorf("register account %s for notices: %w", id, err))
				mu.Unlock()
			}
		})
	}
	calls.Wait()
	return errors.Join(errs...)
}
