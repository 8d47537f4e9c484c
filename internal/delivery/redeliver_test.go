package delivery_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

func TestRedeliver(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Canceled(g.Merchant, "r", hook)
		g.Deliver()
		event := eventOf(g, g.Merchant, 1)
		g.Must(g.Deliveries.Redeliver(t.Context(), g.Merchant.ID, event.ID))
		g.Deliver()
		list := g.WantRequests(2)
		if list[0].ID != list[1].ID || list[0].Body != list[1].Body {
			t.Errorf("sent %+v, then %+v", list[0], list[1])
		}
		if recorded := attempts(g, g.Merchant, 1); len(recorded) != 2 || recorded[1].Number != 2 || recorded[1].Status != 200 {
			t.Errorf("recorded: %+v", recorded)
		}
		g.Jump(time.Hour)
		g.Deliver()
		g.WantRequests(2)

		g.Canceled(g.Merchant, "goes nowhere", "")
		if err := g.Deliveries.Redeliver(t.Context(), g.Merchant.ID, eventOf(g, g.Merchant, 2).ID); !problem.Is(err, problem.InvalidState) {
			t.Errorf("an event without a URL: %v", err)
		}
		if err := g.Deliveries.Redeliver(t.Context(), addMerchant(g, "other", "").ID, event.ID); !problem.Is(err, problem.NotFound) {
			t.Errorf("an event of another merchant: %v", err)
		}
		event.ID[15]++
		if err := g.Deliveries.Redeliver(t.Context(), g.Merchant.ID, event.ID); !problem.Is(err, problem.NotFound) {
			t.Errorf("an event that does not exist: %v", err)
		}
	})
}

// An event that is being delivered now is not delivered a second time.
func TestRedeliverWhileItIsDelivered(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		addEvents(g, g.Merchant, 1, hook)
		claimDue(g, g.Merchant, 1)
		event := eventOf(g, g.Merchant, 1)
		if err := g.Deliveries.Redeliver(t.Context(), g.Merchant.ID, event.ID); !problem.Is(err, problem.InvalidState) {
			t.Errorf("an event that is being delivered: %v", err)
		}
	})
}

// An event whose last attempt failed gets the complete schedule again when it is
// requested. There is one case until the receiver has accepted it.
func TestRedeliverAfterTheLastAttempt(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Receivers.Always(500)
		g.Canceled(g.Merchant, "r", hook)
		exhaust(g, 1)
		g.WantRequests(11)
		g.WantCases(store.CaseWebhook)

		g = g.Second() // one that has not seen the receiver fail
		redeliver(g)
		for i, wait := range waits {
			g.Jump(wait - wait/10 - time.Second)
			g.Deliver()
			g.WantRequests(12 + i)
			g.Jump(wait/5 + 2*time.Second)
			g.Deliver()
			g.WantRequests(13 + i)
		}
		g.Jump(100 * time.Hour)
		g.Deliver()
		g.WantRequests(22)
		g.WantCases(store.CaseWebhook) // and not two

		g.Receivers.Always(200)
		redeliver(g)
		g.WantRequests(23)
		g.WantCases()
		if list := attempts(g, g.Merchant, 1); len(list) != 23 || list[22].Number != 23 || list[22].Status != 200 {
			t.Errorf("recorded: %+v", list)
		}
		g.Jump(100 * time.Hour)
		g.Deliver()
		g.WantRequests(23)

		g.Receivers.Always(500) // it lost the event, requests it again, and does not accept it
		redeliver(g)
		exhaust(g, 1)
		g.WantCases(store.CaseWebhook)
	})
}

// The case of an event is also closed if one of the later attempts succeeds, or if the
// receiver answers 410.
func TestCaseEndsWithItsDelivery(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		for _, status := range []int{200, 410} {
			g := g.For(g.T)
			before := len(g.Receivers.Requests())
			g.Receivers.Always(500)
			g.Canceled(g.Merchant, "r", hook)
			exhaust(g, 1)
			redeliver(g)
			g.WantRequests(before + 12)
			g.WantCases(store.CaseWebhook)
			g.Receivers.Always(status)
			g.Jump(2 * time.Minute)
			g.Deliver()
			g.WantRequests(before + 13)
			g.WantCases()
		}
	})
}

// If the attempts of two events of one order failed, each has a case of its own.
func TestCasesOfOneOrder(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Receivers.Always(500)
		addEvents(g, g.Merchant, 2, hook)
		exhaust(g, 3)
		g.WantCases(store.CaseWebhook, store.CaseWebhook)
		g.Receivers.Always(200)
		redeliver(g)
		g.WantCases(store.CaseWebhook)
	})
}
