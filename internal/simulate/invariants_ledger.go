package simulate

import "strings"

// applyPosting follows one line of an entry: the books of I1.
func (g *gatewayBook) applyPosting(c *rowChange) {
	line, amount, after := c.n[0], c.n[1], c.n[2]
	kind, name := c.t[0], c.t[1]
	e := g.entries[c.key]
	if e == nil {
		e = &entryRow{key: c.key, kind: kind, subject: c.other, order: g.orders[rowKey{c.key.merchant, c.other}]}
		g.entries[c.key] = e
		g.touched.entries = append(g.touched.entries, e)
	}
	if e.closed {
		g.badf("I1", e.order, "entry %s gets another line in a later commit", c.key.id)
	}
	if line != int64(len(e.lines)) || kind != e.kind || c.other != e.subject {
		g.badf("I1", e.order, "line %d of entry %s (%s of %s) does not continue it (%s of %s)", line, c.key.id, kind, c.other, e.kind, e.subject)
	}
	e.lines = append(e.lines, entryLine{name, amount})
	m := g.merchant(c.key.merchant)
	a := m.account(name)
	a.sum += amount
	a.touched = true
	if a.sum != after {
		g.badBooksf("I1", m.id, "account %s stands at %d after entry %s, which says %d", name, a.sum, c.key.id, after)
	}
	a.last = after
}

// applyBalance follows the stored balance of an account.
func (g *gatewayBook) applyBalance(c *rowChange) {
	m := g.merchant(c.key.merchant)
	a := m.account(c.t[0])
	balance, version := c.n[0], c.n[1]
	if version != a.version+1 {
		g.badBooksf("I1", m.id, "balance of %s goes from version %d to %d", a.name, a.version, version)
	}
	a.balance, a.version, a.touched = balance, version, true
}

// checkEntry holds an entry against its recipe (I1) and adds it to what is
// booked about its subject.
func (g *gatewayBook) checkEntry(e *entryRow) {
	e.closed = true
	var sum, taken int64
	for _, l := range e.lines {
		sum += l.amount
		if l.amount < 0 {
			taken -= l.amount
		}
	}
	if sum != 0 {
		g.badf("I1", e.order, "entry %s (%s) adds up to %d", e.key.id, e.kind, sum)
	}
	g.checkLegs(e)
	g.merchant(e.key.merchant).booked[e.kind] += taken
	if o := e.order; o != nil {
		o.booked[e.kind] += taken
		g.touch(o)
		return
	}
	r := g.receipts[rowKey{e.key.merchant, e.subject}]
	switch {
	case r != nil && r.order == nil && e.kind == "received_unapplied":
		r.booked += taken
	case e.kind == "funded" && e.subject == e.key.merchant:
	case e.kind == "owed_repaid" && (r != nil || e.subject == e.key.merchant):
	default:
		g.badBooksf("I1", e.key.merchant, "entry %s (%s) is about %s, which is no order", e.key.id, e.kind, e.subject)
	}
}

// checkLegs holds the accounts and signs of an entry against its recipe.
func (g *gatewayBook) checkLegs(e *entryRow) {
	legs, known := recipeKinds[e.kind]
	if !known {
		g.badf("I1", e.order, "entry %s is of no recipe: %s", e.key.id, e.kind)
		return
	}
	seen := make([]bool, len(legs))
	for _, l := range e.lines {
		account, processor, _ := strings.Cut(l.account, ":")
		if account == "clearing" && e.order != nil && e.order.processor != processor {
			g.badf("I1", e.order, "entry %s (%s) clears with %s, not %s", e.key.id, e.kind, processor, e.order.processor)
		}
		fits := false
		for i := range legs {
			if legs[i].account == account && legs[i].sign*l.amount > 0 && !seen[i] {
				seen[i], fits = true, true
			}
		}
		if !fits {
			g.badf("I1", e.order, "entry %s (%s) may not move %d on %s", e.key.id, e.kind, l.amount, l.account)
		}
	}
	for i := range legs {
		if legs[i].always && !seen[i] {
			g.badf("I1", e.order, "entry %s (%s) leaves %s out", e.key.id, e.kind, legs[i].account)
		}
	}
}

// checkMerchant holds the books of a merchant against themselves (I1), against
// its orders (I4) and against what came in (I10).
func (g *gatewayBook) checkMerchant(m *merchantRow) {
	var sum int64
	for _, a := range m.accounts {
		sum += a.sum
		if a.touched && a.balance != a.sum {
			g.badBooksf("I1", m.id, "balance of %s is %d, its postings add up to %d", a.name, a.balance, a.sum)
		}
		a.touched = false
		switch {
		case strings.HasPrefix(a.name, "clearing:"):
		case a.name == "owed" && a.sum > 0, a.name != "owed" && a.sum < 0:
			g.badBooksf("I4", m.id, "%s stands at %d", a.name, a.sum)
		}
	}
	if sum != 0 {
		g.badBooksf("I1", m.id, "the ledger adds up to %d", sum)
	}
	for _, account := range []struct {
		name   string
		should int64
		why    string
	}{
		{"held", m.inFlight, "payouts in flight"},
		{"disputed", m.disputed, "open disputes"},
		{"unapplied", m.surplus, "receipts that no order took"},
	} {
		if is := m.account(account.name).sum; is != account.should {
			g.badBooksf("I4", m.id, "%s is %d, %s are %d", account.name, is, account.why, account.should)
		}
	}
	if owed, available := m.account("owed").sum, m.account("available").sum; owed < 0 && available > 0 {
		g.badBooksf("I4", m.id, "%d is owed while %d is available", -owed, available)
	}
	booked := m.booked["received"] + m.booked["received_pending"] + m.booked["received_unapplied"]
	if booked != m.received {
		g.badBooksf("I10", m.id, "%d came in, %d is booked", m.received, booked)
	}
}
