package payin_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
)

// A charge whose claim was not committed is not requested: it stays due, and the next run would
// request it again while the first call is in flight.
func TestNothingIsRequestedWithoutACommittedClaim(t *testing.T) {
	failing := false
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Charge.Repeat = processor.RepeatUnsafe
		g.Bank.Down = true
		p, err := create(g, coretest.PayinRequest("order", ""))
		if !problem.Is(err, problem.ProcessorTimeout) {
			t.Fatalf("answered %v", err)
		}
		g.Bank.Down = false
		g.Jump(time.Minute)
		queries := g.Bank.Queries
		failing = true
		_, err = g.Payins.Charge(t.Context())
		failing = false
		if err == nil {
			t.Fatal("the claim was committed")
		}
		if n := len(g.Bank.Charges); n > 0 || g.Bank.Queries > queries {
			t.Errorf("%d charges were made, after %d look-ups", n, g.Bank.Queries-queries)
		}
		g.Heartbeat()
		g.Charge()
		if !stored(g, p).Ready() {
			t.Errorf("left to do: %+v", work(g, p))
		}
	}, func(e *env.Env) {
		e.OnFailpoint = func(f env.Failpoint) error {
			if failing && f == env.BeforeCommit {
				panic("the commit fails")
			}
			return nil
		}
	})
}
