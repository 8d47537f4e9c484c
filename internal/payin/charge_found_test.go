package payin_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/store"
)

// known makes the bank answer that it has the charge already, in a state and with its code if
// it is payable.
func known(g *coretest.Gateway, state processor.ChargeState, payable bool) {
	g.Bank.AnswerCharge = func(b *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
		c := b.Charges[r.ExternalID]
		if c == nil {
			c = &processor.ChargeReport{Lookup: processor.Found}
			b.Charges[r.ExternalID] = c
		}
		c.State = state
		if payable {
			c.Charge = processor.Charge{PIX: processortest.PIX(r)}
		}
		return processor.ChargeAnswer{Outcome: processor.Known}
	}
}

// A restored database lacks an order whose payment was booked without it. The repeated
// request finds the charge, although nothing of its payment is left to be booked.
func TestFoundChargeWhosePaymentIsBooked(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		externalID := g.Store.ExternalID(&g.Merchant, payment.OperationPayin, "order")
		g.Bank.Receive(externalID, "pay-1", 40_00)
		g.ReadFeeds()
		known(g, processor.ChargeOpen, true)
		p, err := create(g, coretest.PayinRequest("order", ""))
		if err != nil || !p.Ready() || p.Status != payment.PayinPending {
			t.Errorf("answered %+v, %v", p, err)
		}
		if c := work(g, p); c.State != store.ChargeMade {
			t.Errorf("left to do: %+v", c)
		}
		g.WantPayin(p, payment.PayinPending, 0, 0)
	})
}

// The payment of a found charge is booked with it.
func TestFoundChargeWithPayment(t *testing.T) {
	for name, payable := range map[string]bool{"with its code": true, "without its code": false} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.Bank.Receive(g.Store.ExternalID(&g.Merchant, payment.OperationPayin, "order"), "pay-1", 100_00)
				known(g, processor.ChargeOpen, payable)
				p, err := create(g, coretest.PayinRequest("order", ""))
				if err != nil || p.Ready() != payable || p.Status != payment.PayinPaid {
					t.Errorf("answered %+v, %v", p, err)
				}
				if c := work(g, p); c.State == store.ChargeWanted || !c.NextAt.IsZero() {
					t.Errorf("left to do: %+v", c)
				}
				g.WantPayin(p, payment.PayinPaid, 100_00, 1)
			})
		})
	}
}

// A found charge that can no longer be paid ends its order.
func TestFoundChargeThatEnded(t *testing.T) {
	for state, status := range map[processor.ChargeState]payment.PayinStatus{
		processor.ChargeCanceled: payment.PayinFailed,
		processor.ChargeFailed:   payment.PayinFailed,
		processor.ChargeExpired:  payment.PayinExpired,
		processor.ChargeAnalysis: payment.PayinProcessing,
	} {
		t.Run(string(state), func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				known(g, state, false)
				p, err := create(g, coretest.PayinRequest("order", ""))
				if refused := status == payment.PayinFailed; refused != problem.Is(err, problem.ProcessorRefused) || !refused && err != nil || p.Status != status {
					t.Errorf("answered %+v, %v", p, err)
				}
				g.Jump(time.Hour)
				g.Charge()
				again, replayed, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
				if err != nil || !replayed || again.Status != status || (work(g, p).State != store.ChargeEnded) != (state == processor.ChargeAnalysis) {
					t.Errorf("repeated: %+v, %v; left to do: %+v", again, err, work(g, p))
				}
			})
		})
	}
}

// If a repeat is unsafe, the charge is looked up before the first request: a restored
// database may lack that it was requested.
func TestChargeIsLookedUpBeforeItsFirstRequest(t *testing.T) {
	for name, change := range map[string]func(e *processor.Effect){
		"unsafe":        func(e *processor.Effect) { e.Repeat = processor.RepeatUnsafe },
		"look up first": func(e *processor.Effect) { e.LookUpFirst = true },
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				change(&g.Bank.Profiled.Charge)
				calls := 0
				g.Bank.AnswerCharge = func(b *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
					if calls++; b.Queries != calls {
						t.Errorf("%d look-ups before request %d", b.Queries, calls)
					}
					c := processor.Charge{PIX: processortest.PIX(r)}
					b.Charges[r.ExternalID] = &processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeOpen, Charge: c}
					return processor.ChargeAnswer{Outcome: processor.Done, Charge: c}
				}
				p, err := create(g, coretest.PayinRequest("order", ""))
				if err != nil || !p.Ready() || calls != 1 {
					t.Errorf("answered %+v, %v, after %d calls", p, err, calls)
				}
				g.Execute("DELETE FROM charges")
				g.Execute("DELETE FROM payins")
				again, err := create(g, coretest.PayinRequest("order", ""))
				if err != nil || again.ID == p.ID || again.Details.PIX.QRCode != p.Details.PIX.QRCode || calls != 1 {
					t.Errorf("after the order was lost: %+v, %v, after %d calls", again, err, calls)
				}
			})
		})
	}
}

// While a look-up before the first request is not answered nothing is requested.
func TestFirstRequestWaitsForItsLookUp(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Charge.Repeat = processor.RepeatUnsafe
		g.Bank.Down = true
		calls := 0
		g.Bank.AnswerCharge = func(_ *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
			calls++
			return processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{PIX: processortest.PIX(r)}}
		}
		p, err := create(g, coretest.PayinRequest("order", ""))
		if !problem.Is(err, problem.ProcessorTimeout) || calls != 0 {
			t.Errorf("answered %v after %d calls", err, calls)
		}
		g.Bank.Down = false
		for range 3 {
			g.Pass(time.Minute)
			g.Charge()
		}
		if !stored(g, p).Ready() || calls != 1 {
			t.Errorf("left to do after %d calls: %+v", calls, work(g, p))
		}
	})
}

// A process that has lost its claim requests nothing that must not be requested twice, even
// if it notices only right before the first byte.
func TestChargeNeedsItsClaim(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Charge.Repeat = processor.RepeatUnsafe
		calls := 0
		g.Bank.AnswerCharge = func(*coretest.Bank, processor.ChargeRequest) processor.ChargeAnswer {
			calls++
			return processor.ChargeAnswer{}
		}
		g.Bank.OnQueryCharge = func() { g.Node.Lease.Drop() } // the look-up before took too long
		p, err := create(g, coretest.PayinRequest("order", ""))
		if c := work(g, p); !problem.Is(err, problem.ProcessorTimeout) || calls != 0 || c.MayExist || c.Outcome != processor.NotSent.String() {
			t.Errorf("answered %v after %d calls: %+v", err, calls, c)
		}
	})
}
