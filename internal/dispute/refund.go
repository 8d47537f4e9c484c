package dispute

import (
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/receivable"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// ShowBefore makes a pay-in that is now paid in full show earlier effects on a part of it: disputes
// with money of it, and refunds. Their money was taken at that time.
func ShowBefore(l *store.Loaded, c *store.Changes, p *payment.Payin, links transition.Links) error {
	v := following{l, c, p, links}
	if n := v.count(&payment.Dispute{}); n.open+n.lost > 0 {
		if _, err := transition.Payin(l, c, p, links, payment.OnDisputedBefore); err != nil {
			return err
		}
		if n.open == 0 {
			if _, err := transition.Payin(l, c, p, links, payment.OnChargedBackBefore); err != nil {
				return err
			}
		}
	}
	return ShowRefunds(l, c, p, links)
}

// ShowRefunds makes a pay-in show parts of refunds that had exceeded the rest of it and fit now,
// because a refund failed, a dispute returned money, or the order was paid in full. The money was
// taken before. The cases stay: a person compares the statement. All rows that Apply needs are
// loaded.
func ShowRefunds(l *store.Loaded, c *store.Changes, p *payment.Payin, links transition.Links) error {
	for _, part := range l.RefundPartsOf(p.Merchant, p.ID) {
		if !part.Surplus {
			continue
		}
		left := payment.RefundLeft(p, l.ReceiptsOf(p.Merchant, p.ID), l.RefundPartsOf(p.Merchant, p.ID), 0)
		if _, legal := payment.PayinTable.Next(p.Status, payment.OnRefundPart); !legal || part.OfOrder() == 0 || part.OfOrder() > left {
			continue
		}
		part.Surplus = false
		part = c.SetRefundPart(part)
		if part.Outcome != payment.PartPaid { // it is shown when it is
			continue
		}
		if err := receivable.MoveRefunded(l, c, p, &part, links, part.OfOrder()); err != nil {
			return err
		}
	}
	return nil
}
