package simulate

import "strconv"

// applyOrder follows a row of payins or payouts.
func (g *gatewayBook) applyOrder(c *rowChange) {
	o := g.orders[c.key]
	switch {
	case c.op == rowAdded:
		g.addOrder(c)
	case o == nil || (o.kind == payin) != (c.kind == rowPayin):
		g.badBooksf("I5", c.key.merchant, "order %s changes, but was never created", c.key.id)
	case o.kind == payin:
		g.changePayin(o, c)
	default:
		g.changePayout(o, c)
	}
}

func (g *gatewayBook) addOrder(c *rowChange) {
	o := &orderRow{
		key: c.key, kind: payin, version: c.n[0], amount: c.n[6], fee: c.n[3], nextAt: c.n[4],
		status: c.t[0], external: c.t[1], reference: c.t[2], processor: c.t[4], url: c.t[5], booked: map[string]int64{},
	}
	if c.kind == rowPayin {
		o.paid, o.refunded, o.expiresAt, o.method, o.details = c.n[1], c.n[2], o.nextAt, c.t[3], strconv.FormatInt(c.n[7], 10)
	} else {
		o.kind, o.returned, o.amount, o.step = payout, c.n[1], c.n[2], c.t[3]
		g.merchant(c.key.merchant).inFlight += o.amount + o.fee
	}
	name := orderName{c.key.merchant, o.kind, o.reference}
	if other := g.references[name]; other != nil {
		g.badf("I5", o, "reference %q belongs to order %s", o.reference, other.key.id)
	}
	if other := g.externals[o.external]; other != nil {
		g.badf("I5", o, "external id %s belongs to order %s", o.external, other.key.id)
	}
	if o.status != "PENDING" || o.version != 1 || o.paid != 0 || o.refunded != 0 || o.returned != 0 || len(o.external) != 32 || o.amount <= 0 {
		g.badf("I6", o, "begins with version %d, external id %q, amount %d, paid %d, refunded %d, returned %d",
			o.version, o.external, o.amount, o.paid, o.refunded, o.returned)
	}
	g.orders[c.key], g.references[name], g.externals[o.external] = o, o, o
	g.inOrder = append(g.inOrder, o)
	g.touch(o)
}

// moveOrder follows an order to a version: a listed step raises it by one and
// calls for its event, and nothing else about an order's money or status changes.
func (g *gatewayBook) moveOrder(o *orderRow, version int64, step statusStep, same bool) {
	switch {
	case version == o.version:
		if !same {
			g.badf("I6", o, "goes to %s in the same version %d", step.to, version)
		}
		return
	case version != o.version+1:
		g.badf("I6", o, "goes from version %d to %d", o.version, version)
	}
	steps := payinSteps
	if o.kind == payout {
		steps = payoutSteps
	}
	event, listed := steps[step]
	if !listed {
		g.badf("I6", o, "may not go to %s with %q growing", step.to, step.grows)
	}
	if event != "" {
		o.awaited = append(o.awaited, awaitedEvent{version: version, kind: event, status: step.to, delivered: o.url != "" && !o.ended})
	}
}

func (g *gatewayBook) changePayin(o *orderRow, c *rowChange) {
	version, paid, refunded, status := c.n[0], c.n[1], c.n[2], c.t[0]
	step := statusStep{from: o.status, to: status}
	switch {
	case paid < o.paid || refunded < o.refunded:
		g.badf("I4", o, "paid goes from %d to %d, refunded from %d to %d", o.paid, paid, o.refunded, refunded)
	case paid > o.paid && refunded > o.refunded:
		step.grows = "paid and refunded"
	case paid > o.paid:
		step.grows = "paid"
	case refunded > o.refunded:
		step.grows = "refunded"
	case status == o.status && c.t[3] != o.details:
		step.grows = "charge"
	}
	late := c.n[7] != 0
	g.moveOrder(o, version, step, status == o.status && paid == o.paid && refunded == o.refunded && late == o.late && o.fee == c.n[3])
	if paysLate := status == "PAID" && (o.status == "EXPIRED" || o.status == "CANCELED"); late != (o.late || paysLate) {
		g.badf("I6", o, "late is %v where it goes to %s", late, status)
	}
	if ended := c.n[6] != 0; o.ended && !ended {
		g.badf("I7", o, "news that its receiver ended begin again")
	}
	o.version, o.status, o.paid, o.refunded, o.fee = version, status, paid, refunded, c.n[3]
	o.nextAt, o.ended, o.late, o.details = c.n[4], c.n[6] != 0, late, c.t[3]
	o.canceled = o.canceled || status == "CANCELED"
	if last := len(o.awaited) - 1; last >= 0 && o.awaited[last].version == version {
		o.awaited[last].paid, o.awaited[last].refunded = paid, refunded
	}
	g.touch(o)
}

func (g *gatewayBook) changePayout(o *orderRow, c *rowChange) {
	version, returned, status, held := c.n[0], c.n[1], c.t[0], o.inFlight()
	step := statusStep{from: o.status, to: status}
	switch {
	case returned < o.returned:
		g.badf("I4", o, "returned goes from %d to %d", o.returned, returned)
	case returned > o.returned:
		step.grows = "returned"
	}
	g.moveOrder(o, version, step, status == o.status && returned == o.returned)
	if ended := c.n[6] != 0; o.ended && !ended {
		g.badf("I7", o, "news that its receiver ended begin again")
	}
	o.version, o.status, o.returned, o.step = version, status, returned, c.t[3]
	o.nextAt, o.ended = c.n[4], c.n[6] != 0
	o.node, o.claimed, o.endToEnd = c.other, c.other != rowID{}, c.t[2]
	o.canceled = o.canceled || status == "CANCELED"
	if last := len(o.awaited) - 1; last >= 0 && o.awaited[last].version == version {
		o.awaited[last].returned = returned
	}
	if held && !o.inFlight() {
		g.merchant(o.key.merchant).inFlight -= o.amount + o.fee
	}
	g.touch(o)
}

// checkOrder holds an order against its own rows and its entries.
func (g *gatewayBook) checkOrder(o *orderRow) {
	for _, a := range o.awaited {
		g.badf("I7", o, "version %d has no event %s in its commit", a.version, a.kind)
	}
	o.awaited = nil
	if o.ended && !o.gone {
		g.badf("I7", o, "news are ended, though no receiver answered 410")
	}
	if o.kind == payin {
		g.checkPayin(o)
		return
	}
	g.checkPayout(o)
	g.checkSends(o)
}

// booked compares what is booked about an order with what should be.
func (g *gatewayBook) booked(o *orderRow, kind string, should int64) {
	if is := o.booked[kind]; is != should {
		g.badf("I4", o, "entries %s add up to %d, not %d", kind, is, should)
	}
}

func (g *gatewayBook) checkPayin(o *orderRow) {
	switch o.status {
	case "PAID", "PARTIALLY_REFUNDED", "REFUNDED", "DISPUTED", "CHARGEBACK":
		if o.paid != o.amount {
			g.badf("I4", o, "%d of %d is paid", o.paid, o.amount)
		}
	default:
		if o.paid >= o.amount || o.refunded != 0 {
			g.badf("I4", o, "%d of %d is paid, %d refunded", o.paid, o.amount, o.refunded)
		}
	}
	switch {
	case o.status == "PAID" && o.refunded != 0,
		o.status == "PARTIALLY_REFUNDED" && (o.refunded == 0 || o.refunded >= o.paid),
		o.status == "REFUNDED" && o.refunded != o.paid:
		g.badf("I4", o, "%d of %d is refunded", o.refunded, o.paid)
	}
	if pending := o.status == "PENDING"; pending && o.nextAt != o.expiresAt || !pending && o.nextAt != 0 {
		g.badf("I11", o, "is due at %d, and expires at %d", o.nextAt, o.expiresAt)
	}
	if o.paid != o.applied {
		g.badf("I10", o, "%d is paid, receipts say %d", o.paid, o.applied)
	}
	if booked := o.booked["received"] + o.booked["received_pending"]; booked != o.applied {
		g.badf("I10", o, "receipts of %d are booked as %d", o.applied, booked)
	}
	if o.booked["received_unapplied"] != o.surplus {
		g.badf("I10", o, "a surplus of %d is booked as %d", o.surplus, o.booked["received_unapplied"])
	}
	if o.told != o.surplus {
		g.badf("I10", o, "a person is told of %d of a surplus of %d", o.told, o.surplus)
	}
	g.checkDisputes(o)
}

func (g *gatewayBook) checkDisputes(o *orderRow) {
	var open, won, lost, reversed int64
	states := 0
	for _, d := range o.disputes {
		switch d.state {
		case "open":
			open += d.amount
			states++
		case "won":
			won += d.amount
		case "reversed":
			reversed += d.amount
			fallthrough
		case "lost":
			lost += d.amount
		}
	}
	if (o.status == "DISPUTED") != (states > 0) || states > 1 {
		g.badf("I6", o, "has %d open disputes", states)
	}
	g.booked(o, "dispute_opened", open+won+lost)
	g.booked(o, "dispute_won", won)
	g.booked(o, "charged_back", lost)
	g.booked(o, "chargeback_reversed", reversed)
	for _, kind := range []string{"payout_held", "payout_paid", "payout_released", "payout_returned", "funded"} {
		g.booked(o, kind, 0)
	}
}

func (g *gatewayBook) checkPayout(o *orderRow) {
	var paid, released int64
	switch o.status {
	case "COMPLETED", "RETURNED":
		paid = o.amount + o.fee
	case "FAILED", "CANCELED":
		released = o.amount + o.fee
	}
	g.booked(o, "payout_held", o.amount+o.fee)
	g.booked(o, "payout_paid", paid)
	g.booked(o, "payout_released", released)
	g.booked(o, "payout_returned", o.returned)
	for _, kind := range []string{"received", "received_pending", "received_unapplied", "funded", "dispute_opened"} {
		g.booked(o, kind, 0)
	}
	switch {
	case o.returned > o.amount,
		o.returned != 0 && paid == 0,
		(o.status == "RETURNED") != (o.returned == o.amount):
		g.badf("I4", o, "%d of %d came back", o.returned, o.amount)
	}
	switch o.step {
	case "queued", "accepted", "unknown":
		if (o.nextAt > 0) == o.claimed {
			g.badf("I11", o, "step %s is due at %d and in hand: %v", o.step, o.nextAt, o.claimed)
		}
	case "intent":
		if o.nextAt != 0 || !o.claimed {
			g.badf("I11", o, "is being sent, due at %d and in hand: %v", o.nextAt, o.claimed)
		}
	default:
		if o.nextAt != 0 || o.claimed {
			g.badf("I11", o, "step %s is due at %d and in hand: %v", o.step, o.nextAt, o.claimed)
		}
	}
	if o.step == "person" && !o.hasOpen("payout_unknown", "contradiction") {
		g.badf("I11", o, "needs a person, and nobody is told")
	}
}
