package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Payouts are the use cases of payouts, which payout.Service implements.
type Payouts interface {
	Request(ctx context.Context, m store.Merchant, r *wire.PayoutRequest) (p payment.Payout, replayed bool, err error)
	Replay(ctx context.Context, m store.Merchant, reference string, fp wire.Fingerprint) (p payment.Payout, found bool, err error)
	Cancel(ctx context.Context, merchant, id payment.ID) (payment.Payout, error)
	Approve(ctx context.Context, merchant, id payment.ID, by actor.Author) (payment.Payout, error)
	Reject(ctx context.Context, merchant, id payment.ID, by actor.Author) (payment.Payout, error)
	RequestBatch(ctx context.Context, m store.Merchant, r *wire.PayoutBatchRequest) (b payment.PayoutBatch, replayed bool, err error)
	ReplayBatch(ctx context.Context, m store.Merchant, r *wire.PayoutBatchRequest) (b payment.PayoutBatch, found bool, err error)
}

// PayoutReader reads payouts: [store.Store].
type PayoutReader interface {
	Payout(ctx context.Context, merchant, id payment.ID) (payment.Payout, error)
	Payouts(ctx context.Context, merchant payment.ID, f store.Filter) ([]payment.Payout, error)
	ApprovalsOf(ctx context.Context, merchant payment.ID, payouts []payment.ID) (map[payment.ID]payment.Approvals, error)
	PayoutBatch(ctx context.Context, merchant, id payment.ID) (payment.PayoutBatch, error)
	PayoutBatches(ctx context.Context, merchant payment.ID, f store.Filter) ([]payment.PayoutBatch, error)
}

func (a *API) requestPayout(c *call) error {
	return createOrder(a, c, creation[*wire.PayoutRequest, payment.Payout]{
		decode: (*wire.Decoder).Payout,
		create: a.payouts.Request,
		find:   a.findPayout,
		view:   a.payoutView(c, false),
	})
}

// findPayout finds the payout of an earlier request like r.
func (a *API) findPayout(ctx context.Context, m store.Merchant, r *wire.PayoutRequest) (p payment.Payout, found bool, err error) {
	return a.payouts.Replay(ctx, m, r.ReferenceID.V, r.Fingerprint)
}

// payoutView shows a payout of the call's merchant.
func (a *API) payoutView(c *call, withBeneficiary bool) func(p *payment.Payout) ([]byte, error) {
	return func(p *payment.Payout) ([]byte, error) {
		var approvals payment.Approvals
		if p.Undecided() {
			counts, err := a.reader.ApprovalsOf(c.ctx, c.merchant.ID, []payment.ID{p.ID})
			if err != nil {
				return nil, readError(err)
			}
			approvals = counts[p.ID].Missing()
		}
		return wire.UndecidedPayout(p, approvals, withBeneficiary), nil
	}
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
	p, err := a.reader.Payout(c.ctx, c.merchant.ID, id)
	if errors.Is(err, db.ErrSealed) && !expand["beneficiary"] {
		err = nil // the rest is shown, as in the list
	}
	if err != nil {
		return readError(err)
	}
	return showOrder(c, http.StatusOK, &p, a.payoutView(c, expand["beneficiary"]))
}

func (a *API) cancelPayout(c *call) error {
	return cancelOrder(a, c, a.payouts.Cancel, a.payoutView(c, false))
}

func (a *API) listPayouts(c *call) error {
	q := c.query()
	f := a.orderFilter(c, q, payment.OperationPayout)
	f.Status, f.Statuses = q.several("status", texts(payment.PayoutStatuses))
	expand := q.expand("beneficiary")
	a.find(q, &f)
	a.findKey(c, q, &f)
	a.findDocument(c, q, "beneficiaryDocument", store.SearchBeneficiaryDocument, &f)
	if err := a.batchFilter(c, q, &f); err != nil {
		return err
	}
	if err := q.done(); err != nil {
		return err
	}
	var counts map[payment.ID]payment.Approvals
	return listOrders(a, c, f, listing[payment.Payout]{
		read: func(ctx context.Context, merchant payment.ID, f store.Filter) (list []payment.Payout, err error) {
			if list, err = a.reader.Payouts(ctx, merchant, f); err != nil {
				return nil, err
			}
			var undecided []payment.ID
			for i := range list {
				if list[i].Undecided() {
					undecided = append(undecided, list[i].ID)
				}
			}
			if len(undecided) > 0 {
				counts, err = a.reader.ApprovalsOf(ctx, merchant, undecided)
			}
			return list, err
		},
		id: func(p *payment.Payout) payment.ID { return p.ID },
		view: func(p *payment.Payout) ([]byte, error) {
			return wire.UndecidedPayout(p, counts[p.ID].Missing(), expand["beneficiary"]), nil
		},
		operation: payment.OperationPayout,
	})
}
