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
		q.backlog("bank").More = v.more
		q.pool("bank").Reserve(noticeSlots - v.free)
		got := 0
		for _, share := range q.reserveClaim([]string{"bank"}, claimMax) {
			got += share.limit
		}
		if got != v.want || q.Free("bank") != v.free-v.want {
			t.Errorf("of %d free slots %d are reserved, want %d (more are due: %v)", v.free, got, v.want, v.more)
		}
	}
}

// A claim is divided between the accounts that have slots for it. The due notices of the
// others come before new ones.
func TestClaimIsShared(t *testing.T) {
	t.Parallel()
	q := newTestQueue(t)
	q.pool("full").Reserve(noticeSlots)
	q.pool("busy").Reserve(noticeSlots - 30)
	list := q.reserveClaim([]string{"full", "busy", "free"}, 100)
	if len(list) != 2 || list[0] != (share{account: "busy", limit: 15}) || list[1] != (share{account: "free", limit: 50}) {
		t.Fatalf("shares %v", list)
	}
	list[0].found, list[0].claimed = 15, 15
	list[1].found, list[1].claimed = 5, 4 // one is damaged
	q.endClaim(list)
	if q.Free("busy") != 15 || q.Free("free") != noticeSlots-4 {
		t.Errorf("%d and %d slots are free", q.Free("busy"), q.Free("free"))
	}
	q.pool("full").Release(noticeSlots)
	if got := q.Reserve(map[string]int{"full": 1, "busy": 1, "free": 1}); len(got) != 1 || got["free"] != 1 {
		t.Errorf("reserved %v for new notices", got)
	}
}

// A new notice gets a slot if this node may claim, and no older one is due.
func TestReserveForNewNotices(t *testing.T) {
	t.Parallel()
	q := newTestQueue(t)
	reserve := func(n int) int { return q.Reserve(map[string]int{"bank": n})["bank"] }
	if got := reserve(2); got != 2 {
		t.Errorf("reserved %d", got)
	}
	q.Accept(map[string]int{"bank": 2}, []store.Notice{{Processor: "bank", ID: "a"}}, map[string]int{"bank": 1}) // one was due: it waits for a claim
	if q.Free("bank") != noticeSlots-1 {
		t.Errorf("%d slots are free", q.Free("bank"))
	}
	if got := reserve(1); got != 0 {
		t.Errorf("reserved %d while an older notice is due", got)
	}
	if got := q.Reserve(map[string]int{"other": noticeSlots + 1})["other"]; got != noticeSlots {
		t.Errorf("reserved %d for another account", got)
	}
	q.endClaim([]share{{account: "bank", limit: 1, found: 0}})
	if got := reserve(noticeSlots); got != noticeSlots {
		t.Errorf("reserved %d of %d", got, noticeSlots)
	}
	q.Accept(map[string]int{"bank": noticeSlots}, nil, nil)
	q.node.Lease.Drop()
	if got := reserve(1); got != 0 {
		t.Errorf("reserved %d without a lease", got)
	}
	if list := q.take(); len(list) != 1 || list[0].ID != "a" || len(q.take()) != 0 {
		t.Errorf("took %v", list)
	}
}
