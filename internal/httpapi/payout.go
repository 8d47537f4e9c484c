package httpapi

import (
	"net/http"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

func (a *API) requestPayout(c *call) error {
	body, release, err := c.body()
	if err != nil {
		return err
	}
	key, err := c.idempotencyKey()
	if err != nil {
		release()
		return err
	}
	q, fault := decodePayout(body, a.decoding(c))
	release()
	if fault != nil {
		return a.replayPayout(c, q, fault)
	}
	q.IdempotencyKey = key
	p, replayed, err := a.flow.RequestPayout(c.r.Context(), c.merchant, q)
	a.env.Inject(env.BeforeAnswer)
	if err != nil {
		return err
	}
	c.markReplayed(replayed)
	return c.payout(http.StatusCreated, &p, false)
}

// replayPayout is replayPayin for payouts.
func (a *API) replayPayout(c *call, q *payment.PayoutRequest, fault *problem.Error) error {
	if !repeats(fault, q.ReferenceID) {
		return fault
	}
	p, found, err := a.flow.ReplayPayout(c.r.Context(), c.merchant, q.ReferenceID.V, q.Fingerprint)
	if err != nil {
		return err
	}
	if !found {
		return fault
	}
	c.markReplayed(true)
	return c.payout(http.StatusCreated, &p, false)
}

func (c *call) payout(status int, p *payment.Payout, withBeneficiary bool) error {
	body, err := p.JSON(withBeneficiary)
	if err != nil {
		return err
	}
	return c.json(status, body)
}

func (a *API) getPayout(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	q := c.query()
	expand := q.expand("beneficiary")
	if err := q.done(); err != nil {
		return err
	}
	p, err := a.reader.Payout(c.r.Context(), c.merchant.ID, id)
	if err != nil {
		return readError(err)
	}
	return c.payout(http.StatusOK, &p, expand["beneficiary"])
}

func (a *API) cancelPayout(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	p, err := a.flow.CancelPayout(c.r.Context(), c.merchant.ID, id)
	a.env.Inject(env.BeforeAnswer)
	if err != nil {
		return err
	}
	return c.payout(http.StatusOK, &p, false)
}

func (a *API) listPayouts(c *call) error {
	q := c.query()
	f := a.filter(c, q, payment.OperationPayout)
	f.Status = q.oneOf("status", texts(payment.PayoutStatuses))
	if err := q.done(); err != nil {
		return err
	}
	list, err := a.reader.Payouts(c.r.Context(), c.merchant.ID, f.plusOne())
	if err != nil {
		return readError(err)
	}
	return writePage(a, c, list, f.Limit, func(p *payment.Payout) (payment.ID, []byte, error) {
		body, err := p.JSON(false)
		return p.ID, body, err
	})
}
