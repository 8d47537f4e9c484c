package httpapi

import (
	"net/http"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

func (a *API) createPayin(c *call) error {
	body, release, err := c.body()
	if err != nil {
		return err
	}
	key, err := c.idempotencyKey()
	if err != nil {
		release()
		return err
	}
	q, fault := decodePayin(body, a.decoding(c))
	release()
	if fault != nil {
		return a.replayPayin(c, q, fault)
	}
	q.IdempotencyKey = key
	p, replayed, err := a.flow.CreatePayin(c.r.Context(), c.merchant, q)
	a.env.Inject(env.BeforeAnswer)
	if err != nil {
		return c.bare(err)
	}
	c.markReplayed(replayed)
	return a.payin(c, http.StatusCreated, &p, payment.PersonalData{})
}

// replayPayin answers a request that would be refused today, but was taken
// when it came first.
func (a *API) replayPayin(c *call, q *payment.PayinRequest, fault *problem.Error) error {
	if !repeats(fault, q.ReferenceID) {
		return fault
	}
	p, found, err := a.flow.ReplayPayin(c.r.Context(), c.merchant, q.ReferenceID.V, q.Fingerprint)
	switch {
	case err != nil:
		return c.bare(err)
	case !found:
		return fault
	case p.Status == payment.PayinPending && !p.Ready():
		// The same request is taken up where it stood.
		if p, _, err = a.flow.CreatePayin(c.r.Context(), c.merchant, q); err != nil {
			return c.bare(err)
		}
	}
	c.markReplayed(true)
	return a.payin(c, http.StatusCreated, &p, payment.PersonalData{})
}

func (a *API) payin(c *call, status int, p *payment.Payin, personal payment.PersonalData) error {
	body, err := p.JSON(a.links(p), personal)
	if err != nil {
		return err
	}
	return c.json(status, body)
}

func (a *API) getPayin(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	q := c.query()
	expand := q.expand("customer", "items")
	if err := q.done(); err != nil {
		return err
	}
	p, err := a.reader.Payin(c.r.Context(), c.merchant.ID, id)
	if err != nil {
		return readError(err)
	}
	var personal payment.PersonalData
	if len(expand) > 0 {
		all, err := a.reader.PayinPersonal(c.r.Context(), c.merchant.ID, id)
		if err != nil {
			return readError(err)
		}
		if expand["customer"] {
			personal.Customer = all.Customer
		}
		if expand["items"] {
			personal.Items = all.Items
		}
	}
	return a.payin(c, http.StatusOK, &p, personal)
}

func (a *API) cancelPayin(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	p, err := a.flow.CancelPayin(c.r.Context(), c.merchant.ID, id)
	a.env.Inject(env.BeforeAnswer)
	if err != nil {
		return err
	}
	return a.payin(c, http.StatusOK, &p, payment.PersonalData{})
}

func (a *API) listPayins(c *call) error {
	q := c.query()
	f := a.filter(c, q, payment.OperationPayin)
	f.Status = q.oneOf("status", texts(payment.PayinStatuses))
	f.Method = payment.Method(q.oneOf("paymentMethod", texts(payment.Methods)))
	if err := q.done(); err != nil {
		return err
	}
	list, err := a.reader.Payins(c.r.Context(), c.merchant.ID, f.plusOne())
	if err != nil {
		return readError(err)
	}
	return writePage(a, c, list, f.Limit, func(p *payment.Payin) (payment.ID, []byte, error) {
		body, err := p.JSON(a.links(p), payment.PersonalData{})
		return p.ID, body, err
	})
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// filter reads the parameters that both lists of orders have.
func (a *API) filter(c *call, q *query, op payment.Operation) orderFilter {
	f := orderFilter{Filter: store.Filter{Limit: q.limit()}}
	if reference, ok := q.get("referenceId"); ok {
		if !payment.ValidReference(reference) {
			q.fault("referenceId", payment.CodeInvalidFormat, "must be 1 to 128 characters")
		}
		f.ExternalID = a.flow.ExternalID(c.merchant, op, reference)
	}
	f.CreatedFrom, f.CreatedTo = q.time("createdFrom"), q.time("createdTo")
	f.Before = a.cursorID(c, q)
	return f
}

// orderFilter selects a page of orders.
type orderFilter struct{ store.Filter }

// plusOne asks for one more than the page has, which tells whether it is the last.
func (f orderFilter) plusOne() store.Filter {
	f.Limit++
	return f.Filter
}
