package simulate

import "strings"

// receipt finds or begins a receipt: its claim comes first.
func (g *gatewayBook) receipt(key rowKey, processor, external string) *receiptRow {
	r := g.receipts[key]
	if r == nil {
		r = &receiptRow{key: key, processor: processor, external: external}
		g.receipts[key] = r
		g.touched.receipts = append(g.touched.receipts, r)
	}
	return r
}

// applyReceipt follows money that came in: I9 and I10.
func (g *gatewayBook) applyReceipt(c *rowChange) {
	r := g.receipt(c.key, c.t[0], c.t[1])
	if r.stored || r.processor != c.t[0] || r.external != c.t[1] {
		g.badBooksf("I9", c.key.merchant, "receipt %s of payment %s is claimed as %s", c.key.id, c.t[1], r.external)
	}
	r.stored, r.amount, r.applied, r.orderID, r.endToEnd = true, c.n[0], c.n[1], c.t[2], c.t[3]
	name := r.processor + "/" + r.external
	if other := g.payments[name]; other != nil {
		g.badBooksf("I9", c.key.merchant, "payment %s has receipts %s and %s", r.external, other.key.id, r.key.id)
	}
	g.payments[name], g.cameIn = r, append(g.cameIn, r)
	m := g.merchant(c.key.merchant)
	m.received += r.amount
	m.surplus += r.amount - r.applied
	if c.other == (rowID{}) {
		return
	}
	r.order = g.orders[rowKey{c.key.merchant, c.other}]
	if r.order == nil || r.order.kind != payin {
		g.badBooksf("I10", c.key.merchant, "receipt %s is of %s, which is no pay-in", c.key.id, c.other)
		r.order = nil
		return
	}
	r.order.applied += r.applied
	r.order.surplus += r.amount - r.applied
	g.touch(r.order)
}

func (g *gatewayBook) applyClaim(c *rowChange) {
	r := g.receipt(c.key, c.t[0], c.t[1])
	if r.claimed {
		g.badBooksf("I9", c.key.merchant, "receipt %s claims a second payment %s", c.key.id, c.t[1])
	}
	r.claimed = true
}

// checkReceipt looks whether a new receipt is claimed and whole, and whether a
// person is told of one that fits no order.
func (g *gatewayBook) checkReceipt(r *receiptRow) {
	if !r.stored || !r.claimed {
		g.badBooksf("I9", r.key.merchant, "payment %s: claimed is %v, receipt is %v", r.external, r.claimed, r.stored)
	}
	if r.order != nil {
		if !strings.HasPrefix(r.order.external, r.orderID) || len(r.orderID) < 25 {
			g.badf("I10", r.order, "payment %s names %s, not %s", r.external, r.orderID, r.order.external)
		}
		return
	}
	if r.applied != 0 || r.booked != r.amount || r.told != r.amount {
		g.badBooksf("I10", r.key.merchant, "payment %s of %d fits no order: %d is applied, %d booked, a person is told of %d",
			r.external, r.amount, r.applied, r.booked, r.told)
	}
}

func (g *gatewayBook) applyDispute(c *rowChange) {
	d := g.disputes[c.key]
	if c.op == rowAdded {
		d = &disputeRow{order: g.orders[rowKey{c.key.merchant, c.other}], amount: c.n[0], state: c.t[0]}
		if d.order == nil || d.order.kind != payin || d.state != "open" || d.amount > d.order.paid-d.order.refunded {
			g.badf("I6", d.order, "dispute %s of %d begins as %s", c.t[1], d.amount, d.state)
		}
		g.disputes[c.key] = d
		g.merchant(c.key.merchant).disputed += d.amount
		if d.order != nil {
			d.order.disputes = append(d.order.disputes, d)
			g.touch(d.order)
		}
		return
	}
	if d == nil {
		g.badBooksf("I6", c.key.merchant, "dispute %s changes, but was never opened", c.key.id)
		return
	}
	state := c.t[0]
	if !strings.Contains(" "+disputeSteps[d.state]+" ", " "+state+" ") {
		g.badf("I6", d.order, "a dispute goes from %s to %s", d.state, state)
	}
	if d.state == "open" {
		g.merchant(c.key.merchant).disputed -= d.amount
	}
	d.state = state
	if d.order != nil {
		g.touch(d.order)
	}
}

// applyException follows what a person is asked to look at.
func (g *gatewayBook) applyException(c *rowChange) {
	if c.op == rowChanged {
		e := g.exceptions[c.key]
		if e == nil || e.closed || c.n[0] == 0 {
			g.badBooksf("I11", c.key.merchant, "exception %s is closed twice, opened again or was never there", c.key.id)
			return
		}
		e.closed = true
		if o := g.orders[rowKey{c.key.merchant, e.subject}]; o != nil {
			g.touch(o)
		}
		return
	}
	e := &exceptionRow{key: c.key, kind: c.t[0], subject: c.other, amount: c.n[0]}
	g.exceptions[c.key] = e
	if o := g.orders[rowKey{c.key.merchant, c.other}]; o != nil {
		o.exceptions = append(o.exceptions, e)
		g.touch(o)
	}
	g.tell(e, c.t[1])
}

// tell notes on receipts and notices of this commit that a person is told.
func (g *gatewayBook) tell(e *exceptionRow, detail string) {
	switch e.kind {
	case "overpaid":
		if o := g.orders[rowKey{e.key.merchant, e.subject}]; o != nil {
			o.told += e.amount
		}
	case "unmatched_receipt":
		if r := g.receipts[rowKey{e.key.merchant, e.subject}]; r != nil {
			r.told += e.amount
		}
	case "notice":
		for _, n := range g.notices {
			if strings.HasSuffix(detail, " Notice "+n.name+".") {
				n.stuck = true
			}
		}
	}
}

// applyNotice follows what a processor said, from its record to its end.
func (g *gatewayBook) applyNotice(c *rowChange) {
	name := c.t[1] + "/" + c.t[2]
	n := g.notices[name]
	if n == nil {
		n = &noticeRow{name: name, state: "received"}
		g.notices[name] = n
	}
	n.state, n.nextAt, n.claimed = c.t[0], c.n[0], c.n[1] != 0
	if !n.touched {
		n.touched = true
		g.touched.notices = append(g.touched.notices, n)
	}
}

func (g *gatewayBook) checkNotice(n *noticeRow) {
	switch n.state {
	case "received":
		if (n.nextAt > 0) == n.claimed {
			g.badBooksf("I11", rowID{}, "notice %s is due at %d and in hand: %v", n.name, n.nextAt, n.claimed)
		}
	case "stuck":
		if !n.stuck {
			g.badBooksf("I11", rowID{}, "notice %s is given up, and nobody is told", n.name)
		}
		fallthrough
	default:
		if n.nextAt != 0 || n.claimed {
			g.badBooksf("I11", rowID{}, "notice %s is %s, due at %d and in hand: %v", n.name, n.state, n.nextAt, n.claimed)
		}
	}
}
