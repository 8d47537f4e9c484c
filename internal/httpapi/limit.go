package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/wire"
)

// LimitReader reads what a merchant has used of its limits: [store.Store].
type LimitReader interface {
	LimitsUsed(ctx context.Context, merchant payment.ID, at time.Time) (limits.Usage, error)
}

func (a *API) getLimits(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	used, err := a.reader.LimitsUsed(c.ctx, c.merchant.ID, a.env.Clock.Now())
	if err != nil {
		return readError(err)
	}
	body, err := wire.Limits(&c.merchant.Limits, &used)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}
