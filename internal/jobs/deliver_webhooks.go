package jobs

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/webhook"
)

// deliveriesInHand is how many deliveries of one merchant are in hand at once:
// waiting for a place at their receiver, under way, or waiting for the commit of
// their end.
const deliveriesInHand = 256

// DeliverWebhooks sends events that are due to where their merchants want them.
func (j *Jobs) DeliverWebhooks(ctx context.Context) (int, error) {
	if !j.lease.Valid() {
		return 0, nil
	}
	did, err := j.startBorn(ctx)
	if err != nil {
		return did, err
	}
	if j.delivering.free() == 0 { // what comes into being waits with what is due
		j.queue.lack(true)
		return did, nil
	}
	due, err := j.Store.DeliveriesDue(ctx, j.Env.Clock.Now())
	if err != nil {
		return did, err
	}
	j.queue.lack(false)
	for _, merchant := range inTurn(j, dutyDeliver, due, func(id payment.ID) payment.ID { return id }) {
		free := j.delivering.free()
		if free == 0 {
			j.queue.lack(true)
			break
		}
		n := min(deliveriesInHand-j.queue.inHand(merchant), free)
		if !j.queue.worth(merchant, n) {
			continue
		}
		taken, err := j.takeDeliveries(ctx, merchant, n)
		did += taken
		if err != nil {
			return did, err
		}
	}
	return did, nil
}

// startBorn starts the deliveries that came into being in this process's hand, as
// far as there are places. Those of a process that was given up meanwhile, as
// which this one goes on no more, are for whoever claims them.
func (j *Jobs) startBorn(ctx context.Context) (did int, err error) {
	list, node := j.queue.takeBorn(j.delivering.free()), j.Flow.Node()
	var lost []store.Delivery
	list = slices.DeleteFunc(list, func(d store.Delivery) bool {
		if d.ClaimedBy == node {
			return false
		}
		lost = append(lost, d)
		return true
	})
	j.putOff(ctx, lost, 0)
	for of := range byMerchant(list) {
		secret, usable, err := j.secretOf(ctx, of[0].Merchant)
		if err != nil {
			j.queue.bear(list[did:])
			return did, err
		}
		if usable {
			j.startDeliveries(ctx, secret, of)
		} else {
			j.putOff(ctx, of, secretTTL)
		}
		did += len(of)
	}
	return did, nil
}

// byMerchant goes through runs of one merchant's.
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

// secretOf returns what signs a merchant's events. One that cannot be used is
// no reason to keep other merchants waiting: it is logged.
func (j *Jobs) secretOf(ctx context.Context, merchant payment.ID) (secret webhook.Secret, usable bool, err error) {
	secret, err = j.secrets.of(ctx, j.Store, merchant, j.Env.Clock.Monotonic())
	if errors.Is(err, store.ErrUnavailable) {
		return secret, false, err
	}
	if err != nil {
		j.Log.ErrorContext(ctx, "webhook secret cannot be used: nothing is delivered", "merchant", merchant, "error", err)
	}
	return secret, err == nil, nil
}

// takeDeliveries takes up to n due deliveries of a merchant in hand and starts
// them.
func (j *Jobs) takeDeliveries(ctx context.Context, merchant payment.ID, n int) (int, error) {
	secret, usable, err := j.secretOf(ctx, merchant)
	if err != nil || !usable {
		return 0, err
	}
	list, err := j.Flow.ClaimDeliveries(ctx, merchant, n)
	if err != nil {
		return 0, err
	}
	j.turns[dutyDeliver] = merchant
	j.queue.keep(merchant, n, len(list))
	j.startDeliveries(ctx, secret, list)
	return len(list), nil
}

// startDeliveries starts as many of a merchant's deliveries in hand as their
// receivers have places for; the others wait for one.
func (j *Jobs) startDeliveries(ctx context.Context, secret webhook.Secret, list []store.Delivery) {
	endpoints := make([]string, len(list))
	for i := range list {
		endpoints[i] = webhook.EndpointKey(list[i].Merchant.String(), list[i].URL)
		j.queue.add(handed{Delivery: list[i], endpoint: endpoints[i], secret: secret})
	}
	for _, endpoint := range endpoints {
		j.pump(ctx, endpoint)
	}
}

// pump starts the deliveries that wait for a receiver, as far as it has places
// free. Those of a receiver that does not answer go back to the store, and so
// hold up nobody; so do all once this process may have been given up for dead.
// Each one that was sent pumps again, before its end is recorded: a receiver
// does not wait for our disk.
func (j *Jobs) pump(ctx context.Context, endpoint string) {
	for {
		if !j.lease.Valid() {
			j.putOff(ctx, j.queue.take(endpoint, nil), 0)
			return
		}
		d, wait, ok := j.queue.start(endpoint, j.receivers)
		switch {
		case ok:
			var ended *flow.EndedDelivery
			j.delivering.runThen(func() { ended = j.deliver(ctx, d) }, func() (wake bool) {
				if j.Inline { // one thing after another
					defer j.pump(ctx, endpoint)
				} else {
					j.pump(ctx, endpoint)
				}
				j.record(ctx, "delivery's end", func(ctx context.Context) error { return j.Flow.EndDelivery(ctx, ended) })
				look := j.queue.remove(d.Merchant)
				return j.queue.lacked(j.delivering.free()) || look
			})
		case wait > 0:
			j.putOff(ctx, j.queue.take(endpoint, nil), wait)
		default:
			return
		}
	}
}

// returnedAtOnce is how many deliveries go back in one task of a lane, whose batch
// has many: requests wait for it.
const returnedAtOnce = 64

// putOff gives deliveries back to the store, untried, to be taken after about as
// long.
func (j *Jobs) putOff(ctx context.Context, list []store.Delivery, wait time.Duration) {
	for of := range byMerchant(list) {
		merchant, now := of[0].Merchant, j.Env.Clock.Now()
		for i := range of {
			of[i].NextAt = now.Add(j.Env.Random.Jitter(wait, 10))
		}
		for part := range slices.Chunk(of, returnedAtOnce) {
			j.record(ctx, "put-off deliveries", func(ctx context.Context) error { return j.Flow.ReturnDeliveries(ctx, merchant, part) })
			for range part {
				j.queue.remove(merchant)
			}
		}
	}
}

// deliver sends one event and says how that ended. Where its receiver wants no
// more news of the order, those in hand go back first: they end with it.
func (j *Jobs) deliver(ctx context.Context, d handed) *flow.EndedDelivery {
	j.Env.Inject(env.BeforeDelivery)
	attempt := j.sender.Send(context.WithoutCancel(ctx), webhook.Delivery{
		URL: d.URL, EventID: payment.PublicEventID(d.Event.ID), Body: d.Event.Body, Secrets: []webhook.Secret{d.secret},
	})
	j.Env.Inject(env.AfterDelivery)
	d.release(attempt.Outcome != webhook.Retry)
	if attempt.Outcome == webhook.Gone {
		j.putOff(ctx, j.queue.take(d.endpoint, func(other handed) bool {
			return other.Subject == d.Subject && other.URL == d.URL
		}), 0)
	}
	return j.ended(ctx, d.Delivery, attempt)
}

// ended is an attempt and what follows from it. It is logged: one line per
// attempt.
func (j *Jobs) ended(ctx context.Context, d store.Delivery, a webhook.Attempt) *flow.EndedDelivery {
	now := j.Env.Clock.Now()
	v := &flow.EndedDelivery{End: store.End{Delivery: d, Attempt: store.Attempt{
		Delivery: d.ID, Status: a.StatusCode, Latency: a.Latency, Error: string(a.Reason), Response: a.Response,
	}}}
	switch a.Outcome {
	case webhook.Delivered:
		v.Delivery.State = store.DeliveryDone
	case webhook.Gone:
		v.Delivery.State, v.Gone = store.DeliveryEnded, true
	default:
		wait, exhausted := j.schedule.Next(d.Ended, a.RetryAfter)
		if exhausted {
			v.Delivery.State = store.DeliveryExhausted
		} else {
			v.Delivery.NextAt = now.Add(wait)
		}
	}
	j.Log.InfoContext(ctx, "webhook attempted", "event", payment.PublicEventID(d.Event.ID), "type", d.Event.Type,
		"attempt", d.Attempts, "status", a.StatusCode, "reason", a.Reason, "latency", a.Latency, "state", v.Delivery.State)
	return v
}

// secretTTL is how long an opened webhook secret is used before it is read anew.
const secretTTL = 5 * time.Second

// secretCache keeps merchants' webhook secrets open for a moment.
type secretCache struct {
	mu   sync.Mutex
	list map[payment.ID]cachedSecret
}

type cachedSecret struct {
	secret webhook.Secret
	until  time.Duration
}

func (c *secretCache) of(ctx context.Context, s *store.Store, merchant payment.ID, now time.Duration) (webhook.Secret, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.list[merchant]; ok && now < known.until {
		return known.secret, nil
	}
	text, err := s.WebhookSecret(ctx, merchant)
	if err != nil {
		return webhook.Secret{}, err
	}
	secret, err := webhook.ParseSecret(text)
	if err != nil {
		return webhook.Secret{}, err
	}
	if c.list == nil || len(c.list) > 10_000 {
		c.list = map[payment.ID]cachedSecret{}
	}
	c.list[merchant] = cachedSecret{secret, now + secretTTL}
	return secret, nil
}
