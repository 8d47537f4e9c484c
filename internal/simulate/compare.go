package simulate

import (
	"bytes"
	"encoding/hex"
	"strings"
)

// comparison holds the clients', the bank's and the receivers' books against
// the gateway's.
type comparison struct {
	books
	g       *gatewayBook
	settled bool // nothing is under way any more
	lines   map[string]*bankTransfer
}

// compare says in what the four books differ. Before everything is settled it
// asks only for what must hold at any time. The receivers' lines are read once
// each: between two calls they may only grow.
func compare(b books, g *gatewayBook, settled bool) []violation {
	c := &comparison{books: b, g: g, settled: settled, lines: map[string]*bankTransfer{}}
	c.checkAcks()
	c.checkTransfers()
	c.checkPayouts()
	c.checkPayments()
	c.checkReceived()
	c.checkNews()
	if settled {
		c.checkEnd()
		c.checkSums()
	}
	found := g.found
	g.found = nil
	return found
}

// parseRowID reads an id as the API shows it.
func parseRowID(text string) (id rowID) {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil {
		return rowID{}
	}
	return rowIDOf(b)
}

// checkAcks looks for what was acknowledged (I2), and for a second order of one
// reference or one that nobody asked for (I5).
func (c *comparison) checkAcks() {
	type wanted struct {
		id  string
		fit bool
	}
	asked := make(map[orderName]*wanted, len(c.acks))
	for _, a := range c.acks {
		name := orderName{parseRowID(a.merchant), a.kind, a.reference}
		w := asked[name]
		if w == nil {
			w = &wanted{}
			asked[name] = w
		}
		o := c.g.references[name]
		w.fit = w.fit || o != nil && o.amount == a.amount && o.method == a.method && o.url == a.webhookURL
		if a.id == "" {
			continue
		}
		switch {
		case o == nil:
			c.g.found = append(c.g.found, violation{"I2", a.merchant, a.id, a.kind + " " + a.reference + " was acknowledged, and is not there"})
			continue
		case w.id != "" && w.id != a.id:
			c.g.badf("I5", o, "reference %q was acknowledged as %s and as %s", a.reference, w.id, a.id)
		case o.key.id != parseRowID(a.id), o.external != a.externalID, o.amount != a.amount, o.method != a.method, o.url != a.webhookURL:
			c.g.badf("I2", o, "acknowledged as %+v, and is %s, %s, %d, %s, %s", *a, o.key.id, o.external, o.amount, o.method, o.url)
		case a.canceled && (!o.canceled || o.kind == payout && o.status != "CANCELED"):
			c.g.badf("I2", o, "its cancelling was acknowledged")
		}
		w.id = a.id
	}
	for _, o := range c.g.inOrder {
		if w := asked[orderName{o.key.merchant, o.kind, o.reference}]; w == nil || !w.fit {
			c.g.badf("I5", o, "nobody asked for %s %s of %d, %s", o.method, o.reference, o.amount, o.url)
		}
	}
}

// checkTransfers looks for a payout behind each of the bank's transfers: I3.
func (c *comparison) checkTransfers() {
	for i := range c.transfers {
		t := &c.transfers[i]
		o := c.g.externals[t.externalID]
		if o == nil || o.kind != payout {
			c.g.found = append(c.g.found, violation{invariant: "I3", text: "the bank has a transfer of nobody's: " + t.externalID})
			continue
		}
		if other := c.lines[t.externalID]; other != nil {
			c.g.badf("I3", o, "the bank has two transfers: %+v and %+v", *other, *t)
		}
		c.lines[t.externalID] = t
		if t.amount != o.amount {
			c.g.badf("I3", o, "the bank sent %d of %d", t.amount, o.amount)
		}
		if len(o.sends) == 0 {
			c.g.badf("I3", o, "the bank has a transfer that was never sent")
		}
	}
}

// checkPayouts holds each payout against its transfer: I3.
func (c *comparison) checkPayouts() {
	for _, o := range c.g.inOrder {
		if o.kind != payout {
			continue
		}
		t := c.lines[o.external]
		state := "no transfer"
		if t != nil {
			state = t.state
		}
		switch o.status {
		case "COMPLETED", "RETURNED":
			if state != "paid" {
				c.g.badf("I3", o, "the bank says %s", state)
				continue
			}
			if o.endToEnd != t.endToEndID {
				c.g.badf("I3", o, "end-to-end id is %s, the bank's is %s", o.endToEnd, t.endToEndID)
			}
			if o.returned > t.returned || c.settled && o.returned != t.returned {
				c.g.badf("I3", o, "%d came back, the bank says %d", o.returned, t.returned)
			}
		case "FAILED", "CANCELED", "PENDING":
			if state == "paid" || state == "processing" {
				c.g.badf("I3", o, "the bank says %s", state)
			}
		case "PROCESSING":
			if c.settled && state == "paid" && !c.open(o) {
				c.g.badf("I3", o, "the bank says paid")
			}
		}
	}
}

// open says whether it is in the open that nobody knows what became of a payout.
func (c *comparison) open(o *orderRow) bool {
	return o.status == "PROCESSING" && o.hasOpen("payout_unknown", "contradiction")
}

// checkPayments holds receipts against the bank's payments: I9 and I10.
func (c *comparison) checkPayments() {
	receipts := make(map[string]*receiptRow, len(c.g.cameIn))
	for _, r := range c.g.cameIn {
		receipts[r.external] = r
	}
	for i := range c.payments {
		p := &c.payments[i]
		r := receipts[p.id]
		switch {
		case r == nil && c.settled:
			c.g.badf("I10", c.g.externals[p.externalID], "the bank got %d as payment %s, which is not booked", p.amount, p.id)
		case r == nil:
		case r.amount != p.amount || r.endToEnd != p.endToEndID || r.orderID != p.externalID:
			c.g.badf("I9", r.order, "payment %+v is booked as %d, %s, for %s", *p, r.amount, r.endToEnd, r.orderID)
		case r.order == nil && c.g.externals[p.externalID] != nil:
			c.g.badf("I10", c.g.externals[p.externalID], "payment %s of %d is not booked for it", p.id, p.amount)
		}
		delete(receipts, p.id)
	}
	for _, r := range c.g.cameIn {
		if receipts[r.external] != nil {
			c.g.badBooksf("I9", r.key.merchant, "receipt %s of %d is of no payment: %s", r.key.id, r.amount, r.external)
		}
	}
}

// checkReceived holds what receivers got against the events: I7.
func (c *comparison) checkReceived() {
	for ; c.g.heard < len(c.received); c.g.heard++ {
		r := &c.received[c.g.heard]
		e := c.g.eventIDs[r.eventID]
		switch {
		case e == nil || e.order == nil:
			c.g.found = append(c.g.found, violation{invariant: "I7", merchant: r.merchant, text: r.url + " got event " + r.eventID + ", which is not there"})
			continue
		case parseRowID(r.merchant) != e.key.merchant || r.url != e.order.url:
			c.g.badf("I7", e.order, "event %s went to %s of merchant %s", e.kind, r.url, r.merchant)
		case !bytes.Equal(r.body, e.body):
			c.g.badf("I7", e.order, "event %s is %s, and was delivered as %s", e.kind, e.body, r.body)
		}
		e.taken = e.taken || r.answer >= 200 && r.answer <= 299
		e.came++
		made := e.formerly
		if e.delivery != nil {
			made += e.delivery.tries
		}
		if e.came > made { // it was taken in hand before a byte left
			c.g.badf("I7", e.order, "event %s came %d times, and %d attempts are on record", e.kind, e.came, made)
		}
	}
}

// checkNews looks whether receivers took what the gateway calls delivered, and
// in the end, whether anything was given up in silence: I7.
func (c *comparison) checkNews() {
	for _, o := range c.g.inOrder {
		for _, e := range o.events {
			d := e.delivery
			if d == nil {
				continue
			}
			if d.state == "delivered" && !e.taken {
				c.g.badf("I7", o, "event %s is called delivered, and no receiver took it", e.kind)
			}
			if c.settled && d.state == "pending" {
				c.g.badf("I11", o, "event %s is still to be delivered", e.kind)
			}
		}
	}
}
