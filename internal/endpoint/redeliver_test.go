package endpoint_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// again requests a range, and does it.
func (g hooks) again(r wire.RedeliverRequest) (count int) {
	g.T.Helper()
	count, err := g.Deliveries.RedeliverRange(g.T.Context(), actor.System, g.Merchant.ID, &r)
	g.Must(err)
	g.Run(g.Deliveries.RedeliverRanges)
	g.work()
	return count
}

// A range is sent again to each URL that has it, by types and times, and to nobody else.
func TestRedeliverRange(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		from := g.Clock.Now()
		g.cancel("a", coretest.Hook)
		e := g.add(url, "payin.canceled")
		g.Jump(time.Minute)
		half := g.Clock.Now()
		g.cancel("b", coretest.Hook)
		g.cancel("c", "")
		g.work()
		g.WantRequests(4)
		if n := g.again(wire.RedeliverRequest{From: from, To: half}); n != 1 {
			t.Errorf("the first half has %d", n)
		}
		g.wantReceived(coretest.Hook, "payin.canceled a", "payin.canceled b", "payin.canceled a")
		list, err := g.Store.AuditList(t.Context(), store.AuditFilter{Limit: 1})
		g.Must(err)
		if e := list[0]; e.Noun != store.NounEvents || e.Action != "redeliver" || e.Actor != actor.System || e.Merchant != g.Merchant.ID || !strings.Contains(e.After, `"types":["payin.canceled"]`) {
			t.Errorf("the audit has %+v", e)
		}
		if n := g.again(wire.RedeliverRequest{From: half, To: half.Add(time.Hour), Types: wire.Some([]string{"payin.paid", "payout.*"})}); n != 0 {
			t.Errorf("%d of other types", n)
		}
		g.WantRequests(5)
		if n := g.again(wire.RedeliverRequest{From: from, To: half.Add(time.Hour), Endpoint: e.ID}); n != 3 {
			t.Errorf("%d to the endpoint", n)
		}
		g.WantRequests(8)
		if got := g.received(url); len(got) != 5 { // it never got the first one
			t.Errorf("the endpoint got %q", got)
		}
		if n := g.again(wire.RedeliverRequest{From: from, To: half.Add(time.Hour)}); n != 3 {
			t.Errorf("%d in all", n)
		}
		g.WantRequests(8 + 5)
		g.enable(e, false)
		_, err = g.Deliveries.RedeliverRange(t.Context(), actor.System, g.Merchant.ID, &wire.RedeliverRequest{From: from, To: half, Endpoint: e.ID})
		if !problem.Is(err, problem.InvalidState) {
			t.Errorf("to a disabled endpoint: %v", err)
		}
		_, err = g.Deliveries.RedeliverRange(t.Context(), actor.System, g.Merchant.ID, &wire.RedeliverRequest{From: from, To: half, Endpoint: payment.ID{1}})
		if !problem.Is(err, problem.ValidationFailed) {
			t.Errorf("to no endpoint: %v", err)
		}
		g.WantProven()
	})
}

// Events of creation go to endpoints only: if they have no delivery, they are not sent again to
// the URLs of their orders.
func TestRedeliverCreated(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		from := g.Clock.Now()
		e := g.add(url, "*")
		g.enable(e, false)
		g.Payin(g.Merchant, "a", coretest.Hook)
		r := coretest.PayoutRequest("b", 1)
		r.WebhookURL = wire.Some(coretest.Hook)
		_, _, err := g.Payouts.Request(t.Context(), g.Merchant, r)
		g.Must(err)
		all := wire.RedeliverRequest{From: from, To: from.Add(time.Hour)}
		g.again(all)
		events, err := g.Store.Events(t.Context(), g.Merchant.ID, 0, 10)
		g.Must(err)
		for i, want := range []payment.EventType{payment.EventPayinCreated, payment.EventPayoutCreated} {
			if events[i].Type != want {
				t.Errorf("event %d is %s, want %s", i+1, events[i].Type, want)
			}
			if err := g.Deliveries.Redeliver(t.Context(), g.Merchant.ID, events[i].ID); !problem.Is(err, problem.InvalidState) {
				t.Errorf("%s is sent again: %v", events[i].Type, err)
			}
		}
		g.work()
		g.WantRequests(0)
		g.enable(e, true)
		g.work()
		want := []string{"payin.created a", "payout.created b"}
		g.wantReceived(url, want...)
		g.again(all)
		g.Must(g.Deliveries.Redeliver(t.Context(), g.Merchant.ID, events[0].ID))
		g.work()
		g.wantReceived(url, append(append(want, want...), want[0])...)
		g.wantReceived(coretest.Hook)
		g.WantProven()
	})
}

// A range is done in bounded steps, and only so many are accepted at a time.
func TestRedeliverInSteps(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		from := g.Clock.Now()
		for i := range 70 {
			g.cancel(fmt.Sprint(i), coretest.Hook)
		}
		g.work()
		r := &wire.RedeliverRequest{From: from, To: from.Add(time.Hour)}
		for i := range 11 {
			n, err := g.Deliveries.RedeliverRange(t.Context(), actor.System, g.Merchant.ID, r)
			if i < 10 && (n != 70 || err != nil) || i == 10 && (!problem.Is(err, problem.RateLimited) || problem.From(err).Quota.Most != 10) {
				t.Fatalf("range %d: %d, %v", i, n, err)
			}
		}
		if n, err := g.Deliveries.RedeliverRanges(t.Context()); n != 640 || err != nil {
			t.Errorf("the first step did %d, %v", n, err)
		}
		g.Run(g.Deliveries.RedeliverRanges)
		list, err := g.Store.Redeliveries(t.Context(), payment.ID{}, 5)
		if err != nil || len(list) != 0 {
			t.Errorf("left %+v, %v", list, err)
		}
		g.work()
		g.WantRequests(140)
	})
}

// Merchants take turns: the ranges of one merchant delay no other merchant's, however many
// merchants there are.
func TestRangesOfMerchantsTakeTurns(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		from := g.Clock.Now()
		request := func(m store.Merchant, ranges int) {
			t.Helper()
			g.Canceled(m, "a", coretest.Hook)
			for range ranges {
				n, err := g.Deliveries.RedeliverRange(t.Context(), actor.System, m.ID, &wire.RedeliverRequest{From: from, To: from.Add(time.Hour)})
				if n != 1 || err != nil {
					t.Fatalf("%d, %v", n, err)
				}
			}
		}
		for range 20 {
			request(g.For(t).Merchant, 10)
		}
		done := func() (merchants int) {
			t.Helper()
			_, err := g.Deliveries.RedeliverRanges(t.Context())
			g.Must(err)
			list, err := g.Store.Redeliveries(t.Context(), payment.ID{}, 1000)
			g.Must(err)
			left := map[payment.ID]int{}
			for i := range list {
				left[list[i].Merchant]++
			}
			for _, n := range left {
				if n < 10 {
					merchants++
				}
			}
			return merchants
		}
		if n := done(); n != 16 {
			t.Errorf("the first step served %d merchants, want 16", n)
		}
		if n := done(); n != 20 {
			t.Errorf("two steps served %d merchants, want 20", n)
		}
	})
}

// A rotated secret of a merchant signs beside the one before, until the overlap has passed.
func TestRotateMerchantSecret(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		secret, err := g.Merchants.RotateWebhookSecret(t.Context(), g.Merchant.ID, actor.System, time.Hour)
		g.Must(err)
		if now, err := g.Store.WebhookSecret(t.Context(), g.Merchant.ID); now != secret || err != nil {
			t.Errorf("%v", err)
		}
		g.cancel("a", coretest.Hook)
		g.work()
		g.Jump(time.Hour)
		g.cancel("b", coretest.Hook)
		g.work()
		for i, want := range []int{2, 1} {
			if got := len(strings.Fields(g.WantRequests(2)[i].Header.Get("Webhook-Signature"))); got != want {
				t.Errorf("request %d has %d signatures, want %d", i, got, want)
			}
		}
	})
}
