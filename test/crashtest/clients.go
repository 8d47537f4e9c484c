package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// clients run concurrently. Their journals are the record that is checked; this has the
// times of their orders.
type clients struct {
	workload

	run    *run
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	orders  map[string]*orderTimes // by kind and reference
	acks    []*orderTimes          // in the order of their acknowledgements
	last    time.Duration          // of the last acknowledgement that was no replay
	refused int64                  // answers of 503 to a request for an order
	failed  []error
}

// orderTimes are the times of an order on the monotonic clock.
type orderTimes struct {
	kind, reference, id string
	placed              time.Duration
	acked               time.Duration // 0 while it is not acknowledged
}

// startClients starts the clients of a workload.
func (r *run) startClients(ctx context.Context, w workload) {
	ctx, cancel := context.WithCancel(ctx)
	c := &clients{workload: w, run: r, cancel: cancel, orders: map[string]*orderTimes{}}
	r.clients = c
	for n := range w.clients {
		c.done.Go(func() {
			one, err := c.newClient(n, streamClients+uint64(n))
			if err == nil {
				err = one.work(ctx)
			}
			if err != nil && ctx.Err() == nil {
				c.mu.Lock()
				c.failed = append(c.failed, err)
				c.mu.Unlock()
			}
		})
	}
}

// stop stops the clients and waits for them.
func (c *clients) stop() error {
	c.cancel()
	c.done.Wait()
	return errors.Join(c.failed...)
}

// begin records that an order is placed.
func (c *clients) begin(a *placement) {
	c.run.totals.add("orders placed", a.Kind, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders[a.key()] = &orderTimes{kind: a.Kind, reference: a.Reference, placed: clock.Monotonic()}
}

// note counts refusals.
func (c *clients) note(got reply) {
	if got.status != 503 {
		return
	}
	c.run.totals.add("refusals", "", 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused++
}

// acknowledged records an acknowledgement.
func (c *clients) acknowledged(a *placement, replayed bool) {
	c.run.totals.add("orders acknowledged", a.Kind, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := clock.Monotonic()
	if !replayed {
		c.last = now
	}
	if o := c.orders[a.key()]; o != nil {
		o.id, o.acked = orderOf(a.Acked).ID, now
		c.acks = append(c.acks, o)
	}
}

// acknowledgedBetween lists the orders that were placed at or after from and
// acknowledged before to.
func (c *clients) acknowledgedBetween(from, to time.Duration) (list []orderTimes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.acks {
		if o.placed >= from && o.acked < to {
			list = append(list, *o)
		}
	}
	return list
}

// progress returns the time of the last acknowledgement, and the number of refusals.
func (c *clients) progress() (last time.Duration, refused int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, c.refused
}
