package httpapi

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/api"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

func (a *API) getBalance(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	b, err := a.reader.Balances(c.r.Context(), c.merchant.ID)
	if err != nil {
		return readError(err)
	}
	body, err := json.Marshal(struct {
		Currency  string      `json:"currency"`
		Available money.Cents `json:"available"`
		Pending   money.Cents `json:"pending"`
		Held      money.Cents `json:"held"`
		Disputed  money.Cents `json:"disputed"`
		Unapplied money.Cents `json:"unapplied"`
		Owed      money.Cents `json:"owed"`
	}{
		payment.Currency, b[ledger.Available], b[ledger.Pending], b[ledger.Held], b[ledger.Disputed],
		b[ledger.Unapplied], -b[ledger.Owed], // a debt stands below zero in the books
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}

func (a *API) getContract(c *call) error { return c.json(http.StatusOK, api.JSON()) }

var healthy = []byte(`{"status":"ok"}`)

func (a *API) getHealth(c *call) error { return c.json(http.StatusOK, healthy) }

func (a *API) getReadiness(c *call) error {
	if a.ready != nil {
		if err := a.ready(c.r.Context()); err != nil {
			return problem.New(problem.Unavailable, "The gateway cannot serve requests now.").With(err)
		}
	}
	return c.json(http.StatusOK, healthy)
}

// receiveNotice hands a notice to its door, which reads the header
// X-Request-Id of the answer where it needs a name for the request.
func (a *API) receiveNotice(c *call) error {
	w := &watched{ResponseWriter: c.w, status: http.StatusOK}
	defer func() { c.status = w.status }()
	a.inbound.ServeHTTP(w, c.r)
	return nil
}

// watched remembers the status of an answer.
type watched struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *watched) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap serves [http.ResponseController].
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
