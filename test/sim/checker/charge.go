package checker

import "slices"

// chargeRow is a row of charges: the work on the charge of a pay-in at its processor.
type chargeRow struct {
	number         int64
	account, state string
	outcome        string // of the last call
	mayExist       bool
	nextAt         int64
	claimedBy      rowID // node
}

// charge declares the columns of charges.
func (c *columns) charge(r *chargeRow) {
	c.key.num("number", &r.number)
	c.fixed.text("account", &r.account)
	c.mutable.text("state", &r.state)
	c.mutable.text("outcome", &r.outcome)
	c.mutable.flag("may_exist", &r.mayExist)
	c.mutable.num("next_at", &r.nextAt)
	c.mutable.id("claimed_by", &r.claimedBy)
}

// applyCharge follows the work on the charges of a pay-in, of which it has one at a time: the
// next one begins at another account, once the one before has ended and cannot exist.
func (c *Checker) applyCharge(l *line) {
	o := c.orders[l.key]
	if o == nil || o.kind != Payin {
		c.violateMerchantf(SingleCharge, l.key.merchant, "a charge of %s, which is not a pay-in", l.key.id)
		return
	}
	c.touch(o)
	next := chargeRow{}
	if o.charge != nil {
		next = *o.charge
	}
	c.columns.read(l).charge(&next)
	switch {
	case l.op == rowAdded:
		number := int64(1)
		if v := o.charge; v != nil && v.state == "ended" && !v.mayExist && v.account != next.account {
			number = v.number + 1
		} else if v != nil {
			number = 0 // none may follow
		}
		if next.number != number || next.account != o.processor || next.state != "wanted" && next.state != "followed" {
			c.violatef(SingleCharge, o, "charge %d at %s begins as %s", next.number, next.account, next.state)
		}
		o.tried = append(o.tried, next.account)
	case o.charge == nil || o.charge.number != next.number:
		c.violatef(SingleCharge, o, "charge %d changes, but was never recorded", next.number)
		return
	case next.state != o.charge.state && !slices.Contains(chargeSteps[o.charge.state], next.state):
		c.violatef(SingleCharge, o, "charge %d changes from %s to %s", next.number, o.charge.state, next.state)
	}
	if next.claimedBy != (rowID{}) && !next.mayExist {
		c.violatef(SingleCharge, o, "charge %d is claimed, and may not exist", next.number)
	}
	if before := o.charge; c.Outcome != nil && before != nil && next.outcome != "" && (next.outcome != before.outcome || next.state != before.state) {
		c.Outcome(Payin, next.account, before.state, next.outcome)
	}
	o.charge = &next
}

// checkCharge checks the work on a pay-in's charge against the pay-in.
func (c *Checker) checkCharge(o *order) {
	v := o.charge
	if v == nil {
		return
	}
	due, claimed := v.nextAt > 0, !v.claimedBy.isZero()
	switch v.state {
	case "wanted", "cancel", "followed":
		if due == claimed && !(!due && o.hasOpenCase("damaged")) {
			c.violatef(Progress, o, "its charge is %s, due at %d, claimed: %v", v.state, v.nextAt, claimed)
		}
	case "made":
		if due {
			c.violatef(Progress, o, "its charge is made, and due at %d", v.nextAt)
		}
	default:
		if due || claimed {
			c.violatef(Progress, o, "its charge is %s, due at %d, claimed: %v", v.state, v.nextAt, claimed)
		}
	}
	ended := v.state == "ended" || v.state == "cancel"
	switch {
	case o.status == "PENDING" && ended:
		c.violatef(Progress, o, "it waits for its charge, which is %s", v.state)
	case o.status == "CANCELED" && !ended:
		c.violatef(Progress, o, "its charge is %s", v.state)
	}
}

// compareCharges checks that each charge of the bank is that of one order and, at the end,
// that those of orders that were canceled or have expired cannot be paid any more.
func (c *comparison) compareCharges() {
	paid := map[string]bool{}
	for i := range c.Payments {
		paid[c.Payments[i].ExternalID] = true
	}
	seen := map[string]bool{}
	for i := range c.Charges {
		v := &c.Charges[i]
		o := c.externalIDs[v.ExternalID]
		switch {
		case seen[v.ExternalID]:
			c.violatef(SingleCharge, o, "the bank has two charges: %+v", *v)
		case o == nil && c.Rewound: // its request was not repeated
		case o == nil || o.kind != Payin:
			c.violations = append(c.violations, Violation{Invariant: SingleCharge, Text: "the bank has a charge without a pay-in: " + v.ExternalID})
		case v.Amount != o.amount:
			c.violatef(SingleCharge, o, "the bank charges %d of %d", v.Amount, o.amount)
		case o.charge == nil && !c.Rewound:
			c.violatef(SingleCharge, o, "the bank has a charge that was never requested")
		case o.processor != v.Account && c.Rewound: // it was made in the time that a copy lacks
		case o.processor != v.Account && !v.Ended:
			c.violatef(SingleCharge, o, "%s has a charge of an order that left it for %s", v.Account, o.processor)
		case c.Unmarked && o.charge != nil && !o.charge.mayExist: // the copy was made before the request, and nothing shows that it is one
		case c.final && o.charge != nil && (o.status == "CANCELED" || o.status == "EXPIRED") && !v.Ended && !paid[v.ExternalID]:
			c.violatef(SingleCharge, o, "the charge of an order that is %s can still be paid", o.status)
		}
		seen[v.ExternalID] = true
	}
}

// compareChargesEnd reports charges of pay-ins on which work is left.
func (c *comparison) compareChargesEnd() {
	for _, o := range c.orderList {
		v := o.charge
		if v != nil && (v.state == "wanted" || v.state == "cancel" || v.state == "followed") && !o.hasOpenCase("damaged") {
			c.violatef(Progress, o, "its charge is %s at the end", v.state)
		}
	}
}
