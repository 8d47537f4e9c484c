package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/account"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/store"
)

const (
	// balanceEvery is the time between two readings of an account's money, by any gateway.
	balanceEvery = 10 * time.Minute
	// balanceTimeout bounds the readings of all accounts.
	balanceTimeout = 20 * time.Second
)

// balanceReader reads the money of each account at its processor, where that can be read.
type balanceReader struct {
	store    *store.Store
	accounts *account.Registry
	clock    env.Clock

	tried map[string]time.Duration // monotonic, of this process
	began time.Duration
}

func newBalanceReader(s *store.Store, accounts *account.Registry, clock env.Clock) *balanceReader {
	return &balanceReader{store: s, accounts: accounts, clock: clock, tried: map[string]time.Duration{}, began: clock.Monotonic()}
}

// step reads the accounts that no gateway has read for ten minutes. A gateway that has just started
// waits that long too: its accounts have more urgent requests to make.
func (b *balanceReader) step(ctx context.Context) (int, error) {
	var due []string
	for _, id := range b.accounts.IDs() {
		now, last := b.clock.Monotonic(), b.began
		if tried, ok := b.tried[id]; ok {
			last = tried
		}
		if _, reads := b.accounts.Find(id).(processor.BalanceReader); !reads || now-last < balanceEvery || b.accounts.Allows(id, payment.UseTransfer) != nil {
			continue
		}
		r, err := query.ReadingOf(ctx, b.store, id)
		if err != nil {
			return 0, err
		}
		if since := b.clock.Now().Sub(r.At); since < 0 || since >= balanceEvery {
			b.tried[id] = now
			due = append(due, id)
		}
	}
	limited, cancel := b.clock.WithTimeout(ctx, balanceTimeout)
	defer cancel()
	errs := make([]error, len(due))
	var calls sync.WaitGroup
	for i, id := range due {
		calls.Go(func() {
			if reader, ok := b.accounts.Find(id).(processor.BalanceReader); ok {
				errs[i] = readBalance(limited, b.store, id, reader, b.clock.Now())
			}
		})
	}
	calls.Wait()
	return 0, errors.Join(errs...)
}

// readBalance reads and records the money of an account, and what the ledger has there.
func readBalance(ctx context.Context, s *store.Store, id string, reader processor.BalanceReader, now time.Time) error {
	there, err := reader.Balance(ctx)
	if err != nil {
		return fmt.Errorf("balance of account %s: %w", id, err)
	}
	all, err := s.AllBalances(ctx)
	if err != nil {
		return err
	}
	return query.RecordReading(ctx, s, query.Reading{Account: id, At: now, There: there.Amount, ToCome: there.ToCome, Here: -all[ledger.Clearing(id)]})
}
