package endpoint

import (
	"slices"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// create adds an endpoint.
type create struct {
	by       actor.Actor
	Endpoint store.Endpoint
}

// Merchant implements [write.Operation].
func (v *create) Merchant() payment.ID { return v.Endpoint.Merchant }

// Class implements [write.Operation].
func (v *create) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *create) Needs(n *store.Needs) { n.NewEndpoint(v.Endpoint.Merchant) }

// Decide adds the endpoint, unless an earlier run did.
func (v *create) Decide(l *store.Loaded, c *store.Changes) error {
	if e, ok := l.Endpoint(v.Endpoint.Merchant, v.Endpoint.ID); ok {
		v.Endpoint = e
		return nil
	}
	if len(l.Endpoints(v.Endpoint.Merchant)) >= Max {
		return problem.New(problem.LimitExceeded, "A merchant has at most 20 webhook endpoints. Delete one first.")
	}
	c.AddEndpoint(v.Endpoint)
	v.Endpoint, _ = l.Endpoint(v.Endpoint.Merchant, v.Endpoint.ID)
	c.AuditEndpoint(actor.Author{Actor: v.by}, "create", nil, &v.Endpoint)
	return nil
}

// change changes the fields that its request sets.
type change struct {
	by           actor.Actor
	merchant, id payment.ID
	request      *wire.EndpointRequest
	Endpoint     store.Endpoint
}

// Merchant implements [write.Operation].
func (v *change) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *change) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *change) Needs(n *store.Needs) {
	n.Undelivered(v.merchant, v.id)
	if v.request.URL.Set {
		n.Shared(v.merchant, v.id, v.request.URL.V)
	}
}

// Decide implements [write.Operation].
func (v *change) Decide(l *store.Loaded, c *store.Changes) error {
	e, ok := l.Endpoint(v.merchant, v.id)
	if !ok {
		return errNotFound
	}
	if e.Damaged != nil {
		return store.Problem(e.Damaged)
	}
	was, r := e, v.request
	if r.URL.Set && r.URL.V != e.URL {
		e.URL = r.URL.V
		if e.Failures > 0 { // another receiver: its time begins now
			restartFailedHours(l, &e)
		}
	}
	if r.Events.Set {
		e.Events = r.Events.V
	}
	if r.Description.Set {
		e.Description = r.Description.V
	}
	if r.Enabled.Set {
		e.Enabled = r.Enabled.V
	}
	if was.Enabled && (!e.Enabled || e.URL != was.URL) {
		inheritDeliveries(l, c, &was)
	}
	if e.URL != was.URL {
		deliverShared(l, c, &e, &was)
	}
	switch {
	case e.Enabled && was.Enabled && e.URL != was.URL && e.Failures > 0: // the new receiver gets at once the events that the other one missed
		catchUp(l, c, &e)
	case e.Enabled && !was.Enabled:
		enable(l, c, &e)
	case !e.Enabled && was.Enabled:
		pauseDeliveries(l, c, &e)
	case e.URL == was.URL && e.Description == was.Description && slices.Equal(e.Events, was.Events):
		v.Endpoint = e
		return nil
	}
	if e.URL != was.URL {
		e.ReadTo = e.Position // what it relied on at the previous URL is not at this one
	}
	e.Version, e.UpdatedAt = e.Version+1, l.Now()
	c.SetEndpoint(e)
	c.AuditEndpoint(actor.Author{Actor: v.by}, "change", &was, &e)
	v.Endpoint = e
	return nil
}

// remove deletes an endpoint.
type remove struct {
	by           actor.Actor
	merchant, id payment.ID
}

// Merchant implements [write.Operation].
func (v *remove) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *remove) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *remove) Needs(n *store.Needs) { n.Undelivered(v.merchant, v.id) }

// Decide deletes the endpoint, unless that has happened.
func (v *remove) Decide(l *store.Loaded, c *store.Changes) error {
	e, ok := l.Endpoint(v.merchant, v.id)
	if !ok {
		return nil
	}
	inheritDeliveries(l, c, &e)
	c.StopDeliveries(&e, store.DeliveryDisabled)
	c.CloseCases(e.Merchant, e.ID, store.CaseEndpoint, store.ResolvedByRequest)
	c.CloseCases(e.Merchant, e.ID, store.CaseDamaged, store.ResolvedByRequest)
	c.DeleteEndpoint(e)
	c.AuditEndpoint(actor.Author{Actor: v.by}, "delete", &e, nil)
	return nil
}

// rotate gives an endpoint a new secret.
type rotate struct {
	by           actor.Actor
	merchant, id payment.ID
	sealed       []byte
	overlap      time.Duration
	Endpoint     store.Endpoint
}

// Merchant implements [write.Operation].
func (v *rotate) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *rotate) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *rotate) Needs(n *store.Needs) { n.Endpoints(v.merchant) }

// Decide implements [write.Operation].
func (v *rotate) Decide(l *store.Loaded, c *store.Changes) error {
	e, ok := l.Endpoint(v.merchant, v.id)
	if !ok {
		return errNotFound
	}
	if e.Damaged != nil {
		return store.Problem(e.Damaged)
	}
	was := e
	var until time.Time
	if v.overlap > 0 {
		until = l.Now().Add(v.overlap)
	}
	if e.Rotate(v.sealed, until) {
		e.Version, e.UpdatedAt = e.Version+1, l.Now()
		c.SetEndpoint(e)
		c.AuditEndpoint(actor.Author{Actor: v.by}, "rotate secret", &was, &e)
		c.CloseCases(e.Merchant, e.ID, store.CaseDamaged, store.ResolvedByRequest)
	}
	v.Endpoint = e
	return nil
}
