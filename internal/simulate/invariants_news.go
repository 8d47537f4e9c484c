package simulate

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// eventBody is what the checker reads of an event's body. Amounts are numbers
// in pay-ins and texts in payouts.
type eventBody struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Version int64  `json:"version"`
	Data    struct {
		ID             string          `json:"id"`
		ExternalID     string          `json:"externalId"`
		ReferenceID    string          `json:"referenceId"`
		Status         string          `json:"status"`
		Amount         json.RawMessage `json:"amount"`
		PaidAmount     int64           `json:"paidAmount"`
		RefundedAmount int64           `json:"refundedAmount"`
		ReturnedAmount string          `json:"returnedAmount"`
		Version        int64           `json:"version"`
	} `json:"data"`
}

func publicEventID(id rowID) string { return "evt_" + hex.EncodeToString(id[:]) }

// applyEvent follows a new event: I7.
func (g *gatewayBook) applyEvent(c *rowChange) {
	number, version, kind := c.n[0], c.n[1], c.t[0]
	o := g.orders[rowKey{c.key.merchant, c.other}]
	e := &eventRow{key: c.key, number: number, kind: kind, order: o, version: version}
	g.events[c.key], g.eventIDs[publicEventID(c.key.id)] = e, e
	m := g.merchant(c.key.merchant)
	if number != m.lastNews+1 {
		g.badf("I7", o, "event %s has number %d after %d", kind, number, m.lastNews)
	}
	m.lastNews = number
	if o == nil {
		g.badBooksf("I7", c.key.merchant, "event %s is about %s, which is no order", kind, c.other)
		return
	}
	o.events = append(o.events, e)
	g.touch(o)
	found := false
	for i, a := range o.awaited {
		if a.version == version && a.kind == kind {
			o.awaited = append(o.awaited[:i], o.awaited[i+1:]...)
			e.awaited, found = a, true
			break
		}
	}
	if !found {
		g.badf("I7", o, "event %s of version %d tells of no change in its commit", kind, version)
		return
	}
	body, err := g.opened(c.key, c.data)
	if err != nil {
		g.badf("I7", o, "the body of event %s: %v", kind, err)
		return
	}
	e.body = body
	g.checkBody(e)
	g.touched.events = append(g.touched.events, e)
}

// checkBody holds the words of an event against the order as that change left it.
func (g *gatewayBook) checkBody(e *eventRow) {
	var b eventBody
	if err := json.Unmarshal(e.body, &b); err != nil {
		g.badf("I7", e.order, "event %s is no JSON: %v", e.kind, err)
		return
	}
	o, a, d := e.order, e.awaited, b.Data
	amount, returned := strconv.FormatInt(o.amount, 10), ""
	if o.kind == payout {
		amount = `"` + amount + `"`
		if a.returned != 0 {
			returned = strconv.FormatInt(a.returned, 10)
		}
	}
	if b.ID != publicEventID(e.key.id) || b.Type != e.kind || b.Version != e.version || d.Version != e.version ||
		d.ID != o.key.id.String() || d.ExternalID != o.external || d.ReferenceID != o.reference || d.Status != a.status ||
		string(d.Amount) != amount || d.PaidAmount != a.paid || d.RefundedAmount != a.refunded || d.ReturnedAmount != returned {
		g.badf("I7", o, "event %s of version %d says %+v", e.kind, e.version, b)
	}
}

// checkEvent looks for the delivery of a new event.
func (g *gatewayBook) checkEvent(e *eventRow) {
	if (e.delivery != nil) != e.awaited.delivered {
		g.badf("I7", e.order, "event %s: is to be delivered is %v, has a delivery is %v", e.kind, e.awaited.delivered, e.delivery != nil)
	}
}

func (g *gatewayBook) applyDelivery(c *rowChange) {
	d := g.deliveries[c.key]
	switch {
	case c.op == rowAdded:
		g.addDelivery(c)
		return
	case c.op == rowDeleted:
		g.removeDelivery(c, d)
		return
	}
	if d == nil {
		g.badBooksf("I7", c.key.merchant, "delivery %s changes, but was never created", c.key.id)
		return
	}
	if state := c.t[0]; state != d.state {
		switch {
		case d.state == "pending":
			d.moved = true
		case d.redelivered && state == "pending":
			d.redelivered = false
		default:
			g.badf("I7", d.event.order, "the delivery of %s goes from %s to %s", d.event.kind, d.state, state)
		}
	}
	g.setDelivery(d, c)
}

// setDelivery takes over what a row says. One that is in hand is the record of
// the attempt under way: its number and its time stand until it is let go.
func (g *gatewayBook) setDelivery(d *deliveryRow, c *rowChange) {
	tries, claimed, at := c.n[1], c.n[3] != 0, c.n[4]
	switch {
	case claimed && !d.claimed:
		d.hand, d.since = tries, at
	case claimed && (tries != d.hand || at != d.since):
		g.badf("I7", d.event.order, "the delivery of %s is in hand for attempt %d, and becomes attempt %d", d.event.kind, d.hand, tries)
	}
	d.state, d.tries, d.nextAt, d.claimed, d.updatedAt = c.t[0], tries, c.n[2], claimed, at
	g.touchDelivery(d)
}

func (g *gatewayBook) touchDelivery(d *deliveryRow) {
	if !d.touched {
		d.touched = true
		g.touched.deliveries = append(g.touched.deliveries, d)
	}
}

// removeDelivery follows a delivery that goes for its age: a finished one, and
// only then.
func (g *gatewayBook) removeDelivery(c *rowChange, d *deliveryRow) {
	// One that was given up has gone unheard until its receiver wants no more news.
	over := d != nil && (d.state == "delivered" || d.state == "ended" || d.state == "exhausted" && d.event.order.gone)
	if !over || d.removed || g.retention == 0 || d.claimed || d.nextAt != 0 ||
		d.updatedAt > g.now().Add(-g.retention).UnixMicro() {
		g.applyForbidden(c)
		return
	}
	d.removed, d.event.removed, d.event.delivery = true, true, nil
	d.event.formerly += d.tries
	g.touchDelivery(d)
}

func (g *gatewayBook) addDelivery(c *rowChange) {
	d := &deliveryRow{key: c.key, url: c.t[1]}
	for _, e := range g.touched.events {
		if e.key.merchant == c.key.merchant && e.number == c.n[0] {
			d.event = e
		}
	}
	if o := g.orders[rowKey{c.key.merchant, c.other}]; o != nil && d.event == nil {
		for _, e := range o.events { // made anew, as somebody asks for it
			if e.number == c.n[0] && e.removed && e.remade {
				d.event, e.remade = e, false
			}
		}
	}
	if d.event == nil {
		g.badBooksf("I7", c.key.merchant, "a delivery of event %d is not in the event's commit", c.n[0])
		return
	}
	o := d.event.order
	// It waits, or the process that makes it has it in hand for its first attempt.
	waits, inHand := c.n[1] == 0 && c.n[2] > 0 && c.n[3] == 0, c.n[1] == 1 && c.n[2] == 0 && c.n[3] > 0
	if d.event.delivery != nil || d.url != o.url || c.other != o.key.id || c.t[0] != "pending" || !waits && !inHand {
		g.badf("I7", o, "the delivery of %s to %s begins as %s with %d attempts", d.event.kind, d.url, c.t[0], c.n[1])
	}
	d.event.delivery = d
	g.deliveries[c.key] = d
	g.setDelivery(d, c)
}

// applyAttempt follows an attempt that is over: that of who had the delivery in
// hand last, and later the end of one whose sender was given up for dead.
func (g *gatewayBook) applyAttempt(c *rowChange) {
	d := g.deliveries[c.key]
	if d == nil {
		g.badBooksf("I7", c.key.merchant, "an attempt of %s, which is no delivery", c.key.id)
		return
	}
	number, count := c.n[0], int64(len(d.attempts))
	switch {
	case c.op == rowAdded && number == count+1:
		if number != d.hand || c.n[3] != d.since {
			g.badf("I7", d.event.order, "attempt %d to deliver %s was made by nobody who had it in hand", number, d.event.kind)
		}
		d.attempts = append(d.attempts, attemptRow{status: c.n[1], endedAt: c.n[2]})
		d.event.order.gone = d.event.order.gone || c.n[1] == 410
	case c.op == rowDeleted && g.retention > 0 && number >= 1 && number <= count: // with its delivery, see checkDelivery
		d.lost++
	case c.op == rowChanged && number >= 1 && number <= count && d.attempts[number-1].endedAt == 0:
		d.attempts[number-1] = attemptRow{status: c.n[1], endedAt: c.n[2]}
		d.event.order.gone = d.event.order.gone || c.n[1] == 410
	default:
		g.badf("I7", d.event.order, "attempt %d of %d to deliver %s is changed", number, count, d.event.kind)
	}
	g.touchDelivery(d)
}

// checkDelivery holds a delivery's state against its attempts.
func (g *gatewayBook) checkDelivery(d *deliveryRow) {
	o, kind := d.event.order, d.event.kind
	if d.removed {
		return
	}
	if d.lost > 0 {
		g.badf("I7", o, "%d attempts to deliver %s are gone, and the delivery is not", d.lost, kind)
	}
	made := int64(len(d.attempts))
	if d.claimed {
		made++
	}
	if d.tries != made {
		g.badf("I7", o, "the delivery of %s counts %d attempts of %d", kind, d.tries, made)
	}
	if d.state == "pending" {
		if (d.nextAt > 0) == d.claimed {
			g.badf("I11", o, "the delivery of %s is due at %d and in hand: %v", kind, d.nextAt, d.claimed)
		}
		return
	}
	if d.nextAt != 0 {
		g.badf("I7", o, "the delivery of %s is %s and due at %d", kind, d.state, d.nextAt)
	}
	if !d.moved {
		return
	}
	d.moved = false
	last := attemptRow{}
	if len(d.attempts) > 0 {
		last = d.attempts[len(d.attempts)-1]
	}
	fits := false
	switch d.state {
	case "delivered":
		fits = last.status >= 200 && last.status <= 299
	case "exhausted":
		fits = len(d.attempts) >= webhookAttempts && last.endedAt != 0 && o.hasOpen("webhook_exhausted")
	case "ended":
		fits = o.gone && o.ended
	}
	if !fits {
		g.badf("I7", o, "the delivery of %s is %s after %d attempts, the last answered with %d", kind, d.state, len(d.attempts), last.status)
	}
}

// arrives tells the book that an event has come to a receiver, by its public id:
// by then, an attempt without an end is on record.
func (g *gatewayBook) arrives(eventID string) {
	e := g.eventIDs[eventID]
	if e == nil || e.order == nil { // see checkReceived
		return
	}
	if d := e.delivery; d != nil {
		if d.claimed {
			return
		}
		for _, a := range d.attempts {
			if a.endedAt == 0 { // its sender was given up for dead
				return
			}
		}
	}
	g.badf("I7", e.order, "event %s comes, and no attempt to deliver it is under way", e.kind)
}

// redeliver tells the book that somebody asks for an event to be sent again,
// by its public id.
func (g *gatewayBook) redeliver(eventID string) {
	switch e := g.eventIDs[eventID]; {
	case e == nil:
	case e.delivery != nil:
		e.delivery.redelivered = true
	default:
		e.remade = e.removed
	}
}
