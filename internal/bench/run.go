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

	clock    env.Clock
	target   *target
	workload workload
	schedule *schedule
	lag      *histogram // delays of requests of an open loop on a free connection

	acked []order

	mu         sync.Mutex
	wrong      []string // the first wrong answers
	wrongCount int64

	started, stopped usage // of the gateway, around the measured time
	generator        usage // this program's, within it
	written          int64 // bytes, within it
	writtenBy        string
	elapsed          time.Duration // the actual measured time
	notes            []string
}

// order is an acknowledged order.
type order struct {
	id         payment.ID
	externalID string // only if notices are sent
	reference  string // only if it is searched for
	amount     int64  // cents
	merchant   int
	payout     bool
	due        time.Duration // of its request
}

// requestKind is one kind of request, and the expected answer.
type requestKind struct {
	series     *series
	total      *series // counts the request as well; may be nil
	wantStatus int
	// check checks the answer of a request that got wantStatus; an error is reported as
	// a wrong answer.
	check func(w *worker, body []byte) error
	// onError is called if there was no such answer; it may be nil.
	onError func(w *worker)
}

// workload generates the requests of a mode.
type workload interface {
	// prepare runs before the load.
	prepare(ctx context.Context) error
	// next writes a worker's next request; nil if there are no more.
	next(ctx context.Context, w *worker) *requestKind
	// drain waits until the orders of the load have completed.
	drain(ctx context.Context) error
	// series are the measured series, the main one first.
	series() []*series
	// missing lists the orders that did not complete.
	missing() []string
	close()
}

// worker sends requests over one connection.
type worker struct {
	run      *run
	conn     conn
	random   env.Random
	pool     [256]byte
	poolUsed int

	request, body, extra []byte
	reference            [referenceLength]byte // of the new order
	amount               int64                 // cents
	merchant             int
	index                int // of the order, in workloads that keep orders
	due                  time.Duration
	acked                []order
}

// wrongListed is the maximum length of Check.Wrong.
const wrongListed = 10

// addWrong records a wrong answer.
func (r *run) addWrong(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wrongCount++; len(r.wrong) < wrongListed {
		r.wrong = append(r.wrong, text)
	}
}

func (r *run) progress(text string) {
	if r.Progress != nil {
		_, _ = fmt.Fprintln(r.Progress, text)
	}
}

// seedSalts separate the random streams of preparation and load.
var seedSalts = []uint64{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9}

// load runs a workload on a schedule with all connections, and returns when it has
// ended.
func (r *run) load(ctx context.Context, p workload, s *schedule, salt int) (acked []order) {
	var group sync.WaitGroup
	workers := make([]*worker, r.Concurrency)
	for i := range workers {
		w := &worker{run: r, conn: conn{target: r.target, clock: r.clock}}
		w.random = env.SeededRandom(r.Seed + uint64(i+1)*seedSalts[salt])
		w.poolUsed = len(w.pool)
		workers[i] = w
		group.Go(func() { w.loop(ctx, p, s) })
	}
	group.Wait()
	for _, w := range workers {
		acked = append(acked, w.acked...)
	}
	return acked
}

// loop sends requests until the schedule or the workload ends.
func (w *worker) loop(ctx context.Context, p workload, s *schedule) {
	defer context.AfterFunc(ctx, w.conn.interrupt)()
	defer w.conn.close()
	alarm := newPreciseTimer(w.run.clock)
	defer alarm.close()
	clock, free := w.run.clock, time.Duration(0)
	for {
		due, ok := s.take(ctx, alarm.sleep)
		if !ok {
			return
		}
		w.due = due
		t := p.next(ctx, w)
		if t == nil {
			return
		}
		now := clock.Monotonic()
		if s.rate == 0 {
			w.due = now
		} else if s.window.contains(due) {
			w.run.lag.record(now - max(due, free))
		}
		status, body, err := w.conn.exchange(ctx, w.request)
		free = clock.Monotonic()
		if ctx.Err() != nil {
			return
		}
		w.count(t, &s.window, free, status, body, err)
	}
}

// count records an answer or an error.
func (w *worker) count(t *requestKind, window *window, end time.Duration, status int, body []byte, err error) {
	if err != nil || status != t.wantStatus {
		text := string(body)
		if err != nil {
			status, text = 0, err.Error()
		}
		t.series.failure(window, w.due, end, status, text)
		if t.total != nil {
			t.total.failure(window, w.due, end, status, text)
		}
		if t.onError != nil {
			t.onError(w)
		}
		return
	}
	if err := t.check(w, body); err != nil {
		w.run.addWrong(fmt.Sprintf("%s: %v: %.200s", t.series.name, err, body))
		return
	}
	t.series.success(window, w.due, end, end-w.due)
	if t.total != nil {
		t.total.success(window, w.due, end, end-w.due)
	}
}

// draw draws n random bytes, which are good until the next call.
func (w *worker) draw(n int) []byte {
	if w.poolUsed+n > len(w.pool) {
		w.random.Read(w.pool[:])
		w.poolUsed = 0
	}
	w.poolUsed += n
	return w.pool[w.poolUsed-n : w.poolUsed]
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
	if own := r.target.gateway; own != nil { // without a gateway there is nothing to go on with
		go func() {
			select {
			case <-own.exited:
				cancel(fmt.Errorf("bench: the gateway has ended: %s", own.logTail()))
			case <-ctx.Done():
			}
		}()
	}
	r.lag = newHistogram()
	r.schedule = newSchedule(r.clock, r.Rate, r.Warmup, r.Duration, r.Requests)
	observing, stop := context.WithCancel(ctx)
	defer stop()
	var watched sync.WaitGroup
	var fault atomic.Pointer[error]
	watched.Go(func() {
		if err := r.observe(ctx, observing); err != nil {
			fault.Store(&err)
		}
	})
	acked := r.load(ctx, r.workload, r.schedule, 1)
	early := r.clock.Monotonic() < r.schedule.window.to
	r.acked = append(r.acked, acked...)
	err := context.Cause(ctx)
	if early && err == nil { // completing the orders belongs to the measured time
		err = r.workload.drain(ctx)
	}
	stop()
	watched.Wait()
	if !early && err == nil {
		err = r.workload.drain(ctx)
	}
	if watching := fault.Load(); watching != nil {
		err = errors.Join(err, *watching)
	}
	return err
}

// observe measures usage at both ends of the measured time, and reports progress in
// between. The measured time ends early if load does.
func (r *run) observe(ctx, load context.Context) error {
	if !wait(load, r.clock, r.schedule.window.from-r.clock.Monotonic()) {
		r.started = usage{unknown, unknown, unknown}
		r.generator, r.written, r.elapsed = r.started, unknown, 0
		r.notes = append(r.notes, "The load ended before its warm-up: nothing was measured.")
		return nil
	}
	var errs []error
	var profiling sync.WaitGroup
	if r.Profile != "" {
		profiling.Go(func() {
			if err := r.target.gateway.profile(ctx, r.Profile, r.Duration); err != nil {
				errs = append(errs, err)
			}
		})
	}
	before, self := usageOf(r.target.pid), selfUsage()
	writtenBefore := r.writtenBytes(ctx, before)
	r.reportProgress(load)
	at := min(r.clock.Monotonic(), r.schedule.window.to)
	r.stopped = usageOf(r.target.pid)
	r.started, r.generator = before, selfUsage().since(self)
	r.elapsed = at - r.schedule.window.from
	r.written = unknown
	if after := r.writtenBytes(ctx, r.stopped); after >= 0 && writtenBefore >= 0 {
		r.written = after - writtenBefore
	}
	profiling.Wait()
	return errors.Join(errs...)
}

func (r *run) writtenBytes(ctx context.Context, u usage) int64 {
	n := u.written
	r.writtenBy = writtenByGateway
	if r.target.gateway != nil {
		n, r.writtenBy = r.target.gateway.written(ctx, u)
	}
	return n
}

// reportProgress prints a line per second until the measured time or the load ends.
func (r *run) reportProgress(load context.Context) {
	main := r.workload.series()[0]
	last, _ := main.totals()
	for {
		left := r.schedule.window.to - r.clock.Monotonic()
		if left <= 0 || !wait(load, r.clock, min(left, time.Second)) {
			return
		}
		if r.Progress == nil {
			continue
		}
		successes, _ := main.totals()
		var failed int64
		for _, s := range r.workload.series() {
			_, n := s.totals()
			failed = max(failed, n)
		}
		elapsed := (r.clock.Monotonic() - r.schedule.window.from).Round(time.Second)
		_, _ = fmt.Fprintf(r.Progress, "%6s  %s %d/s, %d errors\n", elapsed, main.name, successes-last, failed)
		last = successes
	}
}
