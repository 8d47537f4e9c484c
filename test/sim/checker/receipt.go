package checker

import "strings"

// receiptRow is a row of receipts.
type receiptRow struct {
	payin                 rowID
	processor, externalID string // of the payment, at its processor
	orderID               string // the external id of the order that the payment names
	endToEndID            string
	amount, applied       int64 // cents
	createdAt             int64
}

// receipt declares the columns of receipts.
func (c *columns) receipt(r *receiptRow) {
	c.fixed.id("payin_id", &r.payin)
	c.fixed.text("processor", &r.processor)
	c.fixed.text("external_id", &r.externalID)
	c.fixed.text("order_id", &r.orderID)
	c.fixed.text("end_to_end_id", &r.endToEndID)
	c.fixed.num("amount", &r.amount)
	c.fixed.num("applied", &r.applied)
	c.fixed.num("created_at", &r.createdAt)
}

// claimRow is a row of receipt_claims: it makes a payment unique.
type claimRow struct{ processor, externalID string }

// claim declares the columns of receipt_claims.
func (c *columns) claim(r *claimRow) {
	c.fixed.text("processor", &r.processor)
	c.fixed.text("external_id", &r.externalID)
}

// receipt is money that came in.
type receipt struct {
	receiptRow

	key             rowKey
	rank            int64  // of its creation, among orders too
	order           *order // nil if it fits none
	stored, claimed bool
	booked          int64         // cents of entries about the receipt itself
	reported        int64         // cents that open cases about the receipt itself report
	returned        int64         // cents of entries that gave the receipt itself back to its payer
	refundCases     []*reviewCase // about refunds of the receipt itself
	touched         bool
}

// receipt finds or begins a receipt: its claim comes first.
func (c *Checker) receipt(key rowKey, processor, externalID string) *receipt {
	r := c.receipts[key]
	if r == nil {
		r = &receipt{key: key, receiptRow: receiptRow{processor: processor, externalID: externalID}}
		c.receipts[key] = r
		c.touchReceipt(r)
	}
	return r
}

func (c *Checker) touchReceipt(r *receipt) {
	if !r.touched {
		r.touched = true
		c.touched.receipts = append(c.touched.receipts, r)
	}
}

func (c *Checker) applyReceipt(l *line) {
	var row receiptRow
	c.columns.read(l).receipt(&row)
	r := c.receipt(l.key, row.processor, row.externalID)
	if r.stored || r.processor != row.processor || r.externalID != row.externalID {
		c.violateMerchantf(SingleReceipt, l.key.merchant, "receipt %s of payment %s is claimed as %s", l.key.id, row.externalID, r.externalID)
		row.processor, row.externalID = r.processor, r.externalID
	}
	r.stored, r.receiptRow, r.rank = true, row, l.seq
	name := r.processor + "/" + r.externalID
	if other := c.payments[name]; other != nil {
		c.violateMerchantf(SingleReceipt, l.key.merchant, "payment %s has receipts %s and %s", r.externalID, other.key.id, r.key.id)
	}
	c.payments[name], c.receiptList = r, append(c.receiptList, r)
	m := c.merchant(l.key.merchant)
	m.received += r.amount
	if r.payin.isZero() {
		m.nameless += r.amount
		if !m.id.isZero() {
			c.violateMerchantf(Incoming, m.id, "receipt %s of no order belongs to a merchant", l.key.id)
		}
		return
	}
	m.surplus += r.amount - r.applied
	r.order = c.orders[rowKey{l.key.merchant, r.payin}]
	if r.order == nil || r.order.kind != Payin {
		c.violateMerchantf(Incoming, l.key.merchant, "receipt %s belongs to %s, which is not a pay-in", l.key.id, r.payin)
		r.order = nil
		return
	}
	r.order.applied += r.applied
	r.order.surplus += r.amount - r.applied
	c.touch(r.order)
}

func (c *Checker) applyClaim(l *line) {
	var row claimRow
	c.columns.read(l).claim(&row)
	r := c.receipt(l.key, row.processor, row.externalID)
	if r.claimed {
		c.violateMerchantf(SingleReceipt, l.key.merchant, "receipt %s claims a second payment %s", l.key.id, row.externalID)
	}
	r.claimed = true
}

// checkReceipt checks that a new receipt is claimed and complete, and has a case about what it
// has of no order.
func (c *Checker) checkReceipt(r *receipt) {
	if !r.stored || !r.claimed {
		c.violateMerchantf(SingleReceipt, r.key.merchant, "payment %s: claimed is %v, stored is %v", r.externalID, r.claimed, r.stored)
	}
	if r.order != nil {
		if !strings.HasPrefix(r.order.externalID, r.orderID) || len(r.orderID) < 25 {
			c.violatef(Incoming, r.order, "payment %s names order %s, not %s", r.externalID, r.orderID, r.order.externalID)
		}
		return
	}
	refunded := c.refundedOf(r)
	if r.applied != 0 || r.booked != r.amount || r.returned != refunded || r.reported != r.amount-refunded {
		c.violateMerchantf(Incoming, r.key.merchant, "payment %s of %d fits no order: %d is applied, %d is booked, %d of %d is returned, cases report %d",
			r.externalID, r.amount, r.applied, r.booked, r.returned, refunded, r.reported)
	}
}

// refundedOf is what the processor gave back of a receipt of no order, by the cases about its
// refunds. Each refund has one, which is closed at once if the money was still there, and a
// second one, closed at once too, if the refund came back.
func (c *Checker) refundedOf(r *receipt) (sum int64) {
	first := map[string]*reviewCase{}
	undone := map[string]bool{}
	for _, v := range r.refundCases {
		id := v.facts["externalId"]
		fresh := !v.complete
		if fresh {
			v.complete, v.proven = true, v.closedAt != 0
		}
		before := first[id]
		switch {
		case before == nil:
			first[id] = v
			if fresh && v.proven != (v.amount <= r.amount-sum) {
				c.violateMerchantf(Incoming, r.key.merchant, "a refund of %d of payment %s is booked: %v; %d of %d was left", v.amount, r.externalID, v.proven, r.amount-sum, r.amount)
			}
			if v.proven {
				sum += v.amount
			}
		case undone[id] || before.closedAt == 0 || !v.proven || v.amount != before.amount:
			c.violateMerchantf(Incoming, r.key.merchant, "refund %s of payment %s has another case of %d", id, r.externalID, v.amount)
		default:
			undone[id] = true
			if before.proven {
				sum -= v.amount
			}
		}
	}
	return sum
}
