package httpapi

import (
	"context"
	"net/http"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Refunds are the use cases of refunds, which refund.Service implements.
type Refunds interface {
	Create(ctx context.Context, m store.Merchant, payin payment.ID, r *wire.RefundRequest) (refund payment.Refund, replayed bool, err error)
	Replay(ctx context.Context, m store.Merchant, payin payment.ID, r *wire.RefundRequest) (refund payment.Refund, found bool, err error)
}

// RefundReader reads refunds: [store.Store].
type RefundReader interface {
	Refund(ctx context.Context, merchant, id payment.ID) (payment.Refund, error)
	Refunds(ctx context.Context, merchant payment.ID, f store.Filter) ([]payment.Refund, error)
}

func (a *API) createRefund(c *call) error {
	payin, err := c.id()
	if err != nil {
		return err
	}
	return createOrder(a, c, creation[*wire.RefundRequest, payment.Refund]{
		decode: (*wire.Decoder).Refund,
		create: func(ctx context.Context, m store.Merchant, r *wire.RefundRequest) (payment.Refund, bool, error) {
			return a.refunds.Create(ctx, m, payin, r)
		},
		find: func(ctx context.Context, m store.Merchant, r *wire.RefundRequest) (payment.Refund, bool, error) {
			return a.refunds.Replay(ctx, m, payin, r)
		},
		view: wire.Refund,
	})
}

func (a *API) getRefund(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	if err := c.query().done(); err != nil {
		return err
	}
	r, err := a.reader.Refund(c.ctx, c.merchant.ID, id)
	if err != nil {
		return readError(err)
	}
	return showOrder(c, http.StatusOK, &r, wire.Refund)
}

func (a *API) listRefunds(c *call) error { return a.listRefundsOf(c, payment.ID{}) }

func (a *API) listPayinRefunds(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	if _, err := a.reader.Payin(c.ctx, c.merchant.ID, id); err != nil {
		return readError(err)
	}
	return a.listRefundsOf(c, id)
}

// listRefundsOf lists the refunds of a pay-in, or all if it is zero.
func (a *API) listRefundsOf(c *call, payin payment.ID) error {
	q := c.query()
	f := a.orderFilter(c, q, payment.OperationRefund)
	f.Payin = payin
	f.Status, f.Statuses = q.several("status", texts(payment.RefundStatuses))
	a.find(q, &f)
	if err := q.done(); err != nil {
		return err
	}
	return listOrders(a, c, f, listing[payment.Refund]{
		read: a.reader.Refunds,
		id:   func(r *payment.Refund) payment.ID { return r.ID },
		view: wire.Refund, operation: payment.OperationRefund,
	})
}

// refundActions are the actions on a refund.
var refundActions = []string{"complete", "fail"}

func (a *API) sandboxRefund(c *call) error {
	id, action, err := c.action(refundActions)
	if err != nil {
		return err
	}
	return c.noContent(a.sandbox.RefundAction(c.ctx, id, action))
}
