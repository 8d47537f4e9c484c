package storetest

import (
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var deliveryAgeTests = []test{
	{"finished deliveries go by their age, with their attempts, and nothing else", removedDeliveries},
	{"a delivery that was asked for again since stays", removedInTime},
	{"a removed delivery is made anew, once, when it is asked for", remadeDelivery},
	{"the time before which deliveries may be gone only grows, a day at a time", removalNoted},
}

func (b *bench) remove(v store.Old, before time.Time) (n int64) {
	b.Helper()
	b.write(func(tx *store.Tx) (err error) {
		n, err = tx.RemoveDeliveries(b.Context(), v, before)
		return err
	})
	return n
}

func (b *bench) old(m store.Merchant, after payment.ID, before time.Time, limit int) store.Old {
	b.Helper()
	v, err := b.s.OldDeliveries(b.Context(), m.ID, after, before, limit)
	b.must(err)
	return v
}

// tried is how many attempts of an event are on record.
func (b *bench) tried(m store.Merchant, number int64) int {
	b.Helper()
	list, err := b.s.Attempts(b.Context(), m.ID, number)
	b.must(err)
	return len(list)
}

func removedDeliveries(b *bench) {
	m, other, node := b.merchant(), b.merchant(), b.id()
	b.announce(m, b.id(), 6, hook)
	b.announce(other, b.id(), 1, hook)
	list := b.claimDeliveries(m, node, 5) // the sixth waits
	for i, state := range []string{store.DeliveryDone, store.DeliveryExhausted, store.DeliveryEnded, store.DeliveryPending} {
		next := time.Time{}
		if state == store.DeliveryPending {
			next = b.w.Clock.Now().Add(time.Hour)
		}
		b.finish(list[i], state, next, node)
	}
	b.finish(b.claimDeliveries(other, node, 1)[0], store.DeliveryDone, time.Time{}, node)

	now := b.w.Clock.Now()
	equal(b, "older than an hour", b.old(m, none, now.Add(-time.Hour), 10).Count, 0)
	before := now.Add(time.Hour)
	var looked, finished int
	var removed int64
	for after := none; ; {
		v := b.old(m, after, before, 4)
		looked, finished, after = looked+v.Count, finished+v.Finished, v.Last
		removed += b.remove(v, before)
		if v.Count < 4 {
			break
		}
	}
	equal(b, "looked at", looked, 6)
	equal(b, "finished", finished, 2)
	equal(b, "removed", removed, 2)
	for i, want := range []int{0, 1, 0, 1, 1} {
		equal(b, "attempts of the delivery that was "+list[i].State, b.tried(m, list[i].EventNumber), want)
	}
	equal(b, "left", b.old(m, none, before, 10).Count, 4)
	equal(b, "left of the other merchant", b.old(other, none, before, 10).Count, 1)
	equal(b, "attempts of the other merchant", b.tried(other, 1), 1)
	events, err := b.s.Events(b.Context(), m.ID, 0, 10)
	b.must(err)
	equal(b, "events", len(events), 6)
	equal(b, "still to be delivered", len(b.claimDeliveries(m, node, 10)), 1)
}

// The piece was looked at, and then somebody asked for one of it again.
func removedInTime(b *bench) {
	m, node := b.merchant(), b.id()
	b.announce(m, b.id(), 2, hook)
	for _, d := range b.claimDeliveries(m, node, 2) {
		b.finish(d, store.DeliveryDone, time.Time{}, node)
	}
	before := b.w.Clock.Now().Add(time.Hour)
	v := b.old(m, none, before, 10)
	equal(b, "finished", v.Finished, 2)
	b.write(func(tx *store.Tx) error {
		_, err := tx.Redeliver(b.Context(), &payment.Event{Merchant: m.ID, Number: 1})
		return err
	})
	equal(b, "removed", b.remove(v, before), 1)
	equal(b, "attempts of the one that was asked for", b.tried(m, 1), 1)
	again := b.claimDeliveries(m, node, 10)
	equal(b, "due", len(again), 1)
	equal(b, "attempts", again[0].Attempts, 2)

	// One that is in hand, or whose end is not long past, stays as well.
	equal(b, "removed while in hand", b.remove(b.old(m, none, before, 10), before), 0)
	b.finish(again[0], store.DeliveryDone, time.Time{}, node)
	v = b.old(m, none, before, 10)
	equal(b, "removed right after its end", b.remove(v, b.w.Clock.Now().Add(-time.Minute)), 0)
}

func remadeDelivery(b *bench) {
	m, node := b.merchant(), b.id()
	p := b.payin(m, "p")
	p.WebhookURL = hook
	b.storePayins(p)
	var e payment.Event
	b.write(func(tx *store.Tx) error {
		tx.Announce(payment.Event{Merchant: m.ID, Type: payment.EventPayinPaid, Subject: p.ID, Version: 2}, []byte(`{}`), hook)
		return nil
	})
	list, err := b.s.Events(b.Context(), m.ID, 0, 1)
	b.must(err)
	e = list[0]
	again := func() (n int64) {
		b.Helper()
		b.write(func(tx *store.Tx) (err error) {
			n, err = tx.Redeliver(b.Context(), &e)
			return err
		})
		return n
	}
	before := b.w.Clock.Now().Add(time.Hour)
	b.finish(b.claimDeliveries(m, node, 1)[0], store.DeliveryDone, time.Time{}, node)
	equal(b, "removed", b.remove(b.old(m, none, before, 10), before), 1)
	equal(b, "made anew", again(), 1)
	d := b.claimDeliveries(m, node, 10)
	equal(b, "due", len(d), 1)
	equal(b, "event", d[0].Event.ID, e.ID)
	equal(b, "address", d[0].URL, hook)
	equal(b, "attempts", d[0].Attempts, 1)
	equal(b, "made anew while in hand", again(), 0)
	b.finish(d[0], store.DeliveryDone, time.Time{}, node)
	equal(b, "made due, as it is there", again(), 1)
	equal(b, "deliveries", b.old(m, none, before, 10).Count, 1)

	// The receiver wants no more news of the order.
	b.write(func(tx *store.Tx) error { return tx.EndDeliveries(b.Context(), m.ID, p.ID, hook) })
	equal(b, "removed after the end", b.remove(b.old(m, none, before, 10), before), 1)
	equal(b, "made anew after the end", again(), 0)
}

func removalNoted(b *bench) {
	const kept = 30 * 24 * time.Hour
	note := func(at time.Time) (border time.Time, text string) {
		b.Helper()
		b.write(func(tx *store.Tx) (err error) {
			border, err = tx.NoteRemoval(b.Context(), at, kept)
			return err
		})
		text, err := b.s.Setting(b.Context(), store.SettingRemoved)
		b.must(err)
		return border, text
	}
	now := b.w.Clock.Now().Truncate(time.Microsecond)
	begun := now.Add(-kept)
	first, noted := note(begun.Add(time.Hour))
	equal(b, "an hour from the beginning", first, begun.Add(time.Hour))
	earlier, again := note(begun)
	equal(b, "an earlier time", earlier, begun)
	equal(b, "what is noted after an earlier time", again, noted)
	far, noted := note(now.Add(365 * 24 * time.Hour))
	equal(b, "by a clock a year ahead", far, first.Add(24*time.Hour))
	equal(b, "what is noted by it", noted, strconv.FormatInt(far.UnixMicro(), 10))
	far, _ = note(now.Add(365 * 24 * time.Hour))
	equal(b, "by it once more", far, first.Add(48*time.Hour))
}
