package checker

import (
	"bytes"
	"fmt"
	"slices"
)

// comparison is the records of the clients, the bank and the receivers beside the
// gateway's.
type comparison struct {
	*Records
	*Checker

	final       bool                     // no work is left
	transferred map[string]*BankTransfer // by external id
	unbooked    int64                    // cents of refunds of payments that name no order
}

// Compare returns the differences between the gateway's records and the others'. Before
// everything is over, which final says, it checks only what must hold at any time.
// Received deliveries are read once.
func (c *Checker) Compare(r *Records, final bool) []Violation {
	v := &comparison{Records: r, Checker: c, final: final, transferred: map[string]*BankTransfer{}}
	v.compareOrders()
	v.compareKeys()
	v.compareTransfers()
	v.comparePayouts()
	v.comparePayments()
	v.compareRefunds()
	v.compareCharges()
	v.compareArrivals()
	v.compareDeliveries()
	if final {
		v.compareEnd()
		v.compareChargesEnd()
		v.compareEndpoints()
		v.compareGivenBack()
		v.compareSums()
		v.compareMoney()
	}
	return c.takeViolations()
}

// requested is what clients requested under one reference.
type requested struct {
	id   string // that was acknowledged first
	fits bool   // the order is as one of the requests
}

// compareOrders checks that acknowledged orders are stored as they were acknowledged,
// that a reference has one order, and that each order was requested.
func (c *comparison) compareOrders() {
	all := make(map[orderName]*requested, len(c.Orders))
	for _, a := range c.Orders {
		name := orderName{parseID(a.Merchant), a.Kind, a.Reference}
		r := all[name]
		if r == nil {
			r = &requested{}
			all[name] = r
		}
		o := c.references[name]
		r.fits = r.fits || o != nil && (o.amount == a.Amount || a.Kind == Refund && a.Amount == 0) && o.method == a.Method && o.webhookURL == a.WebhookURL
		if a.ID != "" {
			c.compareAcknowledged(a, o, r)
		} else if a.Refused && o != nil && !c.Rewound {
			c.violatef(SingleOrder, o, "its request was refused")
		}
	}
	for _, o := range c.orderList {
		if o.kind == Refund && o.reference == "" {
			continue // nobody requested it by the API
		}
		if r := all[orderName{o.key.merchant, o.kind, o.reference}]; r == nil || !r.fits {
			c.violatef(SingleOrder, o, "no client requested %s %s of %d, %s", o.method, o.reference, o.amount, o.webhookURL)
		}
	}
}

func (c *comparison) compareAcknowledged(a *ClientOrder, o *order, r *requested) {
	if o == nil {
		c.violations = append(c.violations, Violation{Durability, a.Merchant, a.ID, a.Kind + " " + a.Reference + " was acknowledged, but does not exist"})
		return
	}
	switch {
	case r.id != "" && r.id != a.ID:
		c.violatef(SingleOrder, o, "reference %q was acknowledged as %s and as %s", a.Reference, r.id, a.ID)
	case o.key.id != parseID(a.ID), o.externalID != a.ExternalID, o.amount != a.Amount, o.method != a.Method, o.webhookURL != a.WebhookURL:
		c.violatef(Durability, o, "acknowledged as %+v, but stored as %s, %s, %d, %s, %s", *a, o.key.id, o.externalID, o.amount, o.method, o.webhookURL)
	case a.Canceled && (!o.canceled || o.kind == Payout && o.status != "CANCELED"):
		c.violatef(Durability, o, "its cancellation was acknowledged")
	case a.Rejected && o.status != "CANCELED" && !c.Rewound && !c.ColdStart: // it is looked up, and fails
		c.violatef(Durability, o, "its rejection was acknowledged")
	}
	r.id = a.ID
}

// compareTransfers checks that each transfer of the bank has a payout and a send.
func (c *comparison) compareTransfers() {
	for i := range c.Transfers {
		t := &c.Transfers[i]
		o := c.externalIDs[t.ExternalID]
		if f := c.foundByID[t.ExternalID]; f != nil && f.adoptedAt == 0 && (o == nil || !c.isMistaken(o)) {
			if c.isSecond(t, f.processor) {
				c.violateMerchantf(SingleTransfer, f.key.merchant, "the bank has two transfers: %+v and %+v", *c.transferred[t.ExternalID], *t)
			}
			c.note(t)
			continue
		}
		if o == nil && c.Rewound && (!c.final || t.State == "failed" || t.Returned == t.Amount) {
			continue // it is found later, or no money left
		}
		if o == nil || o.kind != Payout {
			c.violations = append(c.violations, Violation{Invariant: SingleTransfer, Text: "the bank has a transfer without a payout: " + t.ExternalID})
			continue
		}
		if c.isSecond(t, o.processor) {
			c.violatef(SingleTransfer, o, "the bank has two transfers: %+v and %+v", *c.transferred[t.ExternalID], *t)
		}
		c.note(t)
		c.compareConsent(o, t)
		if t.Amount != o.amount {
			c.violatef(SingleTransfer, o, "the bank sent %d of %d", t.Amount, o.amount)
		}
		if len(o.sends) == 0 && !c.Rewound && !c.looksUpFirst(o) {
			c.violatef(SingleTransfer, o, "the bank has a transfer that was never sent")
		}
	}
	for _, f := range c.foundByID {
		c.compareFound(f)
	}
}

// comparePayouts compares each payout with its transfer.
func (c *comparison) comparePayouts() {
	for _, o := range c.orderList {
		if o.kind != Payout {
			continue
		}
		t := c.transferred[o.externalID]
		state := "no transfer"
		if t != nil {
			state = t.State
		}
		switch o.status {
		case "COMPLETED", "RETURNED":
			if state != "paid" {
				c.violatef(SingleTransfer, o, "the bank says %s", state)
				continue
			}
			if o.endToEndID != t.EndToEndID {
				c.violatef(SingleTransfer, o, "end-to-end id is %s, the bank's is %s", o.endToEndID, t.EndToEndID)
			}
			if o.returned > t.Returned || c.final && o.returned != t.Returned {
				c.violatef(SingleTransfer, o, "%d is returned, the bank says %d", o.returned, t.Returned)
			}
		case "FAILED", "CANCELED", "PENDING":
			if o.status == "FAILED" && c.isMistaken(o) {
				c.compareLate(o, t)
				continue
			}
			if o.status == "PENDING" && c.Rewound && !c.final {
				continue // it left in the past that the copy lacks
			}
			if state == "paid" || state == "processing" && (c.final || !c.asksConsent(o.processor)) {
				c.violatef(SingleTransfer, o, "the bank says %s", state)
			}
		case "PROCESSING":
			if c.final && state == "paid" && !inReview(o) {
				c.violatef(SingleTransfer, o, "the bank says paid")
			}
		}
	}
}

// inReview reports that a case says that the outcome of a payout is unknown.
func inReview(o *order) bool {
	return o.status == "PROCESSING" && o.hasOpenCase("payout_unknown", "contradiction")
}

// comparePayments compares receipts with the bank's payments.
func (c *comparison) comparePayments() {
	receipts := make(map[string]*receipt, len(c.receiptList))
	for _, r := range c.receiptList {
		receipts[r.externalID] = r
	}
	for i := range c.Payments {
		p := &c.Payments[i]
		r, o := receipts[p.ID], c.externalIDs[p.ExternalID]
		switch {
		case r == nil && c.final:
			c.violatef(Incoming, o, "the bank received %d as payment %s, which is not booked", p.Amount, p.ID)
		case r == nil:
		case r.amount != p.Amount || r.endToEndID != p.EndToEndID || r.orderID != p.ExternalID:
			c.violatef(SingleReceipt, r.order, "payment %+v is booked as %d, %s, for %s", *p, r.amount, r.endToEndID, r.orderID)
		case r.order == nil && o != nil && !c.lackedBy(r, o):
			c.violatef(Incoming, o, "payment %s of %d is not booked for this order", p.ID, p.Amount)
		}
		delete(receipts, p.ID)
	}
	for _, r := range c.receiptList {
		if receipts[r.externalID] != nil {
			c.violateMerchantf(SingleReceipt, r.key.merchant, "receipt %s of %d has no payment: %s", r.key.id, r.amount, r.externalID)
		}
	}
}

// lackedBy reports that a copy may have lacked the order when the payment came, or its charge at
// the account that was paid.
func (c *comparison) lackedBy(r *receipt, o *order) bool {
	return c.Rewound && (r.rank < o.rank || !slices.Contains(o.tried, r.processor))
}

// compareArrivals compares received deliveries with the events.
func (c *comparison) compareArrivals() {
	for ; c.compared < len(c.Deliveries); c.compared++ {
		r := &c.Deliveries[c.compared]
		if r.Endpoint {
			c.compareEndpointArrival(r)
			continue
		}
		e := c.eventIDs[r.EventID]
		switch {
		case e == nil || e.order == nil:
			c.violations = append(c.violations, Violation{
				Invariant: Events, Merchant: r.Merchant, Text: fmt.Sprintf("%s received event %s, which does not exist", r.URL, r.EventID),
			})
			continue
		case parseID(r.Merchant) != e.key.merchant || r.URL != e.order.webhookURL:
			c.violatef(Events, e.order, "event %s was sent to %s of merchant %s", e.kind, r.URL, r.Merchant)
		case !bytes.Equal(r.Body, e.body):
			c.violatef(Events, e.order, "event %s is %s, but was received as %s", e.kind, e.body, r.Body)
		}
		e.accepted = e.accepted || r.Answer >= 200 && r.Answer <= 299
		e.arrivals++
		attempts := e.removedAttempts
		if e.delivery != nil {
			attempts += e.delivery.attempts
		}
		if e.arrivals > attempts { // it was claimed before a byte left
			c.violatef(Events, e.order, "event %s arrived %d times, but %d attempts are on record", e.kind, e.arrivals, attempts)
		}
	}
}

// compareDeliveries checks that a receiver accepted each delivered event and, at the
// end, that no delivery is pending.
func (c *comparison) compareDeliveries() {
	for _, o := range c.orderList {
		for _, e := range o.events {
			if e.delivery == nil {
				continue
			}
			if e.delivery.state == "delivered" && !e.accepted {
				c.violatef(Events, o, "event %s is delivered, but no receiver accepted it", e.kind)
			}
			if c.final && e.delivery.state == "pending" {
				c.violatef(Progress, o, "event %s is still to be delivered", e.kind)
			}
		}
	}
}
