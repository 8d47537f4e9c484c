package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// inFlightPerConnection is the number of orders per connection that may be in flight,
// between notice and completion, in a closed loop. Without a bound the run would
// measure the length of a queue.
const inFlightPerConnection = 16

// stallTimeout is the time without any completed order after which the run gives up.
const stallTimeout = 30 * time.Second

// roundTrip is the workload of the modes receive and webhooks: it pays pay-ins, and
// measures the time until they are PAID, or until that event is delivered to the run's
// receiver.
type roundTrip struct {
	run       *run
	receiver  *server
	notice    requestKind
	paid      *series // from the notice to the event
	delivered *series // from the event to its first delivery
	// untilDelivered means that an order completes with the delivery of its event.
	untilDelivered bool
	slots          chan struct{} // nil if unbounded
	stopPolling    context.CancelFunc
	pollers        sync.WaitGroup

	mu        sync.Mutex
	orders    []inFlightOrder
	byID      map[payment.ID]int
	unpaid    int // index of the first order without a notice
	accepted  int // notices
	completed int // orders
	repeated  int // repeated deliveries of an event
}

// inFlightOrder is an order and its progress.
type inFlightOrder struct {
	order

	due       time.Duration // of its notice
	sent      bool
	accepted  bool // the notice
	paid      bool
	delivered bool
}

func (r *run) newRoundTrip() (*roundTrip, error) {
	c := &roundTrip{
		run: r, byID: map[payment.ID]int{}, untilDelivered: r.Mode != Receive,
		paid: newSeries("notice to PAID"), delivered: newSeries("PAID to webhook"),
	}
	c.notice = requestKind{series: newSeries("POST notice"), wantStatus: 200, check: c.noticeAccepted, onError: c.noticeFailed}
	if r.target.gateway == nil { // the run has no bank: pay through the sandbox's route
		c.notice.series.name, c.notice.wantStatus = "POST pay", 204
	}
	if r.Rate == 0 && r.Mode != Mixed {
		c.slots = make(chan struct{}, inFlightPerConnection*r.Concurrency)
	}
	var err error
	if c.receiver, err = listen(context.Background(), "127.0.0.1:0", c.handleWebhook); err != nil {
		return nil, fmt.Errorf("bench: open a receiver: %w", err)
	}
	return c, nil
}

func (c *roundTrip) webhookURL() string { return c.receiver.url() + "/webhooks" }

func (c *roundTrip) prepare(ctx context.Context) error {
	r := c.run
	n := r.Orders
	switch {
	case n > 0:
	case r.Requests > 0:
		n = r.Requests
	case r.Rate > 0:
		n = int((r.Warmup+r.Duration)/time.Second+1)*r.Rate + r.Concurrency
	}
	// Orders are created faster than they are paid, so the orders of 1.5 times the run's
	// duration are enough.
	list, err := r.createOrders(ctx, c.webhookURL(), n, (r.Warmup+r.Duration)*3/2)
	if err != nil {
		return err
	}
	for i := range list {
		c.add(list[i])
	}
	c.startPolling(ctx)
	return nil
}

// add adds an order that can be paid.
func (c *roundTrip) add(o order) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byID[o.id] = len(c.orders)
	c.orders = append(c.orders, inFlightOrder{order: o})
}

// pickUnpaid selects the next order to pay; false if there is none.
func (c *roundTrip) pickUnpaid(w *worker) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unpaid == len(c.orders) {
		return false
	}
	w.index = c.unpaid
	c.unpaid++
	return true
}

func (c *roundTrip) next(ctx context.Context, w *worker) *requestKind {
	if c.slots != nil {
		stalled := c.run.clock.NewTimer(stallTimeout)
		defer stalled.Stop()
		select {
		case c.slots <- struct{}{}:
		case <-stalled.C():
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	if !c.pickUnpaid(w) {
		c.releaseSlot()
		return nil
	}
	c.writeNotice(w)
	return &c.notice
}

// writeNotice writes the request that pays an order.
func (c *roundTrip) writeNotice(w *worker) {
	c.mu.Lock()
	f := &c.orders[w.index]
	if f.due = w.due; c.run.Rate == 0 {
		f.due = c.run.clock.Monotonic()
	}
	f.sent = true
	o := f.order
	c.mu.Unlock()
	w.merchant = o.merchant
	bank := c.run.target.gateway
	if bank == nil {
		w.body = w.body[:0]
		w.post("/sandbox/payin/" + o.id.String() + "/pay")
		return
	}
	bank.bank.pay(o.externalID, o.amount)
	w.body, w.extra = bank.bank.appendNotice(w.body[:0], w.extra[:0], o.externalID)
	w.request = append(w.request[:0], "POST "+bank.noticePath+" HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"...)
	w.request = append(w.request, w.extra...)
	w.request = append(w.request, "Content-Length: "...)
	w.request = strconv.AppendInt(w.request, int64(len(w.body)), 10)
	w.request = append(w.request, "\r\n\r\n"...)
	w.request = append(w.request, w.body...)
}

// noticeAccepted records that a notice was accepted.
func (c *roundTrip) noticeAccepted(w *worker, _ []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted++
	c.orders[w.index].accepted = true
	return nil
}

func (c *roundTrip) noticeFailed(*worker) { c.releaseSlot() }

// releaseSlot releases the slot of an order.
func (c *roundTrip) releaseSlot() {
	if c.slots == nil {
		return
	}
	select {
	case <-c.slots:
	default:
	}
}

// event is the part of an event that the workload reads.
type event struct {
	Type      string    `json:"type"`
	CreatedAt time.Time `json:"createdAt"`
	Data      struct {
		ID payment.ID `json:"id"`
	} `json:"data"`
}

const typePaid = "payin.paid"

// record records that an order was paid and, if delivery is set, that the event was
// delivered.
func (c *roundTrip) record(e *event, delivery bool) {
	wall, now := c.run.clock.Now(), c.run.clock.Monotonic()
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.byID[e.Data.ID]
	if !ok || !c.orders[i].sent {
		return
	}
	f := &c.orders[i]
	window := &c.run.schedule.window
	created := now - wall.Sub(e.CreatedAt)
	ended := false
	if !f.paid {
		f.paid = true
		c.paid.success(window, f.due, created, created-f.due)
		ended = !c.untilDelivered
	}
	if delivery {
		if f.delivered {
			c.repeated++
		} else {
			f.delivered = true
			c.delivered.success(window, f.due, now, now-created)
			ended = ended || c.untilDelivered
		}
	}
	if ended {
		c.completed++
		c.releaseSlot()
	}
}

// handleWebhook receives a webhook.
func (c *roundTrip) handleWebhook(_, _, body, out []byte) []byte {
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		c.run.addWrong("webhook: " + err.Error())
	} else if e.Type == typePaid {
		c.record(&e, true)
	}
	return appendAnswer(out, "200 OK", nil)
}

// pollEvery is the interval between polls that find no full page of events.
const pollEvery = 20 * time.Millisecond

// startPolling starts to poll the merchants' events, unless deliveries are measured.
func (c *roundTrip) startPolling(ctx context.Context) {
	ctx, c.stopPolling = context.WithCancel(ctx)
	if c.untilDelivered {
		return
	}
	for merchant := range c.run.target.merchants {
		c.pollers.Go(func() { c.poll(ctx, merchant) })
	}
}

func (c *roundTrip) poll(ctx context.Context, merchant int) {
	w := &worker{run: c.run, conn: conn{target: c.run.target, clock: c.run.clock}, merchant: merchant}
	defer context.AfterFunc(ctx, w.conn.interrupt)()
	defer w.conn.close()
	cursor := ""
	for ctx.Err() == nil {
		path := "/events?limit=" + strconv.Itoa(pageSize)
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		w.get(path)
		status, body, err := w.conn.exchange(ctx, w.request)
		var page struct {
			Data       []event `json:"data"`
			NextCursor string  `json:"nextCursor"`
		}
		if err == nil && status == 200 {
			err = json.Unmarshal(body, &page)
		}
		for i := range page.Data {
			if page.Data[i].Type == typePaid {
				c.record(&page.Data[i], false)
			}
		}
		if page.NextCursor != "" && err == nil {
			cursor = page.NextCursor
		}
		if len(page.Data) < pageSize {
			wait(ctx, c.run.clock, pollEvery)
		}
	}
}

func (c *roundTrip) drain(ctx context.Context) error {
	c.run.progress("waiting for paid orders to complete")
	clock := c.run.clock
	last, moved := -1, clock.Monotonic()
	for {
		c.mu.Lock()
		ended, open := c.completed, c.accepted-c.completed
		c.mu.Unlock()
		if ended != last {
			last, moved = ended, clock.Monotonic()
		}
		if open <= 0 || clock.Monotonic()-moved > stallTimeout {
			return nil
		}
		if !wait(ctx, clock, 5*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

func (c *roundTrip) missing() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for i := range c.orders {
		f := &c.orders[i]
		switch {
		case f.accepted && !f.paid && !f.delivered:
			list = append(list, f.id.String()+" was paid, but is not PAID")
		case f.accepted && c.untilDelivered && !f.delivered:
			list = append(list, f.id.String()+" is PAID, but its event was not delivered")
		}
	}
	return list
}

func (c *roundTrip) series() []*series {
	if c.untilDelivered {
		return []*series{c.delivered, c.paid, c.notice.series}
	}
	return []*series{c.paid, c.notice.series, c.delivered}
}

func (c *roundTrip) close() {
	if c.stopPolling != nil {
		c.stopPolling()
	}
	c.pollers.Wait()
	c.receiver.close()
}
