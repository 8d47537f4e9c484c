package checker

import "slices"

// disputeRow is a row of disputes.
type disputeRow struct {
	payin                rowID
	externalID, state    string
	amount               int64 // cents
	createdAt, updatedAt int64
}

// dispute declares the columns of disputes.
func (c *columns) dispute(r *disputeRow) {
	c.fixed.id("payin_id", &r.payin)
	c.fixed.text("external_id", &r.externalID)
	c.fixed.num("amount", &r.amount)
	c.fixed.num("created_at", &r.createdAt)
	c.mutable.text("state", &r.state)
	c.mutable.num("updated_at", &r.updatedAt)
}

// dispute is a dispute of a pay-in.
type dispute struct {
	disputeRow

	order *order
}

func (c *Checker) applyDispute(l *line) {
	d := c.disputes[l.key]
	if l.op == rowAdded {
		d = &dispute{}
		c.columns.read(l).dispute(&d.disputeRow)
		c.addDispute(l.key, d)
		return
	}
	if d == nil {
		c.violateMerchantf(States, l.key.merchant, "dispute %s changes, but was never opened", l.key.id)
		return
	}
	next := d.disputeRow
	c.columns.read(l).dispute(&next)
	if !slices.Contains(disputeSteps[d.state], next.state) {
		c.violatef(States, d.order, "a dispute changes from %s to %s", d.state, next.state)
	}
	if d.state == "open" {
		c.merchant(l.key.merchant).disputed -= d.amount
	}
	d.disputeRow = next
	if d.order != nil {
		c.touch(d.order)
	}
}

func (c *Checker) addDispute(key rowKey, d *dispute) {
	d.order = c.orders[rowKey{key.merchant, d.payin}]
	if d.order == nil || d.order.kind != Payin || d.state != "open" {
		c.violatef(States, d.order, "dispute %s of %d begins as %s", d.externalID, d.amount, d.state)
	}
	c.disputes[key] = d
	c.merchant(key.merchant).disputed += d.amount
	if d.order != nil {
		d.order.disputes = append(d.order.disputes, d)
		c.touch(d.order)
	}
}

// checkDisputes checks a pay-in's status and entries against its disputes.
func (c *Checker) checkDisputes(o *order) {
	var open, won, lost, reversed int64
	for _, d := range o.disputes {
		switch d.state {
		case "open":
			open += d.amount
		case "won":
			won += d.amount
		case "reversed":
			reversed += d.amount
			fallthrough
		case "lost":
			lost += d.amount
		}
	}
	charged := lost - reversed
	disputed := o.status == "DISPUTED" || o.status == "CHARGEBACK"
	if open > 0 && !disputed || open == 0 && (o.status == "DISPUTED" || (o.status == "CHARGEBACK") != (charged > 0)) {
		c.violatef(States, o, "%d is in open disputes, %d in lost ones", open, charged)
	}
	if had := max(o.paid, o.applied+o.surplus) - o.refunded; open+charged > had && !o.refundedElsewhere() {
		c.violatef(Amounts, o, "%d is disputed or charged back, of %d", open+charged, had)
	}
	c.checkDisputeEvents(o)
	c.checkBooked(o, "dispute_opened", open+won+lost)
	c.checkBooked(o, "dispute_won", won)
	c.checkBooked(o, "charged_back", lost)
	c.checkBooked(o, "chargeback_reversed", reversed)
}

// refundedElsewhere reports whether the bank refunded more than was requested by the API: this
// may be known before the dispute is known to be over that set the same money aside.
func (o *order) refundedElsewhere() bool {
	return slices.ContainsFunc(o.refunds, func(r *order) bool {
		return r.wasFound || slices.ContainsFunc(r.parts, func(p *refundPart) bool { return p.failed > 0 && p.paid > 0 })
	})
}

// checkDisputeEvents checks that each change of a dispute was announced, once.
func (c *Checker) checkDisputeEvents(o *order) {
	balance := map[string]int{} // events less changes
	for _, e := range o.events {
		balance[e.kind]++
	}
	for _, d := range o.disputes {
		balance["payin.disputed"]--
		if d.state == "lost" || d.state == "reversed" {
			balance["payin.chargeback"]--
		}
		if d.state == "won" || d.state == "reversed" {
			balance["payin.dispute_won"]--
		}
	}
	for _, kind := range []string{"payin.disputed", "payin.chargeback", "payin.dispute_won"} {
		if balance[kind] != 0 {
			c.violatef(Events, o, "%d events %s too many for its %d disputes", balance[kind], kind, len(o.disputes))
		}
	}
}
