package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// compareEvents checks that the events of each order are in order and complete, and that
// the last one equals the order.
func (c *checker) compareEvents() {
	ids := map[string]bool{}
	for _, e := range c.events {
		if ids[e.ID] {
			c.found = append(c.found, violation{kind: "event listed twice", reference: e.Data.ReferenceID, id: e.Data.ID, details: []string{e.ID}})
		}
		ids[e.ID] = true
	}
	for kind, list := range c.orders {
		for i := range list {
			c.compareEventsOf(kind, &list[i])
		}
	}
}

func (c *checker) compareEventsOf(kind string, o *order) {
	key, last := kind+" "+o.ReferenceID, 1
	events := c.published[o.ID]
	for _, e := range events {
		if e.Version <= last {
			c.objectf("event out of order", key, o, "event %s of version %d follows version %d", e.ID, e.Version, last)
		}
		if kind == payout && e.Version != last+1 {
			c.objectf("event missing", key, o, "event %s of version %d follows version %d", e.ID, e.Version, last)
		}
		if !strings.HasPrefix(e.Type, kind+".") || e.Data.Version != e.Version {
			c.objectf("event of another order", key, o, "event %s is %s of version %d, with version %d inside", e.ID, e.Type, e.Version, e.Data.Version)
		}
		last = e.Version
	}
	if kind == payout && last != o.Version || kind == payin && o.Status != "PENDING" && len(events) == 0 {
		c.objectf("event missing", key, o, "it is %s in version %d, and the last event has version %d", o.Status, o.Version, last)
	}
	if len(events) > 0 && last == o.Version && !sameJSON(events[len(events)-1].Data.raw, o.raw) {
		c.objectf("event differs", key, o, "the last event contains %s", events[len(events)-1].Data.raw)
	}
	if len(events) > 0 && events[len(events)-1].Data.Status != o.Status {
		c.objectf("event differs", key, o, "the last event contains %s, and the order is %s", events[len(events)-1].Data.Status, o.Status)
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// compareDeliveries compares the receivers' deliveries with the events.
func (c *checker) compareDeliveries() {
	known := map[string]*event{}
	for i := range c.events {
		e := &c.events[i]
		known[e.ID] = e
		if e.Data.WebhookURL != "" && !c.arrived(e) {
			kind, _, _ := strings.Cut(e.Type, ".")
			c.objectf("event not delivered", kind+" "+e.Data.ReferenceID, &e.Data, "event %s %s has no delivery that was answered with 2xx", e.ID, e.Type)
		}
	}
	for _, d := range c.deliveries {
		e := known[d.EventID]
		problem := ""
		switch {
		case e == nil:
			problem = "the gateway has no such event"
		case !d.Signed:
			problem = "its signature is wrong"
		case d.Digest != e.digest:
			problem = "its bytes are not those of the event"
		case !strings.HasSuffix(e.Data.WebhookURL, d.Path):
			problem = fmt.Sprintf("the order requested %q", e.Data.WebhookURL)
		}
		if problem != "" {
			c.found = append(c.found, violation{kind: "false delivery", reference: d.Reference, details: []string{problem, fmt.Sprintf("receivers  %+v", d)}})
		}
	}
}

// arrived reports whether a receiver answered an event with 2xx.
func (c *checker) arrived(e *event) bool {
	return slices.ContainsFunc(c.delivered[e.ID], func(d delivery) bool { return d.arrived() })
}
