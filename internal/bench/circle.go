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

// openPerConnection is how many orders per connection may be between their
// notice and their end at once in a closed loop: without a bound, it would
// measure how long a queue can get.
const openPerConnection = 16

// settlePatience is how long nothing may move before what is still open is
// given up.
const settlePatience = 30 * time.Second

// circle is the plan of the modes receive and webhooks: pay-ins are paid, and
// what becomes of that is watched until they are PAID, or until the news of it
// is delivered to a receiver of the run's own.
type circle struct {
	run      *run
	receiver *server
	notice   task
	paid     *series // from the notice to the event
	news     *series // from the event to its first delivery
	// untilNews says that an order's end is the delivery of its news.
	untilNews bool
	places    chan struct{} // nil without a bound
	polling   context.CancelFunc
	polls     sync.WaitGroup

	mu       sync.Mutex
	orders   []flight
	byID     map[payment.ID]int
	unpaid   int // index of the first order that is to be paid
	accepted int // notices
	ended    int // orders
	repeated int // deliveries of news that had been delivered
}

// flight is an order on its way.
type flight struct {
	order

	due       time.Duration // of its notice
	sent      bool
	accepted  bool // its notice was
	paid      bool
	delivered bool
}

func (r *run) newCircle() (*circle, error) {
	c := &circle{
		run: r, byID: map[payment.ID]int{}, untilNews: r.Mode != Receive,
		paid: newSeries("notice to PAID"), news: newSeries("PAID to webhook"),
	}
	c.notice = task{series: newSeries("POST notice"), want: 200, judge: c.taken, failed: c.refused}
	if r.target.own == nil { // there is no bank of ours: the sandbox's is told to pay
		c.notice.series.name, c.notice.want = "POST pay", 204
	}
	if r.Rate == 0 && r.Mode != Mixed {
		c.places = make(chan struct{}, openPerConnection*r.Concurrency)
	}
	var err error
	if c.receiver, err = listen(context.Background(), "127.0.0.1:0", c.deliver); err != nil {
		return nil, fmt.Errorf("bench: open a receiver: %w", err)
	}
	return c, nil
}

func (c *circle) hook() string { return c.receiver.url() + "/webhooks" }

func (c *circle) prepare(ctx context.Context) error {
	r := c.run
	n := r.Orders
	switch {
	case n > 0:
	case r.Requests > 0:
		n = r.Requests
	case r.Rate > 0:
		n = int((r.Warmup+r.Duration)/time.Second+1)*r.Rate + r.Concurrency
	}
	// Orders are made faster than they are paid, so as many as are made in a
	// little more than the time of the run last for it.
	list, err := r.makeOrders(ctx, c.hook(), n, (r.Warmup+r.Duration)*3/2)
	if err != nil {
		return err
	}
	for i := range list {
		c.add(list[i])
	}
	c.watch(ctx)
	return nil
}

// add takes an order that may be paid.
func (c *circle) add(o order) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byID[o.id] = len(c.orders)
	c.orders = append(c.orders, flight{order: o})
}

// choose takes the next order to be paid; false where there is none.
func (c *circle) choose(w *worker) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unpaid == len(c.orders) {
		return false
	}
	w.index = c.unpaid
	c.unpaid++
	return true
}

func (c *circle) next(ctx context.Context, w *worker) *task {
	if c.places != nil {
		patience := c.run.clock.NewTimer(settlePatience)
		defer patience.Stop()
		select {
		case c.places <- struct{}{}:
		case <-patience.C(): // nothing moves any more
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	if !c.choose(w) {
		c.free()
		return nil
	}
	c.write(w)
	return &c.notice
}

// write writes the request that pays an order.
func (c *circle) write(w *worker) {
	c.mu.Lock()
	f := &c.orders[w.index]
	if f.due = w.due; c.run.Rate == 0 {
		f.due = c.run.clock.Monotonic()
	}
	f.sent = true
	o := f.order
	c.mu.Unlock()
	w.merchant = o.merchant
	bank := c.run.target.own
	if bank == nil {
		w.body = w.body[:0]
		w.post("/sandbox/payin/" + o.id.String() + "/pay")
		return
	}
	bank.bank.pay(o.externalID, o.amount)
	w.body, w.extra = bank.bank.appendNotice(w.body[:0], w.extra[:0], o.externalID)
	w.request = append(w.request[:0], "POST /inbound/"+processorName+" HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"...)
	w.request = append(w.request, w.extra...)
	w.request = append(w.request, "Content-Length: "...)
	w.request = strconv.AppendInt(w.request, int64(len(w.body)), 10)
	w.request = append(w.request, "\r\n\r\n"...)
	w.request = append(w.request, w.body...)
}

// taken notes that a notice was accepted.
func (c *circle) taken(w *worker, _ []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted++
	c.orders[w.index].accepted = true
	return nil
}

func (c *circle) refused(*worker) { c.free() }

// free gives the place of an order back.
func (c *circle) free() {
	if c.places == nil {
		return
	}
	select {
	case <-c.places:
	default:
	}
}

// event is what the plan reads of one.
type event struct {
	Type      string    `json:"type"`
	CreatedAt time.Time `json:"createdAt"`
	Data      struct {
		ID payment.ID `json:"id"`
	} `json:"data"`
}

const typePaid = "payin.paid"

// happened notes that an order was paid, and delivery that its news arrived.
func (c *circle) happened(e *event, delivery bool) {
	wall, now := c.run.clock.Now(), c.run.clock.Monotonic()
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.byID[e.Data.ID]
	if !ok || !c.orders[i].sent {
		return
	}
	f := &c.orders[i]
	window := &c.run.pace.window
	created := now - wall.Sub(e.CreatedAt)
	ended := false
	if !f.paid {
		f.paid = true
		c.paid.well(window, f.due, created, created-f.due)
		ended = !c.untilNews
	}
	if delivery {
		if f.delivered {
			c.repeated++
		} else {
			f.delivered = true
			c.news.well(window, f.due, now, now-created)
			ended = ended || c.untilNews
		}
	}
	if ended {
		c.ended++
		c.free()
	}
}

// deliver takes a webhook.
func (c *circle) deliver(_, _, body, out []byte) []byte {
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		c.run.objection("webhook: " + err.Error())
	} else if e.Type == typePaid {
		c.happened(&e, true)
	}
	return appendAnswer(out, "200 OK", nil)
}

// pollEvery is how often events are looked for where there were none.
const pollEvery = 20 * time.Millisecond

// watch reads the merchants' events as they come, where deliveries do not tell
// soon enough.
func (c *circle) watch(ctx context.Context) {
	ctx, c.polling = context.WithCancel(ctx)
	if c.untilNews {
		return
	}
	for merchant := range c.run.target.merchants {
		c.polls.Go(func() { c.poll(ctx, merchant) })
	}
}

func (c *circle) poll(ctx context.Context, merchant int) {
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
				c.happened(&page.Data[i], false)
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

func (c *circle) settle(ctx context.Context) error {
	c.run.tell("waiting for what was paid to come to its end")
	clock := c.run.clock
	last, moved := -1, clock.Monotonic()
	for {
		c.mu.Lock()
		ended, open := c.ended, c.accepted-c.ended
		c.mu.Unlock()
		if ended != last {
			last, moved = ended, clock.Monotonic()
		}
		if open <= 0 || clock.Monotonic()-moved > settlePatience {
			return nil
		}
		if !wait(ctx, clock, 5*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

func (c *circle) missing() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for i := range c.orders {
		f := &c.orders[i]
		switch {
		case f.accepted && !f.paid && !f.delivered:
			list = append(list, f.id.String()+" was paid, and is not PAID")
		case f.accepted && c.untilNews && !f.delivered:
			list = append(list, f.id.String()+" is PAID, and its news was not delivered")
		}
	}
	return list
}

func (c *circle) list() []*series {
	if c.untilNews {
		return []*series{c.news, c.paid, c.notice.series}
	}
	return []*series{c.paid, c.notice.series, c.news}
}

func (c *circle) close() {
	if c.polling != nil {
		c.polling()
	}
	c.polls.Wait()
	c.receiver.close()
}
