package payin_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
)

// While one account hangs with more pay-ins than it has slots, pay-ins at another get their
// codes at once: the clock stands still.
func TestHangingAccountDelaysNoOthersRequest(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		const requests, slots = 80, 64
		slow := coretest.NewHanging(t)
		g.Processor("slow", slow)
		g.Concurrent()
		var waiting sync.WaitGroup
		t.Cleanup(func() { // before the calls are awaited
			slow.Release()
			g.Until(waiting.Wait)
		})
		m := g.Merchant
		m.Routes = payment.AllRoutes("slow")
		for i := range requests {
			waiting.Go(func() {
				if p, _, err := g.Payins.Create(t.Context(), m, coretest.PayinRequest(fmt.Sprint("slow ", i), "")); err == nil {
					t.Errorf("a pay-in of the account that hangs is %+v", p)
				}
			})
		}
		for slow.Waiting() < slots {
			if t.Context().Err() != nil {
				t.Fatal("not all slots of the account that hangs are taken")
			}
			runtime.Gosched()
		}
		for i := range 20 {
			if p := g.Payin(g.Merchant, fmt.Sprint("healthy ", i), ""); p.Details.PIX == nil {
				t.Errorf("a pay-in of the other account has no code: %+v", p)
			}
		}
		if slow.Waiting() != slots || slow.Arrived() != slots {
			t.Errorf("%d calls wait, and %d arrived, want %d", slow.Waiting(), slow.Arrived(), slots)
		}
	})
}
