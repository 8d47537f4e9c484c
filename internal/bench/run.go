package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
)

// run is one measurement.
type run struct {
	Options

	clock  env.Clock
	target *target
	plan   plan
	pace   *pace
	lag    *histogram // how late requests of an open loop left a free connection

	acked []order

	mu     sync.Mutex
	wrong  []string // answers that were wrong, the first of them
	wrongs int64

	started, stopped usage // of the gateway, around the measured time
	own              usage // this program's, within it
	written          int64 // bytes, within it
	writtenBy        string
	elapsed          time.Duration // the measured time, as it turned out
	notes            []string
}

// order is one that was acknowledged.
type order struct {
	id         payment.ID
	externalID string // kept where notices are sent
	reference  string // kept where it is looked for
	amount     int64  // cents
	merchant   int
	payout     bool
	due        time.Duration // its request was
}

// task is one kind of request, and what its answer must be.
type task struct {
	series *series
	total  *series // that it counts in as well; nil for none
	want   int     // status
	// judge reads the answer of a request that got its status; its error is a
	// wrong answer.
	judge func(w *worker, body []byte) error
	// failed is told where there was no such answer; it may be nil.
	failed func(w *worker)
}

// plan is a mode: it decides what each worker asks next.
type plan interface {
	// prepare makes what the load needs, before it begins.
	prepare(ctx context.Context) error
	// next writes a worker's next request; nil where nothing is left to ask.
	next(ctx context.Context, w *worker) *task
	// settle waits until all that the load set going has come to its end.
	settle(ctx context.Context) error
	// list is what happens, the main thing first.
	list() []*series
	// missing tells what was set going and did not come to its end.
	missing() []string
	close()
}

// worker is one connection that asks.
type worker struct {
	run    *run
	conn   conn
	random env.Random
	pool   [256]byte
	used   int

	request, body, extra []byte
	reference            [referenceLength]byte // of the order that is asked for
	amount               int64                 // cents
	merchant             int
	index                int // of the order that it is about, where the plan keeps them
	due                  time.Duration
	acked                []order
}

// wrongMax bounds how many wrong answers are told of.
const wrongMax = 10

// objection notes a wrong answer.
func (r *run) objection(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wrongs++; len(r.wrong) < wrongMax {
		r.wrong = append(r.wrong, text)
	}
}

func (r *run) tell(text string) {
	if r.Progress != nil {
		_, _ = fmt.Fprintln(r.Progress, text)
	}
}

// workersSalt keeps the streams of chance of preparation and load apart.
var workersSalt = []uint64{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9}

// load runs a plan at a pace with all connections, and returns when it is over.
func (r *run) load(ctx context.Context, p plan, pace *pace, salt int) (acked []order) {
	var group sync.WaitGroup
	workers := make([]*worker, r.Concurrency)
	for i := range workers {
		w := &worker{run: r, conn: conn{target: r.target, clock: r.clock}}
		w.random = env.SeededRandom(r.Seed + uint64(i+1)*workersSalt[salt])
		w.used = len(w.pool)
		workers[i] = w
		group.Go(func() { w.work(ctx, p, pace) })
	}
	group.Wait()
	for _, w := range workers {
		acked = append(acked, w.acked...)
	}
	return acked
}

// work asks until the pace or the plan has come to its end.
func (w *worker) work(ctx context.Context, p plan, pace *pace) {
	defer context.AfterFunc(ctx, w.conn.interrupt)()
	defer w.conn.close()
	alarm := newAlarm(w.run.clock)
	defer alarm.close()
	clock, free := w.run.clock, time.Duration(0)
	for {
		due, ok := pace.take(ctx, alarm.sleep)
		if !ok {
			return
		}
		w.due = due
		t := p.next(ctx, w)
		if t == nil {
			return
		}
		now := clock.Monotonic()
		if pace.rate == 0 {
			w.due = now
		} else if pace.window.holds(due) {
			w.run.lag.record(now - max(due, free))
		}
		status, body, err := w.conn.exchange(ctx, w.request)
		free = clock.Monotonic()
		if ctx.Err() != nil {
			return
		}
		w.settle(t, &pace.window, free, status, body, err)
	}
}

// settle counts an answer, or that there was none.
func (w *worker) settle(t *task, window *window, end time.Duration, status int, body []byte, err error) {
	if err != nil || status != t.want {
		text := string(body)
		if err != nil {
			status, text = 0, err.Error()
		}
		t.series.failed(window, w.due, end, status, text)
		if t.total != nil {
			t.total.failed(window, w.due, end, status, text)
		}
		if t.failed != nil {
			t.failed(w)
		}
		return
	}
	if err := t.judge(w, body); err != nil {
		w.run.objection(fmt.Sprintf("%s: %v: %.200s", t.series.name, err, body))
		return
	}
	t.series.well(window, w.due, end, end-w.due)
	if t.total != nil {
		t.total.well(window, w.due, end, end-w.due)
	}
}

// draw draws n random bytes, which are good until the next call.
func (w *worker) draw(n int) []byte {
	if w.used+n > len(w.pool) {
		w.random.Read(w.pool[:])
		w.used = 0
	}
	w.used += n
	return w.pool[w.used-n : w.used]
}

// pick chooses one of n, each about as likely as any other.
func (w *worker) pick(n int) int {
	b := w.draw(4)
	v := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24
	return int(v * uint64(n) >> 32)
}

// measure runs the load, and takes the figures of the process around it.
func (r *run) measure(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if own := r.target.own; own != nil { // without a gateway there is nothing to go on with
		go func() {
			select {
			case <-own.ended:
				cancel(fmt.Errorf("bench: the gateway has ended: %s", own.lastWords()))
			case <-ctx.Done():
			}
		}()
	}
	r.lag = newHistogram()
	r.pace = newPace(r.clock, r.Rate, r.Warmup, r.Duration, r.Requests)
	observing, stop := context.WithCancel(ctx)
	defer stop()
	var watched sync.WaitGroup
	var fault atomic.Pointer[error]
	watched.Go(func() {
		if err := r.observe(ctx, observing); err != nil {
			fault.Store(&err)
		}
	})
	acked := r.load(ctx, r.plan, r.pace, 1)
	early := r.clock.Monotonic() < r.pace.window.to
	r.acked = append(r.acked, acked...)
	err := context.Cause(ctx)
	if early && err == nil { // what was set going belongs to the measured time
		err = r.plan.settle(ctx)
	}
	stop()
	watched.Wait()
	if !early && err == nil {
		err = r.plan.settle(ctx)
	}
	if watching := fault.Load(); watching != nil {
		err = errors.Join(err, *watching)
	}
	return err
}

// observe takes the figures at both ends of the measured time, and tells how
// the run goes in between. The measured time ends early where load does.
func (r *run) observe(ctx, load context.Context) error {
	if !wait(load, r.clock, r.pace.window.from-r.clock.Monotonic()) {
		r.started = usage{unknown, unknown, unknown}
		r.own, r.written, r.elapsed = r.started, unknown, 0
		r.notes = append(r.notes, "The load ended before its warm-up: nothing was measured.")
		return nil
	}
	var errs []error
	var profiling sync.WaitGroup
	if r.Profile != "" {
		profiling.Go(func() {
			if err := r.target.own.profile(ctx, r.Profile, r.Duration); err != nil {
				errs = append(errs, err)
			}
		})
	}
	before, self := usageOf(r.target.pid), selfUsage()
	writtenBefore := r.writtenNow(ctx, before)
	r.follow(load)
	at := min(r.clock.Monotonic(), r.pace.window.to)
	r.stopped = usageOf(r.target.pid)
	r.started, r.own = before, selfUsage().since(self)
	r.elapsed = at - r.pace.window.from
	r.written = unknown
	if after := r.writtenNow(ctx, r.stopped); after >= 0 && writtenBefore >= 0 {
		r.written = after - writtenBefore
	}
	profiling.Wait()
	return errors.Join(errs...)
}

func (r *run) writtenNow(ctx context.Context, u usage) int64 {
	n := u.written
	r.writtenBy = writtenByGateway
	if r.target.own != nil {
		n, r.writtenBy = r.target.own.written(ctx, u)
	}
	return n
}

// follow tells how the run goes, once a second, until the measured time or the
// load is over.
func (r *run) follow(load context.Context) {
	main := r.plan.list()[0]
	last, _ := main.totals()
	for {
		left := r.pace.window.to - r.clock.Monotonic()
		if left <= 0 || !wait(load, r.clock, min(left, time.Second)) {
			return
		}
		if r.Progress == nil {
			continue
		}
		well, _ := main.totals()
		var failed int64
		for _, s := range r.plan.list() {
			_, n := s.totals()
			failed = max(failed, n)
		}
		elapsed := (r.clock.Monotonic() - r.pace.window.from).Round(time.Second)
		_, _ = fmt.Fprintf(r.Progress, "%6s  %s %d/s, %d errors\n", elapsed, main.name, well-last, failed)
		last = well
	}
}
