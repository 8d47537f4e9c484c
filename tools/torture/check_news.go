package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// compareEvents looks at the news of each order: in order, none missing where
// that can be seen from outside, and the last as the order is now.
func (c *checker) compareEvents() {
	ids := map[string]bool{}
	for _, e := range c.events {
		if ids[e.ID] {
			c.found = append(c.found, violation{kind: "event listed twice", reference: e.Data.ReferenceID, id: e.Data.ID, says: []string{e.ID}})
		}
		ids[e.ID] = true
	}
	for kind, list := range c.orders {
		for i := range list {
			c.compareNews(kind, &list[i])
		}
	}
}

func (c *checker) compareNews(kind string, o *order) {
	key, last := kind+" "+o.ReferenceID, 1
	news := c.news[o.ID]
	for _, e := range news {
		if e.Version <= last {
			c.objectf("news out of order", key, o, "event %s of version %d follows version %d", e.ID, e.Version, last)
		}
		if kind == payout && e.Version != last+1 {
			c.objectf("news missing", key, o, "event %s of version %d follows version %d", e.ID, e.Version, last)
		}
		if !strings.HasPrefix(e.Type, kind+".") || e.Data.Version != e.Version {
			c.objectf("news of something else", key, o, "event %s is %s of version %d, with version %d inside", e.ID, e.Type, e.Version, e.Data.Version)
		}
		last = e.Version
	}
	if kind == payout && last != o.Version || kind == payin && o.Status != "PENDING" && len(news) == 0 {
		c.objectf("news missing", key, o, "it is %s in version %d, and the last event has version %d", o.Status, o.Version, last)
	}
	if len(news) > 0 && last == o.Version && !sameJSON(news[len(news)-1].Data.whole, o.whole) {
		c.objectf("news not true", key, o, "the last event says %s", news[len(news)-1].Data.whole)
	}
	if len(news) > 0 && news[len(news)-1].Data.Status != o.Status {
		c.objectf("news not true", key, o, "the last event says %s, and it is %s", news[len(news)-1].Data.Status, o.Status)
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// compareDeliveries holds what receivers got against the events.
func (c *checker) compareDeliveries() {
	known := map[string]*event{}
	for i := range c.events {
		e := &c.events[i]
		known[e.ID] = e
		if e.Data.WebhookURL != "" && !c.arrived(e) {
			kind, _, _ := strings.Cut(e.Type, ".")
			c.objectf("news not delivered", kind+" "+e.Data.ReferenceID, &e.Data, "event %s %s has no delivery that was answered with 2xx", e.ID, e.Type)
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
			problem = fmt.Sprintf("the order asked for %q", e.Data.WebhookURL)
		}
		if problem != "" {
			c.found = append(c.found, violation{kind: "false delivery", reference: d.Reference, says: []string{problem, fmt.Sprintf("receivers  %+v", d)}})
		}
	}
}

// arrived says whether some receiver answered an event with 2xx.
func (c *checker) arrived(e *event) bool {
	for _, d := range c.delivered[e.ID] {
		if d.Status >= 200 && d.Status <= 299 {
			return true
		}
	}
	return false
}
