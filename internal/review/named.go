package review

import (
	"context"
	"errors"
	"slices"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Named is the pay-in that the money of a case names, and its merchant.
type Named struct{ Merchant, Order payment.ID }

// names reports whether the money of a case names a pay-in: it came with the external id that this
// gateway derived for the pay-in, at an account that the pay-in was charged at. It was not booked
// for the pay-in because a restored backup lacked that until its request was repeated.
func names(c *store.Case, p *payment.Payin, charged bool) bool {
	return c.Kind == store.CaseUnmatchedReceipt && c.Params.Reason() == "" && c.Params["externalId"] == p.ExternalID &&
		(charged || c.Params["processor"] == p.Processor)
}

// namesOrder reports whether the money of the case names the pay-in that it is applied to.
func (v *Resolve) namesOrder(l *store.Loaded) bool {
	p, ok := l.Payin(v.owner(), v.Order)
	return ok && names(&v.opened, &p, l.ChargedAt(p.Merchant, p.ID, v.opened.Params["processor"]))
}

// named finds the pay-in that the money of a case names, if it can be paid; nil if there is none, or its
// row is damaged: then two people decide who owns the money.
func (s *Service) named(ctx context.Context, c *store.Case) (*Named, error) {
	owner, err := s.Store.MerchantOf(ctx, c.Params["externalId"])
	if err != nil || owner.IsZero() {
		return nil, err
	}
	p, _, err := s.Store.PayinByExternalID(ctx, owner, c.Params["externalId"])
	if errors.Is(err, store.ErrNotFound) || err != nil && ctx.Err() == nil && store.Lasting(err) {
		return nil, nil //nolint:nilnil // none is no error
	}
	if err != nil {
		return nil, err
	}
	charges, err := s.Store.Charges(ctx, owner, p.ID)
	if err != nil {
		return nil, err
	}
	charged := slices.ContainsFunc(charges, func(t store.Charge) bool { return t.Account == c.Params["processor"] })
	if payable(&p) != nil || !names(c, &p, charged) {
		return nil, nil //nolint:nilnil // none is no error
	}
	return &Named{owner, p.ID}, nil
}
