package checker

import "encoding/json"

// caseRow is a row of cases: something that needs manual review.
type caseRow struct {
	kind                string
	subject             rowID
	amount              int64  // cents
	params              string // JSON
	resolution          string
	createdAt, closedAt int64 // closedAt is 0 while it is open
}

// reviewCase declares the columns of cases.
func (c *columns) reviewCase(r *caseRow) {
	c.fixed.text("kind", &r.kind)
	c.fixed.id("subject_id", &r.subject)
	c.fixed.num("amount", &r.amount)
	c.fixed.text("params", &r.params)
	c.fixed.num("created_at", &r.createdAt)
	c.mutable.text("resolution", &r.resolution)
	c.mutable.num("closed_at", &r.closedAt)
}

// reviewCase is a case.
type reviewCase struct {
	caseRow

	key     rowKey
	order   *order            // its subject, or nil if that is no order
	facts   map[string]string // its parameters
	touched bool

	// Of a refund of a receipt that fits no order.
	complete bool // the commit that opened it is over
	proven   bool // it was closed in that commit
}

func (c *Checker) applyCase(l *line) {
	v := c.cases[l.key]
	switch {
	case l.op == rowAdded:
		v = &reviewCase{key: l.key}
		c.columns.read(l).reviewCase(&v.caseRow)
		c.addCase(v)
	case v == nil:
		c.violateMerchantf(Progress, l.key.merchant, "case %s changes, but was never opened", l.key.id)
		return
	default:
		if v.closedAt != 0 {
			c.violateMerchantf(Progress, l.key.merchant, "case %s changes after it was closed", l.key.id)
		}
		c.columns.read(l).reviewCase(&v.caseRow)
		if v.closedAt != 0 {
			c.closeCase(v)
		}
	}
	if v.order != nil {
		c.touch(v.order)
	}
	if !v.touched {
		v.touched = true
		c.touched.cases = append(c.touched.cases, v)
	}
}

func (c *Checker) addCase(v *reviewCase) {
	c.cases[v.key] = v
	if v.order = c.orders[rowKey{v.key.merchant, v.subject}]; v.order != nil {
		v.order.cases = append(v.order.cases, v)
	}
	if err := json.Unmarshal([]byte(v.params), &v.facts); err != nil {
		c.violateMerchantf(Progress, v.key.merchant, "case %s has parameters %q: %v", v.key.id, v.params, err)
	}
	r := c.receipts[rowKey{v.key.merchant, v.subject}]
	switch v.kind {
	case "overpaid":
		if v.order != nil {
			v.order.reported += v.amount
		}
	case "unmatched_receipt":
		if r != nil {
			r.reported += v.amount
		}
	case "refund_unexpected":
		if r != nil {
			r.refundCases = append(r.refundCases, v)
			c.touchReceipt(r)
		}
	case "payout_found":
		c.foundCases[rowKey{v.key.merchant, v.subject}] += v.amount
	case "notice", "contradiction":
		if n := c.notices[v.facts["processor"]+"/"+v.facts["notice"]]; n != nil {
			n.reported = true
		}
	}
	if v.closedAt != 0 {
		c.closeCase(v)
	}
}

// closeCase follows the end of a case: the money that it reported is not to be decided any more.
func (c *Checker) closeCase(v *reviewCase) {
	switch v.kind {
	case "overpaid":
		if v.order != nil {
			v.order.reported -= v.amount
		}
	case "unmatched_receipt":
		if r := c.receipts[rowKey{v.key.merchant, v.subject}]; r != nil {
			r.reported -= v.amount
			c.touchReceipt(r)
		}
	case "payout_found":
		c.foundCases[rowKey{v.key.merchant, v.subject}] -= v.amount
	}
}

// checkCase checks that a case says nothing that did not happen.
func (c *Checker) checkCase(v *reviewCase) {
	if v.facts["reason"] == "paid_after_release" && (v.order == nil || !c.isMistaken(v.order)) {
		c.violatef(Progress, v.order, "case %s says that it was paid after its release, which nobody decided", v.key.id)
	}
	if table := v.damagedTable(); table != "" && !c.Damaged[table] {
		c.violatef(Progress, v.order, "case %s says that a row of %s is damaged, but none was", v.key.id, table)
	}
}

// damagedTable is the table of the row that a case calls damaged; "" if it is about
// something else.
func (v *reviewCase) damagedTable() string {
	switch {
	case v.kind == "damaged":
		return v.facts["table"]
	case v.kind == "notice" && v.facts["reason"] == "unreadable":
		return "notices"
	default:
		return ""
	}
}
