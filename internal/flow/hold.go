package flow

import (
	"context"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Hands do what a process takes in hand as it comes into being: a notice that a
// lane records, a delivery that it makes due. What they have no room for waits in
// the database to be claimed.
type Hands interface {
	store.Room
	// Take hands over what is committed, before the duties are woken for it. It
	// must not block.
	Take(held store.Held)
	// GiveBack frees the places of what was not committed, or nobody knows.
	GiveBack(held store.Held)
}

// HandTo has what the lanes make due taken in hand at once. It must be called
// before Start.
func (f *Flow) HandTo(h Hands) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hands = h
}

// holding is what a batch takes in hand, through all of its tries.
type holding struct {
	flow  *Flow
	hands Hands
	node  payment.ID
	tx    *store.Tx // of the last try
}

func (f *Flow) newHolding() *holding {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &holding{flow: f, hands: f.hands, node: f.node}
}

// begin makes a transaction one that holds, and forgets the try before it.
func (h *holding) begin(ctx context.Context, tx *store.Tx) error {
	if h.hands == nil {
		return nil
	}
	h.giveBack()
	h.tx = tx
	return tx.Hold(ctx, h.node, h.hands)
}

// take hands over what was committed.
func (h *holding) take() {
	if h.tx == nil {
		return
	}
	held := h.tx.Held()
	h.tx = nil
	h.hands.Take(held)
	if len(held.Notices) > 0 {
		h.flow.wake(WakeNotices)
	}
	if len(held.Deliveries) > 0 {
		h.flow.wake(WakeDeliver)
	}
}

func (h *holding) giveBack() {
	if h.tx != nil {
		h.hands.GiveBack(h.tx.Held())
		h.tx = nil
	}
}

// any says whether the last try took anything in hand.
func (h *holding) any() bool {
	return h.tx != nil && len(h.tx.Held().Notices)+len(h.tx.Held().Deliveries) > 0
}
