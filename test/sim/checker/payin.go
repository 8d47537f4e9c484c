package checker

// payin declares the columns of payins.
func (c *columns) payin(r *orderRow) {
	c.fixed.text("external_id", &r.externalID)
	c.fixed.text("reference_id", &r.reference)
	c.fixed.text("method", &r.method)
	c.mutable.text("processor", &r.processor)
	c.fixed.text("webhook_url", &r.webhookURL)
	c.fixed.num("amount", &r.amount)
	c.mutable.text("status", &r.status)
	c.mutable.num("version", &r.version)
	c.mutable.num("paid_amount", &r.paid)
	c.mutable.num("refunded_amount", &r.refunded)
	c.mutable.num("unapplied_amount", &r.unapplied)
	c.mutable.num("fee", &r.fee)
	c.mutable.flag("webhook_disabled", &r.webhookDisabled)
	c.mutable.flag("late", &r.late)
	c.mutable.num("next_at", &r.nextAt)
	c.mutable.num("expires_at", &r.expiresAt)
	c.mutable.num("paid_at", &r.paidAt)
	c.mutable.num("updated_at", &r.updatedAt)
	c.mutable.length("details", &r.detailsLength)
	c.mutable.text("failure", &r.failure)
}

func (c *Checker) changePayin(o *order, next *orderRow) {
	step := statusStep{from: o.status, to: next.status}
	switch {
	case next.paid < o.paid:
		c.violatef(Amounts, o, "paid amount changes from %d to %d", o.paid, next.paid)
	case next.paid > o.paid && next.refunded != o.refunded:
		step.grows = "paid and refunded"
	case next.refunded < o.refunded:
		step.grows = "undone"
	case next.paid > o.paid:
		step.grows = "paid"
	case next.refunded > o.refunded:
		step.grows = "refunded"
	case next.status == o.status && (next.detailsLength != o.detailsLength || next.processor != o.processor):
		step.grows = "charge"
	}
	if next.processor != o.processor && (o.status != "PENDING" || o.charge == nil) {
		c.violatef(SingleCharge, o, "it is %s, and moves from %s to %s", o.status, o.processor, next.processor)
	}
	c.move(o, next, step,
		next.status == o.status && next.paid == o.paid && next.refunded == o.refunded && next.late == o.late && next.fee == o.fee)
	inTime := next.paidAt < min(o.expiresAt, o.updatedAt)
	paidLate := o.status != next.status && next.status == "PAID" && (o.status == "EXPIRED" && !inTime || o.status == "CANCELED")
	if next.late != (o.late || paidLate) {
		c.violatef(States, o, "late is %v after the change to %s", next.late, next.status)
	}
	// A charge from the past that a copy lacks has its own expiry.
	if earlier := next.expiresAt < o.expiresAt && next.version > o.version; next.expiresAt != o.expiresAt && !(c.Rewound && earlier) {
		c.violatef(States, o, "the expiry changes from %d to %d", o.expiresAt, next.expiresAt)
	}
	if o.webhookDisabled && !next.webhookDisabled {
		c.violatef(Events, o, "events that the receiver disabled are enabled again")
	}
	o.orderRow = *next
	o.canceled = o.canceled || o.status == "CANCELED"
	c.touch(o)
}

// everRefunded is what refunds of a pay-in have given back of it at any time.
func (o *order) everRefunded() (sum int64) {
	for _, r := range o.refunds {
		for _, p := range r.parts {
			if p.paid > 0 && !p.surplus {
				sum += p.amount - p.unapplied
			}
		}
	}
	return sum
}

// isPaidInFull reports whether the payments of a pay-in have reached its amount.
func (o *order) isPaidInFull() bool {
	switch o.status {
	case "PAID", "PARTIALLY_REFUNDED", "REFUNDED", "DISPUTED", "CHARGEBACK":
		return true
	default:
		return false
	}
}

func (c *Checker) checkPayin(o *order) {
	switch {
	case o.isPaidInFull():
		if o.paid < o.amount || o.paid-o.amount > o.everRefunded() {
			c.violatef(Amounts, o, "%d of %d is paid, %d was refunded", o.paid, o.amount, o.everRefunded())
		}
	default: // what was given back does not count as paid
		if o.paid-o.refunded >= o.amount && o.status != "FAILED" {
			c.violatef(Amounts, o, "%d of %d is paid, %d is refunded", o.paid, o.amount, o.refunded)
		}
	}
	ofFull := max(o.refunded-max(o.paid-o.amount, 0), 0) // since it was paid in full
	switch {
	case o.status == "PAID" && ofFull != 0,
		o.status == "PARTIALLY_REFUNDED" && (o.refunded == 0 || o.refunded >= o.paid),
		o.status == "REFUNDED" && o.refunded != o.paid:
		c.violatef(Amounts, o, "%d of %d is refunded", o.refunded, o.paid)
	}
	if pending := o.status == "PENDING"; pending && o.nextAt != o.expiresAt || !pending && o.nextAt != 0 {
		c.violatef(Progress, o, "is due at %d, and expires at %d", o.nextAt, o.expiresAt)
	}
	if o.paid != o.applied {
		c.violatef(Incoming, o, "%d is paid, receipts say %d", o.paid, o.applied)
	}
	if booked := o.booked["received"] + o.booked["received_pending"]; booked != o.applied {
		c.violatef(Incoming, o, "receipts of %d are booked as %d", o.applied, booked)
	}
	if booked := o.booked["received_unapplied"]; booked != o.surplus {
		c.violatef(Incoming, o, "a surplus of %d is booked as %d", o.surplus, booked)
	}
	c.checkDisputes(o)
	c.checkRefunds(o)
	c.checkReceivables(o)
	c.checkCharge(o)
	for _, kind := range []string{"payout_held", "payout_paid", "payout_released", "payout_returned", "funded"} {
		c.checkBooked(o, kind, 0)
	}
}
