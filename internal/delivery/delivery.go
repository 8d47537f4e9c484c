// Package delivery sends events to merchants' receivers: claim, send, record, redeliver, remove.
//
// It implements the use cases on top of package webhook, which signs, schedules and sends.
package delivery

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/endpoint"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/webhook"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

// Attempts in flight at once: in total, at one receiver, and at one receiver that answers as fast
// as attempts are made.
const (
	sendSlots          = 256
	receiverSlots      = 8
	receiverSlotsLimit = 64
)

// Options configure a Service.
type Options struct {
	Store    *store.Store
	Writer   *write.Writer
	Queue    *Queue
	Env      env.Env
	Log      *slog.Logger
	Recorder worker.Recorder
	// Endpoints have the secrets of webhook endpoints. Attempted wakes the worker that
	// dispatches events to them.
	Endpoints *endpoint.Registry
	Attempted *worker.Waker
	// Ranges wakes the worker that sends ranges of events again.
	Ranges *worker.Waker
	// Retention is how long deliveries are kept after their end; 0 keeps them forever.
	Retention time.Duration
	// Spawn starts an attempt; see [worker.Spawn].
	Spawn worker.Spawn
}

// Service sends events to their merchants' receivers.
type Service struct {
	Options

	sender    *webhook.Sender
	schedule  webhook.Schedule
	receivers *webhook.Limiter
	pool      *worker.Pool
	turn      worker.Turn[payment.ID]
	secrets   secretCache
	removal   removal

	rangesAfter payment.ID // merchant whose ranges were served last
}

// New returns a Service.
func New(o Options) *Service {
	s := &Service{
		Options:   o,
		sender:    &webhook.Sender{Transport: o.Env.Webhooks, Clock: env.Unshifted(o.Env.Clock)},
		schedule:  webhook.Schedule{Jitter: o.Env.Random.Jitter},
		receivers: webhook.NewLimiter(o.Env.Clock, receiverSlots, receiverSlotsLimit),
		pool:      worker.NewPool(sendSlots, o.Queue.waker, o.Spawn),
	}
	o.Queue.free = s.pool.Free
	return s
}

// Wait returns when no attempt is in flight.
func (s *Service) Wait() { s.pool.Wait() }

// Send is the step of the worker that sends due events.
func (s *Service) Send(ctx context.Context) (int, error) {
	if !s.Queue.node.Lease.Valid() {
		return 0, nil
	}
	did, err := s.sendFresh(ctx)
	if s.pool.Free() == 0 {
		s.Queue.setStarved(true)
		return did, err
	}
	errs := []error{err}
	due, err := s.Store.DeliveriesDue(ctx, s.Env.Clock.Now())
	if err != nil {
		return did, errors.Join(append(errs, err)...)
	}
	s.Queue.setStarved(false)
	same := func(id payment.ID) payment.ID { return id }
	for _, merchant := range worker.Order(&s.turn, due, same, payment.CompareIDs) {
		free := s.pool.Free()
		if free == 0 {
			s.Queue.setStarved(true)
			break
		}
		n := s.Queue.worthClaiming(merchant, free)
		if n == 0 {
			continue
		}
		claimed, err := s.sendDue(ctx, merchant, n)
		did += claimed
		errs = append(errs, err)
	}
	return did, errors.Join(errs...)
}

// sendFresh starts the deliveries that were claimed when they were created, as far as
// slots are free. Those claimed under a node id that this process has abandoned are
// due for any process.
func (s *Service) sendFresh(ctx context.Context) (did int, err error) {
	list, node := s.Queue.takeFresh(s.pool.Free()), s.Queue.node.ID()
	var abandoned []store.Delivery
	list = slices.DeleteFunc(list, func(d store.Delivery) bool {
		if d.ClaimedBy == node {
			return false
		}
		abandoned = append(abandoned, d)
		return true
	})
	s.reschedule(ctx, abandoned, 0)
	var errs []error
	for group := range byMerchant(list) {
		secret, usable, err := s.secretOf(ctx, group[0].Merchant)
		switch {
		case err != nil:
			s.Queue.returnUnstarted(group)
			errs = append(errs, err)
			continue
		case usable:
			s.start(ctx, secret, group)
		default:
			s.reschedule(ctx, group, unusableWait)
		}
		did += len(group)
	}
	return did, errors.Join(errs...)
}

// byMerchant iterates over runs of one merchant's deliveries.
func byMerchant(list []store.Delivery) iter.Seq[[]store.Delivery] {
	return func(yield func([]store.Delivery) bool) {
		for len(list) > 0 {
			n := 1
			for n < len(list) && list[n].Merchant == list[0].Merchant {
				n++
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}

// sendDue claims up to n due deliveries of a merchant and starts them. It returns how many it read.
func (s *Service) sendDue(ctx context.Context, merchant payment.ID, n int) (int, error) {
	secret, usable, err := s.secretOf(ctx, merchant)
	if err != nil || !usable && !s.Endpoints.Has(merchant) {
		return 0, err
	}
	s.turn.Served(merchant)
	op, err := s.claim(ctx, merchant, n)
	if err != nil {
		return 0, err
	}
	s.Queue.addClaimed(merchant, n, len(op.claimed))
	s.start(ctx, secret, op.claimed)
	return len(op.claimed) + op.postponed, nil // more may be due behind the postponed ones
}

// start starts as many claimed deliveries of a merchant as their receivers have slots
// for; the others wait. Those whose secret is not usable are rescheduled.
func (s *Service) start(ctx context.Context, signing []webhook.Secret, list []store.Delivery) {
	receivers := make([]string, 0, len(list))
	var unsigned []store.Delivery
	for i := range list {
		secrets := s.secretsOf(&list[i], signing)
		if len(secrets) == 0 {
			unsigned = append(unsigned, list[i])
			continue
		}
		receiver := receiverOf(&list[i])
		receivers = append(receivers, receiver)
		s.Queue.wait(pending{Delivery: list[i], endpoint: receiver, secrets: secrets})
	}
	s.reschedule(ctx, unsigned, unusableWait)
	for _, receiver := range receivers {
		s.startWaiting(ctx, receiver)
	}
}

// receiverOf names the receiver of a delivery, for [webhook.Limiter]. A merchant's endpoint is a
// receiver of its own, even if others have its host: it counts its own failures, and is down after
// them.
func receiverOf(d *store.Delivery) string {
	key := webhook.EndpointKey(d.Merchant.String(), d.URL)
	if !d.Endpoint.IsZero() {
		key += " " + d.Endpoint.String()
	}
	return key
}

// secretsOf are the secrets that sign a delivery. They are those of its endpoint or of its merchant
// (none if they are not usable), and those of the endpoints with the same URL.
func (s *Service) secretsOf(d *store.Delivery, signing []webhook.Secret) []webhook.Secret {
	if !d.Endpoint.IsZero() {
		return s.Endpoints.Secrets(d.Merchant, d.Endpoint)
	}
	others := s.Endpoints.SecretsOf(d.Merchant, d.URL)
	if len(signing) == 0 || len(others) == 0 {
		return signing
	}
	return slices.Concat(signing, others)
}

// startWaiting starts the deliveries that wait for an endpoint, as far as it has free slots.
// Deliveries to a receiver that does not answer are rescheduled, so that they block no others. So
// are all deliveries once this process may have been declared dead. Each attempt that ends calls it
// again before its end is recorded, so that a receiver does not wait for our disk.
func (s *Service) startWaiting(ctx context.Context, endpoint string) {
	for {
		if !s.Queue.node.Lease.Valid() {
			s.reschedule(ctx, s.Queue.takeWaiting(endpoint, nil), 0)
			return
		}
		s.reschedule(ctx, s.Queue.takeOutdated(endpoint, s.outdated), outdatedWait)
		d, pause, ok := s.Queue.next(endpoint, s.receivers)
		switch {
		case ok:
			var end *End
			s.pool.RunThen(func() { end = s.attempt(ctx, d) }, func() (wake bool) {
				if s.Spawn != nil { // inline each attempt would be within the one before
					defer s.startWaiting(ctx, endpoint)
				} else {
					s.startWaiting(ctx, endpoint)
				}
				s.Recorder.Record(ctx, "end of delivery attempt", func(ctx context.Context) error { return s.Writer.Do(ctx, end) })
				if d.InOrder {
					s.Attempted.Wake() // the next ones may follow
				}
				poll := s.Queue.done(d.Merchant)
				return s.Queue.shouldPoll(s.pool.Free(), s.pool.Size()) || poll
			})
		case pause > 0:
			s.reschedule(ctx, s.Queue.takeWaiting(endpoint, nil), pause)
		default:
			return
		}
	}
}

// outdatedWait is how long a delivery waits if its endpoint changed after its claim: about as long
// as a node may not know the change. The next claim ends it or has the new URL.
const outdatedWait = 2 * time.Second

// outdated reports whether a claimed delivery is not to be sent: its endpoint was deleted,
// disabled or moved since, or its secret cannot be opened.
func (s *Service) outdated(d *pending) bool {
	return !d.Endpoint.IsZero() && (!s.Endpoints.Takes(d.Merchant, d.Endpoint, d.URL) || len(s.Endpoints.Secrets(d.Merchant, d.Endpoint)) == 0)
}

// signing are the secrets that sign a delivery now, as it may have waited since its claim.
func (s *Service) signing(ctx context.Context, d *pending) []webhook.Secret {
	var ofMerchant []webhook.Secret
	if d.Endpoint.IsZero() {
		var err error
		if ofMerchant, err = s.secrets.of(ctx, s.Store, d.Merchant, s.Env.Clock); err != nil {
			return d.secrets
		}
	}
	if now := s.secretsOf(&d.Delivery, ofMerchant); len(now) > 0 {
		return now
	}
	return d.secrets
}

// rescheduledAtOnce is how many deliveries one operation reschedules: a batch has many
// operations, and requests wait for it.
const rescheduledAtOnce = 64

// reschedule returns claimed deliveries to the store without an attempt, due after
// about wait.
func (s *Service) reschedule(ctx context.Context, list []store.Delivery, wait time.Duration) {
	for group := range byMerchant(list) {
		now := s.Env.Clock.Now()
		together := now.Add(wait)
		for i := range group {
			if group[i].NextAt = now.Add(s.Env.Random.Jitter(wait, 10)); group[i].InOrder {
				// Not before the end of the wait: a delivery that is claimed within it waits again,
				// behind the others.
				group[i].NextAt = together.Add(time.Duration(i) * time.Microsecond)
			}
			if !group[i].Planned.IsZero() {
				group[i].NextAt = group[i].Planned
			}
		}
		for part := range slices.Chunk(group, rescheduledAtOnce) {
			s.Recorder.Record(ctx, "rescheduled deliveries", func(ctx context.Context) error { return s.Writer.Do(ctx, &returned{part}) })
			for range part {
				s.Queue.done(part[0].Merchant)
			}
		}
	}
}

// Leave releases, after the workers have stopped, the deliveries that were claimed on
// insert and never started.
func (s *Service) Leave(ctx context.Context) {
	for group := range byMerchant(s.Queue.takeFresh(math.MaxInt)) {
		if ctx.Err() == nil {
			s.reschedule(ctx, group, 0)
		}
	}
}

// attempt sends one event and returns its result. If the receiver disables the order's events or
// the endpoint, the waiting deliveries are returned first: they end with it. So are deliveries that
// wait for an endpoint that was down and is to catch up, or that is still down and names a time.
func (s *Service) attempt(ctx context.Context, d pending) *End {
	s.Env.Inject(env.BeforeDelivery)
	a := s.sender.Send(context.WithoutCancel(ctx), webhook.Delivery{
		URL: d.URL, EventID: payment.PublicEventID(d.Event.ID), Body: d.Event.Body, Secrets: s.signing(ctx, &d),
	})
	s.Env.Inject(env.AfterDelivery)
	var returned []store.Delivery
	if a.Outcome == webhook.Gone || d.Down && (a.Outcome == webhook.Delivered || a.RetryAfter > 0) {
		returned = s.Queue.takeWaiting(d.endpoint, func(other *pending) bool {
			if !d.Endpoint.IsZero() {
				return other.Endpoint == d.Endpoint
			}
			return other.Endpoint.IsZero() && other.Subject == d.Subject && other.URL == d.URL
		})
	}
	d.release(a.Outcome != webhook.Retry) // not before: one of them could begin
	s.reschedule(ctx, returned, 0)
	return s.endOf(ctx, d.Delivery, a)
}

// endOf is an attempt and its consequences, with one log line per attempt.
func (s *Service) endOf(ctx context.Context, d store.Delivery, a webhook.Attempt) *End {
	v := &End{
		Delivery: d,
		Attempt: store.Attempt{
			Merchant: d.Merchant, Delivery: d.ID, Number: d.Attempts, CreatedAt: d.UpdatedAt,
			Status: a.StatusCode, Latency: a.Latency, Error: string(a.Reason), Response: a.Response,
		},
		State: store.DeliveryPending, RetryAfter: a.RetryAfter,
	}
	switch a.Outcome {
	case webhook.Delivered:
		v.State = store.DeliveryDone
	case webhook.Gone:
		v.State = store.DeliveryDisabled
	default:
		wait, exhausted := s.schedule.Next(d.ScheduleStep+1, a.RetryAfter)
		if exhausted {
			v.State = store.DeliveryExhausted
		} else {
			v.NextAt = s.Env.Clock.Now().Add(wait)
		}
	}
	if !d.Planned.IsZero() && a.Outcome == webhook.Retry { // it was not due
		v.State, v.NextAt = store.DeliveryPending, d.Planned
		if asked := s.Env.Clock.Now().Add(a.RetryAfter); asked.After(v.NextAt) {
			v.NextAt = asked
		}
	}
	s.Log.InfoContext(ctx, "webhook attempted", "event", payment.PublicEventID(d.Event.ID), "type", d.Event.Type,
		"attempt", d.Attempts, "status", a.StatusCode, "reason", a.Reason, "durationMicros", a.Latency.Microseconds(), "state", v.State)
	return v
}

// secretOf returns the secrets that sign a merchant's events. An unusable secret does not stop
// other merchants: it is logged.
func (s *Service) secretOf(ctx context.Context, merchant payment.ID) (secret []webhook.Secret, usable bool, err error) {
	secret, err = s.secrets.of(ctx, s.Store, merchant, s.Env.Clock)
	if errors.Is(err, store.ErrUnavailable) {
		return secret, false, err
	}
	if err != nil {
		s.Log.ErrorContext(ctx, "webhook secret unusable: no event is delivered", "merchant", merchant, "error", err)
	}
	return secret, err == nil, nil
}

// secretTTL is how long an opened webhook secret is used before it is read again, so that a new one
// signs within two seconds. unusableWait is how long a delivery waits whose secret is not usable.
const (
	secretTTL    = 1500 * time.Millisecond
	unusableWait = 5 * time.Second
)

// secretCache keeps merchants' webhook secrets open for a short time.
type secretCache struct {
	mu   sync.Mutex
	list map[payment.ID]cachedSecret
}

// cachedSecret is the current secret of a merchant, and the previous one with its end.
type cachedSecret struct {
	current, both []webhook.Secret
	until         time.Time
	read          time.Duration // on the monotonic clock
}

// now are the secrets that sign at a time.
func (c *cachedSecret) now(at time.Time) []webhook.Secret {
	if at.Before(c.until) {
		return c.both
	}
	return c.current
}

func (c *secretCache) of(ctx context.Context, s *store.Store, merchant payment.ID, clock env.Clock) ([]webhook.Secret, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := clock.Monotonic()
	if known, ok := c.list[merchant]; ok && now < known.read+secretTTL {
		return known.now(clock.Now()), nil
	}
	stored, err := s.WebhookSecrets(ctx, merchant)
	if err != nil {
		return nil, err
	}
	fresh := cachedSecret{until: stored.Until, read: now}
	secret, err := webhook.ParseSecret(stored.Current)
	if err != nil {
		return nil, err
	}
	fresh.current = []webhook.Secret{secret}
	fresh.both = fresh.current
	if before, err := webhook.ParseSecret(stored.Previous); err == nil {
		fresh.both = []webhook.Secret{secret, before}
	}
	if c.list == nil || len(c.list) > 10_000 {
		c.list = map[payment.ID]cachedSecret{}
	}
	c.list[merchant] = fresh
	return fresh.now(clock.Now()), nil
}
