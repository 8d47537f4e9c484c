package jobs

import (
	"sync"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// What a lane makes due is this process's own from its birth, as long as it has
// places for it and nothing older waits in the database: so neither is it looked
// for, claimed and read again, nor does it overtake what came before.

var _ flow.Hands = (*Jobs)(nil)

// noticeHand is the notices in hand that no call has begun for.
type noticeHand struct {
	mu sync.Mutex
	backlog
	born []store.Notice
}

// RoomForNotice implements [store.Room].
func (j *Jobs) RoomForNotice() bool {
	h := &j.notices
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.more || !j.lease.Valid() || j.noticing.reserve(1) == 0 {
		h.more = true
		return false
	}
	return true
}

// RoomForDelivery implements [store.Room].
func (j *Jobs) RoomForDelivery(merchant payment.ID) bool {
	return j.lease.Valid() && j.queue.reserve(merchant)
}

// Take implements [flow.Hands].
func (j *Jobs) Take(held store.Held) {
	if held.NoticePlaces > 0 {
		j.noticing.giveBack(held.NoticePlaces - len(held.Notices))
		j.notices.mu.Lock()
		j.notices.born = append(j.notices.born, held.Notices...)
		j.notices.mu.Unlock()
	}
	if len(held.Deliveries) > 0 {
		j.queue.bear(held.Deliveries)
	}
}

// GiveBack implements [flow.Hands].
func (j *Jobs) GiveBack(held store.Held) {
	j.noticing.giveBack(held.NoticePlaces)
	for i := range held.Deliveries {
		if j.queue.remove(held.Deliveries[i].Merchant) {
			j.loops[dutyDeliver].Wake()
		}
	}
}

// takeBorn takes the notices that came into being in this process's hand.
func (h *noticeHand) takeBorn() []store.Notice {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.born
	h.born = nil
	return list
}

// wants says how many of the free places a claim should keep. Where no more is
// known to be due it leaves as many for what comes into being meanwhile.
func (h *noticeHand) wants(free int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.worth(free, noticePlaces):
		return 0
	case h.more:
		return free
	default:
		return (free + 1) / 2
	}
}

// note is the backlog's, which lanes look at too.
func (h *noticeHand) note(asked, got int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.backlog.note(asked, got)
}
