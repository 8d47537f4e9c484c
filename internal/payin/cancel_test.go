package payin_test

import (
	"context"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/write"
)

func TestCancelDecisions(t *testing.T) {
	cancel := func(s *story) write.Operation { return s.Payins.NewCancel(s.Merchant.ID, s.payin.ID) }
	testDecisions(t, []decision{
		{name: "pending", op: cancel, changes: `
			payins next_at:in 1h0m0s→- status:PENDING→CANCELED version:2→3
			charges attempts:1→0 next_at:-→now state:made→cancel
			+events payin.canceled`},
		{name: "pending with a part paid", given: "pay A 40", op: cancel, changes: `
			payins next_at:in 1h0m0s→- status:PENDING→CANCELED version:3→4
			charges attempts:1→0 next_at:-→now state:made→cancel
			+events payin.canceled`},
		{name: "canceled already", given: "cancel", op: cancel},
		{name: "in analysis", given: "analyze", op: cancel, refused: problem.InvalidState},
		{name: "paid", given: "pay A 100", op: cancel, refused: problem.InvalidState},
		{name: "expired", given: "expire", op: cancel, refused: problem.InvalidState},
		{name: "failed", given: "fail", op: cancel, refused: problem.InvalidState},
		{name: "partially refunded", given: "pay A 100, refund 40", op: cancel, refused: problem.InvalidState},
		{name: "refunded", given: "pay A 100, refund 100", op: cancel, refused: problem.InvalidState},
		{name: "disputed", given: "pay A 100, dispute open", op: cancel, refused: problem.InvalidState},
		{name: "charged back", given: "pay A 100, dispute lost", op: cancel, refused: problem.InvalidState},
		{name: "unknown", op: func(s *story) write.Operation { return s.Payins.NewCancel(s.Merchant.ID, payment.ID{1}) }, refused: problem.NotFound},
		{name: "of another merchant", op: func(s *story) write.Operation { return s.Payins.NewCancel(payment.ID{}, s.payin.ID) }, refused: problem.NotFound},
	})
}

// A cancel that was committed is answered with the pay-in, even if its request's time ends at
// the same time.
func TestCancelWhoseTimeEnds(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "r", "")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got, err := g.Payins.Cancel(ctx, p.Merchant, p.ID)
		g.Must(err)
		if got.ID != p.ID || got.Status != payment.PayinCanceled {
			t.Errorf("the answer is %s %s", got.ID, got.Status)
		}
	})
}
