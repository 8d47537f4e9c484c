package checker

import (
	"encoding/json"
	"slices"
	"strings"
)

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

// checkCase checks a case that was opened or closed against the rule of its kind.
func (c *Checker) checkCase(v *reviewCase) {
	rule, known := caseRules[v.kind]
	if !known {
		c.violatef(Progress, v.order, "case %s has an unknown kind %q", v.key.id, v.kind)
		return
	}
	if !c.isSubject(v, rule.subject) {
		c.violatef(Progress, v.order, "the subject of case %s (%s) is %s, which is not a %s", v.key.id, v.kind, v.subject, rule.subject)
	}
	for _, names := range rule.params {
		if !slices.ContainsFunc(strings.Split(names, "|"), func(name string) bool { return v.facts[name] != "" }) {
			c.violatef(Progress, v.order, "case %s (%s) has no parameter %s: %s", v.key.id, v.kind, names, v.params)
		}
	}
	switch {
	case v.closedAt == 0 && v.resolution != "":
		c.violatef(Progress, v.order, "case %s (%s) is open with resolution %q", v.key.id, v.kind, v.resolution)
	case v.closedAt != 0 && !slices.Contains(rule.resolutions, v.resolution):
		c.violatef(Progress, v.order, "case %s (%s) is closed with resolution %q", v.key.id, v.kind, v.resolution)
	}
	if v.kind == "refund_unexpected" && v.closedAt != 0 && v.order != nil {
		c.violatef(Progress, v.order, "case %s (%s) of a pay-in is closed with resolution %q", v.key.id, v.kind, v.resolution)
	}
	if v.kind == "webhook_exhausted" {
		c.checkWebhookCase(v)
	}
	if v.order != nil && v.kind == "payout_unknown" {
		c.checkDecision(v)
	}
	if v.facts["reason"] == "paid_after_release" && (v.order == nil || !c.isMistaken(v.order)) {
		c.violatef(Progress, v.order, "case %s says that it was paid after its release, which nobody decided", v.key.id)
	}
	if v.order != nil && v.kind == "refund_unknown" {
		c.checkRefundDecision(v)
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

// isSubject reports that the subject of a case is what its kind calls for.
func (c *Checker) isSubject(v *reviewCase, want string) bool {
	switch want {
	case "":
		return v.subject.isZero()
	case "dispute":
		return c.disputes[rowKey{v.key.merchant, v.subject}] != nil
	case "found transfer":
		return c.found[rowKey{v.key.merchant, v.subject}] != nil
	case "receipt":
		return c.receipts[rowKey{v.key.merchant, v.subject}] != nil
	case "endpoint", "entry":
		return !v.subject.isZero() && v.order == nil
	case "pay-in or receipt":
		return c.receipts[rowKey{v.key.merchant, v.subject}] != nil || v.order != nil && v.order.kind == Payin
	default:
		return v.order != nil && (want == "order" || want == v.order.kind)
	}
}

// checkDecision checks that a payout became what people have decided.
func (c *Checker) checkDecision(v *reviewCase) {
	o := v.order
	last := &sendRow{}
	if len(o.sends) > 0 {
		last = o.sends[len(o.sends)-1]
	}
	fits := true
	switch v.resolution {
	case "paid":
		fits = o.status == "COMPLETED"
	case "release":
		fits = o.status == "FAILED"
	case "resend":
		fits = o.status == "PROCESSING" && (o.step == "queued" || o.step == "unknown") && (len(o.sends) == 0 || last.outcome == "not_found" || noEffect(last.outcome))
	}
	if !fits {
		c.violatef(Progress, o, "people decided %s; the step is %s, the last send is %q", v.resolution, o.step, last.outcome)
	}
}

// checkRefundDecision is checkDecision for a part of a refund.
func (c *Checker) checkRefundDecision(v *reviewCase) {
	p := c.parts[v.facts["processor"]+"/"+v.facts["externalId"]]
	fits := p != nil
	switch {
	case !fits:
	case v.resolution == "paid":
		fits = p.outcome == "paid"
	case v.resolution == "release":
		fits = p.outcome == "failed"
	case v.resolution == "resend":
		fits = p.step == "queued" && p.outcome == "not_found"
	}
	if !fits {
		c.violatef(Progress, v.order, "people decided %s about a part of the refund, which is %+v", v.resolution, p)
	}
}

// checkWebhookCase checks that a case about a delivery names its event, and that it was
// closed because of what became of it.
func (c *Checker) checkWebhookCase(v *reviewCase) {
	e := c.eventIDs[v.facts["event"]]
	switch {
	case e == nil || e.order != v.order:
		c.violatef(Progress, v.order, "case %s (%s) names event %q, which is not of its order", v.key.id, v.kind, v.facts["event"])
	case v.resolution == "delivered" && (e.delivery == nil || e.delivery.state != "delivered"):
		c.violatef(Progress, v.order, "case %s (%s) is closed as delivered, but event %s is not", v.key.id, v.kind, e.kind)
	case v.resolution == "disabled" && v.order != nil && !v.order.webhookDisabled:
		c.violatef(Progress, v.order, "case %s (%s) is closed as disabled, but the order's events are not", v.key.id, v.kind)
	}
}
