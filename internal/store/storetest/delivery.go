package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var deliveryTests = []test{
	{"two claimers never share a delivery", deliveriesClaimedOnce},
	{"an attempt is on record before it is made", attemptsAreRecorded},
	{"the end of an attempt is recorded once", attemptsEndOnce},
	{"who lost a delivery changes nothing but its own attempt", lostDelivery},
	{"who lost a delivery that has been removed since changes nothing", lostAndRemoved},
	{"an attempt in which its process died uses none of the schedule up", interruptedDelivery},
	{"a delivery given back was never tried", returnedDelivery},
	{"many are given back together, each as it stands", returnedTogether},
	{"an order whose receiver wants no more gets no more", endedDeliveries},
	{"what ended stays ended for those in flight", endedInFlight},
	{"redelivery starts again, with the whole schedule", redelivered},
	{"a person is told once of a delivery that was given up, until it is over", givenUpDelivery},
	{"the soonest due come first, the future not at all", deliveriesDue},
}

const hook = "https://shop.example/hook"

func (b *bench) claimDeliveries(m store.Merchant, node payment.ID, limit int) (list []store.Delivery) {
	b.Helper()
	b.write(func(tx *store.Tx) (err error) {
		list, err = tx.ClaimDeliveries(b.Context(), m.ID, node, limit)
		return err
	})
	return list
}

func (b *bench) attempts(m store.Merchant, number int64) []store.Attempt {
	b.Helper()
	list, err := b.s.Attempts(b.Context(), m.ID, number)
	b.must(err)
	return list
}

func (b *bench) finish(d store.Delivery, state string, next time.Time, node payment.ID) (f store.Finished) {
	b.Helper()
	d.State, d.NextAt = state, next
	b.write(func(tx *store.Tx) (err error) {
		f, err = tx.FinishDelivery(b.Context(), d, store.Attempt{Status: 500, Latency: 1500 * time.Microsecond, Error: "e", Response: "r"}, node)
		return err
	})
	return f
}

func deliveriesClaimedOnce(b *bench) {
	const n, claimers = 60, 4
	m := b.merchant()
	b.announce(m, b.id(), n, hook)
	var mu sync.Mutex
	claimed := map[payment.ID]int{}
	b.together(claimers, func(ctx context.Context, _ int) error {
		node := b.id()
		for {
			var list []store.Delivery
			err := b.s.Write(ctx, func(tx *store.Tx) (err error) {
				list, err = tx.ClaimDeliveries(ctx, m.ID, node, 5)
				return err
			})
			if err != nil || len(list) == 0 {
				return err
			}
			mu.Lock()
			for i := range list {
				claimed[list[i].ID]++
			}
			mu.Unlock()
		}
	})
	// What another held in its hands at the time is skipped, and may be left.
	for _, d := range b.claimDeliveries(m, b.id(), n) {
		claimed[d.ID]++
	}
	equal(b, "deliveries claimed", len(claimed), n)
	for id, times := range claimed {
		if times != 1 {
			b.Errorf("%s was claimed %d times", id, times)
		}
	}
}

func attemptsAreRecorded(b *bench) {
	m, node := b.merchant(), b.id()
	b.announce(m, b.id(), 1, hook)
	for i := 1; i <= 2; i++ {
		list := b.claimDeliveries(m, node, 10)
		equal(b, "claimed", len(list), 1)
		d := list[0]
		equal(b, "attempts", d.Attempts, i)
		equal(b, "url", d.URL, hook)
		equal(b, "event", d.Event.Number, 1)
		attempts := b.attempts(m, 1)
		equal(b, "on record", len(attempts), i)
		began := attempts[i-1]
		equal(b, "is under way", began, store.Attempt{Delivery: d.ID, URL: hook, Number: i, CreatedAt: began.CreatedAt})
		equal(b, "began", began.CreatedAt, d.TakenAt.Truncate(time.Microsecond).UTC())
		b.finish(d, store.DeliveryPending, b.w.Clock.Now().Add(-time.Second), node)
		equal(b, "began, when it has ended", b.attempts(m, 1)[i-1].CreatedAt, began.CreatedAt)
	}
	attempts := b.attempts(m, 1)
	equal(b, "on record", len(attempts), 2)
	a := attempts[1]
	if a.Status != 500 || a.Latency != 1500*time.Microsecond || a.Error != "e" || a.Response != "r" || a.Number != 2 || a.EndedAt.IsZero() || a.URL != hook {
		b.Errorf("%+v", a)
	}
}

// Who does not know whether the end was recorded records it again.
func attemptsEndOnce(b *bench) {
	m, node := b.merchant(), b.id()
	b.announce(m, b.id(), 1, hook)
	d := b.claimDeliveries(m, node, 10)[0]
	b.finish(d, store.DeliveryDone, time.Time{}, node)
	first := b.attempts(m, 1)
	b.write(func(tx *store.Tx) error {
		_, err := tx.FinishDelivery(b.Context(), d, store.Attempt{Status: 200}, node)
		return err
	})
	again := b.attempts(m, 1)
	equal(b, "on record", len(again), 1)
	equal(b, "the attempt", again[0], first[0])
}

// A node that was taken for dead comes back: its delivery is another's now.
func lostDelivery(b *bench) {
	m, one, two := b.merchant(), b.node(), b.id()
	b.announce(m, b.id(), 1, hook)
	lost := b.claimDeliveries(m, one, 10)[0]
	_, err := b.release(store.Node{ID: one, Beat: 1})
	b.must(err)
	mine := b.claimDeliveries(m, two, 10)
	equal(b, "claimed by another", len(mine), 1)
	equal(b, "the end of the lost one", b.finish(lost, store.DeliveryExhausted, time.Time{}, one), store.Finished{})
	b.write(func(tx *store.Tx) error { return tx.ReturnDelivery(b.Context(), lost, b.now(), one) })
	attempts, err := b.s.Attempts(b.Context(), m.ID, 1)
	b.must(err)
	equal(b, "attempts", len(attempts), 2)
	equal(b, "the lost one has not ended", attempts[0].EndedAt.IsZero(), false) // it was made, and is on record
	equal(b, "still due", len(b.claimDeliveries(m, two, 10)), 0)
	equal(b, "the end", b.finish(mine[0], store.DeliveryDone, time.Time{}, two), store.Finished{State: store.DeliveryDone})
	equal(b, "the end once more", b.finish(mine[0], store.DeliveryDone, time.Time{}, two), store.Finished{})
	equal(b, "due when done", len(b.claimDeliveries(m, two, 10)), 0)
}

// It comes back so late that the delivery has gone for its age.
func lostAndRemoved(b *bench) {
	m, one, two := b.merchant(), b.node(), b.id()
	b.announce(m, b.id(), 1, hook)
	lost := b.claimDeliveries(m, one, 10)[0]
	_, err := b.release(store.Node{ID: one, Beat: 1})
	b.must(err)
	b.finish(b.claimDeliveries(m, two, 10)[0], store.DeliveryDone, time.Time{}, two)
	equal(b, "attempts", len(b.attempts(m, 1)), 2)
	b.write(func(tx *store.Tx) error {
		n, err := tx.RemoveDeliveries(b.Context(), store.Old{Merchant: m.ID, Last: lost.ID}, b.now().Add(time.Hour))
		equal(b, "removed", n, 1)
		return err
	})
	equal(b, "the end of the lost one", b.finish(lost, store.DeliveryDone, time.Time{}, one), store.Finished{})
	equal(b, "attempts of what has gone", len(b.attempts(m, 1)), 0)
}

// An attempt in which its process died is on record, and uses none of the
// schedule up: it may never have been made.
func interruptedDelivery(b *bench) {
	m := b.merchant()
	b.announce(m, b.id(), 1, hook)
	die := func() {
		node := b.node()
		equal(b, "claimed", len(b.claimDeliveries(m, node, 1)), 1)
		b.write(func(tx *store.Tx) error {
			_, err := tx.ReleaseNode(b.Context(), store.Node{ID: node, Beat: 1})
			return err
		})
	}
	die()
	die()
	died := b.attempts(m, 1)
	equal(b, "on record", len(died), 2)
	for i, a := range died {
		equal(b, "died in it", a, store.Attempt{Delivery: a.Delivery, URL: hook, Number: i + 1, CreatedAt: a.CreatedAt})
	}
	node := b.id()
	d := b.claimDeliveries(m, node, 1)[0]
	equal(b, "attempts", d.Attempts, 3)
	equal(b, "attempts that ended, with this one", d.Ended, 1)
	b.finish(d, store.DeliveryPending, b.w.Clock.Now().Add(-time.Second), node)
	die()
	d = b.claimDeliveries(m, node, 1)[0]
	equal(b, "attempts", d.Attempts, 5)
	equal(b, "attempts that ended, with this one", d.Ended, 2)
}

func returnedDelivery(b *bench) {
	m, node := b.merchant(), b.id()
	b.announce(m, b.id(), 1, hook)
	d := b.claimDeliveries(m, node, 1)[0]
	b.write(func(tx *store.Tx) error { return tx.ReturnDelivery(b.Context(), d, b.now(), node) })
	attempts, err := b.s.Attempts(b.Context(), m.ID, 1)
	b.must(err)
	equal(b, "attempts", len(attempts), 0)
	equal(b, "attempts counted", b.claimDeliveries(m, node, 1)[0].Attempts, 1)
}

// Of many that are given back at once one has ended meanwhile, one is another's by
// now, and one is another merchant's.
func returnedTogether(b *bench) {
	m, other, one, two := b.merchant(), b.merchant(), b.node(), b.id()
	p := b.payin(m, "r")
	p.WebhookURL = hook
	b.storePayins(p)
	b.announce(m, p.ID, 1, hook)
	b.announce(m, b.id(), 3, hook)
	b.announce(other, b.id(), 1, hook)
	lost := b.claimDeliveries(m, one, 1)[0]
	_, err := b.release(store.Node{ID: one, Beat: 1})
	b.must(err)
	back := b.claimDeliveries(m, two, 10)
	back = append(back, b.claimDeliveries(other, two, 10)...)
	equal(b, "claimed", len(back), 5)
	b.write(func(tx *store.Tx) error { return tx.EndDeliveries(b.Context(), m.ID, p.ID, hook) })
	b.write(func(tx *store.Tx) error {
		b.must(tx.ReturnDelivery(b.Context(), lost, b.now(), one))
		for i, d := range back {
			at := b.now()
			if i == 2 {
				at = at.Add(time.Hour)
			}
			b.must(tx.ReturnDelivery(b.Context(), d, at, two))
		}
		return nil
	})
	for number, want := range []int{1, 0, 0, 0} { // of the one that was lost and then given back
		equal(b, "attempts", len(b.attempts(m, int64(number+1))), want)
	}
	due := b.claimDeliveries(m, two, 10)
	var numbers []int64
	for _, d := range due {
		numbers = append(numbers, d.Event.Number)
	}
	slices.Sort(numbers)
	equal(b, "due", fmt.Sprint(numbers), "[2 4]")
	equal(b, "due of the other merchant", len(b.claimDeliveries(other, two, 10)), 1)
	// Who ended is in nobody's hand: a process that dies leaves no attempt of it.
	b.write(func(tx *store.Tx) error { return tx.RegisterNode(b.Context(), two) })
	_, err = b.release(store.Node{ID: two, Beat: 1})
	b.must(err)
	equal(b, "attempts of the one that ended", len(b.attempts(m, 1)), 1)
	equal(b, "attempts of one that was claimed again", len(b.attempts(m, 2)), 1)
}

func endedDeliveries(b *bench) {
	m := b.merchant()
	p := b.payin(m, "r")
	p.WebhookURL = hook
	b.storePayins(p)
	b.announce(m, p.ID, 2, hook)
	b.announce(m, p.ID, 1, "https://other.example")
	b.announce(m, b.id(), 1, hook)
	b.write(func(tx *store.Tx) error {
		tell(tx, m.ID, p.ID, 3, hook)
		return tx.EndDeliveries(b.Context(), m.ID, p.ID, hook) // in one batch with news of the order
	})
	list := b.claimDeliveries(m, b.id(), 10)
	equal(b, "still due", len(list), 2)
	for i := range list {
		if list[i].Subject == p.ID && list[i].URL == hook {
			b.Error("a delivery that ended is due")
		}
	}
	got, err := b.s.Payin(b.Context(), m.ID, p.ID)
	b.must(err)
	equal(b, "the order's webhook has ended", got.WebhookEnded, true)
}

// One event is answered 410 while the order's next one is on its way to the
// same address, and fails there: it is not tried again.
func endedInFlight(b *bench) {
	m, node, subject := b.merchant(), b.id(), b.id()
	b.announce(m, subject, 2, hook)
	list := b.claimDeliveries(m, node, 10)
	b.finish(list[0], store.DeliveryEnded, time.Time{}, node)
	b.write(func(tx *store.Tx) error { return tx.EndDeliveries(b.Context(), m.ID, subject, hook) })
	f := b.finish(list[1], store.DeliveryPending, b.w.Clock.Now().Add(-time.Second), node)
	equal(b, "state", f.State, store.DeliveryEnded)
	equal(b, "due after the end", len(b.claimDeliveries(m, node, 10)), 0)
	attempts, err := b.s.Attempts(b.Context(), m.ID, list[1].EventNumber)
	b.must(err)
	equal(b, "answer on record", attempts[0].Status, 500)
}

func redelivered(b *bench) {
	m, node := b.merchant(), b.id()
	b.announce(m, b.id(), 1, hook)
	b.finish(b.claimDeliveries(m, node, 10)[0], store.DeliveryPending, b.w.Clock.Now().Add(-time.Second), node)
	second := b.claimDeliveries(m, node, 10)[0]
	equal(b, "attempts that ended, with this one", second.Ended, 2)
	b.finish(second, store.DeliveryDone, time.Time{}, node)
	var n int64
	again := func(tx *store.Tx) (err error) {
		n, err = tx.Redeliver(b.Context(), &payment.Event{Merchant: m.ID, Number: 1})
		equal(b, "wakes who delivers", tx.HasDeliveries(), true)
		return err
	}
	b.write(again)
	equal(b, "made due", n, 1)
	third := b.claimDeliveries(m, node, 10)
	equal(b, "claimed", len(third), 1)
	equal(b, "attempts", third[0].Attempts, 3)
	equal(b, "attempts of the new schedule, with this one", third[0].Ended, 1)
	b.write(again)
	equal(b, "made due while in hand", n, 0)
}

func givenUpDelivery(b *bench) {
	m, node, subject := b.merchant(), b.id(), b.id()
	b.announce(m, subject, 2, hook)
	list := b.claimDeliveries(m, node, 10)
	giveUp := func(d store.Delivery) payment.ID {
		b.Helper()
		f := b.finish(d, store.DeliveryExhausted, time.Time{}, node)
		equal(b, "state", f.State, store.DeliveryExhausted)
		b.write(func(tx *store.Tx) error {
			return tx.GiveUpDelivery(b.Context(), d, f.Exception, store.Exception{Merchant: m.ID, Kind: store.ExceptionWebhook, Subject: subject, Detail: "do this"})
		})
		return f.Exception
	}
	again := func(number int64) store.Delivery {
		b.Helper()
		b.write(func(tx *store.Tx) error {
			_, err := tx.Redeliver(b.Context(), &payment.Event{Merchant: m.ID, Number: number})
			return err
		})
		return b.claimDeliveries(m, node, 10)[0]
	}
	open := func() []store.Exception {
		b.Helper()
		exceptions, err := b.s.OpenExceptions(b.Context(), 10)
		b.must(err)
		return exceptions
	}
	equal(b, "told before", giveUp(list[0]), payment.ID{})
	equal(b, "told before of the other", giveUp(list[1]), payment.ID{})
	first := open()
	equal(b, "open", len(first), 2)
	told := giveUp(again(list[0].EventNumber))
	equal(b, "open when one was given up again", len(open()), 2)
	f := b.finish(again(list[0].EventNumber), store.DeliveryDone, time.Time{}, node)
	equal(b, "state", f.State, store.DeliveryDone)
	equal(b, "told of", f.Exception, told)
	b.write(func(tx *store.Tx) error { return tx.CloseException(b.Context(), m.ID, f.Exception, "it is over") })
	left := open()
	equal(b, "open when one is over", len(left), 1)
	equal(b, "the one that is over is open", left[0].ID == told, false)
	giveUp(again(list[0].EventNumber))
	equal(b, "open when it was given up anew", len(open()), 2)
}

func deliveriesDue(b *bench) {
	m, node := b.merchant(), b.id()
	b.announce(m, b.id(), 3, hook)
	now := b.w.Clock.Now()
	list := b.claimDeliveries(m, node, 10)
	equal(b, "claimed", len(list), 3)
	for i, d := range list {
		b.finish(d, store.DeliveryPending, now.Add(time.Duration(1-i)*time.Hour), node) // in an hour, now, an hour ago
	}
	isDue := func() bool {
		merchants, err := b.s.DeliveriesDue(b.Context(), now)
		b.must(err)
		for _, id := range merchants {
			if id == m.ID {
				return true
			}
		}
		return false
	}
	equal(b, "has due", isDue(), true)
	first, second := b.claimDeliveries(m, node, 1), b.claimDeliveries(m, node, 10)
	if len(first) != 1 || len(second) != 1 || first[0].ID != list[2].ID || second[0].ID != list[1].ID {
		b.Errorf("claimed %v, then %v", first, second)
	}
	equal(b, "has due when all are claimed", isDue(), false)
}
