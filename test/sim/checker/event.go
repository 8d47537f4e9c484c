package checker

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// eventRow is a row of events.
type eventRow struct {
	number, version int64
	kind            string
	subject         rowID
	sealed          []byte // body
	createdAt       int64
}

// event declares the columns of events.
func (c *columns) event(r *eventRow) {
	c.key.num("number", &r.number)
	c.fixed.num("version", &r.version)
	c.fixed.text("type", &r.kind)
	c.fixed.id("subject_id", &r.subject)
	c.fixed.bytes("body", &r.sealed)
	c.fixed.num("created_at", &r.createdAt)
}

// event is an event and what became of it.
type event struct {
	eventRow

	key             rowKey
	order           *order
	body            []byte // as it is delivered
	expected        expectedEvent
	delivery        *delivery       // nil if it has none, or it was removed
	arrivals        int64           // at receivers
	accepted        bool            // a receiver answered 2xx
	removed         bool            // its delivery was removed for its age
	abandoned       bool            // a removed attempt has no end: its sender was declared dead
	removedAttempts int64           // of removed deliveries
	requested       bool            // again, after that
	endpoints       map[string]bool // that have accepted it, by URL
}

// eventBody is the part of an event's body that the checker reads. Amounts are numbers in
// pay-ins and texts in payouts.
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

// applyEvent follows a new event.
func (c *Checker) applyEvent(l *line) {
	e := &event{key: l.key}
	c.columns.read(l).event(&e.eventRow)
	o := c.orders[rowKey{l.key.merchant, e.subject}]
	e.order = o
	c.events[l.key], c.eventIDs[publicEventID(l.key.id)] = e, e
	c.eventList = append(c.eventList, e)
	m := c.merchant(l.key.merchant)
	if e.number != m.lastEvent+1 {
		c.violatef(Events, o, "event %s has number %d after %d", e.kind, e.number, m.lastEvent)
	}
	m.lastEvent = e.number
	if o == nil && e.kind == "payout_batch.completed" {
		c.endBatch(e)
		c.openBody(e)
		return
	}
	if d := c.disputes[rowKey{l.key.merchant, e.subject}]; o == nil && d != nil {
		e.order = d.order
		c.announceDispute(d, e)
		c.openBody(e)
		return
	}
	if e.kind == disabledKind {
		c.openBody(e)
		return
	}
	if o == nil {
		c.violateMerchantf(Events, l.key.merchant, "the subject of event %s is %s, which is not an order", e.kind, e.subject)
		return
	}
	o.events = append(o.events, e)
	c.touch(o)
	if e.kind == o.kind+".created" && e.version == 1 && o.fresh && len(o.events) == 1 { // to endpoints only
		e.expected = expectedEvent{version: 1, kind: e.kind, status: "PENDING"}
		if c.openBody(e) {
			c.checkBody(e)
		}
		return
	}
	i := slices.IndexFunc(o.expected, func(x expectedEvent) bool {
		return x.version == e.version && slices.Contains(strings.Split(x.kind, "|"), e.kind)
	})
	if i < 0 {
		c.violatef(Events, o, "event %s of version %d reports no change in its commit", e.kind, e.version)
		return
	}
	e.expected = o.expected[i]
	o.expected = slices.Delete(o.expected, i, i+1)
	if !c.openBody(e) {
		return
	}
	c.checkBody(e)
	c.touched.events = append(c.touched.events, e)
}

// openBody decrypts the body of an event.
func (c *Checker) openBody(e *event) (ok bool) {
	body, err := c.seal.openBody(e.key, e.sealed)
	if err != nil {
		c.violatef(Events, e.order, "the body of event %s: %v", e.kind, err)
		return false
	}
	e.body = body
	return true
}

// checkBody compares the body of an event with the order after the change that it
// reports.
func (c *Checker) checkBody(e *event) {
	var b eventBody
	if err := json.Unmarshal(e.body, &b); err != nil {
		c.violatef(Events, e.order, "event %s is not JSON: %v", e.kind, err)
		return
	}
	o, want, d := e.order, e.expected, b.Data
	amount, returned, refunded := strconv.FormatInt(o.amount, 10), "", want.refunded
	if o.kind == Refund && refunded == o.amount {
		refunded = 0 // shown only while it is not all
	}
	if o.kind == Payout {
		amount = `"` + amount + `"`
		if want.returned != 0 {
			returned = strconv.FormatInt(want.returned, 10)
		}
	}
	if b.ID != publicEventID(e.key.id) || b.Type != e.kind || b.Version != e.version || d.Version != e.version ||
		d.ID != o.key.id.String() || d.ExternalID != o.externalID || d.ReferenceID != o.reference || d.Status != want.status ||
		string(d.Amount) != amount || d.PaidAmount != want.paid || d.RefundedAmount != refunded || d.ReturnedAmount != returned {
		c.violatef(Events, o, "event %s of version %d says %+v", e.kind, e.version, b)
	}
}

// checkEvent checks that a new event has a delivery if it has a receiver.
func (c *Checker) checkEvent(e *event) {
	if (e.delivery != nil) != e.expected.delivered {
		c.violatef(Events, e.order, "event %s: has a receiver is %v, has a delivery is %v", e.kind, e.expected.delivered, e.delivery != nil)
	}
}

// Arrived records that an event has reached a receiver, by its public id: by
// then an attempt that has not ended must be on record. The violation is in the result
// of the next call.
func (c *Checker) Arrived(eventID string) {
	e := c.eventIDs[eventID]
	if e == nil || e.order == nil { // Compare reports it
		return
	}
	// The sender may have been declared dead: then its attempt is on record without an
	// end, until the delivery is removed for its age.
	if d := e.delivery; e.abandoned || d != nil && (d.claimed != 0 || d.abandoned()) {
		return
	}
	c.violatef(Events, e.order, "event %s arrives, but no attempt to deliver it is in progress", e.kind)
}
