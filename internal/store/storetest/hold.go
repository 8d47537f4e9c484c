package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var holdTests = []test{
	{"what comes into being is held, and nobody else's until its node is released", heldFromBirth},
	{"what there is no room for is due", dueWithoutRoom},
	{"nothing is held for a process that is not on the list", nothingHeldForTheDead},
	{"a notice that is known already is not held again", knownNoticeNotHeld},
	{"a node is not released before what it holds is committed", releaseWaitsForBirths},
}

// rooms is a process's places: so many for notices and for deliveries are left.
type rooms struct{ notices, deliveries int }

func (r *rooms) RoomForNotice() bool {
	r.notices--
	return r.notices >= 0
}

func (r *rooms) RoomForDelivery(payment.ID) bool {
	r.deliveries--
	return r.deliveries >= 0
}

// bear records notices and announces news of a merchant, held for node as far as
// there is room.
func (b *bench) bear(node payment.ID, r *rooms, m store.Merchant, news int, notices ...string) store.Held {
	b.Helper()
	var last *store.Tx
	b.write(func(tx *store.Tx) error {
		last = tx
		return b.bearIn(b.Context(), tx, node, r, m, news, notices...)
	})
	return last.Held()
}

func (b *bench) bearIn(ctx context.Context, tx *store.Tx, node payment.ID, r *rooms, m store.Merchant, news int, notices ...string) error {
	if err := tx.Hold(ctx, node, r); err != nil {
		return err
	}
	for _, id := range notices {
		if _, err := tx.RecordNotice(ctx, store.Notice{Processor: m.Name, ID: id, Headers: "h", Body: []byte("body of " + id)}); err != nil {
			return err
		}
	}
	for i := range news {
		tell(tx, m.ID, m.ID, int64(i+1), hook)
	}
	return nil
}

// noticesOf claims a merchant's notices, as the tests of this file name them.
func (b *bench) noticesOf(m store.Merchant, node payment.ID) (ids []string) {
	b.Helper()
	for _, n := range b.claimNotices(node) {
		if n.Processor == m.Name {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

func heldFromBirth(b *bench) {
	m, node, other := b.merchant(), b.node(), b.node()
	held := b.bear(node, &rooms{10, 10}, m, 2, "n")
	equal(b, "node", held.Node, node)
	equal(b, "notices", len(held.Notices), 1)
	equal(b, "places", held.NoticePlaces, 1)
	n := held.Notices[0]
	equal(b, "notice", n.Processor+n.ID+n.Headers+string(n.Body)+n.State, m.Name+"n"+"h"+"body of n"+store.NoticeReceived)
	equal(b, "tries", n.Tries, 1)
	equal(b, "received", n.ReceivedAt.IsZero(), false)
	equal(b, "deliveries", len(held.Deliveries), 2)
	for i, d := range held.Deliveries {
		equal(b, "merchant", d.Merchant, m.ID)
		equal(b, "in whose hand", d.ClaimedBy, node)
		equal(b, "attempts", d.Attempts, 1)
		equal(b, "ended", d.Ended, 1)
		equal(b, "state", d.State, store.DeliveryPending)
		equal(b, "url", d.URL, hook)
		e, err := b.s.Event(b.Context(), m.ID, d.Event.ID)
		b.must(err)
		equal(b, "number", e.Number, int64(i+1))
		equal(b, "event", d.EventNumber, e.Number)
		equal(b, "body", string(d.Event.Body), string(e.Body))
		under := b.attempts(m, e.Number)
		equal(b, "attempts under way", len(under), 1)
		equal(b, "its number", under[0].Number, 1)
		equal(b, "its time", under[0].CreatedAt, d.TakenAt.Truncate(time.Microsecond))
	}

	equal(b, "notices of another", len(b.noticesOf(m, other)), 0)
	equal(b, "deliveries of another", len(b.claimDeliveries(m, other, 10)), 0)
	first := held.Deliveries[0]
	equal(b, "state at its end", b.finish(first, store.DeliveryDone, time.Time{}, node).State, store.DeliveryDone)

	seen, _ := b.seen(node)
	released, err := b.release(seen)
	b.must(err)
	equal(b, "released", released, 2) // a notice, and the delivery that has not ended
	equal(b, "notices of another", len(b.noticesOf(m, other)), 1)
	freed := b.claimDeliveries(m, other, 10)
	equal(b, "deliveries of another", len(freed), 1)
	equal(b, "attempts", freed[0].Attempts, 2)
	equal(b, "ended", freed[0].Ended, 1) // the one that was cut off may never have been made
	equal(b, "id", freed[0].ID, held.Deliveries[1].ID)
}

func dueWithoutRoom(b *bench) {
	m, node, other := b.merchant(), b.node(), b.node()
	held := b.bear(node, &rooms{1, 1}, m, 3, "x", "y", "z")
	equal(b, "notices", len(held.Notices), 1)
	equal(b, "places", held.NoticePlaces, 1)
	equal(b, "deliveries", len(held.Deliveries), 1)
	equal(b, "notices that are due", len(b.noticesOf(m, other)), 2)
	due := b.claimDeliveries(m, other, 10)
	equal(b, "deliveries that are due", len(due), 2)
	for _, d := range due {
		equal(b, "attempts", d.Attempts, 1)
		equal(b, "is held as well", d.ID == held.Deliveries[0].ID, false)
	}
}

func nothingHeldForTheDead(b *bench) {
	m, node, other := b.merchant(), b.node(), b.node()
	seen, _ := b.seen(node)
	_, err := b.release(seen)
	b.must(err)
	for _, id := range []payment.ID{node, none} {
		r := &rooms{10, 10}
		held := b.bear(id, r, m, 1, "of "+id.String())
		equal(b, "held", len(held.Notices)+len(held.Deliveries)+held.NoticePlaces, 0)
		equal(b, "node", held.Node, none)
		equal(b, "places that are left", *r, rooms{10, 10})
		equal(b, "notices that are due", len(b.noticesOf(m, other)), 1)
		equal(b, "deliveries that are due", len(b.claimDeliveries(m, other, 10)), 1)
	}
}

func knownNoticeNotHeld(b *bench) {
	m, node := b.merchant(), b.node()
	b.bear(node, &rooms{10, 10}, m, 0, "a")
	held := b.bear(node, &rooms{10, 10}, m, 0, "a", "b", "b")
	equal(b, "places", held.NoticePlaces, 3)
	equal(b, "notices", len(held.Notices), 1)
	equal(b, "notice", held.Notices[0].ID, "b")

	var last *store.Tx
	b.write(func(tx *store.Tx) error { // at once
		last = tx
		if err := tx.Hold(b.Context(), node, &rooms{10, 10}); err != nil {
			return err
		}
		var list []store.Notice
		for _, id := range []string{"a", "c", "d", "c"} {
			list = append(list, store.Notice{Processor: m.Name, ID: id, Body: []byte(id)})
		}
		fresh, err := tx.RecordNotices(b.Context(), list)
		equal(b, "fresh", fmt.Sprint(fresh), fmt.Sprint([]bool{false, true, true, false}))
		return err
	})
	equal(b, "places", last.Held().NoticePlaces, 4)
	equal(b, "notices", len(last.Held().Notices), 2)
}

// A transaction that holds keeps its node on the list until it ends: whoever
// releases the node meanwhile sees what was born.
func releaseWaitsForBirths(b *bench) {
	m, node, other := b.merchant(), b.node(), b.node()
	seen, _ := b.seen(node)
	b.write(func(tx *store.Tx) error {
		err := b.bearIn(b.Context(), tx, node, &rooms{10, 10}, m, 1, "n")
		if err != nil || b.s.Engine() == "sqlite" {
			return err // SQLite has one writer
		}
		brief, cancel := context.WithTimeout(b.Context(), 200*time.Millisecond)
		defer cancel()
		err = b.s.Write(brief, func(tx *store.Tx) error {
			_, err := tx.ReleaseNode(brief, seen)
			return err
		})
		if brief.Err() == nil {
			b.Errorf("a node was released while it held: %v", err)
		}
		return nil
	})
	released, err := b.release(seen)
	b.must(err)
	equal(b, "released", released, 2)
	equal(b, "notices", len(b.noticesOf(m, other)), 1)
	equal(b, "deliveries", len(b.claimDeliveries(m, other, 10)), 1)
}
