package checker

// attemptRow is a row of delivery_attempts: an attempt that is over. One whose sender
// was declared dead has no end until the sender reports it.
type attemptRow struct {
	number, status     int64 // HTTP status
	failure            string
	createdAt, endedAt int64
}

// attempt declares the columns of delivery_attempts.
func (c *columns) attempt(r *attemptRow) {
	c.key.num("number", &r.number)
	c.fixed.num("created_at", &r.createdAt)
	c.mutable.num("status", &r.status)
	c.mutable.text("error", &r.failure)
	c.mutable.num("ended_at", &r.endedAt)
}

// applyAttempt follows an attempt that is over: that of the node that claimed the
// delivery last, and later the end of one whose sender was declared dead.
func (c *Checker) applyAttempt(l *line) {
	var row attemptRow
	c.columns.read(l).attempt(&row)
	d := c.deliveries[l.key]
	if _, to := c.toEndpoints[l.key]; to {
		return // see ClientEndpoint
	}
	if d == nil && l.op == rowDeleted { // with its delivery to an endpoint
		return
	}
	if d == nil {
		c.violateMerchantf(Events, l.key.merchant, "an attempt of %s, which is not a delivery", l.key.id)
		return
	}
	count := int64(len(d.made))
	made := row.number >= 1 && row.number <= count
	switch {
	case l.op == rowAdded && row.number == count+1:
		if row.number != d.claimedAttempt || row.createdAt != d.claimedAt {
			c.violatef(Events, d.event.order, "attempt %d to deliver %s was made by no node that had claimed it", row.number, d.event.kind)
		}
		d.made = append(d.made, row)
		d.event.order.gone = d.event.order.gone || row.status == 410
	case l.op == rowDeleted && c.Retention > 0 && made: // with its delivery, see checkDelivery
		d.removedAttempts++
	case l.op == rowChanged && made && d.made[row.number-1].endedAt == 0:
		d.made[row.number-1] = row
		d.event.order.gone = d.event.order.gone || row.status == 410
	default:
		c.violatef(Events, d.event.order, "attempt %d of %d to deliver %s is changed", row.number, count, d.event.kind)
	}
	c.touchDelivery(d)
}
