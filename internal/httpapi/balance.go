package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/wire"
)

// BalanceReader reads balances: [store.Store].
type BalanceReader interface {
	Balances(ctx context.Context, merchant payment.ID) (ledger.Balances, error)
	BalancesBefore(ctx context.Context, merchant payment.ID, t time.Time) (ledger.Balances, error)
}

func (a *API) getBalance(c *call) error {
	q := c.query()
	at := q.time("at")
	if err := q.done(); err != nil {
		return err
	}
	var balances ledger.Balances
	var err error
	if at.IsZero() {
		balances, err = a.reader.Balances(c.ctx, c.merchant.ID)
	} else {
		balances, err = a.reader.BalancesBefore(c.ctx, c.merchant.ID, at)
	}
	if err != nil {
		return readError(err)
	}
	body, err := wire.Balance(balances)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}
