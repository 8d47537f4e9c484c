package commit_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/env"
)

// op is an operation of a test.
type op struct {
	key   string
	name  string
	class commit.Class
}

// database records the committed operations of a test.
type database struct {
	mu      sync.Mutex
	batches [][]string
	fail    func(batch []op) error // before the commit
	refuse  func(op) error
	entered chan struct{} // receives when a commit begins, if not nil
	proceed chan struct{} // a commit waits for it, if not nil
}

var (
	errUnknown = errors.New("unknown")
	errFatal   = errors.New("fatal")
	errRow     = errors.New("bad row")
)

func (d *database) commit(_ context.Context, batch []op, refused []error) error {
	if d.entered != nil {
		d.entered <- struct{}{}
		<-d.proceed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		if err := d.fail(batch); err != nil {
			return err
		}
	}
	var names []string
	for i, o := range batch {
		if d.refuse != nil {
			refused[i] = d.refuse(o)
		}
		if refused[i] == nil {
			names = append(names, o.name)
		}
	}
	d.batches = append(d.batches, names)
	return nil
}

func options(d *database) commit.Options[string, op] {
	return commit.Options[string, op]{
		Commit: d.commit,
		Classify: func(err error) commit.Failure {
			switch {
			case errors.Is(err, errUnknown):
				return commit.Unknown
			case errors.Is(err, errFatal):
				return commit.Fatal
			default:
				return commit.OneByOne
			}
		},
		Class: func(o op) commit.Class { return o.class }, Key: func(o op) string { return o.key },
		Lane: func(string) int { return 0 }, Lanes: 1,
		MaxBatch: 4, MaxBackground: 2, MaxQueued: 8, Retries: 3, RetryWait: time.Nanosecond,
		Clock: env.NewSystemClock(), Log: slog.New(slog.DiscardHandler),
	}
}

// queued starts a batcher whose first commit is blocked, queues operations in order,
// unblocks the commit, and returns the batches after the first.
func queued(t *testing.T, o commit.Options[string, op], d *database, list ...op) [][]string {
	t.Helper()
	d.entered, d.proceed = make(chan struct{}), make(chan struct{})
	b := commit.New(o)
	b.Start()
	var wait sync.WaitGroup
	wait.Go(func() { _ = b.Do(t.Context(), op{"first", "first", commit.Interactive}) })
	<-d.entered
	for i, v := range list {
		wait.Go(func() { _ = b.Do(t.Context(), v) })
		for b.Lanes()[0].Waiting != i+1 {
			runtime.Gosched()
		}
	}
	go func() {
		for range d.entered {
			d.proceed <- struct{}{}
		}
	}()
	d.proceed <- struct{}{}
	wait.Wait()
	b.Stop()
	return d.batches[1:]
}

func ops(class commit.Class, key string, names ...string) (list []op) {
	for _, n := range names {
		list = append(list, op{key, n, class})
	}
	return list
}

func TestBatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ops  []op
		want string
	}{
		"no more than fit, in order": {ops(commit.Interactive, "a", "1", "2", "3", "4", "5", "6"), "1 2 3 4 | 5 6"},
		"a fair share of each key": {
			append(ops(commit.Interactive, "a", "a1", "a2", "a3", "a4", "a5"), ops(commit.Interactive, "b", "b1", "b2")...),
			"a1 a2 b1 b2 | a3 a4 a5"},
		"background with interactive has its share": {
			append(ops(commit.Background, "a", "w1", "w2", "w3"), ops(commit.Interactive, "a", "r1")...), "r1 w1 w2 | w3"},
		"background alone fills the batch": {ops(commit.Background, "a", "1", "2", "3", "4", "5"), "1 2 3 4 | 5"},
		"claims wait with background":      {append(ops(commit.Claim, "a", "c"), ops(commit.Background, "a", "w")...), "c w"},
		"urgent is in the next batch": {
			append(ops(commit.Interactive, "a", "1", "2", "3", "4", "5"), ops(commit.Urgent, "z", "h")...), "h 1 2 3 4 | 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &database{}
			var got []string
			for _, b := range queued(t, options(d), d, c.ops...) {
				got = append(got, strings.Join(b, " "))
			}
			if s := strings.Join(got, " | "); s != c.want {
				t.Errorf("batches %q, want %q", s, c.want)
			}
		})
	}
}

func TestFullQueueRefusesInteractiveOnly(t *testing.T) {
	t.Parallel()
	d := &database{entered: make(chan struct{}), proceed: make(chan struct{})}
	o := options(d)
	o.MaxQueued = 1
	b := commit.New(o)
	b.Start()
	var wait sync.WaitGroup
	for i, v := range []op{{"a", "1", commit.Interactive}, {"a", "2", commit.Interactive}} {
		wait.Go(func() { _ = b.Do(t.Context(), v) })
		if i == 0 {
			<-d.entered
		}
	}
	for b.Lanes()[0].Waiting != 1 {
		runtime.Gosched()
	}
	if err := b.Do(t.Context(), op{"b", "3", commit.Interactive}); !errors.Is(err, commit.ErrFull) {
		t.Errorf("error %v, want ErrFull", err)
	}
	var result error
	wait.Go(func() { result = b.Do(t.Context(), op{"a", "4", commit.Background}) })
	d.proceed <- struct{}{}
	<-d.entered
	d.proceed <- struct{}{}
	for b.Lanes()[0].Waiting > 0 { // a second batch is needed if 4 came late
		<-d.entered
		d.proceed <- struct{}{}
	}
	go func() {
		for range d.entered {
			d.proceed <- struct{}{}
		}
	}()
	wait.Wait()
	b.Stop()
	if result != nil {
		t.Errorf("a worker's result was refused: %v", result)
	}
}

func TestRefusalIsTheOperationsOwn(t *testing.T) {
	t.Parallel()
	d := &database{refuse: func(o op) error {
		if o.name == "bad" {
			return errRow
		}
		return nil
	}}
	errs := commit.New(options(d)).All(t.Context(), ops(commit.Interactive, "a", "1", "bad", "2"))
	if errs[0] != nil || !errors.Is(errs[1], errRow) || errs[2] != nil {
		t.Errorf("errors %v", errs)
	}
	if len(d.batches) != 1 || !slices.Equal(d.batches[0], []string{"1", "2"}) {
		t.Errorf("batches %v", d.batches)
	}
}

func TestFailedBatchRunsOneByOne(t *testing.T) {
	t.Parallel()
	d := &database{fail: func(batch []op) error {
		if slices.ContainsFunc(batch, func(o op) bool { return o.name == "bad" }) {
			return errRow
		}
		return nil
	}}
	errs := commit.New(options(d)).All(t.Context(), ops(commit.Interactive, "a", "1", "bad", "2"))
	if errs[0] != nil || !errors.Is(errs[1], errRow) || errs[2] != nil {
		t.Errorf("errors %v", errs)
	}
	if len(d.batches) != 2 {
		t.Errorf("batches %v", d.batches)
	}
}

func TestPanicIsTheOperationsOwn(t *testing.T) {
	t.Parallel()
	d := &database{fail: func(batch []op) error {
		if batch[0].name == "bad" || len(batch) > 1 {
			panic("broken")
		}
		return nil
	}}
	errs := commit.New(options(d)).All(t.Context(), ops(commit.Interactive, "a", "1", "bad"))
	if errs[0] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), "broken") {
		t.Errorf("errors %v", errs)
	}
}

func TestFatalFailsEveryone(t *testing.T) {
	t.Parallel()
	runs := 0
	d := &database{fail: func([]op) error { runs++; return errFatal }}
	errs := commit.New(options(d)).All(t.Context(), ops(commit.Interactive, "a", "1", "2"))
	if runs != 1 || !errors.Is(errs[0], errFatal) || !errors.Is(errs[1], errFatal) {
		t.Errorf("%d runs, errors %v", runs, errs)
	}
}

func TestUnknownCommitRunsAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class    commit.Class
		failures int
		runs     int
		ok       bool
	}{
		"until it is known":     {commit.Interactive, 2, 3, true},
		"no longer than agreed": {commit.Background, 9, 4, false},
		"not a heartbeat":       {commit.Urgent, 9, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			d := &database{fail: func([]op) error {
				if runs++; runs <= c.failures {
					return errUnknown
				}
				return nil
			}}
			err := commit.New(options(d)).Do(t.Context(), op{"a", "1", c.class})
			if runs != c.runs || (err == nil) != c.ok {
				t.Errorf("%d runs, error %v", runs, err)
			}
		})
	}
}

func TestClosing(t *testing.T) {
	t.Parallel()
	for _, concurrent := range []bool{false, true} {
		d := &database{}
		o := options(d)
		o.Concurrent = concurrent
		b := commit.New(o)
		b.Start()
		b.Stop()
		for class, want := range map[commit.Class]error{
			commit.Interactive: commit.ErrClosing, commit.Claim: commit.ErrClosing, commit.Background: nil, commit.Urgent: nil,
		} {
			if err := b.Do(t.Context(), op{"a", "1", class}); !errors.Is(err, want) {
				t.Errorf("concurrent %v, class %d: %v, want %v", concurrent, class, err, want)
			}
		}
	}
}

func TestConcurrentClaimsWaitForNoLane(t *testing.T) {
	t.Parallel()
	d := &database{entered: make(chan struct{}), proceed: make(chan struct{})}
	o := options(d)
	o.Concurrent = true
	b := commit.New(o)
	b.Start()
	var wait sync.WaitGroup
	wait.Go(func() { _ = b.Do(t.Context(), op{"a", "request", commit.Interactive}) })
	<-d.entered // and stays in its commit
	wait.Go(func() { _ = b.Do(t.Context(), op{"a", "claim", commit.Claim}) })
	<-d.entered
	d.proceed <- struct{}{}
	d.proceed <- struct{}{}
	wait.Wait()
	b.Stop()
}

func TestEndedContext(t *testing.T) {
	t.Parallel()
	d := &database{entered: make(chan struct{}), proceed: make(chan struct{})}
	b := commit.New(options(d))
	b.Start()
	var wait sync.WaitGroup
	wait.Go(func() { _ = b.Do(t.Context(), op{"a", "1", commit.Interactive}) })
	<-d.entered
	ctx, cancel := context.WithCancel(t.Context())
	var gone error
	wait.Go(func() { gone = b.Do(ctx, op{"a", "2", commit.Interactive}) })
	for b.Lanes()[0].Waiting != 1 {
		runtime.Gosched()
	}
	cancel()
	wait.Go(func() { b.Stop() })
	d.proceed <- struct{}{}
	wait.Wait()
	if !errors.Is(gone, context.Canceled) || len(d.batches) != 1 {
		t.Errorf("error %v, batches %v: an operation whose context had ended was committed", gone, d.batches)
	}
}

func TestQueueDelay(t *testing.T) {
	t.Parallel()
	_, clock := env.Virtual(time.Unix(0, 0), 1)
	d := &database{entered: make(chan struct{}), proceed: make(chan struct{})}
	o := options(d)
	o.Clock, o.MaxQueued = clock, 100
	b := commit.New(o)
	b.Start()
	var wait sync.WaitGroup
	do := func(v op, waiting int) {
		wait.Go(func() { _ = b.Do(t.Context(), v) })
		for b.Lanes()[0].Waiting != waiting {
			runtime.Gosched()
		}
	}
	wait.Go(func() { _ = b.Do(t.Context(), op{"a", "first", commit.Interactive}) })
	<-d.entered
	for i := range 8 {
		do(op{"a", "next", commit.Interactive}, i+1)
	}
	clock.Advance(3 * time.Second) // the current batch takes long
	if got := b.QueueDelay("a"); got != 6*time.Second {
		t.Errorf("delay behind two batches of 3 s: %v", got)
	}
	if got := b.QueueDelay("b"); got != 0 {
		t.Errorf("delay of a key without waiting operations: %v", got)
	}
	clock.Advance(2 * time.Second)
	if got := b.QueueDelay("b"); got != 5*time.Second {
		t.Errorf("delay of every key while a batch hangs: %v", got)
	}
	go func() {
		for range d.entered {
			d.proceed <- struct{}{}
		}
	}()
	d.proceed <- struct{}{}
	wait.Wait()
	b.Stop()
}
