package main

import (
	"fmt"
	"slices"
)

// checker holds the books side by side, by order.
type checker struct {
	*books

	byReference map[string]*asked     // kind and reference
	external    map[string]bool       // kind and external id of all that the gateway lists
	listed      map[string][]*order   // kind and reference
	sent        map[string][]transfer // by external id
	came        map[string][]payment  // by external id
	news        map[string][]event    // by id of the order
	delivered   map[string][]delivery // by id of the event
	found       []violation
}

// compare returns everything in which the books differ.
func compare(b *books) []violation {
	c := &checker{
		books: b, byReference: map[string]*asked{}, external: map[string]bool{}, listed: map[string][]*order{},
		sent: map[string][]transfer{}, came: map[string][]payment{}, news: map[string][]event{}, delivered: map[string][]delivery{},
	}
	for _, a := range b.asked {
		c.byReference[a.Kind+" "+a.Reference] = a
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
		c.came[p.ExternalID] = append(c.came[p.ExternalID], p)
	}
	for _, e := range b.events {
		c.news[e.Data.ID] = append(c.news[e.Data.ID], e)
	}
	for _, d := range b.deliveries {
		c.delivered[d.EventID] = append(c.delivered[d.EventID], d)
	}
	c.compareAsked()
	c.compareListed()
	c.compareBank()
	c.compareBalance()
	c.compareEvents()
	c.compareDeliveries()
	if b.verify != "" {
		c.found = append(c.found, violation{kind: "books unsound", says: []string{b.verify}})
	}
	return c.found
}

// objectf notes what is wrong with an order, and what each book says of it.
func (c *checker) objectf(kind, key string, o *order, format string, args ...any) {
	v := violation{kind: kind, says: []string{"because    " + fmt.Sprintf(format, args...)}}
	a := c.byReference[key]
	if o == nil && len(c.listed[key]) > 0 {
		o = c.listed[key][0]
	}
	if o == nil && a != nil && len(a.Acked) > 0 {
		acked := orderOf(a.Acked)
		o = &acked
	}
	if a != nil {
		v.reference = a.Reference
		v.says = append(v.says, fmt.Sprintf("clients    asked %s; acknowledged %q; refused %q; canceled %v", a.Body, a.Acked, a.Refused, a.Canceled))
	}
	if o != nil {
		v.reference, v.id, v.external = o.ReferenceID, o.ID, o.ExternalID
	}
	for _, listed := range c.listed[key] {
		v.says = append(v.says, fmt.Sprintf("gateway    %s", listed.whole))
	}
	if len(c.listed[key]) == 0 {
		v.says = append(v.says, "gateway    lists no such order")
	}
	v.says = append(v.says, fmt.Sprintf("bank       transfers %+v, payments %+v", c.sent[v.external], c.came[v.external]))
	for _, e := range c.news[v.id] {
		v.says = append(v.says, fmt.Sprintf("event      %s %s version %d, received as %+v", e.ID, e.Type, e.Version, c.delivered[e.ID]))
	}
	c.found = append(c.found, v)
}

// compareAsked looks at each order that a client asked for.
func (c *checker) compareAsked() {
	for _, a := range c.asked {
		key := a.Kind + " " + a.Reference
		again, ok := c.again[key]
		switch {
		case a.Refused != "":
			if len(c.listed[key]) > 0 {
				c.objectf("refused but made", key, nil, "the client was told %s, and the order is there", a.Refused)
			}
			continue
		case !ok:
			c.objectf("not asked again", key, nil, "the comparison left it out")
			continue
		case again.status != 201:
			c.objectf("not repeatable", key, nil, "asked again, the gateway answers %d", again.status)
		case again.otherStatus != 409 || again.otherCode != "reference_conflict" || !slices.Equal(again.otherFields, []string{"amount"}):
			c.objectf("other order under a used reference", key, nil, "with another amount the gateway answers %d %s %v, want 409 reference_conflict [amount]",
				again.otherStatus, again.otherCode, again.otherFields)
		}
		if n := len(c.listed[key]); n > 1 {
			c.objectf("made twice", key, nil, "one reference has %d orders", n)
		}
		if len(a.Acked) > 0 {
			c.compareAcked(key, a, &again)
		}
	}
}

// compareAcked holds an acknowledgement against what the gateway shows now.
func (c *checker) compareAcked(key string, a *asked, again *echo) {
	acked := orderOf(a.Acked)
	read, ok := c.read[a.Kind+" "+acked.ID]
	switch {
	case !ok || read.status != 200:
		c.objectf("acknowledged but lost", key, &acked, "GET of its id answers %d", read.status)
		return
	case len(c.listed[key]) == 0:
		c.objectf("acknowledged but not listed", key, &acked, "it can be read, but no list has it")
		return
	case !again.replayed:
		c.objectf("acknowledged but made anew", key, &acked, "asked again, the gateway does not call it a repetition")
	}
	for name, o := range map[string]*order{"read": &read.order, "repeated": &again.order, "listed": c.listed[key][0]} {
		if diff := acked.differs(o); diff != "" {
			c.objectf("acknowledged but changed", key, &acked, "as %s, %s", name, diff)
		}
	}
	if diff := wanted(a).differsFromAsked(&acked); diff != "" {
		c.objectf("acknowledged otherwise than asked", key, &acked, "%s", diff)
	}
	if a.Canceled && !slices.Contains(canceledAs[a.Kind], read.order.Status) {
		c.objectf("canceled but not so", key, &acked, "its cancellation was acknowledged, and it is %s", read.order.Status)
	}
}

// canceledAs are the statuses of an order whose cancellation was acknowledged:
// money that comes late is not dropped.
var canceledAs = map[string][]string{payin: {"CANCELED", "PAID"}, payout: {"CANCELED"}}

// differs says in which field, that may never change, two readings differ.
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
	// An order that failed at its processor was acknowledged without a code.
	if o.PIX != other.PIX || o.Boleto != other.Boleto {
		return fmt.Sprintf("the code was acknowledged as %q%q and is %q%q", o.PIX.QRCode, o.Boleto.Barcode, other.PIX.QRCode, other.Boleto.Barcode)
	}
	if o.Version > other.Version {
		return fmt.Sprintf("version %d was acknowledged, and it is %d", o.Version, other.Version)
	}
	return ""
}

// wanted is what a client asked for, in the form of an order.
func wanted(a *asked) *order {
	o := orderOf(a.Body)
	return &o
}

// differsFromAsked says in which field an order is not what was asked for.
func (o *order) differsFromAsked(got *order) string {
	for _, f := range []struct{ name, want, is string }{
		{"referenceId", o.ReferenceID, got.ReferenceID},
		{"paymentMethod", o.PaymentMethod, got.PaymentMethod},
		{"pixKey", o.PIXKey, got.PIXKey},
		{"webhookUrl", o.WebhookURL, got.WebhookURL},
		{"amount", fmt.Sprint(o.Amount), fmt.Sprint(got.Amount)},
	} {
		if f.want != f.is {
			return fmt.Sprintf("%s was asked for as %q and is %q", f.name, f.want, f.is)
		}
	}
	return ""
}

// compareListed looks at each order that the gateway has: somebody must have
// asked for it, and it must have come to an end.
func (c *checker) compareListed() {
	for kind, list := range c.orders {
		for i := range list {
			o, key := &list[i], kind+" "+list[i].ReferenceID
			if c.byReference[key] == nil {
				c.objectf("made unasked", key, o, "no client asked for it")
			}
			if o.Status == "PROCESSING" || kind == payout && o.Status == "PENDING" {
				c.objectf("left open", key, o, "all is quiet, and it is %s", o.Status)
			}
			if kind == payin && o.Status == "PENDING" && o.PaymentMethod == "PIX" && o.PIX.QRCode == "" {
				c.objectf("without a code", key, o, "its payer cannot pay")
			}
		}
	}
}
