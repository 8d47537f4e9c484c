package store

import (
	"slices"

	"github.com/porteira/porteira/internal/payment"
)

// lastEvent is the number of a merchant's last event.
func (g *Given) lastEvent(merchant payment.ID) (last int64) {
	for i := range g.Events {
		if g.Events[i].Merchant == merchant {
			last++
		}
	}
	return last
}

func (g *Given) loadEndpoints(l *Loaded, n *Needs) {
	l.endpoints = newLoadedEndpoints()
	for _, e := range g.Endpoints {
		if !slices.Contains(n.endpoints.merchants, merchantKey(e.Merchant)) {
			continue
		}
		l.endpoints.add(e)
		if !e.IsDown() && !slices.Contains(n.endpoints.undelivered, e.Ref()) {
			continue
		}
		l.endpoints.last[e.Merchant] = g.lastEvent(e.Merchant)
		l.endpoints.undelivered[e.Ref()] = 0
		for i := range g.Deliveries {
			d := &g.Deliveries[i]
			open := d.State == DeliveryPaused || !d.RefusedAlone() && (d.State == DeliveryPending || e.gaveUp(d))
			oldest := l.endpoints.undelivered[e.Ref()]
			ofOrder := d.Endpoint.IsZero() && d.URL == e.URL && d.EventNumber <= e.Position && e.gaveUp(d)
			if d.Merchant == e.Merchant && (d.Endpoint == e.ID && open || ofOrder) && (oldest == 0 || d.EventNumber < oldest) {
				l.endpoints.undelivered[e.Ref()] = d.EventNumber
			}
		}
	}
}

func (g *Given) loadDispatches(l *Loaded, n *Needs) {
	for _, v := range n.endpoints.dispatches {
		e, ok := l.Endpoint(v.Merchant, v.ID)
		if !ok {
			continue
		}
		var d Dispatch
		for i := range g.Deliveries {
			of := &g.Deliveries[i]
			if of.Merchant == e.Merchant && of.Endpoint == e.ID && of.State == DeliveryPending && d.Pending < v.pending {
				d.Pending++
				if of.ScheduleStep == 0 && of.EventNumber <= e.CatchUpTo {
					d.Untried++
				}
			}
		}
		for i := range g.Events {
			if at := &g.Events[i]; d.Pending < v.pending && at.Merchant == e.Merchant && at.Number > e.Position && len(d.Events) < v.events {
				d.Events = append(d.Events, at.Event)
			}
		}
		for i := range g.Deliveries {
			of := &g.Deliveries[i]
			if len(d.Events) > 0 && of.Merchant == e.Merchant && of.EventNumber > e.Position && of.EventNumber <= d.Events[len(d.Events)-1].Number &&
				(of.Endpoint == e.ID || of.URL == e.URL) {
				copied := *of
				l.deliveries.add(&copied)
				d.Known = append(d.Known, copied)
			}
		}
		l.endpoints.dispatches[v.Ref] = d
	}
}

func (g *Given) loadShared(l *Loaded, n *Needs) {
	for _, v := range n.endpoints.shared {
		e, ok := l.Endpoint(v.Merchant, v.ID)
		for i := range g.Events {
			at := &g.Events[i]
			if !ok || at.Merchant != e.Merchant || at.Number > e.Position || at.CreatedAt.Before(e.CreatedAt) || len(l.Shared(&e)) == SharedMax {
				continue
			}
			known, shared := false, false
			for j := range g.Deliveries {
				d := &g.Deliveries[j]
				if d.Merchant != e.Merchant || d.EventNumber != at.Number {
					continue
				}
				other, exists := l.Endpoint(d.Merchant, d.Endpoint)
				known = known || d.Endpoint == e.ID || d.URL == v.url
				shared = shared || exists && other.URL == e.URL && other.Enabled && (d.State == DeliveryPending || other.gaveUp(d))
			}
			if shared && !known {
				l.endpoints.shared[v.Ref] = append(l.endpoints.shared[v.Ref], at.Event)
			}
		}
	}
}

// gaveUp reports whether a delivery was given up while an endpoint failed.
func (e *Endpoint) gaveUp(d *Delivery) bool {
	return d.State == DeliveryExhausted && !e.FailingSince.IsZero() && !d.UpdatedAt.Before(e.FailingSince)
}

// direct sets where due deliveries go.
func (g *Given) direct(l *Loaded) {
	for _, list := range l.deliveries.due {
		for _, ref := range list {
			to := map[payment.ID]Endpoint{}
			for _, e := range g.Endpoints {
				if e.Merchant == ref.Merchant {
					to[e.ID] = e
				}
			}
			if d := l.deliveries.rows[ref]; !d.Endpoint.IsZero() {
				d.direct(to)
			}
		}
	}
}

func (g *Given) endpointsAfter(c *Changes) []Endpoint {
	list := slices.DeleteFunc(slices.Clone(g.Endpoints), func(e Endpoint) bool { return slices.Contains(c.endpoints.deleted, e.Ref()) })
	for i := range list {
		if e, ok := c.l.endpoints.rows[list[i].Ref()]; ok {
			list[i] = e
		}
	}
	for _, e := range c.endpoints.added {
		e.Position = g.lastEvent(e.Merchant)
		e.ReadTo = e.Position
		list = append(list, e)
	}
	return list
}
