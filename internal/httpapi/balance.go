package httpapi

import (
	"context"
	"net/http"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/wire"
)

// BalanceReader reads balances: [store.Store].
type BalanceReader interface {
	Balances(ctx context.Context, merchant payment.ID) (ledger.Balances, error)
}

func (a *API) getBalance(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	balances, err := a.reader.Balances(c.ctx, c.merchant.ID)
	if err != nil {
		return readError(err)
	}
	body, err := wire.Balance(balances)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}
