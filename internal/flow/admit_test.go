package flow_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/world"
)

// jam holds a lane in the middle of a batch.
type jam struct {
	*teller
	clock   *world.VirtualClock
	release func()
}

func newJam(t *testing.T) *jam {
	w, clock := world.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	clock.Advance(time.Hour)
	v := &jam{teller: newTeller(t, storetest.Open(t, storetest.Prepare(t, "sqlite", w)), w, clock), clock: clock}
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
	v.queue(t.Context(), quiet, nothing) // from now on the two share each batch
	if err := v.f.Admit(quiet); err != nil {
		t.Errorf("a merchant whose turn comes with the next batch was refused: %v", err)
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
