package endpoint

import (
	"context"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/webhook"
)

// testsAtOnce is how many tests of a merchant may be in flight: each may take 15 s.
const testsAtOnce = 3

// testWait is the time after which the tests in flight have ended.
const testWait = 15 * time.Second

// tests counts the tests in flight.
type tests struct {
	mu sync.Mutex
	of map[payment.ID]int
}

// begin counts a test; ok is false if the merchant has too many.
func (v *tests) begin(merchant payment.ID) (end func(), ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of[merchant] >= testsAtOnce {
		return nil, false
	}
	if v.of == nil {
		v.of = map[payment.ID]int{}
	}
	v.of[merchant]++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.of[merchant]--; v.of[merchant] == 0 {
			delete(v.of, merchant)
		}
	}, true
}

// Test sends an event webhook.test to an endpoint, once, and returns the attempt and its URL. The
// event is in no feed and does not count for the endpoint's health. Errors: problem kinds
// not_found, rate_limited, and unavailable if the endpoint's secret is not usable.
func (s *Service) Test(ctx context.Context, merchant, id payment.ID) (url string, a webhook.Attempt, err error) {
	e, err := s.read(ctx, merchant, id)
	if err != nil {
		return "", a, err
	}
	end, ok := s.tests.begin(merchant)
	if !ok {
		return "", a, problem.New(problem.RateLimited, "Too many tests are in flight.").WithQuota(problem.Quota{Name: "tests", Most: testsAtOnce}, testWait)
	}
	defer end()
	secrets := s.Registry.secretsNow(ctx, e)
	if len(secrets) == 0 {
		return "", a, problem.New(problem.Unavailable, "The secret of the endpoint is not usable. Rotate it.")
	}
	now := s.Env.Clock.Now()
	event := payment.Event{Merchant: merchant, ID: s.Env.IDs.NewID(now), Type: payment.EventWebhookTest, Subject: id, Version: 1, CreatedAt: now}
	body, err := event.Envelope([]byte(`{"endpointId":"` + id.String() + `"}`))
	if err != nil {
		return "", a, err
	}
	a = s.sender.Send(ctx, webhook.Delivery{URL: e.URL, EventID: payment.PublicEventID(event.ID), Body: body, Secrets: secrets})
	a.At = now // the sender's clock is the receiver's; the sandbox's may be ahead of it
	return e.URL, a, nil
}
