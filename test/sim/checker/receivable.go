package checker

// receivableRow is a row of receivables. Amounts are cents.
type receivableRow struct {
	id                          rowID
	payin                       rowID
	installment, gross, fee     int64
	taken, settlesAt, settledAt int64
	createdAt                   int64
	state                       string
}

// receivable declares the columns of receivables.
func (c *columns) receivable(r *receivableRow) {
	c.fixed.id("payin_id", &r.payin)
	c.fixed.num("installment", &r.installment)
	c.fixed.num("gross", &r.gross)
	c.fixed.num("fee", &r.fee)
	c.fixed.num("settles_at", &r.settlesAt)
	c.fixed.num("created_at", &r.createdAt)
	c.mutable.num("taken", &r.taken)
	c.mutable.num("settled_at", &r.settledAt)
	c.mutable.text("state", &r.state)
}

// net is what becomes available.
func (r *receivableRow) net() int64 { return r.gross - r.fee - r.taken }

// open is what is still pending.
func (r *receivableRow) open() int64 {
	if r.state == "settled" {
		return 0
	}
	return r.net()
}

// microsPerDay is a day in microseconds; settlementMicros is 06:00 in São Paulo in UTC.
const (
	microsPerDay     = 24 * 3_600_000_000
	settlementMicros = 9 * 3_600_000_000
)

// applyReceivable follows a part of a pay-in's money that settles later.
func (c *Checker) applyReceivable(l *line) {
	r := c.receivables[l.key]
	if l.op == rowAdded {
		r = &receivableRow{id: l.key.id}
		c.columns.read(l).receivable(r)
		c.receivables[l.key] = r
		o := c.orders[rowKey{l.key.merchant, r.payin}]
		if o == nil || o.kind != Payin || r.state != "pending" || r.settledAt != 0 || r.net() <= 0 || r.fee < 0 {
			c.violatef(Amounts, o, "a receivable of %d with a fee of %d begins as %s", r.gross, r.fee, r.state)
		}
		if r.settlesAt <= r.createdAt || r.settlesAt%microsPerDay != settlementMicros {
			c.violatef(Amounts, o, "a receivable of %d settles at %d", r.createdAt, r.settlesAt)
		}
		c.merchant(l.key.merchant).pending += r.open()
		c.countReceivable("added")
		if o != nil {
			o.receivables = append(o.receivables, r)
			c.touch(o)
		}
		return
	}
	if r == nil {
		c.violateMerchantf(Amounts, l.key.merchant, "receivable %s changes, but was never added", l.key.id)
		return
	}
	next := *r
	c.columns.read(l).receivable(&next)
	o := c.orders[rowKey{l.key.merchant, r.payin}]
	switch settles := next.state == "settled"; {
	case r.state == "settled":
		c.violatef(Amounts, o, "a settled receivable changes to %s", next.state)
	case settles && (next.taken != r.taken || next.settledAt < r.settlesAt):
		c.violatef(Amounts, o, "a receivable of %d settles at %d", r.settlesAt, next.settledAt)
	case !settles && next.settledAt != 0, next.taken < 0, next.net() < 0:
		c.violatef(Amounts, o, "of a receivable of %d, %d is taken", r.gross, next.taken)
	}
	c.merchant(l.key.merchant).pending += next.open() - r.open()
	switch {
	case next.state == "settled":
		c.countReceivable("settled")
	case next.taken > r.taken:
		c.countReceivable("taken")
	case next.taken < r.taken:
		c.countReceivable("restored")
		if o != nil {
			o.restored = true
		}
	}
	*r = next
	if o != nil {
		c.touch(o)
	}
}

func (c *Checker) countReceivable(what string) {
	if c.Receivable != nil {
		c.Receivable(what)
	}
}

// checkReceivables checks a pay-in's entries against its receivables and its fee.
func (c *Checker) checkReceivables(o *order) {
	var gross, settled int64
	for _, r := range o.receivables {
		gross += r.gross
		if r.state == "settled" {
			settled += r.net()
		}
	}
	c.checkBooked(o, "settled", settled)
	if booked := o.booked["received_pending"]; booked != gross {
		c.violatef(Amounts, o, "receivables of %d are booked as %d", gross, booked)
	}
	if o.fee != o.fees || o.fee < 0 || o.fee > o.paid {
		c.violatef(Amounts, o, "the fee is %d of %d, booked as %d", o.fee, o.paid, o.fees)
	}
}
