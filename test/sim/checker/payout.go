package checker

// payout declares the columns of payouts.
func (c *columns) payout(r *orderRow) {
	c.fixed.text("external_id", &r.externalID)
	c.fixed.text("reference_id", &r.reference)
	c.fixed.text("processor", &r.processor)
	c.fixed.text("webhook_url", &r.webhookURL)
	c.fixed.id("batch_id", &r.batch)
	c.fixed.num("amount", &r.amount)
	c.fixed.num("fee", &r.fee)
	c.fixed.num("created_at", &r.createdAt)
	c.fixed.id("key_hash", &r.pixKey)
	c.mutable.num("counted_at", &r.countedAt)
	c.mutable.text("status", &r.status)
	c.mutable.text("step", &r.step)
	c.mutable.num("version", &r.version)
	c.mutable.num("returned_amount", &r.returned)
	c.mutable.num("lookups", &r.lookUps)
	c.mutable.flag("webhook_disabled", &r.webhookDisabled)
	c.mutable.num("next_at", &r.nextAt)
	c.mutable.num("updated_at", &r.updatedAt)
	c.mutable.id("claimed_by", &r.claimedBy)
	c.mutable.text("end_to_end_id", &r.endToEndID)
	c.mutable.text("failure", &r.failure)
}

func (c *Checker) changePayout(o *order, next *orderRow) {
	held := o.inFlight()
	step := statusStep{from: o.status, to: next.status}
	switch {
	case next.returned < o.returned:
		c.violatef(Amounts, o, "returned amount changes from %d to %d", o.returned, next.returned)
	case next.returned > o.returned:
		step.grows = "returned"
	}
	c.move(o, next, step, next.status == o.status && next.returned == o.returned)
	if o.webhookDisabled && !next.webhookDisabled {
		c.violatef(Events, o, "events that the receiver disabled are enabled again")
	}
	counted := next.countedAt != o.countedAt
	o.orderRow = *next
	if counted {
		c.checkMoved(o)
	}
	o.canceled = o.canceled || o.status == "CANCELED"
	if held && !o.inFlight() {
		c.merchant(o.key.merchant).inFlight -= o.amount + o.fee
	}
	c.touch(o)
}

func (c *Checker) checkPayout(o *order) {
	var paid, released int64
	switch o.status {
	case "COMPLETED", "RETURNED":
		paid = o.amount + o.fee
	case "FAILED", "CANCELED":
		released = o.amount + o.fee
	}
	c.checkBooked(o, "payout_held", o.amount+o.fee)
	c.checkBooked(o, "payout_paid", paid)
	c.checkBooked(o, "payout_released", released)
	c.checkBooked(o, "payout_returned", o.returned)
	for _, kind := range []string{"received", "received_pending", "received_unapplied", "received_unidentified", "funded", "dispute_opened"} {
		c.checkBooked(o, kind, 0)
	}
	switch {
	case o.returned > o.amount,
		o.returned != 0 && paid == 0,
		(o.status == "RETURNED") != (o.returned == o.amount):
		c.violatef(Amounts, o, "%d of %d is returned", o.returned, o.amount)
	}
	claimed := !o.claimedBy.isZero()
	switch o.step {
	case "queued", "approval", "accepted", "unknown":
		if (o.nextAt > 0) == claimed {
			c.violatef(Progress, o, "step %s is due at %d, claimed: %v", o.step, o.nextAt, claimed)
		}
	case "intent":
		if o.nextAt != 0 || !claimed {
			c.violatef(Progress, o, "is being sent, due at %d, claimed: %v", o.nextAt, claimed)
		}
	default:
		if o.nextAt != 0 || claimed {
			c.violatef(Progress, o, "step %s is due at %d, claimed: %v", o.step, o.nextAt, claimed)
		}
	}
	if o.step == "manual_review" && !o.hasOpenCase("payout_unknown", "contradiction", "damaged") {
		c.violatef(Progress, o, "step is manual_review, but no case is open")
	}
}
