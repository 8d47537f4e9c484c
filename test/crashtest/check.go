package main

import (
	"fmt"
	"slices"
)

// checker has the records of each order side by side.
type checker struct {
	*records

	placed    map[string]*placement // by kind and reference
	external  map[string]bool       // kind and external id of each order that the gateway lists
	listed    map[string][]*order   // by kind and reference
	sent      map[string][]transfer // by external id
	received  map[string][]payment  // by external id
	published map[string][]event    // by id of the order
	delivered map[string][]delivery // by id of the event
	found     []violation
}

// compare returns every difference between the records.
func compare(b *records) []violation {
	c := &checker{
		records: b, placed: map[string]*placement{}, external: map[string]bool{}, listed: map[string][]*order{},
		sent: map[string][]transfer{}, received: map[string][]payment{}, published: map[string][]event{}, delivered: map[string][]delivery{},
	}
	for _, a := range b.placements {
		c.placed[a.key()] = a
	}
	for kind, list := range b.orders {
		for i := range list {
			o := &list[i]
			c.listed[kind+" "+o.ReferenceID] = append(c.listed[kind+" "+o.ReferenceID], o)
			c.external[kind+" "+o.ExternalID] = true
		}
	}
	for _, t := range b.transfers {
		c.sent[t.ExternalID] = append(c.sent[t.ExternalID], t)
	}
	for _, p := range b.payments {
		c.received[p.ExternalID] = append(c.received[p.ExternalID], p)
	}
	for _, e := range b.events {
		c.published[e.Data.ID] = append(c.published[e.Data.ID], e)
	}
	for _, d := range b.deliveries {
		c.delivered[d.EventID] = append(c.delivered[d.EventID], d)
	}
	c.comparePlacements()
	c.compareListed()
	c.compareTransfers()
	if !b.paymentsUnknown {
		c.comparePayments()
		c.compareBalance()
	}
	c.compareEvents()
	c.compareDeliveries()
	if b.verify != "" {
		c.found = append(c.found, violation{kind: "verify failed", details: []string{b.verify}})
	}
	return c.found
}

// objectf reports a violation of an order, with what each record contains about it.
func (c *checker) objectf(kind, key string, o *order, format string, args ...any) {
	v := violation{kind: kind, details: []string{"because    " + fmt.Sprintf(format, args...)}}
	a := c.placed[key]
	if o == nil && len(c.listed[key]) > 0 {
		o = c.listed[key][0]
	}
	if o == nil && a != nil && len(a.Acked) > 0 {
		acked := orderOf(a.Acked)
		o = &acked
	}
	if a != nil {
		v.reference = a.Reference
		v.details = append(v.details, fmt.Sprintf("clients    placed %s; acknowledged %q; refused %q; action %q; canceled %v", a.Body, a.Acked, a.Refused, a.Action, a.Canceled))
	}
	if o != nil {
		v.reference, v.id, v.external = o.ReferenceID, o.ID, o.ExternalID
	}
	for _, listed := range c.listed[key] {
		v.details = append(v.details, fmt.Sprintf("gateway    %s", listed.raw))
	}
	if len(c.listed[key]) == 0 {
		v.details = append(v.details, "gateway    lists no such order")
	}
	v.details = append(v.details, fmt.Sprintf("bank       transfers %+v, payments %+v", c.sent[v.external], c.received[v.external]))
	for _, e := range c.published[v.id] {
		v.details = append(v.details, fmt.Sprintf("event      %s %s version %d, received as %+v", e.ID, e.Type, e.Version, c.delivered[e.ID]))
	}
	c.found = append(c.found, v)
}

// comparePlacements checks each order that a client placed.
func (c *checker) comparePlacements() {
	for _, a := range c.placements {
		key := a.key()
		again, ok := c.repeats[key]
		switch {
		case a.Refused != "":
			if len(c.listed[key]) > 0 {
				c.objectf("refused but created", key, nil, "the answer was %s, and the order exists", a.Refused)
			}
			continue
		case !ok:
			c.objectf("not repeated", key, nil, "the checker left it out")
			continue
		case again.status != 201:
			c.objectf("not repeatable", key, nil, "its repetition is answered %d", again.status)
		case again.otherStatus != 409 || again.otherCode != "reference_conflict" || !slices.Equal(again.otherFields, []string{"amount"}):
			c.objectf("another order under a used reference", key, nil, "with another amount the answer is %d %s %v, want 409 reference_conflict [amount]",
				again.otherStatus, again.otherCode, again.otherFields)
		}
		if n := len(c.listed[key]); n > 1 {
			c.objectf("created twice", key, nil, "one reference has %d orders", n)
		}
		if len(a.Acked) > 0 {
			c.compareAcked(key, a, &again)
		}
	}
}

// compareAcked compares an acknowledgement with the current order.
func (c *checker) compareAcked(key string, a *placement, again *repeat) {
	acked := orderOf(a.Acked)
	read, ok := c.read[a.Kind+" "+acked.ID]
	switch {
	case c.restored && ok && read.status == 404:
		if again.order.ExternalID != acked.ExternalID || again.order.Amount != acked.Amount {
			c.objectf("another order after the restore", key, &acked, "its repetition created %s", again.order.raw)
		}
		return
	case !ok || read.status != 200:
		c.objectf("acknowledged but lost", key, &acked, "GET by its id answers %d", read.status)
		return
	case len(c.listed[key]) == 0:
		c.objectf("acknowledged but not listed", key, &acked, "it can be read, and no list contains it")
		return
	case !again.replayed:
		c.objectf("acknowledged but created again", key, &acked, "its repetition is not marked as replayed")
	}
	for name, o := range map[string]*order{"read": &read.order, "repeated": &again.order, "listed": c.listed[key][0]} {
		if diff := acked.differs(o); diff != "" {
			c.objectf("acknowledged but changed", key, &acked, "as %s, %s", name, diff)
		}
	}
	requested := orderOf(a.Body)
	if diff := requested.differsFromRequest(&acked); diff != "" {
		c.objectf("acknowledged otherwise than requested", key, &acked, "%s", diff)
	}
	if a.Canceled && !slices.Contains(canceledAs[a.Kind], read.order.Status) {
		c.objectf("cancellation lost", key, &acked, "its cancellation was acknowledged, and it is %s", read.order.Status)
	}
}

// canceledAs are the statuses of an order whose cancellation was acknowledged: a late
// payment is not dropped.
var canceledAs = map[string][]string{payin: {"CANCELED", "PAID"}, payout: {"CANCELED"}}

// differs returns a field that must never change but differs, or "".
func (o *order) differs(other *order) string {
	for _, f := range []struct{ name, was, is string }{
		{"id", o.ID, other.ID},
		{"externalId", o.ExternalID, other.ExternalID},
		{"referenceId", o.ReferenceID, other.ReferenceID},
		{"currency", o.Currency, other.Currency},
		{"paymentMethod", o.PaymentMethod, other.PaymentMethod},
		{"pixKey", o.PIXKey, other.PIXKey},
		{"pixKeyType", o.PIXKeyType, other.PIXKeyType},
		{"webhookUrl", o.WebhookURL, other.WebhookURL},
		{"createdAt", o.CreatedAt, other.CreatedAt},
		{"amount", fmt.Sprint(o.Amount), fmt.Sprint(other.Amount)},
	} {
		if f.was != f.is {
			return fmt.Sprintf("%s was acknowledged as %q and is %q", f.name, f.was, f.is)
		}
	}
	// An order that failed at its processor was acknowledged without a code. So was a boleto that the
	// processor registers later: it gets its code with payin.updated.
	later := o.PaymentMethod == "BOLETO" && o.Status == "PENDING" && o.Boleto.Barcode == "" && other.Version > o.Version
	if o.PIX != other.PIX || o.Boleto != other.Boleto && !later {
		return fmt.Sprintf("the code was acknowledged as %q%q and is %q%q", o.PIX.QRCode, o.Boleto.Barcode, other.PIX.QRCode, other.Boleto.Barcode)
	}
	if o.Version > other.Version {
		return fmt.Sprintf("version %d was acknowledged, and it is %d", o.Version, other.Version)
	}
	return ""
}

// differsFromRequest returns a field in which an order differs from its request, or "".
func (o *order) differsFromRequest(got *order) string {
	for _, f := range []struct{ name, want, is string }{
		{"referenceId", o.ReferenceID, got.ReferenceID},
		{"paymentMethod", o.PaymentMethod, got.PaymentMethod},
		{"pixKey", o.PIXKey, got.PIXKey},
		{"webhookUrl", o.WebhookURL, got.WebhookURL},
		{"amount", fmt.Sprint(o.Amount), fmt.Sprint(got.Amount)},
	} {
		if f.want != f.is {
			return fmt.Sprintf("%s was requested as %q and is %q", f.name, f.want, f.is)
		}
	}
	return ""
}

// compareListed checks each order of the gateway: a client must have placed it, and
// it must be final.
func (c *checker) compareListed() {
	for kind, list := range c.orders {
		for i := range list {
			o, key := &list[i], kind+" "+list[i].ReferenceID
			if c.placed[key] == nil {
				c.objectf("created without a request", key, o, "no client placed it")
			}
			if o.Status == "PROCESSING" || kind == payout && o.Status == "PENDING" {
				c.objectf("not final", key, o, "all faults have ended, and it is %s", o.Status)
			}
			if kind == payin && o.Status == "PENDING" && o.PaymentMethod == "PIX" && o.PIX.QRCode == "" {
				c.objectf("without a code", key, o, "its payer cannot pay")
			}
		}
	}
}
