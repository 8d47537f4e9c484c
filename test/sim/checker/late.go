package checker

// Payouts that people decided as not paid although they were: the money leaves after its hold
// was released, which the processor's reports show later.

// stepPaidLate is the step of such a payout once that is booked.
const stepPaidLate = "paid_late"

// isMistaken reports whether people decided wrongly that a payout was not paid.
func (c *Checker) isMistaken(o *order) bool {
	return c.Mistaken != nil && o.kind == Payout && c.Mistaken(o.externalID)
}

// paidLate is the payout of a found transfer that left after its release; nil if it is none.
func (c *Checker) paidLate(f *foundTransfer) *order {
	if o := c.externalIDs[f.externalID]; o != nil && c.isMistaken(o) && o.step == stepPaidLate {
		return o
	}
	return nil
}

// mayBeLate reports whether a transfer that a payout adopted may have left after its release.
func (c *Checker) mayBeLate(f *foundTransfer) bool {
	o := c.externalIDs[f.externalID]
	return o != nil && c.isMistaken(o)
}

// checkLate checks what is booked about a payout that left after its release: its amount once,
// by its merchant or the platform, without what came back.
func (c *Checker) checkLate(o *order, f *foundTransfer) {
	booked := o.booked["payout_written_off"]
	if late := o.booked["payout_paid_late"]; late > 0 {
		booked += late - o.fee
	}
	back := o.booked["found_returned"] + o.booked["payout_recovered"] // a found transfer may have come back before
	if f.key != o.key {
		back += f.booked["payout_recovered"] + f.booked["found_returned"]
	}
	if f.total != o.amount || booked != o.amount || f.amount != booked-back {
		c.violatef(SingleTransfer, o, "left after its release: %d of %d is booked, %d came back, %d is left", booked, o.amount, back, f.amount)
	}
}

// compareLate compares a payout that people decided as not paid with its transfer.
func (c *comparison) compareLate(o *order, t *BankTransfer) {
	f := c.foundByID[o.externalID]
	switch paid := t != nil && t.State == "paid"; {
	case o.step == stepPaidLate && (!paid || f == nil):
		c.violatef(SingleTransfer, o, "is booked as paid after its release, the bank has %+v", t)
	case o.step == stepPaidLate && (f.amount < t.left() || c.final && f.amount != t.left()):
		c.violatef(SingleTransfer, o, "%d of the transfer is left, the bank says %d", f.amount, t.left())
	case c.final && paid && o.step != stepPaidLate:
		c.violatef(SingleTransfer, o, "was paid after its release, which is not booked")
	}
}
