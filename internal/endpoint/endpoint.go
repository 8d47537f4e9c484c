// Package endpoint manages merchants' webhook endpoints: create, change, rotate, test, follow,
// dispatch, disable.
//
// Package delivery sends the deliveries that are dispatched here, and reports health back in the
// commit of each attempt's end.
package endpoint

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/webhook"
	"github.com/porteira/porteira/internal/wire"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

// Max is how many endpoints a merchant may have.
const Max = 20

// Options configure a Service.
type Options struct {
	Store    *store.Store
	Writer   *write.Writer
	Env      env.Env
	Registry *Registry
	// Dispatched wakes the worker that sends deliveries.
	Dispatched *worker.Waker
	// Waker wakes the worker that dispatches.
	Waker *worker.Waker
}

// Service implements the use cases of webhook endpoints.
type Service struct {
	Options

	sender   *webhook.Sender
	tests    tests
	throttle *worker.Throttle
}

// New returns a Service.
func New(o Options) *Service {
	return &Service{
		Options: o, sender: &webhook.Sender{Transport: o.Env.Webhooks, Clock: env.Unshifted(o.Env.Clock)},
		throttle: worker.NewThrottle(o.Env.Clock, o.Writer.Backlogged),
	}
}

var errNotFound = problem.New(problem.NotFound, "Resource not found.")

// Create adds an endpoint for the events from now on, and returns its secret. by is the author of
// the change, for the audit. Errors: problem kind limit_exceeded if the merchant has [Max]
// endpoints.
func (s *Service) Create(ctx context.Context, by actor.Actor, merchant payment.ID, r *wire.EndpointRequest) (e store.Endpoint, secret string, err error) {
	now := s.Env.Clock.Now()
	e = store.Endpoint{
		Merchant: merchant, ID: s.Env.IDs.NewID(now), URL: r.URL.V, Events: r.Events.V, Description: r.Description.V, Enabled: true,
	}
	secret = webhook.NewSecret(s.Env.Random).Reveal()
	e.Rotate(s.Store.SealEndpointSecret(merchant, e.ID, secret), time.Time{})
	op := &create{by: by, Endpoint: e}
	err = s.do(ctx, op)
	return op.Endpoint, secret, err
}

// Change changes the fields that r sets. A disabled endpoint that is enabled gets the events that
// it missed, in order. Errors: problem kind not_found.
func (s *Service) Change(ctx context.Context, by actor.Actor, merchant, id payment.ID, r *wire.EndpointRequest) (store.Endpoint, error) {
	op := &change{by: by, merchant: merchant, id: id, request: r}
	err := s.do(ctx, op)
	s.Waker.Wake()
	return op.Endpoint, err
}

// Delete removes an endpoint; events that it has not accepted are not sent. Errors: problem kind
// not_found.
func (s *Service) Delete(ctx context.Context, by actor.Actor, merchant, id payment.ID) error {
	if _, err := s.read(ctx, merchant, id); err != nil {
		return err
	}
	return s.do(ctx, &remove{by: by, merchant: merchant, id: id})
}

// Rotate gives an endpoint a new secret and returns it. Both sign until the overlap has
// passed. Errors: problem kind not_found.
func (s *Service) Rotate(ctx context.Context, by actor.Actor, merchant, id payment.ID, overlap time.Duration) (e store.Endpoint, secret string, err error) {
	secret = webhook.NewSecret(s.Env.Random).Reveal()
	op := &rotate{by: by, merchant: merchant, id: id, overlap: overlap, sealed: s.Store.SealEndpointSecret(merchant, id, secret)}
	err = s.do(ctx, op)
	return op.Endpoint, secret, err
}

// Follow is the step of the worker that follows the table of endpoints. An endpoint with a secret
// that does not open, or with a row that was changed outside the gateway, gets a case.
func (s *Service) Follow(ctx context.Context) (int, error) {
	_, err := s.Registry.Follow(ctx)
	errs := []error{err}
	damaged := s.Registry.takeDamaged()
	for i := range damaged {
		if err := s.Writer.Do(ctx, write.OpenCase{Case: damagedCase(&damaged[i])}); err != nil {
			s.Registry.putDamaged(damaged[i:])
			return 0, errors.Join(append(errs, err)...)
		}
	}
	return 0, errors.Join(errs...)
}

// damagedCase is the case about an endpoint with a secret that does not open. All nodes open the
// same case, one for each version of the endpoint.
func damagedCase(e *store.Endpoint) store.Case {
	return store.Case{
		ID:       store.CaseID("secret of endpoint %s of %s, version %d", e.ID, e.Merchant, e.Version),
		Merchant: e.Merchant, Kind: store.CaseDamaged, Subject: e.ID, Params: store.Params{"table": "webhook_endpoints"},
	}
}

// do commits an operation, and makes it effective on this node; others follow.
func (s *Service) do(ctx context.Context, op write.Operation) error {
	if err := s.Writer.Do(ctx, op); err != nil {
		return err
	}
	_, err := s.Registry.Follow(ctx)
	if errors.Is(err, store.ErrUnavailable) {
		return nil // the worker follows later
	}
	return err
}

func (s *Service) read(ctx context.Context, merchant, id payment.ID) (store.Endpoint, error) {
	e, err := s.Store.EndpointOf(ctx, merchant, id)
	if errors.Is(err, store.ErrNotFound) {
		err = errNotFound
	}
	return e, store.Problem(err)
}

// View is an endpoint as the API and its events show it. If secret is "", it is not shown.
func View(e *store.Endpoint, secret string) ([]byte, error) {
	state := "ok"
	switch {
	case !e.Enabled:
		state = "disabled"
	case e.Failures > 0:
		state = "failing"
	}
	return wire.Endpoint(&wire.EndpointFields{
		ID: e.ID, URL: e.URL, Events: e.Events, Description: e.Description, Enabled: e.Enabled, Secret: secret,
		State: state, Failures: e.Failures, LastSuccessAt: e.LastSuccessAt, LastFailureAt: e.LastFailure,
		CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
	})
}

// View is the function [View], as a method for package httpapi.
func (s *Service) View(e *store.Endpoint, secret string) ([]byte, error) { return View(e, secret) }
