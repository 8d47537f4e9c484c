package store

import (
	"context"

	"github.com/porteira/porteira/internal/payment"
)

// Room says whether a process has a place for one more thing in hand, and keeps
// it: what it says yes to is in Held, or was not made.
type Room interface {
	RoomForNotice() bool
	RoomForDelivery(merchant payment.ID) bool
}

// Held is what a transaction made and took in hand in one: it is claimed from
// its birth on, and need not be found and read again.
type Held struct {
	Node       payment.ID // in whose hand
	Notices    []Notice
	Deliveries []Delivery
	// NoticePlaces are kept for notices: more than there are where one of them
	// was known already.
	NoticePlaces int
}

// Hold takes what the transaction makes due from now on in hand for node, as far
// as there is room. Like every claim it comes first in a transaction. A process
// that was given up for dead holds nothing: what is due is for the others.
func (tx *Tx) Hold(ctx context.Context, node payment.ID, room Room) error {
	if node.IsZero() {
		return nil
	}
	alive, err := tx.isNode(ctx, node)
	if alive {
		tx.room, tx.held.Node = room, node
	}
	return err
}

// Held is what the transaction took in hand; once it is committed it is the
// process's to do.
func (tx *Tx) Held() Held { return tx.held }

// holdNotice is the columns next_at, claimed_by and tries of a new notice.
func (tx *Tx) holdNotice() (next int64, by []byte, tries int64) {
	if tx.room == nil || !tx.room.RoomForNotice() {
		return micros(tx.Now), []byte{}, 0
	}
	tx.held.NoticePlaces++
	return 0, tx.held.Node[:], 1
}

// holdDelivery takes a new delivery in hand, if there is room.
func (tx *Tx) holdDelivery(d *Delivery) {
	if tx.room == nil || !tx.room.RoomForDelivery(d.Merchant) {
		return
	}
	d.Attempts, d.Ended, d.ClaimedBy, d.TakenAt = 1, 1, tx.held.Node, tx.Now
	tx.held.Deliveries = append(tx.held.Deliveries, *d)
}
