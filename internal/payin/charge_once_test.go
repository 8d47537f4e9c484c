package payin_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
)

// Ten copies of one request that arrive together make one call, and get one answer.
func TestConcurrentRequestsMakeOneCharge(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Payin(g.Merchant, "before", "") // opens what the first order opens
		arrived, answer, calls := make(chan struct{}, 10), make(chan struct{}), 0
		g.Bank.AnswerCharge = func(b *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
			calls++
			b.Mu.Unlock()
			defer b.Mu.Lock()
			arrived <- struct{}{}
			<-answer
			return processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{PIX: processortest.PIX(r)}}
		}
		var all sync.WaitGroup
		create := func() {
			all.Go(func() {
				p, _, err := g.Payins.Create(context.Background(), g.Merchant, coretest.PayinRequest("order", ""))
				if err != nil || !p.Ready() {
					t.Errorf("answered %+v, %v", p, err)
				}
			})
		}
		create()
		<-arrived
		for range 9 {
			create()
		}
		for g.Payins.Waiting() < 9 {
			runtime.Gosched()
		}
		close(answer)
		all.Wait()
		if calls != 1 {
			t.Errorf("%d calls for ten copies of a request", calls)
		}
	})
}

// A charge that is repeated goes to the processor that its order names, not to the
// merchant's present one.
func TestRepeatedChargeGoesToTheProcessorOfItsOrder(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := coretest.NewBank()
		g.Processor("other", other)
		op, err := g.Payins.NewCreateOp(g.Merchant, coretest.PayinRequest("order", ""))
		g.Must(err)
		g.Must(g.Writer.Do(t.Context(), op))
		moved := g.Merchant
		moved.Routes = payment.AllRoutes("other")
		p, replayed, err := g.Payins.Create(t.Context(), moved, coretest.PayinRequest("order", ""))
		if err != nil || !replayed || !p.Ready() || g.Bank.Charges[p.ExternalID] == nil || len(other.Charges) != 0 {
			t.Errorf("answered %+v, %v; %d charges at the other processor", p, err, len(other.Charges))
		}
	})
}

// In an outage a processor gets a few calls, not one of each request.
func TestOutageMakesNoStormOfCharges(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		calls := 0
		g.Bank.AnswerCharge = func(*coretest.Bank, processor.ChargeRequest) processor.ChargeAnswer {
			calls++
			return processor.ChargeAnswer{Outcome: processor.NotSent}
		}
		create := func(reference string) (p payment.Payin, err error) {
			g.Until(func() { p, _, err = g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest(reference, "")) })
			return p, err
		}
		p, err := create("first")
		if !problem.Is(err, problem.ProcessorTimeout) || p.Ready() || calls > 6 {
			t.Fatalf("answered %+v, %v, after %d calls", p, err, calls)
		}
		before := calls
		for range 50 {
			// It waits for nothing, so the clock stands still.
			if _, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("others", "")); !problem.Is(err, problem.ProcessorTimeout) {
				t.Fatalf("answered %v", err)
			}
		}
		if calls != before {
			t.Errorf("%d calls while the breaker is open", calls-before)
		}
		g.Bank.AnswerCharge = nil
		g.Jump(time.Minute)
		if p, err := create("others"); err != nil || !p.Ready() {
			t.Errorf("after the outage: %+v, %v", p, err)
		}
	})
}

// A processor that would make a second charge is asked once; then the charge is looked up.
func TestUnsafeChargeIsLookedUp(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Charge.Repeat = processor.RepeatUnsafe
		calls, request := 0, processor.ChargeRequest{}
		g.Bank.AnswerCharge = func(_ *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
			calls, request = calls+1, r
			return processor.ChargeAnswer{}
		}
		create := func() (p payment.Payin, err error) {
			g.Until(func() { p, _, err = g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", "")) })
			return p, err
		}
		p, err := create()
		if !problem.Is(err, problem.ProcessorTimeout) {
			t.Fatalf("answered %+v, %v", p, err)
		}
		g.Bank.Charges[p.ExternalID] = &processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeOpen, Charge: processor.Charge{PIX: processortest.PIX(request)}}
		g.Jump(time.Minute) // until its next call is due
		// It waits for nothing, so the clock stands still.
		if p, _, err = g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", "")); err != nil || !p.Ready() || calls != 1 {
			t.Errorf("answered %+v, %v, after %d calls", p, err, calls)
		}
	})
}

// A restored backup may lack an order whose charge the processor has, under terms that it
// does not change: the order that is requested again gets that charge and its expiry.
func TestOrderThatABackupLacksGetsItsCharge(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerCharge = func(b *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
			if b.Charges[r.ExternalID] == nil {
				lost := r
				lost.ExpiresAt = r.ExpiresAt.Add(-10 * time.Minute)
				b.Charges[r.ExternalID] = &processor.ChargeReport{
					Lookup: processor.Found, State: processor.ChargeOpen, Charge: processor.Charge{PIX: processortest.PIX(lost)},
				}
			}
			return processor.ChargeAnswer{} // 409: other terms
		}
		var p payment.Payin
		var err error
		g.Until(func() { p, _, err = g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", "")) })
		if err != nil || !p.Ready() || !p.ExpiresAt.Equal(p.Details.PIX.ExpiresAt) {
			t.Fatalf("answered %+v, %v", p, err)
		}
		g.WantCases()
		g.Bank.Charges[p.ExternalID] = &processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeFailed, Failure: &payment.Failure{Code: "x"}}
		g.Until(func() { _, _, err = g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", "")) })
		if err != nil {
			t.Errorf("an order that has its charge is answered %v", err)
		}
	})
}
