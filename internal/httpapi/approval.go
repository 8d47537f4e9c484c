package httpapi

import (
	"context"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/wire"
)

// actor names the credential of the call in the record of an approval.
func (c *call) actor() actor.Actor {
	if c.credential == nil { // anonymous
		return actor.Credential("")
	}
	return actor.Credential(c.credential.KeyID)
}

func (a *API) approvePayout(c *call) error {
	return cancelOrder(a, c, func(ctx context.Context, merchant, id payment.ID) (payment.Payout, error) {
		return a.payouts.Approve(ctx, merchant, id, actor.Author{Actor: c.actor()})
	}, a.payoutView(c, false))
}

func (a *API) rejectPayout(c *call) error {
	if _, err := c.id(); err != nil {
		return err
	}
	reason := ""
	if c.r.ContentLength != 0 {
		var invalid *problem.Error
		if reason, invalid = readJSON(c, wire.DecodeRejection); invalid != nil {
			return invalid
		}
	}
	return cancelOrder(a, c, func(ctx context.Context, merchant, id payment.ID) (payment.Payout, error) {
		return a.payouts.Reject(ctx, merchant, id, actor.Author{Actor: c.actor(), Reason: reason})
	}, a.payoutView(c, false))
}
