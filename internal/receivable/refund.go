package receivable

import (
	"fmt"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// MoveRefunded changes the refunded amount of a pay-in, its fee, and its status: a part of a refund
// reached the payer, or came back, by that amount.
func MoveRefunded(l *store.Loaded, c *store.Changes, payin *payment.Payin, p *payment.RefundPart, links transition.Links, by money.Cents) error {
	if err := moveFee(l, c, payin, p, by); err != nil {
		return err
	}
	before := payin.RefundedAmount
	payin.RefundedAmount += by
	on := payment.PayinRefundTrigger(payin, before)
	moved, err := transition.Payin(l, c, payin, links, on)
	if err == nil && !moved {
		err = fmt.Errorf("receivable: no cell for %s of a pay-in that is %s", on, payin.Status)
	}
	return err
}

// moveFee gives the part of the order's fee back that a part of a refund has, or charges it
// again.
func moveFee(l *store.Loaded, c *store.Changes, payin *payment.Payin, p *payment.RefundPart, by money.Cents) error {
	b := l.Balances(p.Merchant)
	fee := -p.FeeRefunded
	entry := ledger.RechargeFee(b[ledger.Available], p.FeeRefunded)
	if by > 0 {
		fee = FeeBack(payin, l.RefundPartsOf(p.Merchant, p.Payin), by)
		entry = ledger.RefundFee(b[ledger.Owed], fee)
	}
	if fee == 0 {
		return nil
	}
	payin.Fee -= fee
	p.FeeRefunded += fee
	*p = c.SetRefundPart(*p)
	return c.Post(p.Merchant, payin.ID, entry)
}
