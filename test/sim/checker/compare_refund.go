package checker

import (
	"slices"
	"strconv"
)

// BankRefund is a refund in the bank's list: of all that were paid.
type BankRefund struct {
	Account    string
	ExternalID string
	PaymentID  string
	Amount     int64 // cents
	EndToEndID string
	Failed     bool // after it was paid
	AtPanel    bool // requested by nobody here
}

// compareRefunds compares the parts of refunds with the bank's refunds.
func (c *comparison) compareRefunds() {
	listed := make(map[string]*BankRefund, len(c.Refunds))
	for i := range c.Refunds {
		r := &c.Refunds[i]
		name := r.Account + "/" + r.ExternalID
		listed[name] = r
		p := c.parts[name]
		v := c.payments[r.Account+"/"+r.PaymentID]
		if p == nil && v != nil && v.order == nil {
			c.compareUnidentified(v, r)
			continue
		}
		if p == nil {
			if c.final && !r.Failed || !c.Rewound && !r.AtPanel {
				c.violations = append(c.violations, Violation{Invariant: SingleRefund, Text: "the bank has a refund that the gateway has not: " + name + " of " + strconv.FormatInt(r.Amount, 10)})
			}
			continue
		}
		if c.isOfOtherTerms(p, r) {
			if v != nil && v.order == nil && v.hasRefundCase(r) { // it was listed before the request
				c.compareUnidentified(v, r)
			} else if !r.Failed {
				c.unbooked += r.Amount
			}
			continue
		}
		if p.amount != r.Amount || p.paymentID != r.PaymentID {
			c.violatef(SingleRefund, p.refund, "part %d is %d of payment %s, the bank refunded %d of %s", p.number, p.amount, p.paymentID, r.Amount, r.PaymentID)
		}
		if p.outcome == "paid" && p.endToEndID != r.EndToEndID {
			c.violatef(SingleRefund, p.refund, "part %d has end-to-end id %s, the bank's is %s", p.number, p.endToEndID, r.EndToEndID)
		}
	}
	for _, o := range c.orderList {
		for _, p := range o.parts {
			r := listed[p.processor+"/"+p.externalID]
			paid := r != nil && !r.Failed
			switch {
			case p.outcome == "paid" && (r == nil || c.final && !paid),
				p.outcome == "taken_back" && (r == nil || !r.Failed),
				p.outcome == "failed" && c.final && paid:
				c.violatef(SingleRefund, o, "part %d is %s, the bank says %+v", p.number, p.outcome, r)
			case c.final && !p.ended() && !(p.step == "manual_review" && o.hasOpenCase("refund_unknown")):
				c.violatef(Progress, o, "part %d is %s at the end", p.number, p.step)
			}
		}
	}
}

// isOfOtherTerms reports whether the bank knows a part of a refund that a copy lacked with
// another amount or of another payment, and the part waits under a case that says so.
func (c *comparison) isOfOtherTerms(p *refundPart, r *BankRefund) bool {
	cause, reported := "other_amount", strconv.FormatInt(r.Amount, 10)
	if p.amount == r.Amount {
		cause, reported = "other_payment", r.PaymentID
	}
	if !c.Rewound || p.step != "manual_review" || p.amount == r.Amount && p.paymentID == r.PaymentID {
		return false
	}
	return slices.ContainsFunc(p.refund.cases, func(v *reviewCase) bool {
		return v.kind == "refund_unknown" && v.closedAt == 0 && v.facts["externalId"] == p.externalID && v.facts["processor"] == p.processor &&
			v.facts["cause"] == cause && v.facts["reported"] == reported
	})
}

// hasRefundCase reports whether a bank's refund of a payment that names no order has a case.
func (v *receipt) hasRefundCase(r *BankRefund) bool {
	return slices.ContainsFunc(v.refundCases, func(w *reviewCase) bool { return w.facts["externalId"] == r.ExternalID })
}

// compareUnidentified compares a bank's refund of a payment that names no order with the cases
// about it: at the end one that was paid has a case, and one that came back has two, or none if
// that was known before it was listed. Money that its case reports as not booked is not in the
// clearing account.
func (c *comparison) compareUnidentified(v *receipt, r *BankRefund) {
	var known []*reviewCase
	for _, w := range v.refundCases {
		if w.facts["externalId"] == r.ExternalID {
			known = append(known, w)
		}
	}
	switch {
	case !c.Rewound && !r.AtPanel, len(known) > 2, len(known) == 2 && !r.Failed, c.final && (len(known) == 1) == r.Failed, len(known) > 0 && known[0].amount != r.Amount:
		c.violateMerchantf(SingleRefund, v.key.merchant, "the bank's refund %+v of a payment of no order has %d cases", *r, len(known))
	case len(known) == 1 && !known[0].proven:
		c.unbooked += r.Amount
	}
}

// compareDisputeOfNoOrder compares a dispute of a payment that names no order, like a refund. The
// bank does not list what it took with its refunds. It is false for another dispute.
func (c *comparison) compareDisputeOfNoOrder(d *BankDispute) bool {
	v := c.payments[d.Account+"/"+d.PaymentID]
	if v == nil || v.order != nil {
		return false
	}
	if d.State != "lost" && d.State != "reversed" {
		return true
	}
	r := &BankRefund{Account: d.Account, ExternalID: d.ID, PaymentID: d.PaymentID, Amount: d.Amount, Failed: d.State == "reversed", AtPanel: true}
	if v.hasRefundCase(r) && !r.Failed {
		c.unbooked -= d.Amount
	}
	c.compareUnidentified(v, r)
	return true
}

// isUnidentified reports whether a refund of the bank is of a payment that names no order.
func (c *comparison) isUnidentified(r *BankRefund) bool {
	v := c.payments[r.Account+"/"+r.PaymentID]
	return v != nil && v.order == nil
}

// BankDispute is a dispute in the bank's records.
type BankDispute struct {
	Account    string
	ID         string
	ExternalID string // of the charge
	PaymentID  string // "" if it is of all its payments
	Amount     int64  // cents
	State      string // open, won, lost or reversed
}

// givenBack is what an order's payers got back, by the bank's records, in cents.
type givenBack struct{ received, refunded, lost int64 }

// compareGivenBack checks, by the bank's records, that refunds and chargebacks of an order
// are not more than its payments, and that the gateway booked both.
func (c *comparison) compareGivenBack() {
	all := map[string]*givenBack{} // by the order's external id
	of := func(externalID string) *givenBack {
		if all[externalID] == nil {
			all[externalID] = &givenBack{}
		}
		return all[externalID]
	}
	charges := make(map[string]string, len(c.Payments)) // by payment
	for i := range c.Payments {
		charges[c.Payments[i].ID] = c.Payments[i].ExternalID
		of(c.Payments[i].ExternalID).received += c.Payments[i].Amount
	}
	for i := range c.Refunds {
		r := &c.Refunds[i]
		p := c.parts[r.Account+"/"+r.ExternalID]
		if !r.Failed && (p != nil || !c.isUnidentified(r)) && (p == nil || !c.isOfOtherTerms(p, r)) {
			of(charges[r.PaymentID]).refunded += r.Amount
		}
	}
	for i := range c.Disputes {
		if c.compareDisputeOfNoOrder(&c.Disputes[i]) {
			continue
		}
		if c.Disputes[i].State == "lost" {
			of(c.Disputes[i].ExternalID).lost += c.Disputes[i].Amount
		}
	}
	for _, o := range c.orderList {
		g := all[o.externalID]
		if o.kind != Payin || g == nil {
			continue
		}
		if g.refunded+g.lost > g.received {
			c.violatef(Amounts, o, "of %d, the bank refunded %d and lost %d", g.received, g.refunded, g.lost)
		}
		var refunded int64
		for _, r := range o.refunds {
			refunded += r.refunded
		}
		if refunded != g.refunded {
			c.violatef(SingleRefund, o, "%d is refunded, the bank says %d", refunded, g.refunded)
		}
		if lost := o.booked["charged_back"] - o.booked["chargeback_reversed"]; lost != g.lost && !o.hasOpenCase("dispute_unexpected") {
			c.violatef(Amounts, o, "%d is charged back, the bank says %d", lost, g.lost)
		}
	}
}
