package httpapi

import (
	"context"
	"net/http"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Payins are the use cases of pay-ins, which payin.Service implements.
type Payins interface {
	Create(ctx context.Context, m store.Merchant, r *wire.PayinRequest) (p payment.Payin, replayed bool, err error)
	Replay(ctx context.Context, m store.Merchant, r *wire.PayinRequest) (p payment.Payin, found bool, err error)
	Cancel(ctx context.Context, merchant, id payment.ID) (payment.Payin, error)
}

// PayinReader reads pay-ins: [store.Store].
type PayinReader interface {
	Payin(ctx context.Context, merchant, id payment.ID) (payment.Payin, error)
	PayinPersonal(ctx context.Context, merchant, id payment.ID) (payment.PersonalData, error)
	PersonalOf(ctx context.Context, merchant payment.ID, payins []payment.ID) (map[payment.ID]payment.PersonalData, error)
	Charges(ctx context.Context, merchant, payin payment.ID) ([]store.Charge, error)
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
	p, found, err = a.payins.Replay(ctx, m, r)
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
	expand := q.expand("customer", "items", "attempts")
	if err := q.done(); err != nil {
		return err
	}
	p, err := a.reader.Payin(c.ctx, c.merchant.ID, id)
	if err != nil {
		return readError(err)
	}
	var more wire.PayinExpansion
	if more.Personal, err = a.personalData(c, id, expand); err != nil {
		return readError(err)
	}
	if expand["attempts"] {
		if more.Attempts, err = a.attempts(c, &p); err != nil {
			return readError(err)
		}
	}
	return showOrder(c, http.StatusOK, &p, func(p *payment.Payin) ([]byte, error) {
		return wire.ExpandedPayin(p, a.links(p), more)
	})
}

// attempts are the accounts that an order was tried at, in their order. One whose charge was
// generated offline was tried at its own only.
func (a *API) attempts(c *call, p *payment.Payin) ([]wire.PayinAttempt, error) {
	charges, err := a.reader.Charges(c.ctx, p.Merchant, p.ID)
	list := make([]wire.PayinAttempt, 0, len(charges)+1)
	for i := range charges {
		v := &charges[i]
		list = append(list, wire.PayinAttempt{
			Account: v.Account, Outcome: attemptOutcome(v, p), CreatedAt: wire.TimestampOf(v.CreatedAt), UpdatedAt: wire.TimestampOf(v.UpdatedAt),
		})
	}
	if len(list) == 0 {
		list = append(list, wire.PayinAttempt{
			Account: p.Processor, Outcome: attemptCharged, CreatedAt: wire.TimestampOf(p.CreatedAt), UpdatedAt: wire.TimestampOf(p.CreatedAt),
		})
	}
	return list, err
}

// Outcomes of an attempt.
const (
	attemptCharged  = "CHARGED"
	attemptPending  = "PENDING"
	attemptRefused  = "REFUSED"
	attemptNotSent  = "NOT_SENT"
	attemptCanceled = "CANCELED"
)

// attemptOutcome is what became of the charge at an account.
func attemptOutcome(v *store.Charge, p *payment.Payin) string {
	switch {
	case v.Account == p.Processor && p.Ready():
		return attemptCharged
	case v.State == store.ChargeEnded && v.Outcome == processor.Refused.String():
		return attemptRefused
	case v.State == store.ChargeEnded && v.Outcome == processor.NotSent.String():
		return attemptNotSent
	case v.State == store.ChargeEnded:
		return attemptCanceled
	default:
		return attemptPending
	}
}

// personalData reads the personal data of a pay-in that expand includes.
func (a *API) personalData(c *call, id payment.ID, expand map[string]bool) (payment.PersonalData, error) {
	if !expand["customer"] && !expand["items"] {
		return payment.PersonalData{}, nil
	}
	personal, err := a.reader.PayinPersonal(c.ctx, c.merchant.ID, id)
	return expanded(personal, expand), err
}

// expandPayins makes a list show personal data of its pay-ins.
func (a *API) expandPayins(l *listing[payment.Payin], expand map[string]bool) {
	var personal map[payment.ID]payment.PersonalData
	l.entryBytes = entryBytes + bodyMax
	l.read = func(ctx context.Context, merchant payment.ID, f store.Filter) ([]payment.Payin, error) {
		list, err := a.reader.Payins(ctx, merchant, f)
		if err != nil {
			return nil, err
		}
		ids := make([]payment.ID, len(list))
		for i := range list {
			ids[i] = list[i].ID
		}
		personal, err = a.reader.PersonalOf(ctx, merchant, ids)
		return list, err
	}
	l.view = func(p *payment.Payin) ([]byte, error) {
		return wire.ExpandedPayin(p, a.links(p), wire.PayinExpansion{Personal: expanded(personal[p.ID], expand)})
	}
}

// expanded is the personal data that expand includes.
func expanded(personal payment.PersonalData, expand map[string]bool) payment.PersonalData {
	if !expand["customer"] {
		personal.Customer = nil
	}
	if !expand["items"] {
		personal.Items = nil
	}
	return personal
}

func (a *API) cancelPayin(c *call) error {
	return cancelOrder(a, c, a.payins.Cancel, a.payinView)
}

func (a *API) listPayins(c *call) error {
	q := c.query()
	f := a.orderFilter(c, q, payment.OperationPayin)
	if reference, ok := q.get("referenceId"); ok && f.ExternalID != "" {
		f.PublicExternalID = a.reader.ExternalID(&c.merchant, payment.OperationPublicPayin, reference)
	}
	f.Status, f.Statuses = q.several("status", texts(payment.PayinStatuses))
	f.PaidFrom, f.PaidTo = q.time("paidFrom"), q.time("paidTo")
	expand := q.expand("customer", "items")
	f.Method = payment.Method(q.oneOf("paymentMethod", texts(payment.Methods)))
	a.find(q, &f)
	a.findDocument(c, q, "customerDocument", store.SearchCustomerDocument, &f)
	a.findEmail(c, q, &f)
	if err := q.done(); err != nil {
		return err
	}
	l := listing[payment.Payin]{
		read: a.reader.Payins,
		id:   func(p *payment.Payin) payment.ID { return p.ID },
		view: a.payinView, operation: payment.OperationPayin,
	}
	if len(expand) > 0 {
		a.expandPayins(&l, expand)
	}
	return listOrders(a, c, f, l)
}
