package flow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// Limits of a lane.
const (
	batchMax          = 256  // requests committed at once
	dutiesBeside      = 128  // duties committed with them, while requests wait
	queueMax          = 8192 // requests waiting; beyond, new ones are refused
	unknownCommitsMax = 8    // times a batch is run again after an unknown commit
	unknownCommitWait = 50 * time.Millisecond

	// admitWait is how long new work may have to wait for the batch that takes
	// it: who waits longer has mostly given up, and is better told at once.
	admitWait = time.Second
	// tookWeight is the weight of the last commit in what a commit takes.
	tookWeight = 4

	// crowdedBy is how many requests wait for a batch, lately, where they come
	// faster than they are committed: on a machine with time to spare a batch
	// finds the few that came during the one before.
	crowdedBy = 32
	// depthWeight is the weight of the last batch in how many wait.
	depthWeight = 8
)

// verb is a use case that is written for many requests at once. run decides
// them in order. What concerns one task alone goes to its err, before anything
// is written for it; an error that run returns undoes the whole batch, which is
// then run again task by task, so that no request fails for its neighbour.
type verb struct {
	name  string
	duty  bool // nobody waits for its answer
	first bool // in the next batch, whatever waits
	still bool // by it no delivery and no notice comes into being
	run   func(ctx context.Context, tx *store.Tx, tasks []*task) error
}

// task is one request of a batch. Running it again must be harmless: its ids
// are chosen before the first run, and unique keys and guards decide.
type task struct {
	ctx      context.Context
	verb     *verb
	merchant payment.ID
	arg      any
	err      error
	done     chan struct{}
}

var taskPool = sync.Pool{New: func() any { return &task{done: make(chan struct{}, 1)} }}

// submit runs a request in a batch of its merchant's lane, and returns when it
// is durable.
func (f *Flow) submit(ctx context.Context, v *verb, merchant payment.ID, arg any) error {
	l := f.lanes[laneOf(merchant, len(f.lanes))]
	t := taskPool.Get().(*task)
	t.ctx, t.verb, t.merchant, t.arg, t.err = ctx, v, merchant, arg, nil
	if queued, err := l.enqueue(t); err != nil {
		return err
	} else if !queued { // no goroutine: the caller commits by itself
		l.commit(context.WithoutCancel(ctx), []*task{t})
	}
	select {
	case <-t.done: // looked at first: of two ready cases select takes any
	default:
		select {
		case <-t.done:
		case <-ctx.Done(): // the lane may still have t: it is left to the collector
			return public(ctx.Err())
		}
	}
	err := t.err
	t.ctx, t.arg = nil, nil
	taskPool.Put(t)
	return public(err)
}

func errClosing() error {
	return problem.New(problem.Unavailable, "The gateway is shutting down. Send the same request again.")
}

// alone runs a request in a commit of its own, beside the lanes, as long as they
// take any.
func (f *Flow) alone(ctx context.Context, v *verb, merchant payment.ID, arg any) error {
	l := f.lanes[laneOf(merchant, len(f.lanes))]
	l.mu.Lock()
	closing := l.closing
	l.mu.Unlock()
	if closing {
		return errClosing()
	}
	t := &task{ctx: ctx, verb: v, merchant: merchant, arg: arg, done: make(chan struct{}, 1)}
	l.commit(ctx, []*task{t})
	return public(t.err)
}

// Admit says whether new work of a merchant would be committed soon; if not, it
// is a problem.Overloaded, to be answered before anything is done for it. What
// has begun is never refused by it, nor is a merchant who waits in no long queue
// for the queue of another.
func (f *Flow) Admit(merchant payment.ID) error {
	wait := f.lanes[laneOf(merchant, len(f.lanes))].waitOf(merchant)
	if wait <= admitWait {
		return nil
	}
	return problem.New(problem.Overloaded, "The gateway is overloaded. Send the same request again later.").
		WithRetryAfter(wait)
}

// Load is how much a lane has to do.
type Load struct {
	Waiting int           // requests and duties that wait to be committed
	Batch   time.Duration // that a batch takes, lately
}

// Load tells how the lanes do.
func (f *Flow) Load() []Load {
	list := make([]Load, len(f.lanes))
	for i, l := range f.lanes {
		l.mu.Lock()
		list[i] = Load{l.waiting(), l.took}
		l.mu.Unlock()
	}
	return list
}

// Crowded says whether requests have come faster to a lane, lately, than it
// commits them.
func (f *Flow) Crowded() bool {
	return slices.ContainsFunc(f.lanes, func(l *lane) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.depth.crowded()
	})
}

// laneOf spreads merchants over lanes by their ids' random tail.
func laneOf(merchant payment.ID, lanes int) int {
	return (int(merchant[14])<<8 | int(merchant[15])) % lanes
}

// lane commits one batch after another. Requests come first: duties have a part
// of each batch, so that neither waits for all of the other.
type lane struct {
	flow *Flow

	mu               sync.Mutex
	ready            *sync.Cond
	firsts           []*task
	requests, duties queue
	running          bool
	closing          bool
	ended            chan struct{}

	began time.Duration // when the batch in hand was taken, by the monotonic clock; 0 for none
	took  time.Duration // by a batch, lately
	depth depth
}

// depth is how many requests batches found waiting, lately, times depthWeight.
type depth int

func (d *depth) note(waiting int) { *d += depth(waiting) - *d/depthWeight }

func (d *depth) crowded() bool { return *d >= crowdedBy*depthWeight }

// queue is where tasks wait, each merchant in a line of its own, so that a batch
// takes a fair share of each. The lane's lock guards it.
type queue struct {
	lines   map[payment.ID]*[]*task
	ring    []payment.ID // merchants with waiting tasks, next one first
	waiting int
}

func (q *queue) add(t *task) {
	line := q.lines[t.merchant]
	if line == nil {
		line = &[]*task{}
		q.lines[t.merchant] = line
	}
	if len(*line) == 0 {
		q.ring = append(q.ring, t.merchant)
	}
	*line = append(*line, t)
	q.waiting++
}

// share moves up to most tasks to a batch, round by round a fair share of each
// merchant's.
func (q *queue) share(batch []*task, most int) []*task {
	for full := len(batch) + most; len(batch) < full && len(q.ring) > 0; {
		share := max(1, (full-len(batch))/len(q.ring))
		merchant := q.ring[0]
		q.ring = q.ring[1:]
		line := q.lines[merchant]
		n := min(share, len(*line), full-len(batch))
		batch = append(batch, (*line)[:n]...)
		rest := copy(*line, (*line)[n:])
		clear((*line)[rest:])
		*line = (*line)[:rest]
		if rest > 0 {
			q.ring = append(q.ring, merchant)
		} else {
			delete(q.lines, merchant)
		}
		q.waiting -= n
	}
	return batch
}

func newLane(f *Flow) *lane {
	l := &lane{flow: f, requests: queue{lines: map[payment.ID]*[]*task{}}, duties: queue{lines: map[payment.ID]*[]*task{}}}
	l.ready = sync.NewCond(&l.mu)
	return l
}

func (l *lane) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running || l.closing {
		return
	}
	l.running, l.ended = true, make(chan struct{})
	go l.loop()
}

func (l *lane) stop() {
	l.mu.Lock()
	l.closing = true
	running, ended := l.running, l.ended
	l.ready.Signal()
	l.mu.Unlock()
	if running {
		<-ended
	}
}

// enqueue queues a task; queued is false where no goroutine would take it.
func (l *lane) enqueue(t *task) (queued bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closing && (!t.verb.duty || t.verb == claimVerb):
		return false, errClosing()
	case l.closing || !l.running: // what a duty has in hand it may give back even then
		return false, nil
	case l.requests.waiting >= queueMax && !t.verb.duty:
		return false, problem.New(problem.Overloaded, "Too many requests are queued. Send the same request again later.")
	}
	switch {
	case t.verb.first:
		l.firsts = append(l.firsts, t)
	case t.verb.duty:
		l.duties.add(t)
	default:
		l.requests.add(t)
	}
	l.ready.Signal()
	return true, nil
}

// waitOf estimates how long a new request of a merchant would wait before the batch
// that takes it begins. Where that is the next one, nobody could be faster: 0.
func (l *lane) waitOf(merchant payment.ID) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.requests.lines[merchant]
	if line == nil {
		return 0
	}
	// Before that one there is no more than its merchant's share, nor than all.
	batches := min(len(*line)/max(1, batchMax/len(l.requests.ring)), l.requests.waiting/batchMax)
	if batches == 0 {
		return 0
	}
	took := l.took
	if l.began != 0 {
		took = max(took, l.flow.env.Clock.Monotonic()-l.began)
	}
	return time.Duration(batches) * took
}

func (l *lane) loop() {
	defer close(l.ended)
	clock := l.flow.env.Clock
	batch := make([]*task, 0, batchMax+dutiesBeside)
	for {
		batch = l.take(batch[:0])
		if len(batch) == 0 {
			return
		}
		l.commit(context.Background(), batch)

		l.mu.Lock()
		l.took += (clock.Monotonic() - l.began - l.took) / tookWeight
		l.began = 0
		l.mu.Unlock()
	}
}

// take waits for tasks and takes a batch of them. It returns none when the lane
// is closing and empty.
func (l *lane) take(batch []*task) []*task {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for l.waiting() == 0 && !l.closing {
			l.depth.note(0)
			l.ready.Wait()
		}
		l.depth.note(l.requests.waiting)
		duties := batchMax
		if l.requests.waiting > 0 {
			duties = dutiesBeside
		}
		batch = l.firstsInto(batch)
		batch = l.requests.share(batch, batchMax)
		batch = l.duties.share(batch, duties)
		l.began = l.flow.env.Clock.Monotonic()
		// Nobody waits any more for those whose request has ended: they were told
		// that it was not taken in time.
		batch = slices.DeleteFunc(batch, func(t *task) bool { return t.ctx.Err() != nil })
		if len(batch) > 0 || l.closing && l.waiting() == 0 {
			return batch
		}
	}
}

// takeFirsts adds the tasks to batch that come before all others.
func (l *lane) takeFirsts(batch []*task) []*task {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.firstsInto(batch)
}

// firstsInto is takeFirsts for who holds the lock.
func (l *lane) firstsInto(batch []*task) []*task {
	batch = append(batch, l.firsts...)
	clear(l.firsts)
	l.firsts = l.firsts[:0]
	return batch
}

// waiting is how many tasks wait; the caller holds the lock.
func (l *lane) waiting() int { return len(l.firsts) + l.requests.waiting + l.duties.waiting }

// commit makes a batch durable and tells everyone. A failure is undone and
// run again one by one, so that each request meets only its own.
func (l *lane) commit(ctx context.Context, batch []*task) {
	err := l.try(ctx, batch)
	if err != nil && len(batch) > 1 && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrCommitUnknown) {
		l.flow.log.Warn("batch is run again one by one", "tasks", len(batch), "cause", err)
		for _, t := range batch {
			if firsts := l.takeFirsts(nil); len(firsts) > 0 { // a heartbeat cannot wait for hundreds of commits
				l.commit(ctx, firsts)
			}
			if err := l.try(ctx, []*task{t}); err != nil {
				t.err = err
			}
			t.done <- struct{}{}
		}
		return
	}
	for _, t := range batch {
		if err != nil {
			t.err = err
		}
		t.done <- struct{}{}
	}
}

// try commits a batch, again where nobody knows whether it was committed.
func (l *lane) try(ctx context.Context, batch []*task) error {
	for n := 0; ; n++ {
		err := l.once(ctx, batch)
		if n == unknownCommitsMax || !errors.Is(err, store.ErrCommitUnknown) {
			return err
		}
		timer := l.flow.env.Clock.NewTimer(unknownCommitWait << n)
		<-timer.C()
	}
}

func (l *lane) once(ctx context.Context, batch []*task) (err error) {
	h := l.flow.newHolding()
	decided := false
	defer func() {
		if v := recover(); v != nil { // the transaction is rolled back; the process lives on
			err = fmt.Errorf("flow: panic in a batch: %v\n%s", v, debug.Stack())
			if decided && h.any() { // or it was committed just before
				l.flow.doubt()
			}
		}
		if errors.Is(err, store.ErrCommitUnknown) && (h.any() || slices.ContainsFunc(batch, func(t *task) bool { return t.verb == claimVerb })) {
			l.flow.doubt() // a claim that is run again takes other rows, or none
		}
		h.giveBack()
	}()
	err = l.flow.write(ctx, func(tx *store.Tx) error {
		decided = false
		for _, t := range batch {
			t.err = nil
		}
		if slices.ContainsFunc(batch, func(t *task) bool { return !t.verb.still }) {
			if err := h.begin(ctx, tx); err != nil {
				return err
			}
		}
		for _, group := range groups(batch) {
			if err := group[0].verb.run(ctx, tx, group); err != nil {
				return fmt.Errorf("%s: %w", group[0].verb.name, err)
			}
		}
		decided = true
		return nil
	})
	if err == nil {
		h.take()
	}
	return err
}

// groups splits a batch by merchant, in the order in which rows are locked, and
// within a merchant by verb: the larger the group, the fewer statements. All of a
// batch are under way at the same time, so any order of verbs is theirs; of one
// verb they keep the order in which they came.
func groups(batch []*task) [][]*task {
	rank := make(map[*verb]int, 8)
	for _, t := range batch {
		if _, ok := rank[t.verb]; !ok {
			rank[t.verb] = len(rank)
		}
	}
	sorted := append(make([]*task, 0, len(batch)), batch...)
	sort.SliceStable(sorted, func(i, j int) bool {
		a, b := sorted[i], sorted[j]
		if order := bytes.Compare(a.merchant[:], b.merchant[:]); order != 0 {
			return order < 0
		}
		return rank[a.verb] < rank[b.verb]
	})
	var list [][]*task
	for first := 0; first < len(sorted); {
		end := first + 1
		for end < len(sorted) && sorted[end].merchant == sorted[first].merchant && sorted[end].verb == sorted[first].verb {
			end++
		}
		list = append(list, sorted[first:end])
		first = end
	}
	return list
}

// dutyOf is a verb that nobody waits for: what a loop has to write.
func dutyOf(v *verb) *verb {
	v.duty = true
	return v
}

// each makes a verb of a function that decides one task after another. An
// error that a caller may be told about stays with its task.
func each[T any](name string, decide func(ctx context.Context, tx *store.Tx, arg T) error) *verb {
	return &verb{name: name, run: func(ctx context.Context, tx *store.Tx, tasks []*task) error {
		for _, t := range tasks {
			err := decide(ctx, tx, t.arg.(T))
			var known *problem.Error
			if errors.As(err, &known) || errors.Is(err, store.ErrNotFound) {
				t.err = err
			} else if err != nil {
				return err
			}
		}
		return nil
	}}
}
