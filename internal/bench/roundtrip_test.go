package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
)

// inFlight is a round trip of n orders whose notices were accepted.
func inFlight(clock env.Clock, untilDelivered bool, n int) *roundTrip {
	r := &run{clock: clock, schedule: newSchedule(clock, 0, 0, 0, 0)}
	c := &roundTrip{
		run: r, byID: map[payment.ID]int{}, untilDelivered: untilDelivered, paid: newSeries("paid"), delivered: newSeries("delivered"),
		slots: make(chan struct{}, n),
	}
	for i := range n {
		c.add(order{id: payment.ID{byte(i + 1)}})
		w := &worker{run: r}
		if !c.pickUnpaid(w) || w.index != i {
			panic("order not selected")
		}
		c.slots <- struct{}{}
		c.orders[i].sent = true
		_ = c.noticeAccepted(w, nil)
	}
	return c
}

func paidAt(id byte, at time.Time) *event {
	e := &event{Type: typePaid, CreatedAt: at}
	e.Data.ID = payment.ID{id}
	return e
}

// Orders that were paid and never complete are listed, and not waited for forever.
func TestNeverPaid(t *testing.T) {
	clock := env.NewVirtualClock(begin)
	c := inFlight(clock, false, 3)
	c.record(paidAt(2, begin), false)
	drained := make(chan error)
	go func() { drained <- c.drain(t.Context()) }()
	clock.BlockUntil(1)
	clock.Advance(2 * stallTimeout)
	if err := <-drained; err != nil {
		t.Error(err)
	}
	want := []string{
		"01000000-0000-0000-0000-000000000000 was paid, but is not PAID",
		"03000000-0000-0000-0000-000000000000 was paid, but is not PAID",
	}
	if got := c.missing(); !slices.Equal(got, want) {
		t.Errorf("missing: %q", got)
	}
}

// An order completes once: with its event, or with its delivery if untilDelivered is set.
func TestRoundTripCompletes(t *testing.T) {
	for _, untilDelivered := range []bool{false, true} {
		clock := env.NewVirtualClock(begin)
		c := inFlight(clock, untilDelivered, 2)
		clock.Advance(10 * time.Millisecond)
		created := clock.Now()
		if !untilDelivered {
			c.record(paidAt(1, created), false)
			c.record(paidAt(1, created), false)
		}
		clock.Advance(5 * time.Millisecond)
		c.record(paidAt(1, created), true)
		c.record(paidAt(1, created), true)
		c.record(paidAt(2, created), true) // both at once
		c.record(paidAt(9, created), true) // unknown order
		if err := c.drain(t.Context()); err != nil || c.completed != 2 || len(c.slots) != 0 || c.repeated != 1 || len(c.missing()) != 0 {
			t.Errorf("%v: %d completed, %d slots used, %d repeated, missing %v, %v", untilDelivered, c.completed, len(c.slots), c.repeated, c.missing(), err)
		}
		paid, delivered := c.paid.view(time.Second), c.delivered.view(time.Second)
		if paid.Count != 2 || paid.Latency.Max/10 != 1000 || delivered.Count != 2 || delivered.Latency.Max/10 != 500 {
			t.Errorf("%v: %+v, %+v", untilDelivered, paid, delivered)
		}
	}
}

// A PAID order whose event is not delivered is missing if untilDelivered is set.
func TestNotDelivered(t *testing.T) {
	c := inFlight(env.NewVirtualClock(begin), true, 1)
	c.record(paidAt(1, begin), false)
	want := []string{"01000000-0000-0000-0000-000000000000 is PAID, but its event was not delivered"}
	if got := c.missing(); !slices.Equal(got, want) {
		t.Errorf("missing: %q", got)
	}
}
