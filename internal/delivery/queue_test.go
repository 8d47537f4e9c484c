package delivery

import (
	"context"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
)

var merchantA, merchantB = payment.ID{1}, payment.ID{2}

func newTestQueue(t *testing.T) (q *Queue, wakes *int) {
	t.Helper()
	e, _ := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	wakes = new(int)
	q = NewQueue(cluster.NewNode(e.Clock), worker.NewWaker(func() { *wakes++ }))
	if err := q.node.Lease.Renew(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return q, wakes
}

// Capacity for new deliveries is reserved up to the merchant's limit, unless older ones
// are due, of the merchant or of any.
func TestReserve(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		prepare func(q *Queue)
		want    int // of 10 that merchant A wants
	}{
		{"nothing is claimed", func(*Queue) {}, 10},
		{"most are claimed", func(q *Queue) { q.addClaimed(merchantA, 128, 122) }, 6},
		{"all are claimed", func(q *Queue) { q.claimed[merchantA] = claimedPerMerchant }, 0},
		{"others take most slots", func(q *Queue) { q.free = func() int { return 8 } }, 4},
		{"half of what others leave is claimed", func(q *Queue) {
			q.free = func() int { return 8 }
			q.claimed[merchantA], q.sending[merchantA] = 10, 8
		}, 0},
		{"others take all slots", func(q *Queue) { q.free = func() int { return 0 } }, 1},
		{"more are due", func(q *Queue) { q.addClaimed(merchantA, 10, 10) }, 0},
		{"more of another merchant are due", func(q *Queue) { q.addClaimed(merchantB, 10, 10) }, 10},
		{"due ones were not polled", func(q *Queue) { q.setStarved(true) }, 0},
		{"there is no lease", func(q *Queue) { q.node.Lease.Drop() }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q, _ := newTestQueue(t)
			tt.prepare(q)
			before := q.claimed[merchantA]
			if got := q.Reserve(map[payment.ID]int{merchantA: 10})[merchantA]; got != tt.want || q.claimed[merchantA] != before+tt.want {
				t.Errorf("%d reserved, want %d; %d are counted after %d", got, tt.want, q.claimed[merchantA], before)
			}
		})
	}
}

// Unused reservations are released; the worker is woken if there is something to send,
// or to claim.
func TestAccept(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		claimed int // of the reserved ones
		due     map[payment.ID]int
		more    bool // others were known to be due
		wakes   int
	}{
		{"nothing", 0, nil, false, 0},
		{"two of ten", 2, nil, false, 1},
		{"some are due", 10, map[payment.ID]int{merchantA: 1}, false, 1},
		{"those of another merchant are due", 0, map[payment.ID]int{merchantB: 1}, false, 1},
		{"nothing, and others wait for its capacity", 0, nil, true, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q, wakes := newTestQueue(t)
			reserved := q.Reserve(map[payment.ID]int{merchantA: 10})
			if tt.more {
				q.backlog(merchantA).More = true
			}
			var list []store.Delivery
			for range tt.claimed {
				list = append(list, store.Delivery{Merchant: merchantA})
			}
			q.Accept(reserved, list, tt.due)
			if q.claimed[merchantA] != tt.claimed || len(q.fresh) != tt.claimed || *wakes != tt.wakes {
				t.Errorf("%d claimed, %d fresh, woken %d times", q.claimed[merchantA], len(q.fresh), *wakes)
			}
			for merchant := range tt.due {
				if !q.backlogs[merchant].More {
					t.Error("it is not known that more are due")
				}
			}
		})
	}
}

// A claim requests as many as the merchant's limit and the free slots allow. While
// more are due than fit, it waits until a quarter of them fits; if none fits, more
// are due.
func TestWorthClaiming(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		claimed int
		more    bool
		free    int
		want    int
	}{
		{0, false, 256, 128},
		{0, false, 3, 3},
		{122, false, 256, 6},
		{122, true, 256, 0},
		{128 - 32, true, 256, 32},
		{128 - 31, true, 256, 0},
		{128, false, 256, 0},
	} {
		q, _ := newTestQueue(t)
		q.claimed[merchantA] = tt.claimed
		q.backlog(merchantA).More = tt.more
		if got := q.worthClaiming(merchantA, tt.free); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
		if tt.claimed == claimedPerMerchant && !q.backlogs[merchantA].More {
			t.Error("it is not known that more are due")
		}
	}
}

// The worker polls when nothing is claimed any more, and if more are due when a quarter
// of the limit is free.
func TestDone(t *testing.T) {
	t.Parallel()
	q, _ := newTestQueue(t)
	q.addClaimed(merchantA, claimedPerMerchant, claimedPerMerchant)
	polls := 0
	for n := 1; n <= claimedPerMerchant; n++ {
		if q.done(merchantA) {
			polls++
			if n < claimedPerMerchant/4 {
				t.Fatalf("it polls after %d ends", n)
			}
		}
	}
	if want := claimedPerMerchant - claimedPerMerchant/4 + 1; polls != want {
		t.Errorf("%d polls, want %d", polls, want)
	}
	q.addClaimed(merchantA, 3, 2) // no more are due
	if q.done(merchantA) || !q.done(merchantA) {
		t.Error("it polls before the last end, or not at it")
	}
	if len(q.claimed)+len(q.backlogs) != 0 {
		t.Errorf("left: %v, %v", q.claimed, q.backlogs)
	}
}

// Fresh deliveries are taken oldest first, grouped by merchant, and may be put back.
func TestTakeFresh(t *testing.T) {
	t.Parallel()
	q, _ := newTestQueue(t)
	for i, merchant := range []payment.ID{merchantB, merchantA, merchantB, merchantA} {
		q.fresh = append(q.fresh, store.Delivery{Merchant: merchant, EventNumber: int64(i)})
	}
	numbers := func(list []store.Delivery) (n []int64) {
		for i := range list {
			n = append(n, list[i].EventNumber)
		}
		return n
	}
	list := q.takeFresh(3)
	if got := numbers(list); len(got) != 3 || got[0] != 1 || got[1] != 0 || got[2] != 2 {
		t.Errorf("took %v, want 1, 0, 2", got)
	}
	q.returnUnstarted(list[1:])
	if got := numbers(q.takeFresh(10)); len(got) != 3 || got[2] != 2 {
		t.Errorf("took %v", got)
	}
	if q.fresh != nil {
		t.Errorf("left: %v", q.fresh)
	}
}
