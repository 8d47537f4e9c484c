package checker

import (
	"bytes"
	"fmt"
	"strings"
)

// ClientEndpoint is a merchant's record of one of its webhook endpoints.
type ClientEndpoint struct {
	Merchant string // UUID
	ID       string // UUID
	URL      string
	Events   []string // filters
	After    int64    // the number of the last event when it was created
	Gone     bool     // it need not get events: it was deleted, never answered again, or its creation got no answer
}

// matches reports whether a filter of the endpoint has a type of event.
func (v *ClientEndpoint) matches(kind string) bool {
	for _, filter := range v.Events {
		group, all := strings.CutSuffix(filter, "*")
		if filter == kind || all && strings.HasPrefix(kind, group) {
			return true
		}
	}
	return false
}

// disabledKind is the type of the event about an endpoint that was disabled.
const disabledKind = "webhook_endpoint.disabled"

// applyEndpointDelivery follows a delivery to an endpoint, which the merchant's records
// cover: it may be held, given up, and moved to another endpoint with the same URL.
func (c *Checker) applyEndpointDelivery(l *line, row *deliveryRow) {
	if row.endpoint == 0 {
		c.violateMerchantf(Events, l.key.merchant, "delivery %s loses its endpoint", l.key.id)
	}
	c.toEndpoints[l.key] = *row
	if l.op == rowDeleted {
		delete(c.toEndpoints, l.key)
	}
}

// Event returns the number of an event by its public id; 0 if there is none.
func (c *Checker) Event(eventID string) int64 {
	if e := c.eventIDs[eventID]; e != nil {
		return e.number
	}
	return 0
}

// LastEvent is the number of a merchant's last event.
func (c *Checker) LastEvent(merchant string) int64 {
	if m := c.merchants[parseID(merchant)]; m != nil {
		return m.lastEvent
	}
	return 0
}

// compareEndpointArrival compares a delivery that reached an endpoint with its event.
func (c *comparison) compareEndpointArrival(r *ReceivedDelivery) {
	e := c.eventIDs[r.EventID]
	if e == nil {
		c.violations = append(c.violations, Violation{
			Invariant: Events, Merchant: r.Merchant, Text: fmt.Sprintf("endpoint %s received event %s, which does not exist", r.URL, r.EventID),
		})
		return
	}
	v := c.endpointAt(r.URL)
	switch {
	case v == nil || parseID(r.Merchant) != e.key.merchant || parseID(v.Merchant) != e.key.merchant:
		c.violatef(Isolation, e.order, "event %s was sent to endpoint %s of merchant %s", e.kind, r.URL, r.Merchant)
		return
	case !v.matches(e.kind):
		c.violatef(Events, e.order, "event %s was sent to endpoint %s, which asks for %v", e.kind, r.URL, v.Events)
	case !bytes.Equal(r.Body, e.body):
		c.violatef(Events, e.order, "event %s is %s, but endpoint %s received %s", e.kind, e.body, r.URL, r.Body)
	}
	if r.Answer >= 200 && r.Answer <= 299 {
		if e.endpoints == nil {
			e.endpoints = map[string]bool{}
		}
		e.endpoints[r.URL] = true
	}
}

func (c *comparison) endpointAt(url string) *ClientEndpoint {
	for _, v := range c.Endpoints {
		if v.URL == url {
			return v
		}
	}
	return nil
}

// compareEndpoints checks at the end that each endpoint has accepted each event that it asks
// for.
func (c *comparison) compareEndpoints() {
	for _, v := range c.Endpoints {
		if v.Gone {
			continue
		}
		merchant := parseID(v.Merchant)
		for _, e := range c.eventList {
			own := e.kind == disabledKind && e.subject == parseID(v.ID)
			if e.key.merchant == merchant && e.number > v.After && v.matches(e.kind) && !own && !e.endpoints[v.URL] {
				c.violatef(Events, e.order, "event %d, %s, never reached endpoint %s, which asks for %v since %d", e.number, e.kind, v.URL, v.Events, v.After)
			}
		}
	}
}
