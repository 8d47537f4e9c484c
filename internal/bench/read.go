package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// ordersDefault is the default number of orders that are created to be read.
const ordersDefault = 2_000

// newWorkload creates the workload of the mode.
func (r *run) newWorkload() (err error) {
	switch r.Mode {
	case Payin:
		c := r.newCreateWorkload("/payin", unusedWebhookURL, false)
		r.workload, err = c, r.addEndpoints(c)
	case Payout:
		c := r.newCreateWorkload("/payout", unusedWebhookURL, r.target.gateway != nil)
		if r.target.gateway != nil {
			c.sent = newSeries("request to bank")
		}
		r.workload, err = c, r.addEndpoints(c)
	case Read:
		r.workload = r.newReadWorkload()
	case Receive, Webhooks:
		r.workload, err = r.newRoundTrip()
	default:
		r.workload, err = r.newMixedWorkload()
	}
	return err
}

// addEndpoints makes the workload receive all events, if that is chosen.
func (r *run) addEndpoints(c *createWorkload) (err error) {
	if r.Endpoint {
		c.endpoints, err = r.newEndpoints()
	}
	return err
}

func (r *run) prepare(ctx context.Context) error { return r.workload.prepare(ctx) }

var errOrdersNotCreated = errors.New("bench: the orders for the load were not created")

// createOrders creates n pay-ins before the load or, if n is 0, as many as it can in
// d.
func (r *run) createOrders(ctx context.Context, hook string, n int, d time.Duration) ([]order, error) {
	r.progress("creating orders")
	c := r.newCreateWorkload("/payin", hook, true)
	if n > 0 {
		d = 0
	}
	made := r.load(ctx, c, newSchedule(r.clock, 0, 0, d, n), 0)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, failed := c.request.series.totals(); len(made) == 0 || failed > 0 && n > 0 {
		return nil, fmt.Errorf("%w: %d of %d; %v", errOrdersNotCreated, len(made), n, c.request.series.samples)
	}
	r.acked = append(r.acked, made...)
	return made, nil
}

// readWorkload is the workload of the mode read: orders by id, and lists.
type readWorkload struct {
	noSetup

	run    *run
	orders []order
	total  *series
	kinds  []readKind
}

// readKind is a kind of read and its share in percent.
type readKind struct {
	share   int
	write   func(w *worker, o *order)
	request requestKind
}

func (r *run) newReadWorkload() *readWorkload {
	p := &readWorkload{run: r, total: newSeries("all requests")}
	about := func(w *worker, body []byte) error {
		if !bytes.Contains(body, []byte(p.orders[w.index].reference)) {
			return errOtherOrder
		}
		return nil
	}
	list := func(_ *worker, body []byte) error {
		if !bytes.HasPrefix(body, []byte(`{"data":[`)) {
			return errNoList
		}
		return nil
	}
	add := func(share int, name string, check func(*worker, []byte) error, write func(w *worker, o *order)) {
		s := newSeries("GET " + name)
		p.kinds = append(p.kinds, readKind{share, write, requestKind{series: s, total: p.total, wantStatus: 200, check: check}})
	}
	add(70, "/payin/{id}", about, func(w *worker, o *order) { w.get("/payin/" + o.id.String()) })
	add(10, "/payin?referenceId=", about, func(w *worker, o *order) { w.get("/payin?referenceId=" + o.reference) })
	add(8, "/payin?status=", list, func(w *worker, _ *order) { w.get("/payin?status=PENDING&limit=50") })
	add(4, "/payin", list, func(w *worker, _ *order) { w.get("/payin") })
	add(4, "/events", list, func(w *worker, _ *order) { w.get("/events") })
	add(4, "/balance", func(_ *worker, body []byte) error {
		if !bytes.Contains(body, []byte(`"available":`)) {
			return errOtherOrder
		}
		return nil
	}, func(w *worker, _ *order) { w.get("/balance") })
	return p
}

func (p *readWorkload) prepare(ctx context.Context) (err error) {
	n := p.run.Orders
	if n == 0 {
		n = ordersDefault
	}
	p.orders, err = p.run.createOrders(ctx, unusedWebhookURL, n, 0)
	return err
}

func (p *readWorkload) next(_ context.Context, w *worker) *requestKind {
	w.index = w.pick(len(p.orders))
	o := &p.orders[w.index]
	w.merchant = o.merchant
	at := w.pick(100)
	for i := range p.kinds {
		k := &p.kinds[i]
		if at -= k.share; at < 0 {
			k.write(w, o)
			return &k.request
		}
	}
	panic("bench: shares of reading add up to less than a hundred")
}

func (p *readWorkload) series() []*series {
	list := []*series{p.total}
	for i := range p.kinds {
		list = append(list, p.kinds[i].request.series)
	}
	return list
}
