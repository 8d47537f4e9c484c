package checker

import (
	"slices"
)

// postingRow is a row of postings: one line of an entry.
type postingRow struct {
	line, amount, balanceAfter int64
	kind, account              string
	subject                    rowID
	createdAt, number          int64
}

// posting declares the columns of postings.
func (c *columns) posting(r *postingRow) {
	c.key.num("line", &r.line)
	c.fixed.text("kind", &r.kind)
	c.fixed.id("subject_id", &r.subject)
	c.fixed.text("account", &r.account)
	c.fixed.num("amount", &r.amount)
	c.fixed.num("balance_after", &r.balanceAfter)
	c.fixed.num("created_at", &r.createdAt)
	c.fixed.num("number", &r.number)
}

// entry is an entry of the ledger.
type entry struct {
	key      rowKey
	kind     string
	subject  rowID
	order    *order // its subject, or nil if that is no order
	postings []postingRow
	complete bool // its commit is over
}

// foundKinds are the kinds of entries about a found transfer.
var foundKinds = []string{"payout_found", "payout_adopted", "found_returned", "payout_recovered"}

// statementAccounts are the merchant's own accounts, whose postings are numbered together.
var statementAccounts = []string{"available", "pending", "held", "disputed", "unapplied", "owed"}

// applyPosting follows one posting of an entry.
func (c *Checker) applyPosting(l *line) {
	var p postingRow
	c.columns.read(l).posting(&p)
	e := c.entries[l.key]
	if e == nil {
		e = &entry{key: l.key, kind: p.kind, subject: p.subject, order: c.orders[rowKey{l.key.merchant, p.subject}]}
		c.entries[l.key] = e
		c.touched.entries = append(c.touched.entries, e)
	}
	if e.complete {
		c.violatef(Ledger, e.order, "entry %s gets another posting in a later commit", l.key.id)
	}
	if p.line != int64(len(e.postings)) || p.kind != e.kind || p.subject != e.subject {
		c.violatef(Ledger, e.order, "line %d of entry %s (%s of %s) does not continue it (%s of %s)", p.line, l.key.id, p.kind, p.subject, e.kind, e.subject)
	}
	e.postings = append(e.postings, p)
	m := c.merchant(l.key.merchant)
	a := m.account(p.account)
	a.sum += p.amount
	a.count++
	a.touched = true
	number := a.count
	if slices.Contains(statementAccounts, p.account) {
		m.statement++
		number = m.statement
	}
	if p.number != number {
		c.violateMerchantf(Ledger, m.id, "line %d of entry %s has the number %d, not %d", p.line, l.key.id, p.number, number)
	}
	if a.sum != p.balanceAfter {
		c.violateMerchantf(Ledger, m.id, "account %s is %d after entry %s, whose posting says %d", p.account, a.sum, l.key.id, p.balanceAfter)
	}
}

// checkEntry checks an entry against its recipe and adds it to what is booked about its
// subject.
func (c *Checker) checkEntry(e *entry) {
	e.complete = true
	if e.order == nil { // a new refund is stored after its entries
		e.order = c.orders[rowKey{e.key.merchant, e.subject}]
	}
	var sum, taken int64
	for i := range e.postings {
		amount := e.postings[i].amount
		sum += amount
		if amount < 0 {
			taken -= amount
		}
	}
	if sum != 0 {
		c.violatef(Ledger, e.order, "entry %s (%s) sums to %d", e.key.id, e.kind, sum)
	}
	c.merchant(e.key.merchant).booked[e.kind] += taken
	if o := e.order; o != nil {
		o.booked[e.kind] += taken
		for i := range e.postings {
			if e.postings[i].account == "fees" {
				o.fees += e.postings[i].amount
			}
		}
		c.touch(o)
		return
	}
	r := c.receipts[rowKey{e.key.merchant, e.subject}]
	f := c.found[rowKey{e.key.merchant, e.subject}]
	switch {
	case f != nil && slices.Contains(foundKinds, e.kind):
		f.booked[e.kind] += taken
		c.touched.found = append(c.touched.found, f)
	case r != nil && r.order == nil && e.kind == "received_unidentified":
		r.booked += taken
	case r != nil && r.order == nil && e.kind == "unidentified_returned":
		r.returned += taken
		c.merchant(e.key.merchant).nameless -= taken
		c.touchReceipt(r)
	case r != nil && r.order == nil && e.kind == "unidentified_back":
		r.returned -= taken
		c.merchant(e.key.merchant).nameless += taken
		c.touchReceipt(r)
	case r != nil && e.kind == "cost_booked":
	case e.kind == "funded" && e.subject == e.key.merchant:
	case e.kind == "owed_repaid" && (r != nil || f != nil || e.subject == e.key.merchant):
	default:
		c.violateMerchantf(Ledger, e.key.merchant, "the subject of entry %s (%s) is %s, which is not an order", e.key.id, e.kind, e.subject)
	}
}
