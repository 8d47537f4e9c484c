package checker

import "slices"

// deliveryRow is a row of deliveries.
type deliveryRow struct {
	eventNumber            int64
	subject                rowID
	url, state             string
	attempts, scheduleStep int64
	nextAt, updatedAt      int64
	claimed                int64 // length of the claiming node's id
	caseID                 rowID
	endpoint               int64 // length of its id; 0 if the order names the URL
}

// delivery declares the columns of deliveries.
func (c *columns) delivery(r *deliveryRow) {
	c.fixed.num("event_number", &r.eventNumber)
	c.fixed.id("subject_id", &r.subject)
	c.mutable.text("url", &r.url)
	c.mutable.text("state", &r.state)
	c.mutable.num("attempts", &r.attempts)
	c.mutable.num("schedule_step", &r.scheduleStep)
	c.mutable.num("next_at", &r.nextAt)
	c.mutable.length("claimed_by", &r.claimed)
	c.mutable.id("case_id", &r.caseID)
	c.mutable.num("updated_at", &r.updatedAt)
	c.mutable.length("endpoint_id", &r.endpoint)
}

// delivery is the delivery of an event to its receiver.
type delivery struct {
	deliveryRow

	key             rowKey
	event           *event
	claimedAttempt  int64 // the attempt that it was last claimed for
	claimedAt       int64
	made            []attemptRow // attempts that are over
	requested       bool         // again
	removedAttempts int
	removed         bool
	finished        bool // in the current commit
	touched         bool
}

func (c *Checker) applyDelivery(l *line) {
	d := c.deliveries[l.key]
	if row, known := c.toEndpoints[l.key]; known {
		c.columns.read(l).delivery(&row)
		c.applyEndpointDelivery(l, &row)
		return
	}
	if l.op == rowAdded {
		d = &delivery{key: l.key}
		c.columns.read(l).delivery(&d.deliveryRow)
		if d.endpoint != 0 {
			c.applyEndpointDelivery(l, &d.deliveryRow)
			return
		}
		c.addDelivery(d)
		return
	}
	if d == nil {
		c.violateMerchantf(Events, l.key.merchant, "delivery %s changes, but was never created", l.key.id)
		return
	}
	if l.op == rowDeleted {
		c.removeDelivery(l, d)
		return
	}
	next := d.deliveryRow
	c.columns.read(l).delivery(&next)
	c.changeDelivery(d, &next)
}

func (c *Checker) addDelivery(d *delivery) {
	for _, e := range c.touched.events {
		if e.key.merchant == d.key.merchant && e.number == d.eventNumber {
			d.event = e
		}
	}
	if o := c.orders[rowKey{d.key.merchant, d.subject}]; o != nil && d.event == nil {
		for _, e := range o.events { // a new one, because the event was requested again
			if e.number == d.eventNumber && e.removed && e.requested {
				d.event, e.requested = e, false
			}
		}
	}
	if d.event == nil {
		c.violateMerchantf(Events, d.key.merchant, "a delivery of event %d is not in the event's commit", d.eventNumber)
		return
	}
	o := d.event.order
	// It is due, or claimed by the process that creates it for the first attempt.
	due := d.attempts == 0 && d.nextAt > 0 && d.claimed == 0
	claimed := d.attempts == 1 && d.nextAt == 0 && d.claimed > 0
	if d.event.delivery != nil || d.url != o.webhookURL || d.subject != o.key.id || d.state != "pending" || !due && !claimed ||
		d.scheduleStep != 0 || !d.caseID.isZero() {
		c.violatef(Events, o, "the delivery of %s to %s begins as %s with %d attempts", d.event.kind, d.url, d.state, d.attempts)
	}
	if claimed {
		d.claimedAttempt, d.claimedAt = d.attempts, d.updatedAt
	}
	d.event.delivery = d
	c.deliveries[d.key] = d
	c.touchDelivery(d)
}

// changeDelivery follows a delivery to its next row. While it is claimed it is the record
// of the current attempt: its number and time stay until it is released.
func (c *Checker) changeDelivery(d *delivery, next *deliveryRow) {
	o, kind := d.event.order, d.event.kind
	if next.url != d.url || next.endpoint != 0 {
		c.violatef(Events, o, "the delivery of %s to %s goes to %s", kind, d.url, next.url)
	}
	again := d.requested && next.state == "pending"
	if next.state != d.state {
		switch {
		case d.state == "pending":
			d.finished = true
		case again:
			d.requested = false
		case c.caseOf(d).damagedTable() == "events" && next.state == "pending":
		default:
			c.violatef(Events, o, "the delivery of %s changes from %s to %s", kind, d.state, next.state)
		}
	}
	if next.scheduleStep != d.scheduleStep {
		released := d.claimed != 0 && next.claimed == 0
		switch {
		case released && next.scheduleStep == d.scheduleStep+1:
		case again && next.scheduleStep == 0:
			d.requested = false
		case c.caseOf(d).damagedTable() == "events" && next.scheduleStep == 0:
		default:
			c.violatef(Events, o, "the delivery of %s changes from schedule step %d to %d", kind, d.scheduleStep, next.scheduleStep)
		}
	}
	switch {
	case next.claimed != 0 && d.claimed == 0:
		d.claimedAttempt, d.claimedAt = next.attempts, next.updatedAt
	case next.claimed != 0 && (next.attempts != d.claimedAttempt || next.updatedAt != d.claimedAt):
		c.violatef(Events, o, "the delivery of %s is claimed for attempt %d, and becomes attempt %d", kind, d.claimedAttempt, next.attempts)
	}
	d.deliveryRow = *next
	c.touchDelivery(d)
}

func (c *Checker) touchDelivery(d *delivery) {
	if !d.touched {
		d.touched = true
		c.touched.deliveries = append(c.touched.deliveries, d)
	}
}

// removeDelivery follows a delivery that is removed for its age: a finished one, without
// an open case.
func (c *Checker) removeDelivery(l *line, d *delivery) {
	over := d.state == "delivered" || d.state == "disabled"
	if v := c.cases[rowKey{d.key.merchant, d.caseID}]; d.state == "exhausted" && v != nil {
		over = v.closedAt != 0
	}
	if !over || d.removed || c.Retention == 0 || d.claimed != 0 || d.nextAt != 0 || d.updatedAt > c.Now().Add(-c.Retention).UnixMicro() {
		c.forbid(l)
		return
	}
	d.removed, d.event.removed, d.event.delivery = true, true, nil
	d.event.abandoned = d.event.abandoned || d.abandoned()
	d.event.removedAttempts += d.attempts
	c.touchDelivery(d)
}

// abandoned reports whether the sender of an attempt was declared dead before its end.
func (d *delivery) abandoned() bool {
	return slices.ContainsFunc(d.made, func(a attemptRow) bool { return a.endedAt == 0 })
}

// checkDelivery checks a delivery's state against its attempts and its case.
func (c *Checker) checkDelivery(d *delivery) {
	o, kind := d.event.order, d.event.kind
	if d.removed {
		return
	}
	if d.removedAttempts > 0 {
		c.violatef(Events, o, "%d attempts to deliver %s are removed, but the delivery is not", d.removedAttempts, kind)
	}
	count := int64(len(d.made))
	if d.claimed != 0 {
		count++
	}
	if d.attempts != count {
		c.violatef(Events, o, "the delivery of %s counts %d attempts, but made %d", kind, d.attempts, count)
	}
	if d.state == "pending" {
		if (d.nextAt > 0) == (d.claimed != 0) {
			c.violatef(Progress, o, "the delivery of %s is due at %d, claimed: %v", kind, d.nextAt, d.claimed != 0)
		}
		return
	}
	if d.nextAt != 0 {
		c.violatef(Events, o, "the delivery of %s is %s, but due at %d", kind, d.state, d.nextAt)
	}
	if d.finished {
		d.finished = false
		c.checkFinished(d)
	}
}

// caseOf is the case about a delivery that was given up; an empty one if there is none.
func (c *Checker) caseOf(d *delivery) *reviewCase {
	if v := c.cases[rowKey{d.key.merchant, d.caseID}]; v != nil {
		return v
	}
	return &reviewCase{}
}

// checkFinished checks that a delivery ended as its last attempt did.
func (c *Checker) checkFinished(d *delivery) {
	o, last := d.event.order, attemptRow{}
	if len(d.made) > 0 {
		last = d.made[len(d.made)-1]
	}
	v := c.cases[rowKey{d.key.merchant, d.caseID}]
	open := v != nil && v.closedAt == 0
	fits := false
	switch d.state {
	case "delivered":
		fits = last.status >= 200 && last.status <= 299 && !open
	case "exhausted":
		if open && v.damagedTable() == "events" {
			return
		}
		fits = d.scheduleStep == webhookAttempts && last.endedAt != 0
		if !open || v.kind != "webhook_exhausted" || v.facts["event"] != publicEventID(d.event.key.id) {
			c.violatef(Progress, o, "the delivery of %s is exhausted, but has no open case", d.event.kind)
		}
	case "disabled":
		fits = o.gone && o.webhookDisabled && !open
	}
	if !fits {
		c.violatef(Events, o, "the delivery of %s is %s after %d attempts, the last answered with %d", d.event.kind, d.state, len(d.made), last.status)
	}
}
