package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// ordersDefault is how many orders are made to be read, where the operator
// does not say.
const ordersDefault = 2_000

// choose makes the plan of the mode.
func (r *run) choose() (err error) {
	switch r.Mode {
	case Payin:
		r.plan = r.newCreating("/payin", defaultHook, false)
	case Payout:
		c := r.newCreating("/payout", defaultHook, r.target.own != nil)
		if r.target.own != nil {
			c.sent = newSeries("request to bank")
		}
		r.plan = c
	case Read:
		r.plan = r.newReading()
	case Receive, Webhooks:
		r.plan, err = r.newCircle()
	default:
		r.plan, err = r.newMixed()
	}
	return err
}

func (r *run) prepare(ctx context.Context) error { return r.plan.prepare(ctx) }

var errNotMade = errors.New("bench: the orders that the load needs were not made")

// makeOrders makes n pay-ins before the load begins, or, for n 0, as many as
// are made in d.
func (r *run) makeOrders(ctx context.Context, hook string, n int, d time.Duration) ([]order, error) {
	r.tell("making orders")
	c := r.newCreating("/payin", hook, true)
	if n > 0 {
		d = 0
	}
	made := r.load(ctx, c, newPace(r.clock, 0, 0, d, n), 0)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, failed := c.task.series.totals(); len(made) == 0 || failed > 0 && n > 0 {
		return nil, fmt.Errorf("%w: %d of %d; %v", errNotMade, len(made), n, c.task.series.samples)
	}
	r.acked = append(r.acked, made...)
	return made, nil
}

// reading is the plan of the mode read: orders by id, and lists.
type reading struct {
	plain

	run    *run
	orders []order
	total  *series
	kinds  []readKind
}

// readKind is one way to read, and its share of a hundred.
type readKind struct {
	share int
	write func(w *worker, o *order)
	task  task
}

func (r *run) newReading() *reading {
	p := &reading{run: r, total: newSeries("all requests")}
	about := func(w *worker, body []byte) error {
		if !bytes.Contains(body, []byte(p.orders[w.index].reference)) {
			return errForeign
		}
		return nil
	}
	list := func(_ *worker, body []byte) error {
		if !bytes.HasPrefix(body, []byte(`{"data":[`)) {
			return errNoList
		}
		return nil
	}
	add := func(share int, name string, judge func(*worker, []byte) error, write func(w *worker, o *order)) {
		s := newSeries("GET " + name)
		p.kinds = append(p.kinds, readKind{share, write, task{series: s, total: p.total, want: 200, judge: judge}})
	}
	add(70, "/payin/{id}", about, func(w *worker, o *order) { w.get("/payin/" + o.id.String()) })
	add(10, "/payin?referenceId=", about, func(w *worker, o *order) { w.get("/payin?referenceId=" + o.reference) })
	add(8, "/payin?status=", list, func(w *worker, _ *order) { w.get("/payin?status=PENDING&limit=50") })
	add(4, "/payin", list, func(w *worker, _ *order) { w.get("/payin") })
	add(4, "/events", list, func(w *worker, _ *order) { w.get("/events") })
	add(4, "/balance", func(_ *worker, body []byte) error {
		if !bytes.Contains(body, []byte(`"available":`)) {
			return errForeign
		}
		return nil
	}, func(w *worker, _ *order) { w.get("/balance") })
	return p
}

func (p *reading) prepare(ctx context.Context) (err error) {
	n := p.run.Orders
	if n == 0 {
		n = ordersDefault
	}
	p.orders, err = p.run.makeOrders(ctx, defaultHook, n, 0)
	return err
}

func (p *reading) next(_ context.Context, w *worker) *task {
	w.index = w.pick(len(p.orders))
	o := &p.orders[w.index]
	w.merchant = o.merchant
	at := w.pick(100)
	for i := range p.kinds {
		k := &p.kinds[i]
		if at -= k.share; at < 0 {
			k.write(w, o)
			return &k.task
		}
	}
	panic("bench: shares of reading add up to less than a hundred")
}

func (p *reading) list() []*series {
	list := []*series{p.total}
	for i := range p.kinds {
		list = append(list, p.kinds[i].task.series)
	}
	return list
}
