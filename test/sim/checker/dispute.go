package checker

import (
	"slices"
	"strings"
)

// disputeRow is a row of disputes.
type disputeRow struct {
	payin                   rowID
	externalID, status      string
	amount, taken, returned int64 // cents
	version                 int64
	createdAt, updatedAt    int64
}

// dispute declares the columns of disputes.
func (c *columns) dispute(r *disputeRow) {
	c.fixed.id("payin_id", &r.payin)
	c.fixed.text("external_id", &r.externalID)
	c.fixed.num("amount", &r.amount)
	c.fixed.num("created_at", &r.createdAt)
	c.mutable.text("status", &r.status)
	c.mutable.num("taken", &r.taken)
	c.mutable.num("returned", &r.returned)
	c.mutable.num("version", &r.version)
	c.mutable.num("updated_at", &r.updatedAt)
}

// held is what the dispute has set aside.
func (r *disputeRow) held() int64 {
	if r.status == "OPEN" || r.status == "SUBMITTED" {
		return r.taken - r.returned
	}
	return 0
}

// dispute is a dispute of a pay-in.
type dispute struct {
	disputeRow

	order     *order
	announced int64 // the version of its last event
	reversed  int64 // cents of returned that came back after it was lost

	// Events of its pay-in that its changes must have.
	disputed, chargedBack, won int
}

func (c *Checker) applyDispute(l *line) {
	d := c.disputes[l.key]
	if l.op == rowAdded {
		d = &dispute{}
		c.columns.read(l).dispute(&d.disputeRow)
		c.addDispute(l.key, d)
		return
	}
	if d == nil {
		c.violateMerchantf(States, l.key.merchant, "dispute %s changes, but was never opened", l.key.id)
		return
	}
	next := d.disputeRow
	c.columns.read(l).dispute(&next)
	if !slices.Contains(disputeSteps[d.status], next.status) {
		c.violatef(States, d.order, "a dispute changes from %s to %s", d.status, next.status)
	}
	if next.taken < d.taken || next.taken > next.amount || next.returned > next.taken {
		c.violatef(Amounts, d.order, "a dispute of %d took %d, and %d of it came back, after %d", next.amount, next.taken, next.returned, d.taken)
	}
	if d.status == "LOST" {
		d.reversed += next.returned - d.returned
	}
	c.merchant(l.key.merchant).disputed += next.held() - d.held()
	d.expectEvents(&next)
	d.disputeRow = next
	if d.order != nil {
		c.touch(d.order)
	}
}

// expectEvents counts the events of a change: the dispute takes money, also what it lacked
// before, gives a part back, or ends and has money.
func (d *dispute) expectEvents(next *disputeRow) {
	had := next.taken > next.returned
	if next.taken > d.taken {
		d.disputed++
	}
	if next.returned > d.returned {
		d.won++
	}
	if ended := next.status != d.status && had; ended && next.status == "LOST" || d.status == "LOST" && next.taken > d.taken {
		d.chargedBack++
	} else if ended && (next.status == "WON" || next.status == "REVERSED") {
		d.won++
	}
}

func (c *Checker) addDispute(key rowKey, d *dispute) {
	d.order = c.orders[rowKey{key.merchant, d.payin}]
	if d.order == nil || d.order.kind != Payin || d.status != "OPEN" || d.taken != 0 || d.version != 1 {
		c.violatef(States, d.order, "dispute %s of %d begins as %s", d.externalID, d.amount, d.status)
	}
	c.disputes[key] = d
	if d.order != nil {
		d.order.disputes = append(d.order.disputes, d)
		c.touch(d.order)
	}
}

// checkDisputes checks a pay-in's status and entries against its disputes.
func (c *Checker) checkDisputes(o *order) {
	var open, opened, won, lost, reversed int64
	for _, d := range o.disputes {
		had := d.taken - d.returned
		opened += d.taken
		won += d.returned - d.reversed
		lost += d.reversed
		reversed += d.reversed
		switch d.status {
		case "OPEN", "SUBMITTED":
			open += had
		case "WON":
			won += had
		case "REVERSED":
			reversed += had
			fallthrough
		case "LOST":
			lost += had
		}
	}
	charged := lost - reversed
	disputed, inFull := o.status == "DISPUTED" || o.status == "CHARGEBACK", o.isPaidInFull() // else it keeps its status
	if inFull && (open > 0 && !disputed || open == 0 && (o.status == "DISPUTED" || (o.status == "CHARGEBACK") != (charged > 0))) {
		c.violatef(States, o, "%d is in open disputes, %d in lost ones", open, charged)
	}
	if had := max(o.paid, o.applied+o.surplus) - o.refunded; open+charged > had {
		c.violatef(Amounts, o, "%d is disputed or charged back, of %d", open+charged, had)
	}
	c.checkDisputeEvents(o)
	c.checkBooked(o, "dispute_opened", opened)
	c.checkBooked(o, "dispute_won", won)
	c.checkBooked(o, "charged_back", lost)
	c.checkBooked(o, "chargeback_reversed", reversed)
}

// announceDispute checks an event of a dispute: each version has one.
func (c *Checker) announceDispute(d *dispute, e *event) {
	d.announced++
	if e.version != d.announced || e.version > d.version || !strings.HasPrefix(e.kind, "dispute.") {
		c.violatef(Events, d.order, "event %s of version %d of a dispute of version %d", e.kind, e.version, d.version)
	}
}

// checkDisputeEvents checks that each change of a dispute, and of the money that it has, was
// announced, once.
func (c *Checker) checkDisputeEvents(o *order) {
	balance := map[string]int{} // events less changes
	before := map[string]int{}  // that may be of disputes from before the order was paid in full
	for i, e := range o.events {
		balance[e.kind]++
		follows := func(n int, kind string) bool {
			return i >= n && o.events[i-n].kind == kind && o.events[i-n].version == e.version-int64(n)
		}
		if e.kind == "payin.disputed" && follows(1, "payin.paid") || e.kind == "payin.chargeback" && follows(1, "payin.disputed") && follows(2, "payin.paid") {
			before[e.kind]++
		}
	}
	for _, d := range o.disputes {
		if d.announced != d.version {
			c.violatef(Events, o, "dispute %s has version %d, and events up to %d", d.externalID, d.version, d.announced)
		}
		balance["payin.disputed"] -= d.disputed
		balance["payin.chargeback"] -= d.chargedBack
		balance["payin.dispute_won"] -= d.won
	}
	for _, kind := range []string{"payin.disputed", "payin.chargeback", "payin.dispute_won"} {
		if balance[kind] < 0 || balance[kind] > before[kind] {
			c.violatef(Events, o, "%d events %s too many for its %d disputes", balance[kind], kind, len(o.disputes))
		}
	}
}
