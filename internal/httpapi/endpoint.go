package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/webhook"
	"github.com/porteira/porteira/internal/wire"
)

// Endpoints are the use cases of webhook endpoints, which endpoint.Service implements.
type Endpoints interface {
	Create(ctx context.Context, by actor.Actor, merchant payment.ID, r *wire.EndpointRequest) (e store.Endpoint, secret string, err error)
	Change(ctx context.Context, by actor.Actor, merchant, id payment.ID, r *wire.EndpointRequest) (store.Endpoint, error)
	Delete(ctx context.Context, by actor.Actor, merchant, id payment.ID) error
	Rotate(ctx context.Context, by actor.Actor, merchant, id payment.ID, overlap time.Duration) (e store.Endpoint, secret string, err error)
	Test(ctx context.Context, merchant, id payment.ID) (url string, a webhook.Attempt, err error)
	View(e *store.Endpoint, secret string) ([]byte, error)
}

// EndpointReader reads webhook endpoints: [store.Store].
type EndpointReader interface {
	EndpointOf(ctx context.Context, merchant, id payment.ID) (store.Endpoint, error)
	EndpointsOf(ctx context.Context, merchant payment.ID) ([]store.Endpoint, error)
}

// showEndpoint answers with an endpoint, and its secret if that is not "".
func (a *API) showEndpoint(c *call, status int, e *store.Endpoint, secret string) error {
	body, err := a.endpoints.View(e, secret)
	if err != nil {
		return err
	}
	return c.json(status, body)
}

func (a *API) createEndpoint(c *call) error {
	r, invalid := readJSON(c, func(body []byte) (*wire.EndpointRequest, *problem.Error) {
		return wire.DecodeEndpoint(body, a.urlRules())
	})
	if invalid != nil {
		return invalid
	}
	e, secret, err := a.endpoints.Create(c.ctx, c.actor(), c.merchant.ID, r)
	if err != nil {
		return err
	}
	return a.showEndpoint(c, http.StatusCreated, &e, secret)
}

// listEndpoints answers with a page of endpoints, newest first. A merchant has few.
func (a *API) listEndpoints(c *call) error {
	q := c.query()
	limit, before := q.limit(), a.cursorID(c, q)
	if err := q.done(); err != nil {
		return err
	}
	list, err := a.reader.EndpointsOf(c.ctx, c.merchant.ID)
	if err != nil {
		return readError(err)
	}
	var entries [][]byte
	next := ""
	for i := range list {
		if !before.IsZero() && payment.CompareIDs(list[i].ID, before) >= 0 {
			continue
		}
		if len(entries) == limit {
			last := list[i-1].ID
			next = a.cursor(c, last[:])
			break
		}
		entry, err := a.endpoints.View(&list[i], "")
		if err != nil {
			return err
		}
		entries = append(entries, entry)
	}
	return c.json(http.StatusOK, wire.Page(entries, next))
}

func (a *API) getEndpoint(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	if err := c.query().done(); err != nil {
		return err
	}
	e, err := a.reader.EndpointOf(c.ctx, c.merchant.ID, id)
	if err != nil {
		return readError(err)
	}
	return a.showEndpoint(c, http.StatusOK, &e, "")
}

func (a *API) changeEndpoint(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	if _, err := a.reader.EndpointOf(c.ctx, c.merchant.ID, id); err != nil { // also with an invalid body
		return readError(err)
	}
	r, invalid := readJSON(c, func(body []byte) (*wire.EndpointRequest, *problem.Error) {
		return wire.DecodeEndpointChange(body, a.urlRules())
	})
	if invalid != nil {
		return invalid
	}
	e, err := a.endpoints.Change(c.ctx, c.actor(), c.merchant.ID, id, r)
	if err != nil {
		return err
	}
	return a.showEndpoint(c, http.StatusOK, &e, "")
}

func (a *API) deleteEndpoint(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	if err := a.endpoints.Delete(c.ctx, c.actor(), c.merchant.ID, id); err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}

// overlap reads the body of a rotation, which may be empty.
func (c *call) overlap() (overlap time.Duration, err error) {
	if c.r.ContentLength == 0 {
		overlap, invalid := wire.DecodeRotation(nil)
		if invalid != nil {
			return 0, invalid
		}
		return overlap, nil
	}
	overlap, invalid := readJSON(c, wire.DecodeRotation)
	if invalid != nil {
		return 0, invalid
	}
	return overlap, nil
}

func (a *API) rotateEndpoint(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	overlap, err := c.overlap()
	if err != nil {
		return err
	}
	e, secret, err := a.endpoints.Rotate(c.ctx, c.actor(), c.merchant.ID, id, overlap)
	if err != nil {
		return err
	}
	return a.showEndpoint(c, http.StatusOK, &e, secret)
}

// testEndpoint sends a test event and answers with the attempt, also if that failed.
func (a *API) testEndpoint(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	url, attempt, err := a.endpoints.Test(c.ctx, c.merchant.ID, id)
	if err != nil {
		return err
	}
	body, err := wire.OneAttempt(&wire.Attempt{
		URL: url, Number: 1, Status: attempt.StatusCode, Latency: attempt.Latency, Error: shownReason(string(attempt.Reason)),
		Response: attempt.Response, CreatedAt: attempt.At, EndedAt: attempt.At.Add(attempt.Latency),
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}
