package outgoing_test

import (
	"errors"
	"fmt"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// claimLimit is more payouts than are ever due.
const claimLimit = 1000

func claimSends(g *coretest.Gateway) *outgoing.ClaimSends {
	return g.Outgoing.NewClaimSends(due(g), claimLimit)
}

func claimLookUps(g *coretest.Gateway) *outgoing.ClaimLookUps {
	return g.Outgoing.NewClaimLookUps(due(g), claimLimit)
}

func due(g *coretest.Gateway) store.Due {
	return store.Due{Merchant: g.Merchant.ID, Processor: coretest.BankName}
}

// errRolledBack rolls a transaction back.
var errRolledBack = errors.New("rolled back")

// rollBack decides an operation, and rolls its transaction back. A refused one adds no changes.
func rollBack(g *coretest.Gateway, op write.Operation) {
	g.T.Helper()
	var needs store.Needs
	op.Needs(&needs)
	_, err := g.Store.Commit(g.T.Context(), &needs, store.Capacity{}, func(l *store.Loaded, c *store.Changes) error {
		if err := op.Decide(l, c); err != nil && c.Len() > 0 {
			g.T.Errorf("%d changes of an operation that was refused", c.Len())
		}
		return errRolledBack
	})
	if !errors.Is(err, errRolledBack) {
		g.T.Errorf("rolled back: %v", err)
	}
}

func lastEvent(g *coretest.Gateway) payment.Event {
	g.T.Helper()
	last, err := g.Store.LastEvent(g.T.Context(), g.Merchant.ID)
	g.Must(err)
	list, err := g.Store.Events(g.T.Context(), g.Merchant.ID, last-1, 1)
	g.Must(err)
	if len(list) != 1 {
		return payment.Event{}
	}
	return list[0]
}

// request requests a payout under a reference that is used once.
func request(g *coretest.Gateway, reference string) payment.Payout {
	g.T.Helper()
	return g.Payout(fmt.Sprint(reference, " ", g.Env.Random.Int64N(1<<62)), int64(amount))
}

func change(g *coretest.Gateway, p payment.Payout, to func(p *payment.Payout)) payment.Payout {
	g.T.Helper()
	g.Must(g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
		var needs store.Needs
		needs.Payout(p.Merchant, p.ID)
		return tx.Apply(g.T.Context(), &needs, func(l *store.Loaded, c *store.Changes) error {
			stored, _ := l.Payout(p.Merchant, p.ID)
			to(&stored)
			c.SetPayout(stored)
			return nil
		})
	}))
	return g.ReadPayout(p)
}

func addSend(g *coretest.Gateway, s store.Send) {
	g.T.Helper()
	g.Must(g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
		return tx.Apply(g.T.Context(), &store.Needs{}, func(_ *store.Loaded, c *store.Changes) error {
			c.AddSend(s)
			return nil
		})
	}))
}
