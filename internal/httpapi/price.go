package httpapi

import (
	"net/http"

	"github.com/porteira/porteira/internal/wire"
)

func (a *API) listPrices(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	body, err := wire.Prices(c.merchant.Prices)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}
