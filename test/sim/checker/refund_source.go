package checker

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
