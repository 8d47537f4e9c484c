package notice

import (
	"context"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
)

func newTestQueue(t *testing.T) *Queue {
	t.Helper()
	e, _ := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	q := NewQueue(cluster.NewNode(e.Clock), worker.NewWaker(nil), worker.Inline)
	renew(t, q)
	return q
}

func renew(t *testing.T, q *Queue) {
	t.Helper()
	if err := q.node.Lease.Renew(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// A claim leaves slots for notices that are stored while it is written; if more are due
// than were claimed, those come first.
func TestClaimLeavesSlots(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		more       bool
		free, want int
	}{
		{false, 0, 0}, {false, 1, 1}, {false, 2, 1}, {false, noticeSlots, noticeSlots / 2},
		{true, noticeSlots/4 - 1, 0}, {true, noticeSlots / 4, noticeSlots / 4}, {true, noticeSlots, noticeSlots},
	} {
		q := newTestQueue(t)
		q.backlog.More = v.more
		q.pool.Reserve(noticeSlots - v.free)
		if got := q.reserveClaim(); got != v.want || q.pool.Free() != v.free-v.want {
			t.Errorf("of %d free slots %d are reserved, want %d (more are due: %v)", v.free, got, v.want, v.more)
		}
	}
}

// A new notice gets a slot if this node may claim, and no older one is due.
func TestReserveForNewNotices(t *testing.T) {
	t.Parallel()
	q := newTestQueue(t)
	if got := q.Reserve(2); got != 2 {
		t.Errorf("reserved %d", got)
	}
	q.Accept(2, []store.Notice{{ID: "a"}}, 1) // one was due: it waits for a claim
	if q.pool.Free() != noticeSlots-1 {
		t.Errorf("%d slots are free", q.pool.Free())
	}
	if got := q.Reserve(1); got != 0 {
		t.Errorf("reserved %d while an older notice is due", got)
	}
	q.noteClaim(false)
	if got := q.Reserve(noticeSlots); got != noticesPerAccount-1 { // all may be of one account
		t.Errorf("reserved %d of %d", got, noticesPerAccount-1)
	}
	q.Accept(noticesPerAccount-1, nil, 0)
	q.node.Lease.Drop()
	if got := q.Reserve(1); got != 0 {
		t.Errorf("reserved %d without a lease", got)
	}
	if list := q.take(); len(list) != 1 || list[0].ID != "a" || len(q.take()) != 0 {
		t.Errorf("took %v", list)
	}
}
