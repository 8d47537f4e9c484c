package delivery_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// A receiver that answers 410 gets no more events of that order, neither pending nor
// future ones. Events of other orders still arrive.

func TestGoneDisablesPendingEvents(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Receivers.Always(410)
		r := coretest.PayoutRequest("r", 10_00)
		r.WebhookURL = wire.Some(hook)
		_, _, err := g.Payouts.Request(t.Context(), g.Merchant, r)
		g.Must(err)
		g.Send()
		g.WantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted) // both are pending
		g.Deliver()
		g.Jump(100 * time.Hour)
		g.Deliver()
		g.WantRequests(1)
		if n := len(attempts(g, g.Merchant, 1)) + len(attempts(g, g.Merchant, 2)); n != 1 {
			t.Errorf("%d attempts are recorded, and 1 was made", n)
		}
		g.WantCases() // the receiver requested it
	})
}

func TestGoneDisablesLaterEvents(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Receivers.Always(410)
		p := g.Canceled(g.Merchant, "r", hook)
		g.Deliver()
		g.Receivers.Always(200)
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.ReadFeeds()
		g.Deliver()
		g.WantEvents(payment.EventPayinCanceled, payment.EventPayinPaid)
		g.WantRequests(1)
		g.Canceled(g.Merchant, "another", hook)
		g.Deliver()
		g.WantRequests(2)
	})
}

// The last attempt of an event fails after the receiver has answered 410 to another one
// of the order: no case is opened.
func TestNoCaseOfADisabledEvent(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		addEvents(g, g.Merchant, 2, hook)
		list := claimDue(g, g.Merchant, 10)
		gone := ended(list[0], store.DeliveryDisabled, 410)
		g.Must(g.Writer.Do(g.T.Context(), gone))
		g.Must(g.Writer.Do(g.T.Context(), ended(list[1], store.DeliveryExhausted, 500)))
		g.WantCases()
	})
}
