package payin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

func TestExpireDecisions(t *testing.T) {
	expire := func(s *story) write.Operation {
		s.Clock.Advance(time.Hour)
		return s.Payins.NewExpire(store.Ref{Merchant: s.Merchant.ID, ID: s.payin.ID})
	}
	testDecisions(t, []decision{
		{name: "not due", op: func(s *story) write.Operation {
			s.Clock.Advance(time.Hour - time.Millisecond)
			return s.Payins.NewExpire(store.Ref{Merchant: s.Merchant.ID, ID: s.payin.ID})
		}},
		{name: "due", op: expire, changes: `
			payins next_at:now→- status:PENDING→EXPIRED version:2→3
			charges attempts:1→0 next_at:-→now state:made→cancel
			+events payin.expired`},
		{name: "due with a part paid", given: "pay A 40", op: expire, changes: `
			payins next_at:now→- status:PENDING→EXPIRED version:3→4
			charges attempts:1→0 next_at:-→now state:made→cancel
			+events payin.expired`},
		{name: "expired already", given: "expire", op: expire},
		{name: "canceled", given: "cancel", op: expire},
		{name: "in analysis", given: "analyze", op: expire},
		{name: "paid", given: "pay A 100", op: expire},
		{name: "failed", given: "fail", op: expire},
		{name: "refunded", given: "pay A 100, refund 100", op: expire},
		{name: "disputed", given: "pay A 100, dispute open", op: expire},
		{name: "unknown", op: func(s *story) write.Operation {
			return s.Payins.NewExpire(store.Ref{Merchant: s.Merchant.ID, ID: payment.ID{1}})
		}},
	})
}

// The worker expires overdue pay-ins, in batches, and counts them.
func TestExpire(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		var orders []payment.Payin
		for i := range 5 {
			orders = append(orders, g.Payin(g.Merchant, fmt.Sprint(i), ""))
		}
		_, err := g.Payins.Cancel(t.Context(), g.Merchant.ID, orders[4].ID)
		g.Must(err)
		if did, err := g.Payins.Expire(t.Context()); did != 0 || err != nil {
			t.Errorf("expired %d, %v, before the time was over", did, err)
		}
		g.Clock.Advance(time.Hour)
		if did, err := g.Payins.Expire(t.Context()); did != 4 || err != nil {
			t.Errorf("expired %d, %v, want 4", did, err)
		}
		for _, p := range orders[:4] {
			g.WantPayin(p, payment.PayinExpired, 0, 0)
		}
		g.WantPayin(orders[4], payment.PayinCanceled, 0, 0)
		if did, err := g.Payins.Expire(t.Context()); did != 0 || err != nil {
			t.Errorf("expired %d, %v, when all had expired", did, err)
		}
		g.WantEvents(payment.EventPayinCanceled, payment.EventPayinExpired, payment.EventPayinExpired, payment.EventPayinExpired, payment.EventPayinExpired)
		g.WantProven()
	})
}
