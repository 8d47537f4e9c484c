package jobs_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/store"
)

// inVain lets the whole schedules of n deliveries go by. Their receiver is sick
// by then, and gets one at a time.
func (g *gateway) inVain(n int) {
	g.t.Helper()
	g.deliver()
	for range n * len(waits) {
		g.leap(28 * time.Hour)
		g.deliver()
	}
}

// again asks for the merchant's first event to be sent again, when its receiver
// has rested.
func (g *gateway) again() {
	g.t.Helper()
	g.leap(2 * time.Minute)
	g.must(g.flow.Redeliver(g.t.Context(), g.merchant.ID, g.event(g.merchant, 1).ID))
	g.deliver()
}

// A receiver that was given up gets the whole schedule anew when it is asked
// for. A person is told once, until the receiver has the news.
func TestRedeliverAfterTheLastAttempt(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.web.always(500)
		g.canceled(g.merchant, "r", hook)
		g.inVain(1)
		g.wantRequests(11)
		g.wantExceptions(store.ExceptionWebhook)

		g = g.second() // one that has not seen the receiver fail
		g.again()
		for i, wait := range waits {
			g.leap(wait - wait/10 - time.Second)
			g.deliver()
			g.wantRequests(12 + i)
			g.leap(wait/5 + 2*time.Second)
			g.deliver()
			g.wantRequests(13 + i)
		}
		g.leap(100 * time.Hour)
		g.deliver()
		g.wantRequests(22)
		g.wantExceptions(store.ExceptionWebhook) // and not two

		g.web.always(200)
		g.again()
		g.wantRequests(23)
		g.wantExceptions()
		if list := g.attempts(g.merchant, 1); len(list) != 23 || list[22].Number != 23 || list[22].Status != 200 {
			t.Errorf("on record: %+v", list)
		}
		g.leap(100 * time.Hour)
		g.deliver()
		g.wantRequests(23)

		g.web.always(500) // it loses what it had, asks again, and does not take it
		g.again()
		g.inVain(1)
		g.wantExceptions(store.ExceptionWebhook)
	})
}

// What was given up is over when one of the later attempts succeeds, too, or
// when the receiver says that it wants no more.
func TestExceptionEndsWithItsDelivery(t *testing.T) {
	for _, status := range []int{200, 410} {
		each(t, func(t *testing.T, g *gateway) {
			g.web.always(500)
			g.canceled(g.merchant, "r", hook)
			g.inVain(1)
			g.again()
			g.wantRequests(12)
			g.wantExceptions(store.ExceptionWebhook)
			g.web.always(status)
			g.leap(2 * time.Minute)
			g.deliver()
			g.wantRequests(13)
			g.wantExceptions()
		})
	}
}

// Two events of one order are given up. Each has a person's attention for itself.
func TestExceptionsOfOneOrder(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.web.always(500)
		g.announce(g.merchant, 2, hook)
		g.inVain(3)
		g.wantExceptions(store.ExceptionWebhook, store.ExceptionWebhook)
		g.web.always(200)
		g.again()
		g.wantExceptions(store.ExceptionWebhook)
	})
}

// The last attempt of an event fails after the receiver has said of another one
// that it wants no more news of the order: nothing is left for a person to do.
func TestNothingIsGivenUpThatEnded(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.announce(g.merchant, 2, hook)
		list, err := g.flow.ClaimDeliveries(t.Context(), g.merchant.ID, 10)
		g.must(err)
		gone := exhausted(list[0])
		gone.Delivery.State, gone.Gone = store.DeliveryEnded, true
		g.must(g.flow.EndDelivery(t.Context(), gone))
		g.must(g.flow.EndDelivery(t.Context(), exhausted(list[1])))
		g.wantExceptions()
	})
}
