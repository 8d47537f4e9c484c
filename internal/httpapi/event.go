package httpapi

import (
	"context"
	"encoding/binary"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/webhook"
	"github.com/porteira/porteira/internal/wire"
)

// Events are the use cases of events, which delivery.Service implements.
type Events interface {
	Redeliver(ctx context.Context, merchant, event payment.ID) error
	RedeliverRange(ctx context.Context, by actor.Actor, merchant payment.ID, r *wire.RedeliverRequest) (count int, err error)
}

// Secrets are the use cases of merchants' webhook secrets, which merchant.Service implements.
type Secrets interface {
	RotateWebhookSecret(ctx context.Context, merchant payment.ID, by actor.Actor, overlap time.Duration) (string, error)
}

// EventReader reads events and their deliveries: [store.Store].
type EventReader interface {
	Events(ctx context.Context, merchant payment.ID, after int64, limit int) ([]payment.Event, error)
	Continue(ctx context.Context, merchant payment.ID, at store.EventPosition) (store.EventPosition, error)
	Event(ctx context.Context, merchant, id payment.ID) (payment.Event, error)
	Attempts(ctx context.Context, merchant payment.ID, number int64) ([]store.Attempt, error)
	WebhookSecret(ctx context.Context, merchant payment.ID) (string, error)
}

// listEvents always answers with a cursor, for later events.
func (a *API) listEvents(c *call) error {
	q := c.query()
	limit, at := q.limit(), a.cursorEvent(c, q)
	if err := q.done(); err != nil {
		return err
	}
	if err := c.reserve(limit * entryBytes); err != nil {
		return err
	}
	at, err := a.reader.Continue(c.ctx, c.merchant.ID, at)
	if err != nil {
		return readError(err)
	}
	events, err := a.reader.Events(c.ctx, c.merchant.ID, at.Number, limit)
	if err != nil {
		return readError(err)
	}
	entries := make([][]byte, len(events))
	for i := range events {
		entries[i], at.Number = events[i].Body, events[i].Number
	}
	next := a.cursor(c, binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(at.History)), uint64(at.Number)))
	return c.json(http.StatusOK, wire.Page(entries, next))
}

// event reads the event in the path.
func (a *API) event(c *call) (payment.Event, error) {
	id, err := payment.ParseEventID(c.r.PathValue("id"))
	if err != nil {
		return payment.Event{}, errNotFound
	}
	e, err := a.reader.Event(c.ctx, c.merchant.ID, id)
	return e, readError(err)
}

func (a *API) getEvent(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	e, err := a.event(c)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, e.Body)
}

// attemptBytes is the memory that a list of attempts reserves for each: the answer that it keeps
// has 4 KiB, and more in JSON.
const attemptBytes = 8 << 10

func (a *API) listAttempts(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	e, err := a.event(c)
	if err != nil {
		return err
	}
	if err := c.reserve(store.AttemptsMax * attemptBytes); err != nil {
		return err
	}
	stored, err := a.reader.Attempts(c.ctx, c.merchant.ID, e.Number)
	if err != nil {
		return readError(err)
	}
	attempts := make([]wire.Attempt, len(stored))
	for i := range stored {
		s := &stored[i]
		attempts[i] = wire.Attempt{
			URL: s.URL, Number: s.Number, Status: s.Status, Latency: s.Latency, Error: shownReason(s.Error), Response: s.Response,
			CreatedAt: s.CreatedAt, EndedAt: s.EndedAt,
		}
	}
	body, err := wire.Attempts(attempts)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}

// shownReason is the reason of a failed attempt as merchants see it: one word for a host
// that does not exist and for one in a private network, or they could list the names of
// the gateway's internal DNS. The operator's log and database have the cause.
func shownReason(reason string) string {
	switch webhook.Reason(reason) {
	case webhook.ReasonDNS, webhook.ReasonBlocked:
		return "host_unreachable"
	default:
		return reason
	}
}

func (a *API) redeliverEvent(c *call) error {
	e, err := a.event(c)
	if err != nil {
		return err
	}
	if err := a.events.Redeliver(c.ctx, c.merchant.ID, e.ID); err != nil {
		return err
	}
	return c.empty(http.StatusAccepted)
}

// Ranges of events whose number is counted at the same time: each may read 100,000 of them,
// also for a request that has no effect.
const (
	rangesMax        = 8
	rangesOfMerchant = 1
)

func (a *API) redeliverRange(c *call) error {
	r, invalid := readJSON(c, wire.DecodeRedeliver)
	if invalid != nil {
		return invalid
	}
	if !a.ranges.begin(c.merchant.ID, rangesMax, rangesOfMerchant) {
		return problem.New(problem.Overloaded, "Another range of events is being counted. Send the same request again later.")
	}
	defer a.ranges.end(c.merchant.ID)
	count, err := a.events.RedeliverRange(c.ctx, c.actor(), c.merchant.ID, r)
	if err != nil {
		return err
	}
	body, err := wire.Redelivered(count)
	if err != nil {
		return err
	}
	return c.json(http.StatusAccepted, body)
}

func (a *API) rotateWebhookSecret(c *call) error {
	overlap, err := c.overlap()
	if err != nil {
		return err
	}
	secret, err := a.secrets.RotateWebhookSecret(c.ctx, c.merchant.ID, c.actor(), overlap)
	if err != nil {
		return err
	}
	body, err := wire.WebhookSecret(secret)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}

func (a *API) getWebhookSecret(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	secret, err := a.reader.WebhookSecret(c.ctx, c.merchant.ID)
	if err != nil {
		return readError(err)
	}
	body, err := wire.WebhookSecret(secret)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}
