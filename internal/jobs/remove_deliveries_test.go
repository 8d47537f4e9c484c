package jobs_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// retention is for how long these tests keep deliveries.
const retention = 30 * 24 * time.Hour

// keeping gives the process jobs that keep deliveries for a time.
func (g *gateway) keeping(d time.Duration) {
	g.t.Helper()
	g.assembly.Retention = d
	g.assemble()
	g.beat()
}

func (g *gateway) remove() { g.t.Helper(); g.run(g.jobs.RemoveDeliveries) }

// catchUp lets the border of removal come to where the clock wants it, as it
// does by the hour where nobody advances the clock by weeks.
func (g *gateway) catchUp() {
	g.t.Helper()
	for range 3 * retention / (24 * time.Hour) {
		_, err := g.flow.BeginRemoval(g.t.Context(), g.clock.Now().Add(-g.assembly.Retention), g.assembly.Retention)
		g.must(err)
	}
}

// wantSound proves the merchant's books.
func (g *gateway) wantSound() {
	g.t.Helper()
	proofs, err := g.store.Verify(g.t.Context(), g.merchant.ID)
	g.must(err)
	for i := range proofs {
		if len(proofs[i].Faults) > 0 {
			g.t.Errorf("%s: %+v", proofs[i].Check, proofs[i].Faults)
		}
	}
}

// What was delivered goes when it is old enough; what waits for its receiver or
// for a person stays, and so do events, which are sent again when asked for.
func TestRemoveDeliveries(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.keeping(retention)
		g.canceled(g.merchant, "taken", hook)
		g.deliver()
		g.web.always(500)
		g.canceled(g.merchant, "given up", hook)
		g.inVain(1)
		g.wantExceptions(store.ExceptionWebhook)
		g.canceled(g.merchant, "waiting", hook)
		g.leap(2 * time.Minute) // its receiver is sick, and rests
		g.deliver()

		g.leap(removalRest)
		g.remove()
		if n := len(g.attempts(g.merchant, 1)); n != 1 {
			t.Fatalf("%d attempts of a young delivery on record", n)
		}
		g.leap(retention + removalRest)
		g.catchUp()
		g.remove()
		for number, want := range map[int64]int{1: 0, 2: 11, 3: 1} {
			if n := len(g.attempts(g.merchant, number)); n != want {
				t.Errorf("%d attempts of event %d on record, want %d", n, number, want)
			}
		}
		g.wantExceptions(store.ExceptionWebhook)
		g.wantEvents(payment.EventPayinCanceled, payment.EventPayinCanceled, payment.EventPayinCanceled)
		g.wantSound()

		g.web.always(200)
		g.deliver()
		before := len(g.web.requests())
		g.must(g.flow.Redeliver(t.Context(), g.merchant.ID, g.event(g.merchant, 1).ID))
		g.deliver()
		list := g.wantRequests(before + 1)
		if first, last := list[0], list[before]; first.id != last.id || first.body != last.body || first.url != last.url {
			t.Errorf("sent %+v, then %+v", first, last)
		}
		if list := g.attempts(g.merchant, 1); len(list) != 1 || list[0].Number != 1 || list[0].Status != 200 {
			t.Errorf("on record: %+v", list)
		}
		g.wantSound()
	})
}

// removalRest is longer than the duty rests between two walks.
const removalRest = 2 * time.Hour

// More than one commit removes go one after another, and more than one run of
// the duty does in the next one.
func TestRemoveManyDeliveries(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		const n = 1100
		g.keeping(retention)
		p := g.canceled(g.merchant, "many", hook)
		g.must(g.store.Write(t.Context(), func(tx *store.Tx) error {
			for range n {
				tx.Announce(payment.Event{Merchant: g.merchant.ID, Type: payment.EventPayinCanceled, Subject: p.ID, Version: 2}, []byte(`{}`), hook)
			}
			return nil
		}))
		for range n / 64 * 2 {
			g.deliver()
		}
		left := func() int {
			t.Helper()
			old, err := g.store.OldDeliveries(t.Context(), g.merchant.ID, payment.ID{}, g.clock.Now(), 2*n)
			g.must(err)
			return old.Finished
		}
		g.clock.Advance(time.Second)
		if left() != n+1 {
			t.Fatalf("%d are finished", left())
		}
		g.leap(retention + removalRest)
		g.catchUp()
		g.remove()
		if got := left(); got == 0 || got == n+1 {
			t.Errorf("%d left after one run", got)
		}
		g.remove()
		if got := left(); got != 0 {
			t.Errorf("%d left after two", got)
		}
	})
}

// The merchants of a gateway come one after another, and the walk begins anew
// when it has rested.
func TestRemoveDeliveriesOfAll(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.keeping(retention)
		other := g.merchantNamed("other", "")
		for i := range 2 {
			g.canceled(g.merchant, "r"+strconv.Itoa(i), hook)
			g.canceled(other, "r"+strconv.Itoa(i), hook)
			g.deliver()
			g.leap(retention / 2)
			g.leap(removalRest)
			g.catchUp()
			g.remove()
		}
		for _, m := range []store.Merchant{g.merchant, other} {
			if first, second := len(g.attempts(m, 1)), len(g.attempts(m, 2)); first != 0 || second != 1 {
				t.Errorf("%s: %d and %d attempts on record", m.Name, first, second)
			}
		}
		g.leap(retention)
		g.catchUp()
		g.remove()
		if n := len(g.attempts(other, 2)); n != 0 {
			t.Errorf("%d attempts left", n)
		}
	})
}

// News that nobody took waits for a person no longer once the receiver wants no
// more of its order, and goes when it is old enough.
func TestRemoveWhatWasGivenUp(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.keeping(retention)
		g.web.always(500)
		p := g.canceled(g.merchant, "ended", hook)
		g.canceled(g.merchant, "waits", hook)
		g.inVain(2)
		g.wantExceptions(store.ExceptionWebhook, store.ExceptionWebhook)
		g.web.always(410)
		g.must(g.store.Write(t.Context(), func(tx *store.Tx) error {
			tx.Announce(payment.Event{Merchant: g.merchant.ID, Type: payment.EventPayinPaid, Subject: p.ID, Version: 3}, []byte(`{}`), hook)
			return nil
		}))
		g.leap(2 * time.Minute)
		g.deliver()
		g.wantExceptions(store.ExceptionWebhook)

		g.leap(retention / 10)
		g.catchUp()
		g.remove()
		if n := len(g.attempts(g.merchant, 1)); n != 11 {
			t.Errorf("%d attempts on record while it is young", n)
		}
		g.leap(retention + removalRest)
		g.catchUp()
		g.remove()
		for number, want := range map[int64]int{1: 0, 2: 11, 3: 0} {
			if n := len(g.attempts(g.merchant, number)); n != want {
				t.Errorf("%d attempts of event %d on record, want %d", n, number, want)
			}
		}
		g.wantExceptions(store.ExceptionWebhook)
		if list, err := g.store.Events(t.Context(), g.merchant.ID, 0, 10); err != nil || len(list) != 3 {
			t.Errorf("%d events, %v", len(list), err)
		}
	})
}

// A clock that runs ahead for a while takes little before its time: a day with
// each walk, and nothing once it is right.
func TestRemoveByAClockThatRanAhead(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		defer g.clock.SetOffset(0)
		g.keeping(retention)
		for i := range 4 { // an event each ten days
			g.canceled(g.merchant, "r"+strconv.Itoa(i), hook)
			g.deliver()
			if i < 3 {
				g.leap(10*24*time.Hour - removalRest)
				g.catchUp()
				g.remove()
				g.leap(removalRest)
			}
		}
		left := func(want ...int) {
			t.Helper()
			for i, n := range want {
				if got := len(g.attempts(g.merchant, int64(i+1))); got != n {
					t.Errorf("%d attempts of event %d on record, want %d", got, i+1, n)
				}
			}
			g.wantSound()
		}
		left(1, 1, 1, 1) // the first is as old as may be
		g.clock.SetOffset(365 * 24 * time.Hour)
		for range 3 {
			g.leap(removalRest)
			g.remove()
		}
		left(0, 1, 1, 1)
		g.clock.SetOffset(0)
		g.leap(removalRest)
		g.catchUp()
		g.remove()
		left(0, 1, 1, 1)
		g.leap(10 * 24 * time.Hour)
		g.catchUp()
		g.remove()
		left(0, 0, 1, 1)
	})
}

func TestKeepDeliveriesForEver(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.keeping(0)
		g.canceled(g.merchant, "r", hook)
		g.deliver()
		g.leap(100 * 365 * 24 * time.Hour)
		g.remove()
		if n := len(g.attempts(g.merchant, 1)); n != 1 {
			t.Errorf("%d attempts on record", n)
		}
	})
}

// An order whose receiver wanted no more news gets none of what was removed.
func TestRemovedAfterTheEnd(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.keeping(retention)
		g.web.always(410)
		g.canceled(g.merchant, "r", hook)
		g.deliver()
		g.leap(retention + removalRest)
		g.catchUp()
		g.remove()
		g.web.always(200)
		if err := g.flow.Redeliver(t.Context(), g.merchant.ID, g.event(g.merchant, 1).ID); !problem.Is(err, problem.InvalidState) {
			t.Errorf("redelivered: %v", err)
		}
		g.deliver()
		g.wantRequests(1)
		g.wantSound()
	})
}
