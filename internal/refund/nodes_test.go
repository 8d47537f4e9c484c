package refund_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// Two nodes get the same references for refunds of two pay-ins, while the merchant pays its money out.
func TestRefundsAndPayoutsOfTwoNodes(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		payins := []payment.Payin{g.PaidPayin("p", 30_00, 70_00), g.PaidPayin("q", 100_00)}
		nodes := []*coretest.Gateway{g, g.Second()}
		for _, v := range nodes {
			v.Writer.Start()
			t.Cleanup(v.Writer.Stop)
		}
		g.Payout("most", int64(coretest.Opening))
		var all sync.WaitGroup
		var held atomic.Int64
		for i := range 32 {
			all.Go(func() {
				v, reference := nodes[i%2], fmt.Sprint("r", i/4)
				r, replayed, err := v.Refunds.Create(t.Context(), g.Merchant, payins[i/2%2].ID, coretest.RefundRequest(reference, int64(9_00+i/4)))
				switch {
				case err == nil && !replayed:
					held.Add(int64(r.Amount))
				case err != nil && !problem.Is(err, problem.ValidationFailed) && !problem.Is(err, problem.InsufficientBalance) && !problem.Is(err, problem.ReferenceConflict):
					t.Error(err)
				}
			})
			all.Go(func() {
				p, replayed, err := nodes[i%2].Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest(fmt.Sprint("o", i/2), 7_00))
				switch {
				case err == nil && !replayed:
					held.Add(int64(p.Amount))
				case err != nil && !problem.Is(err, problem.InsufficientBalance):
					t.Error(err)
				}
			})
		}
		g.Until(all.Wait)
		g.WantBalances(200_00-money.Cents(held.Load()), coretest.Opening+money.Cents(held.Load()))
		g.WantProven()
	})
}
