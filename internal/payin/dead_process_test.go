package payin_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/store"
)

// requestedByADeadProcess is an order whose process died after it had sent the request of the
// charge, which the bank has not executed yet; and another process, which has released the claim.
func requestedByADeadProcess(g *coretest.Gateway) (p payment.Payin, other *coretest.Gateway) {
	g.T.Helper()
	other = g.Second()
	op, err := g.Payins.NewCreateOpOf(g.Merchant, coretest.PayinRequest("order", ""), g.Node.ID())
	g.Must(err)
	g.Must(g.Writer.Do(g.T.Context(), op))
	other.Pass(5 * time.Second)
	return op.Payin, other
}

// An order whose process died is canceled at the processor until that can no longer make its charge.
func TestOrderOfADeadProcessIsCanceled(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p, other := requestedByADeadProcess(g)
		_, err := other.Payins.Cancel(t.Context(), p.Merchant, p.ID)
		g.Must(err)
		other.Charge()
		if c := work(g, p); c.State != store.ChargeToCancel {
			t.Errorf("within the quiet period: %+v", c)
		}
		g.Bank.Charges[p.ExternalID] = &processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeOpen}
		other.Pass(2 * time.Minute)
		other.Charge()
		if state := g.Bank.Charges[p.ExternalID].State; state != processor.ChargeCanceled || work(g, p).State != store.ChargeEnded {
			t.Errorf("the charge is %s: %+v", state, work(g, p))
		}
	})
}

// If a repeat is unsafe, the charge of a dead process is not requested again within the quiet period.
func TestUnsafeChargeOfADeadProcess(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		e := &g.Bank.Profiled.Charge
		e.Repeat, e.LookUpFirst, e.QuietPeriod, e.Confirm = processor.RepeatUnsafe, true, 5*time.Minute, time.Minute
		g.Bank.AnswerCharge = func(_ *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
			t.Error("requested again within the quiet period")
			return processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{PIX: processortest.PIX(r)}}
		}
		p, other := requestedByADeadProcess(g)
		for range 24 { // four minutes
			other.Charge()
			other.Pass(10 * time.Second)
		}
		g.Bank.AnswerCharge = nil
		for range 40 { // the longest waits of the schedule, and the second look-up
			other.Charge()
			other.Pass(10 * time.Second)
		}
		if !stored(g, p).Ready() {
			t.Errorf("left to do: %+v", work(g, p))
		}
	})
}
