package flow_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// jam holds a lane in the middle of a batch.
type jam struct {
	*teller
	clock   *env.VirtualClock
	commits int // as of the last one; read it when the lane is idle
	release func()
}

func newJam(t *testing.T) *jam {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	clock.Advance(time.Hour)
	v := &jam{clock: clock}
	w.OnFailpoint = func(m env.Failpoint) error {
		if m == env.AfterCommit {
			v.commits++
		}
		return nil
	}
	v.teller = newTeller(t, storetest.Open(t, storetest.Prepare(t, "sqlite", w)), w, clock)
	v.f.Start()
	t.Cleanup(v.f.Stop)
	held, released := make(chan struct{}), make(chan struct{})
	v.release = sync.OnceFunc(func() { close(released) })
	t.Cleanup(v.release)
	v.queue(t.Context(), payment.ID{1}, func() { close(held); <-released })
	<-held
	return v
}

func (v *jam) queue(ctx context.Context, merchant payment.ID, run func()) <-chan struct{} {
	v.t.Helper()
	return v.queueAs(ctx, false, merchant, run)
}

func (v *jam) queueAs(ctx context.Context, duty bool, merchant payment.ID, run func()) <-chan struct{} {
	v.t.Helper()
	done, err := v.f.Queue(ctx, duty, flow.Work{Merchant: merchant, Run: func(*store.Tx) error { run(); return nil }})
	v.must(err)
	return done
}

// New work is refused where it would wait longer than a second, by what a
// commit takes at the time; a merchant whose own queue is short is not refused.
func TestAdmit(t *testing.T) {
	v := newJam(t)
	busy, quiet := payment.ID{1}, payment.ID{2}
	nothing := func() {}
	if err := v.f.Admit(busy); err != nil {
		t.Errorf("refused with nothing before it: %v", err)
	}
	var last <-chan struct{}
	for range 3 * 256 {
		last = v.queue(t.Context(), busy, nothing)
	}
	v.clock.Advance(300 * time.Millisecond)
	if err := v.f.Admit(busy); err != nil {
		t.Errorf("refused with 0.9 s to wait: %v", err)
	}
	v.clock.Advance(100 * time.Millisecond)
	var refusal *problem.Error
	if err := v.f.Admit(busy); !errors.As(err, &refusal) || refusal.Kind != problem.Overloaded || refusal.RetryAfter != 1200*time.Millisecond {
		t.Errorf("with 1.2 s to wait: %v, want overloaded with that wait", err)
	}
	if err := v.f.Admit(quiet); err != nil {
		t.Errorf("a merchant with an empty queue was refused: %v", err)
	}
	v.queue(t.Context(), quiet, nothing)
	if err := v.f.Admit(quiet); err != nil {
		t.Errorf("a merchant whose turn comes with the next batch was refused: %v", err)
	}
	if err := v.f.Admit(busy); !errors.As(err, &refusal) || refusal.RetryAfter != 1200*time.Millisecond {
		t.Errorf("with one place of one batch less: %v, want the wait of before", err)
	}
	for range 3 * 256 { // from now on the two share each batch
		last = v.queue(t.Context(), quiet, nothing)
	}
	if err := v.f.Admit(busy); !errors.As(err, &refusal) || refusal.RetryAfter != 2400*time.Millisecond {
		t.Errorf("with half of each batch: %v, want a wait of 2.4 s", err)
	}
	v.release()
	<-last
	if err := v.f.Admit(busy); err != nil {
		t.Errorf("refused when all was done: %v", err)
	}
}

// Work whose request ended while it waited is not done: its client was told
// that it was not, or has gone.
func TestAbandonedWorkIsDropped(t *testing.T) {
	v := newJam(t)
	gone, leave := context.WithCancel(t.Context())
	ran := 0
	for range 300 {
		v.queue(gone, v.m.ID, func() { t.Error("work of an ended request was done") })
	}
	last := v.queue(t.Context(), v.m.ID, func() { ran++ })
	leave()
	v.release()
	<-last
	if ran != 1 {
		t.Errorf("work of a living request was done %d times", ran)
	}
}

// A request does not wait for the duties before it, nor they for all requests:
// each batch has both.
func TestRequestsAndDutiesShareBatches(t *testing.T) {
	v := newJam(t)
	const duties = 600
	var ran []string
	var all []<-chan struct{}
	for range duties {
		all = append(all, v.queueAs(t.Context(), true, v.m.ID, func() { ran = append(ran, "duty") }))
	}
	if err := v.f.Admit(v.m.ID); err != nil {
		t.Errorf("a request was refused for duties: %v", err)
	}
	for range 300 {
		all = append(all, v.queue(t.Context(), v.m.ID, func() { ran = append(ran, "request") }))
	}
	v.release()
	for _, done := range all {
		<-done
	}
	// 256 requests with 128 duties, 44 with 128, and the rest in batches of 256.
	want := slices.Concat(slices.Repeat([]string{"request"}, 256), slices.Repeat([]string{"duty"}, 128),
		slices.Repeat([]string{"request"}, 44), slices.Repeat([]string{"duty"}, duties-128))
	if !slices.Equal(ran, want) {
		t.Errorf("%d ran, and not in the order of requests beside duties", len(ran))
	}
}

// A heartbeat is in the next commit, whatever waits, and takes none of its own.
func TestBeatIsInTheNextCommit(t *testing.T) {
	v := newJam(t)
	before := v.commits // the one that is held comes after it
	nothing := func() {}
	var found store.Installation // by the batch behind the next
	var failed error
	const waiting = 3 * 256
	for i := range waiting {
		if i == 256 {
			v.queue(t.Context(), payment.ID{}, func() { found, failed = v.s.ReadInstallation(context.Background()) })
		} else {
			v.queue(t.Context(), payment.ID{}, nothing)
		}
		v.queueAs(t.Context(), true, payment.ID{}, nothing)
	}
	beaten := make(chan error)
	go func() {
		_, err := v.f.Beat(t.Context())
		beaten <- err
	}()
	for v.f.Load()[0].Waiting < 2*waiting+1 {
		runtime.Gosched()
	}
	first, err := v.s.ReadInstallation(t.Context())
	v.must(err)
	v.release()
	v.must(<-beaten)
	v.f.Stop()
	v.must(failed)
	if first.Beat+1 != found.Beat {
		t.Errorf("the installation's beat was %d, and then %d", first.Beat, found.Beat)
	}
	if got := v.commits - before; got != 1+5 { // 256 requests and 128 duties each, three times, then 256 and 128 duties
		t.Errorf("%d commits", got)
	}
}

// Nor does it wait for a batch whose tasks are committed one by one, as one of
// them failed.
func TestBeatComesBetweenSingleCommits(t *testing.T) {
	v := newJam(t)
	before, err := v.s.ReadInstallation(t.Context())
	v.must(err)
	tried, queued := make(chan struct{}), make(chan struct{})
	var last <-chan struct{}
	early, tries := 0, 0
	for i := range 100 {
		last, err = v.f.Queue(t.Context(), false, flow.Work{Merchant: v.m.ID, Run: func(*store.Tx) error {
			if i == 0 {
				if tries++; tries == 1 { // with all the others
					close(tried)
					<-queued
				}
				return errors.New("broken")
			}
			now, err := v.s.ReadInstallation(context.Background())
			if err == nil && now.Beat == before.Beat {
				early++
			}
			return err
		}})
		v.must(err)
	}
	v.release()
	<-tried
	beaten := make(chan error)
	go func() {
		_, err := v.f.Beat(t.Context())
		beaten <- err
	}()
	for v.f.Load()[0].Waiting == 0 {
		runtime.Gosched()
	}
	close(queued)
	v.must(<-beaten)
	<-last
	if early != 0 || tries != 2 {
		t.Errorf("%d of 100 were committed before it; the broken one was tried %d times", early, tries)
	}
}

// What a receiver has no place for goes back in one commit, and does so while
// the lanes end. Nothing is taken in hand any more then.
func TestReturnDeliveries(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	commits := 0
	w.OnFailpoint = func(m env.Failpoint) error {
		if m == env.AfterCommit {
			commits++
		}
		return nil
	}
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		v := newTeller(t, storetest.Open(t, o), w, clock)
		for _, name := range []string{"a", "b", "c"} {
			v.must(errors.Join(v.f.Together(t.Context(), v.birth(name, fine))...))
		}
		list, err := v.f.ClaimDeliveries(t.Context(), v.m.ID, 10)
		v.must(err)
		if len(list) != 3 {
			t.Fatalf("claimed %d deliveries", len(list))
		}
		for i := range list {
			list[i].NextAt = clock.Now().Add(time.Duration(i) * time.Minute)
		}
		v.f.Start()
		v.f.Stop()
		before := commits
		v.must(v.f.ReturnDeliveries(t.Context(), v.m.ID, list))
		if commits != before+1 {
			t.Errorf("%d commits", commits-before)
		}
		if list, err := v.f.ClaimDeliveries(t.Context(), v.m.ID, 10); err == nil {
			t.Errorf("%d deliveries were claimed when all was over", len(list))
		}
		for i := range list {
			if _, deliveries := v.due(); deliveries != i+1 {
				t.Errorf("after %d minutes %d deliveries are due", i, deliveries)
			}
			clock.Advance(time.Minute)
		}
	})
}
