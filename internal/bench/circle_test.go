package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
)

// onItsWay is a circle of orders whose notices were accepted.
func onItsWay(clock env.Clock, untilNews bool, n int) *circle {
	r := &run{clock: clock, pace: newPace(clock, 0, 0, 0, 0)}
	c := &circle{
		run: r, byID: map[payment.ID]int{}, untilNews: untilNews, paid: newSeries("paid"), news: newSeries("news"),
		places: make(chan struct{}, n),
	}
	for i := range n {
		c.add(order{id: payment.ID{byte(i + 1)}})
		w := &worker{run: r}
		if !c.choose(w) || w.index != i {
			panic("an order is not chosen")
		}
		c.places <- struct{}{}
		c.orders[i].sent = true
		_ = c.taken(w, nil)
	}
	return c
}

func paidAt(id byte, at time.Time) *event {
	e := &event{Type: typePaid, CreatedAt: at}
	e.Data.ID = payment.ID{id}
	return e
}

// What was paid and never comes to its end is named, and not waited for for
// ever.
func TestNeverPaid(t *testing.T) {
	clock := env.NewVirtualClock(begin)
	c := onItsWay(clock, false, 3)
	c.happened(paidAt(2, begin), false)
	settled := make(chan error)
	go func() { settled <- c.settle(t.Context()) }()
	clock.BlockUntil(1)
	clock.Advance(2 * settlePatience)
	if err := <-settled; err != nil {
		t.Error(err)
	}
	want := []string{
		"01000000-0000-0000-0000-000000000000 was paid, and is not PAID",
		"03000000-0000-0000-0000-000000000000 was paid, and is not PAID",
	}
	if got := c.missing(); !slices.Equal(got, want) {
		t.Errorf("missing: %q", got)
	}
}

// An order ends once: by its event, or by its delivery where that is meant.
func TestCircleEnds(t *testing.T) {
	for _, untilNews := range []bool{false, true} {
		clock := env.NewVirtualClock(begin)
		c := onItsWay(clock, untilNews, 2)
		clock.Advance(10 * time.Millisecond)
		created := clock.Now()
		if !untilNews {
			c.happened(paidAt(1, created), false)
			c.happened(paidAt(1, created), false)
		}
		clock.Advance(5 * time.Millisecond)
		c.happened(paidAt(1, created), true)
		c.happened(paidAt(1, created), true)
		c.happened(paidAt(2, created), true) // that tells of both
		c.happened(paidAt(9, created), true) // somebody else's
		if err := c.settle(t.Context()); err != nil || c.ended != 2 || len(c.places) != 0 || c.repeated != 1 || len(c.missing()) != 0 {
			t.Errorf("%v: %d ended, %d places taken, %d repeated, missing %v, %v", untilNews, c.ended, len(c.places), c.repeated, c.missing(), err)
		}
		paid, news := c.paid.view(time.Second), c.news.view(time.Second)
		if paid.Count != 2 || paid.Latency.Max/10 != 1000 || news.Count != 2 || news.Latency.Max/10 != 500 {
			t.Errorf("%v: %+v, %+v", untilNews, paid, news)
		}
	}
}

// An order that is PAID and whose news does not come is missing where news is
// what was asked for.
func TestNoNews(t *testing.T) {
	c := onItsWay(env.NewVirtualClock(begin), true, 1)
	c.happened(paidAt(1, begin), false)
	want := []string{"01000000-0000-0000-0000-000000000000 is PAID, and its news was not delivered"}
	if got := c.missing(); !slices.Equal(got, want) {
		t.Errorf("missing: %q", got)
	}
}
