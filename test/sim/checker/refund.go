package checker

import (
	"slices"
)

// refund declares the columns of refunds.
func (c *columns) refund(r *orderRow) {
	c.fixed.id("payin_id", &r.payin)
	c.fixed.text("external_id", &r.externalID)
	c.mutable.text("reference_id", &r.reference)
	c.mutable.text("origin", &r.origin)
	c.fixed.num("amount", &r.amount)
	c.mutable.text("status", &r.status)
	c.mutable.num("version", &r.version)
	c.fixed.text("webhook_url", &r.webhookURL)
	c.mutable.flag("webhook_disabled", &r.webhookDisabled)
	c.mutable.num("refunded_amount", &r.refunded)
	c.mutable.text("end_to_end_id", &r.endToEndID)
	c.mutable.text("failure", &r.failure)
	c.mutable.num("updated_at", &r.updatedAt)
}

// partRow is a row of refund_parts: what a refund gives back of one payment.
type partRow struct {
	number                           int64
	payin, receipt                   rowID
	processor, paymentID, externalID string
	amount                           int64 // cents

	step, outcome, endToEndID string
	evidence                  string
	unapplied                 int64 // cents of it
	surplus                   bool  // the rest is not of what was paid for the order either
	flags                     int64 // bits: 1 and 2 if a send may have an effect
	sends, nextAt             int64
	claimedBy                 rowID // node
}

// refundPart declares the columns of refund_parts.
func (c *columns) refundPart(r *partRow) {
	c.key.num("number", &r.number)
	c.fixed.id("payin_id", &r.payin)
	c.fixed.id("receipt_id", &r.receipt)
	c.fixed.text("processor", &r.processor)
	c.fixed.text("payment_id", &r.paymentID)
	c.fixed.text("external_id", &r.externalID)
	c.fixed.num("amount", &r.amount)
	c.mutable.text("step", &r.step)
	c.mutable.text("outcome", &r.outcome)
	c.mutable.text("evidence", &r.evidence)
	c.mutable.text("end_to_end_id", &r.endToEndID)
	c.mutable.num("unapplied", &r.unapplied)
	c.mutable.flag("surplus", &r.surplus)
	c.mutable.num("flags", &r.flags)
	c.mutable.num("sends", &r.sends)
	c.mutable.num("next_at", &r.nextAt)
	c.mutable.id("claimed_by", &r.claimedBy)
}

// refundPart is the part of a refund that gives one payment back.
type refundPart struct {
	partRow

	refund *order
	// Cents that ended in each way, at any time: a part that failed may be paid after all.
	paid, failed, takenBack int64
}

func (p *refundPart) ended() bool { return p.step == "done" }

// inUse is what the part has given back of its payment, or may still give back.
func (r *partRow) inUse() int64 {
	if r.outcome == "failed" || r.outcome == "taken_back" {
		return 0
	}
	return r.amount
}

// ofUnapplied is what inUse has of money that exceeded the order.
func (r *partRow) ofUnapplied() int64 { return min(r.unapplied, r.inUse()) }

// ofOrder is what inUse has of money that was paid for the order.
func (r *partRow) ofOrder() int64 { return r.inUse() - r.ofUnapplied() }

// foundOrigin is the origin of refunds that nobody requested by the API.
const foundOrigin = "processor"

func (c *Checker) addRefund(o *order) {
	o.payin = c.orders[rowKey{o.key.merchant, o.orderRow.payin}]
	if o.payin == nil || o.payin.kind != Payin {
		c.violatef(States, o, "a refund of %s, which is not a pay-in", o.orderRow.payin)
		o.payin = nil
	} else {
		o.processor = o.payin.processor
		o.payin.refunds = append(o.payin.refunds, o)
		o.gone = o.payin.gone
		c.touch(o.payin)
		if o.webhookURL != o.payin.webhookURL {
			c.violatef(Events, o, "its events go to %q", o.webhookURL)
		}
	}
	o.wasFound = o.origin == foundOrigin
	if (o.reference == "") != (o.origin != "merchant") {
		c.violatef(SingleOrder, o, "origin is %s, reference %q", o.origin, o.reference)
	}
}

func (c *Checker) changeRefund(o *order, next *orderRow) {
	step := statusStep{from: o.status, to: next.status}
	switch {
	case next.refunded > o.refunded:
		step.grows = "refunded"
	case next.refunded < o.refunded:
		step.grows = "undone"
	}
	c.move(o, next, step, next.status == o.status && next.refunded == o.refunded)
	if o.webhookDisabled && !next.webhookDisabled {
		c.violatef(Events, o, "events that the receiver disabled are enabled again")
	}
	if next.reference != o.reference || next.origin != o.origin { // its request was repeated
		name := orderName{o.key.merchant, Refund, next.reference}
		if other := c.references[name]; other != nil || o.reference != "" || o.origin != foundOrigin || next.origin != "merchant" {
			c.violatef(SingleOrder, o, "becomes %q by %s, it was %q by %s", next.reference, next.origin, o.reference, o.origin)
		}
		c.references[name] = o
	}
	o.orderRow = *next
	c.touch(o)
	if o.payin != nil {
		c.touch(o.payin)
	}
}

// partEnds are the ends that may follow an end of a part.
var partEnds = map[string]string{"failed": "paid", "paid": "taken_back"}

// applyPart follows a part of a refund.
func (c *Checker) applyPart(l *line) {
	o := c.orders[l.key]
	if o == nil || o.kind != Refund {
		c.violateMerchantf(SingleRefund, l.key.merchant, "a part of %s, which is not a refund", l.key.id)
		return
	}
	c.touch(o)
	if o.payin != nil {
		c.touch(o.payin)
	}
	var row partRow
	if l.op == rowAdded {
		c.columns.read(l).refundPart(&row)
		c.addPart(o, &refundPart{partRow: row, refund: o})
		return
	}
	i := slices.IndexFunc(o.parts, func(p *refundPart) bool { return p.number == c.partNumber(l) })
	if i < 0 {
		c.violatef(SingleRefund, o, "a part changes that was never added")
		return
	}
	p := o.parts[i]
	row = p.partRow
	c.columns.read(l).refundPart(&row)
	c.changePart(p, &row)
}

// partNumber reads the number of the part that a line is about.
func (c *Checker) partNumber(l *line) int64 {
	var row partRow
	r := newColumns()
	r.read(l).refundPart(&row)
	return row.number
}

func (c *Checker) addPart(o *order, p *refundPart) {
	name := p.processor + "/" + p.externalID
	if other := c.parts[name]; other != nil {
		c.violatef(SingleRefund, o, "part %s belongs to refund %s", name, other.refund.key.id)
	}
	r := c.receipts[rowKey{o.key.merchant, p.receipt}]
	switch {
	case r == nil || r.order != o.payin || p.payin != o.orderRow.payin:
		c.violatef(SingleRefund, o, "part %d gives back receipt %s, which is not of its pay-in", p.number, p.receipt)
	case r.processor != p.processor || r.externalID != p.paymentID:
		c.violatef(SingleRefund, o, "part %d gives back payment %s, but its receipt is that of %s", p.number, p.paymentID, r.externalID)
	}
	begins := p.step == "queued" && p.flags&3 == 0
	if o.wasFound {
		begins = p.step == "accepted" && p.flags&3 != 0
	}
	if p.number != int64(len(o.parts))+1 || p.sends != 0 || p.outcome != "" || !begins || !o.fresh {
		c.violatef(SingleRefund, o, "part %d begins as %s with %d sends", p.number, p.step, p.sends)
	}
	o.parts = append(o.parts, p)
	c.parts[name], c.partIDs[p.externalID] = p, p
	m := c.merchant(o.key.merchant)
	m.inFlight += p.amount
	m.surplus -= p.ofUnapplied()
}

func (c *Checker) changePart(p *refundPart, next *partRow) {
	o := p.refund
	if p.step == "done" && next.step != "done" {
		c.violatef(SingleRefund, o, "part %d changes from %s to %s", p.number, p.step, next.step)
	}
	sent := next.step == "sending" && p.step != "sending"
	lost := next.step == "accepted" && next.sends == 1 // a send that the database lacks
	if next.sends != p.sends && !lost && !(sent && next.sends == p.sends+1) || sent && p.step != "queued" && p.step != "asking" {
		c.violatef(SingleRefund, o, "part %d is %s with %d sends, after %s with %d", p.number, next.step, next.sends, p.step, p.sends)
	}
	ends := next.step == "done" && (p.step != "done" || next.outcome != p.outcome)
	if p.step == "done" && next.outcome != p.outcome && partEnds[p.outcome] != next.outcome {
		c.violatef(SingleRefund, o, "part %d ended as %s, and then as %s", p.number, p.outcome, next.outcome)
	}
	if ends {
		switch next.outcome {
		case "paid":
			p.paid += p.amount
		case "failed":
			p.failed += p.amount
		case "taken_back":
			p.takenBack += p.amount
		default:
			c.violatef(SingleRefund, o, "part %d ends as %q", p.number, next.outcome)
		}
		if p.step != "done" {
			c.merchant(o.key.merchant).inFlight -= p.amount
		}
	}
	if c.Outcome != nil && next.outcome != p.outcome && next.outcome != "" && next.evidence != DecidedEvidence {
		c.Outcome(Refund, p.processor, p.step, next.outcome)
	}
	c.merchant(o.key.merchant).surplus -= next.ofUnapplied() - p.ofUnapplied()
	if o.payin != nil && next.ofUnapplied() < p.ofUnapplied() {
		o.payin.restored = true
	}
	if next.unapplied > p.unapplied {
		c.violatef(Amounts, o, "part %d has %d of unapplied money, after %d", p.number, next.unapplied, p.unapplied)
	}
	p.partRow = *next
}

// checkRefund checks a refund's status and entries against its parts.
func (c *Checker) checkRefund(o *order) {
	var sum, paid, everPaid, failed, takenBack, again int64
	live, sent := 0, false
	for _, p := range o.parts {
		sum += p.amount
		if p.outcome == "paid" {
			paid += p.amount
		}
		everPaid, failed, takenBack = everPaid+p.paid, failed+p.failed, takenBack+p.takenBack
		if p.failed > 0 && p.paid > 0 { // after it was released
			again += p.amount
		}
		if !p.ended() {
			live++
		}
		parked := p.step == "manual_review" && o.hasOpenCase("damaged")
		sent = sent || p.step != "queued" && !parked || p.sends > 0 || p.ended()
		c.checkPart(p)
	}
	if sum != o.amount || paid != o.refunded {
		c.violatef(Amounts, o, "its parts add up to %d of %d, paid %d of %d", sum, o.amount, paid, o.refunded)
	}
	fits := false
	switch o.status {
	case "PENDING":
		fits = live == len(o.parts) && (!sent || o.wasFound)
	case "PROCESSING":
		fits = live > 0
	case "COMPLETED":
		fits = live == 0 && paid == o.amount
	case "FAILED":
		fits = live == 0 && paid < o.amount
	}
	if !fits {
		c.violatef(States, o, "%d of %d parts are in progress, %d of %d paid", live, len(o.parts), paid, o.amount)
	}
	held, found := o.amount, again
	if o.wasFound {
		held, found = 0, o.amount+again
	}
	c.checkBooked(o, "refund_held", held)
	c.checkBooked(o, "refund_found", found)
	c.checkBooked(o, "refunded", everPaid)
	c.checkBooked(o, "refund_released", failed)
	c.checkBooked(o, "refund_taken_back", takenBack)
	if o.fresh && o.payin != nil && !o.wasFound {
		c.checkRequested(o)
	}
}

// checkPart checks that a part is due, claimed, over or has a case.
func (c *Checker) checkPart(p *refundPart) {
	o, due, claimed := p.refund, p.nextAt > 0, !p.claimedBy.isZero()
	var bad bool
	switch p.step {
	case "queued", "accepted", "unknown":
		bad = due == claimed
	case "asking", "sending":
		bad = due || !claimed
	default:
		bad = due || claimed
	}
	if bad {
		c.violatef(Progress, o, "part %d is %s, due at %d, claimed: %v", p.number, p.step, p.nextAt, claimed)
	}
	if p.step == "manual_review" && !o.hasOpenCase("refund_unknown", "damaged") {
		c.violatef(Progress, o, "part %d is manual_review, but no case is open", p.number)
	}
	if p.unapplied < 0 || p.unapplied > p.amount {
		c.violatef(Amounts, o, "part %d of %d is %s and has %d of unapplied money", p.number, p.amount, p.outcome, p.unapplied)
	}
	if over := p.outcome == "paid" || p.outcome == "failed" || p.outcome == "taken_back"; over != p.ended() {
		c.violatef(SingleRefund, o, "part %d is %s, its outcome %q", p.number, p.step, p.outcome)
	}
}

// checkRequested checks a new refund that was requested by the API: its pay-in has money to give back, and
// it and the refunds before it give back no more than was paid, of no payment more than came
// in.
func (c *Checker) checkRequested(o *order) {
	if o.payin == nil {
		return
	}
	if !CanBeRefunded(o.payin.status, o.payin.paid) {
		c.violatef(States, o, "it is of a pay-in that is %s, paid %d", o.payin.status, o.payin.paid)
	}
	if left := o.payin.refundable(); left < 0 {
		c.violatef(Amounts, o, "the refunds exceed what was paid by %d", -left)
	}
	for _, p := range o.parts {
		r := c.receipts[rowKey{o.key.merchant, p.receipt}]
		if r != nil && r.amount < o.payin.inUse(p.receipt) {
			c.violatef(Amounts, o, "its refunds give back %d of payment %s of %d", o.payin.inUse(p.receipt), p.paymentID, r.amount)
		}
		if used := o.payin.ofOrder(p.receipt); r != nil && o.origin == "merchant" && used > r.applied {
			c.violatef(Amounts, o, "its refunds give back %d of the %d that was applied of payment %s", used, r.applied, p.paymentID)
		}
	}
}

// inUse is what refunds of a pay-in give back of a payment, or may still give back.
func (o *order) inUse(receipt rowID) (sum int64) {
	for _, r := range o.refunds {
		for _, p := range r.parts {
			if p.receipt == receipt {
				sum += p.inUse()
			}
		}
	}
	return sum
}

// ofOrder is inUse of what was applied of the payment.
func (o *order) ofOrder(receipt rowID) (sum int64) {
	for _, r := range o.refunds {
		for _, p := range r.parts {
			if p.receipt == receipt {
				sum += p.ofOrder()
			}
		}
	}
	return sum
}

// checkRefunds checks a pay-in's refunded amount and unapplied money against its refunds.
func (c *Checker) checkRefunds(o *order) {
	var refunded, unapplied int64
	for _, r := range o.refunds {
		for _, p := range r.parts {
			unapplied += p.ofUnapplied()
			if p.outcome == "paid" && !p.surplus {
				refunded += p.ofOrder()
			}
		}
	}
	if refunded != o.refunded {
		c.violatef(Amounts, o, "%d is refunded, its refunds say %d", o.refunded, refunded)
	}
	if o.unapplied != o.reported {
		c.violatef(Incoming, o, "%d of a surplus are shown, cases report %d", o.unapplied, o.reported)
	}
	if o.reported != o.surplus-unapplied {
		c.violatef(Incoming, o, "cases report %d of a surplus of %d, of which %d is given back", o.reported, o.surplus, unapplied)
	}
}

// Refundable is what a request to refund a pay-in meets, by its external id.
type Refundable struct {
	Status    string
	Paid      int64 // cents
	Left      int64 // cents of the paid amount that no refund or dispute uses
	Payments  int64 // cents of its payments that were applied to it, and that no refund uses
	Available int64 // cents of its merchant
	Commits   int   // so far
}

// Refundable returns what a request to refund a pay-in meets now; ok is false if there is no
// such pay-in.
func (c *Checker) Refundable(externalID string) (r Refundable, ok bool) {
	r.Commits = len(c.commits)
	o := c.externalIDs[externalID]
	if o == nil || o.kind != Payin {
		return r, false
	}
	r.Status = o.status
	r.Paid, r.Left = o.paid, max(o.refundable(), 0)
	for _, v := range c.receiptList {
		if v.order == o {
			r.Payments += max(0, v.applied-o.ofOrder(v.key.id))
		}
	}
	r.Available = c.merchants[o.key.merchant].account("available").sum
	return r, true
}

// RefundParts are the external ids of the parts of a refund, by its own.
func (c *Checker) RefundParts(externalID string) (ids []string) {
	if o := c.externalIDs[externalID]; o != nil && o.kind == Refund {
		for _, p := range o.parts {
			ids = append(ids, p.externalID)
		}
	}
	return ids
}
