package checker

// checkSources checks the sources of a new refund's money. A found refund takes first the surplus
// of its payment over the order. A refund by the API takes none of that, and one by a case nothing
// else. The rest comes first from unsettled money of the order. Money that a dispute has is not
// given back.
func (c *Checker) checkSources(o *order) {
	var rest int64
	for _, p := range o.parts {
		rest += p.amount - p.unapplied - p.takes.sum()
		var fits bool
		switch o.origin {
		case foundOrigin:
			fits = p.unapplied == p.amount || o.payin.restored || min(c.surplusOf(o.payin, p.receipt), o.payin.reported, o.payin.surplusLeft(p)) == 0
		case "merchant":
			fits = p.unapplied == 0
		default:
			fits = p.unapplied == p.amount
		}
		if !fits {
			c.violatef(Amounts, o, "part %d of %d by %s has %d of unapplied money", p.number, p.amount, o.origin, p.unapplied)
		}
		if beyond := o.wasFound && p.surplus && p.unapplied < p.amount; beyond && !o.payin.hasOpenCase("refund_unexpected") {
			c.violatef(Amounts, o, "part %d is not of the order's money, and has no case", p.number)
		}
	}
	if pending := o.payin.pending(); rest > 0 && pending > 0 && !o.payin.restored {
		c.violatef(Amounts, o, "%d of it is of settled money, while %d has not settled", rest, pending)
	}
}

// surplusOf is what is left of what exceeded a pay-in of one of its payments.
func (c *Checker) surplusOf(o *order, receipt rowID) int64 {
	r := c.receipts[rowKey{o.key.merchant, receipt}]
	if r == nil {
		return 0
	}
	left, surplus := r.applied, r.amount-r.applied
	for _, refund := range o.refunds {
		for _, p := range refund.parts {
			if p.receipt == receipt {
				left -= p.ofOrder()
				surplus -= p.ofUnapplied()
			}
		}
	}
	return max(surplus+min(left, 0), 0)
}

// surplusLeft is what a new part has left of what was received for a pay-in, and is not disputed.
func (o *order) surplusLeft(of *refundPart) int64 {
	left := o.applied + o.surplus
	for _, r := range o.refunds {
		for _, p := range r.parts {
			if p == of || p.surplus {
				left -= p.ofUnapplied()
			} else {
				left -= p.inUse()
			}
		}
	}
	for _, d := range o.disputes {
		if d.status != "WON" && d.status != "REVERSED" {
			left -= d.taken - d.returned
		}
	}
	return max(left, 0)
}

// CanBeRefunded reports whether a refund of a pay-in with this status, of which paid cents were paid, can
// be requested.
func CanBeRefunded(status string, paid int64) bool {
	switch status {
	case "PAID", "PARTIALLY_REFUNDED", "DISPUTED", "CHARGEBACK":
		return true
	case "PENDING", "EXPIRED", "CANCELED", "FAILED":
		return paid > 0
	default:
		return false
	}
}

// refundable is what is left of a pay-in for refunds of the order's money: what refunds give back or may
// still give back, and what disputes have beyond the surplus, is not.
func (o *order) refundable() int64 {
	left, surplus := o.paid, o.applied+o.surplus-o.paid
	for _, r := range o.refunds {
		for _, p := range r.parts {
			ofOrder := p.ofOrder()
			if p.surplus {
				ofOrder = 0
			}
			left -= ofOrder
			surplus -= p.inUse() - ofOrder
		}
	}
	surplus = max(surplus, 0)
	for _, d := range o.disputes {
		switch d.status {
		case "OPEN", "SUBMITTED", "LOST":
			surplus -= d.taken - d.returned
		}
	}
	return left + min(surplus, 0)
}
