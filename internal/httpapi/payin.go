package httpapi

import (
	"context"
	"net/http"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Payins are the use cases of pay-ins, which payin.Service implements.
type Payins interface {
	Create(ctx context.Context, m store.Merchant, r *wire.PayinRequest) (p payment.Payin, replayed bool, err error)
	Replay(ctx context.Context, m store.Merchant, reference string, fp wire.Fingerprint) (p payment.Payin, found bool, err error)
	Cancel(ctx context.Context, merchant, id payment.ID) (payment.Payin, error)
}

// PayinReader reads pay-ins: [store.Store].
type PayinReader interface {
	Payin(ctx context.Context, merchant, id payment.ID) (payment.Payin, error)
	PayinPersonal(ctx context.Context, merchant, id payment.ID) (payment.PersonalData, error)
	Payins(ctx context.Context, merchant payment.ID, f store.Filter) ([]payment.Payin, error)
}

func (a *API) createPayin(c *call) error {
	return createOrder(a, c, creation[*wire.PayinRequest, payment.Payin]{
		decode: (*wire.Decoder).Payin,
		create: a.payins.Create,
		find:   a.findPayin,
		view:   a.payinView,
	})
}

// findPayin finds the pay-in of an earlier request like r. If it is not yet registered at
// its processor, findPayin tries that again.
func (a *API) findPayin(ctx context.Context, m store.Merchant, r *wire.PayinRequest) (p payment.Payin, found bool, err error) {
	p, found, err = a.payins.Replay(ctx, m, r.ReferenceID.V, r.Fingerprint)
	if err == nil && found && p.Status == payment.PayinPending && !p.Ready() {
		p, _, err = a.payins.Create(ctx, m, r)
	}
	return p, found, err
}

func (a *API) payinView(p *payment.Payin) ([]byte, error) {
	return wire.Payin(p, a.links(p), payment.PersonalData{})
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
	p, err := a.reader.Payin(c.ctx, c.merchant.ID, id)
	if err != nil {
		return readError(err)
	}
	personal, err := a.personalData(c, id, expand)
	if err != nil {
		return readError(err)
	}
	return showOrder(c, http.StatusOK, &p, func(p *payment.Payin) ([]byte, error) {
		return wire.Payin(p, a.links(p), personal)
	})
}

// personalData reads the personal data of a pay-in that expand includes.
func (a *API) personalData(c *call, id payment.ID, expand map[string]bool) (payment.PersonalData, error) {
	if len(expand) == 0 {
		return payment.PersonalData{}, nil
	}
	personal, err := a.reader.PayinPersonal(c.ctx, c.merchant.ID, id)
	if !expand["customer"] {
		personal.Customer = nil
	}
	if !expand["items"] {
		personal.Items = nil
	}
	return personal, err
}

func (a *API) cancelPayin(c *call) error {
	return cancelOrder(a, c, a.payins.Cancel, a.payinView)
}

func (a *API) listPayins(c *call) error {
	q := c.query()
	f := a.orderFilter(c, q, payment.OperationPayin)
	f.Status = q.oneOf("status", texts(payment.PayinStatuses))
	f.Method = payment.Method(q.oneOf("paymentMethod", texts(payment.Methods)))
	a.find(q, &f)
	a.findDocument(c, q, "customerDocument", store.SearchCustomerDocument, &f)
	a.findEmail(c, q, &f)
	if err := q.done(); err != nil {
		return err
	}
	return listOrders(a, c, f, listing[payment.Payin]{
		read: a.reader.Payins,
		id:   func(p *payment.Payin) payment.ID { return p.ID },
		view: a.payinView, operation: payment.OperationPayin,
	})
}
