package checker

import "encoding/json"

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

// checkReceivables checks a pay-in's fee and entries against its receivables, and the fee
// against its price.
func (c *Checker) checkReceivables(o *order) {
	var gross, settled int64
	for _, r := range o.receivables {
		gross += r.gross
		if r.state == "settled" {
			settled += r.net()
		}
	}
	c.checkBooked(o, "settled", settled)
	c.checkTakes(o)
	if booked := o.booked["received_pending"]; booked != gross {
		c.violatef(Amounts, o, "receivables of %d are booked as %d", gross, booked)
	}
	if o.fee != o.fees || o.fee < 0 || o.fee > o.paid {
		c.violatef(Amounts, o, "the fee is %d of %d, booked as %d", o.fee, o.paid, o.fees)
	}
	given := c.feeGivenBack(o)
	if booked := o.booked["fee_refunded"] - o.booked["fee_recharged"]; booked != given {
		c.violatef(Amounts, o, "refunds gave %d of the fee back, %d is booked", given, booked)
	}
	c.checkFee(o, o.paid, given)
}

// feeGivenBack is what the refunds of a pay-in gave back of its fee: if the price says so, its
// part pro rata, of all of them together all of it. Each refund may round by a cent, and had more
// of what was charged then if more was paid later.
func (c *Checker) feeGivenBack(o *order) (given int64) {
	var parts, least int64
	for _, r := range o.refunds {
		for _, p := range r.parts {
			given += p.feeRefunded
			parts++
		}
	}
	if o.paid > 0 && c.RefundsFee != nil && c.RefundsFee(o.key.merchant.String()) {
		least = (o.fee + given) * o.refunded / o.paid
	}
	if given < least-parts || given > least+parts && !o.paidMore || o.refunded == 0 && given != 0 || o.refunded == o.paid && given != least || least == 0 && given != 0 {
		c.violatef(Amounts, o, "refunds of %d of %d gave %d of the fee back, not %d", o.refunded, o.paid, given, least)
	}
	return given
}

// take is what was taken of a receivable.
type take struct {
	Receivable string `json:"receivable"`
	Amount     int64  `json:"amount"` // cents
}

type takes []take

func (t takes) sum() (sum int64) {
	for _, v := range t {
		sum += v.Amount
	}
	return sum
}

// takesOf reads what a refund or a dispute of an order took of receivables.
func (c *Checker) takesOf(o *order, text string) (list takes) {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		c.violatef(Amounts, o, "it took %q: %v", text, err)
	}
	for _, t := range list {
		if t.Amount <= 0 {
			c.violatef(Amounts, o, "it took %d of a receivable", t.Amount)
		}
	}
	return list
}

// pending is what has not settled of an order.
func (o *order) pending() (sum int64) {
	for _, r := range o.receivables {
		sum += r.open()
	}
	return sum
}

// checkTakes checks that what is taken of each receivable of a pay-in is what its refunds and
// disputes took of it. Of one that has settled, they may have given some back as available money.
func (c *Checker) checkTakes(o *order) {
	taken := map[string]int64{}
	for _, refund := range o.refunds {
		for _, p := range refund.parts {
			for _, t := range p.takes {
				taken[t.Receivable] += t.Amount
			}
		}
	}
	for _, d := range o.disputes {
		if all := d.takes.sum(); all > d.taken-d.returned || d.status == "WON" && all > 0 || d.status == "REVERSED" && all > 0 {
			c.violatef(Amounts, o, "a dispute that is %s has %d of %d from what had not settled", d.status, all, d.taken-d.returned)
		}
		for _, t := range d.takes {
			taken[t.Receivable] += t.Amount
		}
	}
	for _, r := range o.receivables {
		id := r.id.String()
		if got := taken[id]; got > r.taken || got != r.taken && r.state != "settled" {
			c.violatef(Amounts, o, "of a receivable of %d that is %s, %d is taken, its refunds and disputes took %d", r.gross, r.state, r.taken, got)
		}
		delete(taken, id)
	}
	for id, amount := range taken {
		c.violatef(Amounts, o, "%d is taken of receivable %s, which is not of the order", amount, id)
	}
}

// checkFee checks an order's fee for what is charged, with what was given back of it, against its
// merchant's price.
func (c *Checker) checkFee(o *order, amount, given int64) {
	if c.Fee == nil {
		return
	}
	if want := c.Fee(o.key.merchant.String(), o.kind, amount); o.fee+given != want {
		c.violatef(Amounts, o, "the fee of %d is %d, not %d", amount, o.fee+given, want)
	}
}
