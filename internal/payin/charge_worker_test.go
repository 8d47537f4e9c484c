package payin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// work is the stored work on the charge of an order.
func work(g *coretest.Gateway, p payment.Payin) store.Charge {
	g.T.Helper()
	c, err := g.Store.ChargeOf(g.T.Context(), p.Merchant, p.ID)
	g.Must(err)
	return c
}

// stored is an order as it is stored, once the worker had time to work on its charge.
func stored(g *coretest.Gateway, p payment.Payin) *payment.Payin {
	g.T.Helper()
	p, err := g.Store.Payin(g.T.Context(), p.Merchant, p.ID)
	g.Must(err)
	return &p
}

// create requests an order, while time passes.
func create(g *coretest.Gateway, r *wire.PayinRequest) (p payment.Payin, err error) {
	g.T.Helper()
	// Longer than the waits between calls, and shorter than the processor's timeout.
	g.UntilWithin(3*time.Second, func() { p, _, err = g.Payins.Create(g.T.Context(), g.Merchant, r) })
	return p, err
}

// A process that dies after the commit and before the call leaves work that another one
// carries on.
func TestChargeOfADeadProcessIsMade(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := g.Second()
		var p payment.Payin
		g.Bank.AnswerCharge = func(b *coretest.Bank, _ processor.ChargeRequest) processor.ChargeAnswer {
			b.AnswerCharge = nil
			panic("the process dies")
		}
		request := coretest.PayinRequest("order", "")
		op, err := g.Payins.NewCreateOpOf(g.Merchant, request, g.Node.ID())
		g.Must(err)
		g.Must(g.Writer.Do(t.Context(), op))
		p, g.Bank.AnswerCharge = op.Payin, nil
		if c := work(g, p); c.ClaimedBy != g.Node.ID() || !c.MayExist {
			t.Fatalf("stored with the order: %+v", c)
		}
		other.Charge() // the process may be alive
		if stored(g, p).Ready() {
			t.Fatal("a claimed charge was made by another process")
		}
		other.Pass(10 * time.Second)
		other.Charge()
		if p := stored(g, p); !p.Ready() || work(g, *p).State != store.ChargeMade {
			t.Errorf("after the process died: %+v", p)
		}
		other.WantEvents(payment.EventPayinUpdated)
		if p, _, err := other.Payins.Create(t.Context(), g.Merchant, request); err != nil || !p.Ready() {
			t.Errorf("answered %+v, %v", p, err)
		}
	})
}

// In an outage each order gets one call per step of its schedule, and after it its charge.
func TestOutageIsOneCallPerOrderAndStep(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		calls := map[string]int{}
		g.Bank.AnswerCharge = func(_ *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
			calls[r.ExternalID]++
			return processor.ChargeAnswer{} // at once: the breaker stays closed
		}
		var orders []payment.Payin
		for i := range 3 {
			p, err := create(g, coretest.PayinRequest(fmt.Sprint(i), ""))
			if !problem.Is(err, problem.ProcessorTimeout) {
				t.Fatalf("answered %v", err)
			}
			orders = append(orders, p)
		}
		for range 300 { // five minutes
			g.Pass(time.Second)
			g.Charge()
			if _, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("0", "")); !problem.Is(err, problem.ProcessorTimeout) {
				t.Fatalf("repeated: %v", err)
			}
		}
		total := g.Bank.Queries // a call is a request of the charge or a look-up
		for _, p := range orders {
			total += calls[p.ExternalID]
			if calls[p.ExternalID] < 2 {
				t.Error("the charge is not requested again")
			}
		}
		if n := total / len(orders); n < 8 || n > 15 {
			t.Errorf("%d calls for an order in five minutes", n)
		}
		g.Bank.AnswerCharge = nil
		g.Jump(6 * time.Minute)
		g.Charge()
		for _, p := range orders {
			if p := stored(g, p); !p.Ready() {
				t.Errorf("after the outage: %+v", work(g, *p))
			}
		}
		g.WantEvents(payment.EventPayinUpdated, payment.EventPayinUpdated, payment.EventPayinUpdated)
	})
}

// A refusal after a call of unknown outcome fails the order only when the processor has
// shown that it has no charge, and refuses again.
func TestRefusalAfterAnUnknownCallIsNotFinal(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		calls := 0
		g.Bank.AnswerCharge = func(b *coretest.Bank, _ processor.ChargeRequest) processor.ChargeAnswer {
			if calls++; calls == 1 {
				return processor.ChargeAnswer{}
			}
			return refused
		}
		p, err := create(g, coretest.PayinRequest("order", ""))
		if !problem.Is(err, problem.ProcessorTimeout) || stored(g, p).Status != payment.PayinPending || calls != 2 || g.Bank.Queries == 0 {
			t.Fatalf("answered %v after %d calls and %d queries", err, calls, g.Bank.Queries)
		}
		for range 30 {
			g.Pass(time.Second)
			g.Charge()
		}
		if calls != 2 || stored(g, p).Status != payment.PayinPending {
			t.Errorf("%d calls within the quiet period", calls)
		}
		for range 20 {
			g.Pass(30 * time.Second)
			g.Charge()
		}
		if p := stored(g, p); calls != 3 || p.Status != payment.PayinFailed {
			t.Errorf("%s after %d calls", p.Status, calls)
		}
		g.WantEvents(payment.EventPayinFailed)
	})
}

// boletoRequest is a request for a boleto.
func boletoRequest() *wire.PayinRequest {
	r := coretest.PayinRequest("bill", "")
	r.Method, r.ExpiresIn, r.DueDate = wire.Some("BOLETO"), wire.Field[int64]{}, wire.Some(coretest.Start.Format(time.DateOnly))
	return r
}

// A boleto whose registration takes a while is answered without its data, which follow with
// an event.
func TestLateBoleto(t *testing.T) {
	for name, answer := range map[string]processor.ChargeAnswer{
		"registering": {Outcome: processor.Done, Registering: true},
		"later":       {Outcome: processor.Later, Wait: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				calls := 0
				g.Bank.AnswerCharge = func(b *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
					if calls++; calls > 1 {
						return processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{Boleto: processortest.Boleto(r)}}
					}
					b.Charges[r.ExternalID] = &processor.ChargeReport{
						Lookup: processor.Found, State: processor.ChargeRegistering, Charge: processor.Charge{Boleto: processortest.Boleto(r)},
					}
					return answer
				}
				p, err := create(g, boletoRequest())
				if err != nil || p.Ready() || p.Status != payment.PayinPending {
					t.Fatalf("answered %+v, %v", p, err)
				}
				if p, replayed, err := g.Payins.Create(t.Context(), g.Merchant, boletoRequest()); err != nil || !replayed || p.Ready() || calls != 1 {
					t.Errorf("repeated: %+v, %v, after %d calls", p, err, calls)
				}
				g.Pass(2 * time.Second)
				g.Charge()
				if stored(g, p).Ready() {
					t.Error("there before it is registered")
				}
				g.Bank.Charges[p.ExternalID].State = processor.ChargeOpen
				g.Pass(2 * time.Minute)
				g.Charge()
				if p := stored(g, p); p.Details.Boleto == nil {
					t.Errorf("not there: %+v", work(g, *p))
				}
				g.WantEvents(payment.EventPayinUpdated)
			})
		})
	}
}

// A Pix that the processor takes later is not answered without its code.
func TestLatePIXIsATimeout(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		calls := 0
		g.Bank.AnswerCharge = func(*coretest.Bank, processor.ChargeRequest) processor.ChargeAnswer {
			calls++
			return processor.ChargeAnswer{Outcome: processor.Later, Wait: time.Hour}
		}
		p, err := create(g, coretest.PayinRequest("order", ""))
		if !problem.Is(err, problem.ProcessorTimeout) || calls != 1 {
			t.Errorf("answered %+v, %v, after %d calls", p, err, calls)
		}
		g.Pass(time.Minute)
		g.Charge()
		if at := work(g, p).NextAt; calls != 1 || at.Sub(g.Clock.Now()) < 58*time.Minute {
			t.Errorf("%d calls, and the next at %s", calls, at)
		}
	})
}

// A processor's pause that ends within the time of the request is waited for, and the charge is requested again.
func TestPauseOfAProcessor(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		calls, began := 0, g.Clock.Now()
		g.Bank.AnswerCharge = func(_ *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
			if calls++; calls == 1 {
				return processor.ChargeAnswer{Outcome: processor.Later, Wait: 2 * time.Second}
			}
			if g.Clock.Now().Sub(began) < 2*time.Second {
				t.Error("the pause was not waited for")
			}
			return processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{PIX: processortest.PIX(r)}}
		}
		if p, err := create(g, coretest.PayinRequest("order", "")); err != nil || !p.Ready() || calls != 2 {
			t.Errorf("answered %+v, %v, after %d calls", p, err, calls)
		}
	})
}

// Cancel and expiry reach the processor, even if it is down for a while; a payment that was
// faster is booked.
func TestEndedOrdersAreCanceledAtTheProcessor(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		canceled, expired, paid := g.Payin(g.Merchant, "canceled", ""), g.Payin(g.Merchant, "expired", ""), g.Payin(g.Merchant, "paid", "")
		cancel := func(p payment.Payin) {
			t.Helper()
			_, err := g.Payins.Cancel(t.Context(), p.Merchant, p.ID)
			g.Must(err)
		}
		g.Bank.AnswerCancel = func(*coretest.Bank, processor.CancelRequest) processor.CancelAnswer {
			return processor.CancelAnswer{Outcome: processor.NotSent}
		}
		cancel(canceled)
		g.Charge()
		if c := work(g, canceled); c.State != store.ChargeToCancel || g.Bank.Cancels != 1 {
			t.Errorf("while the processor is down: %+v, %d calls", c, g.Bank.Cancels)
		}
		g.Bank.AnswerCancel = nil
		cancel(paid)
		g.Bank.Receive(paid.ExternalID, "pay-1", 100_00)
		g.Jump(2 * time.Hour)
		g.Run(g.Payins.Expire)
		g.Charge()
		for _, p := range []payment.Payin{canceled, expired} {
			if state := g.Bank.Charges[p.ExternalID].State; state != processor.ChargeCanceled || work(g, p).State != store.ChargeEnded {
				t.Errorf("%s: charge is %s at the processor, %+v", p.ReferenceID, state, work(g, p))
			}
		}
		if c := work(g, paid); c.State != store.ChargeEnded || c.Outcome != processor.Refused.String() {
			t.Errorf("paid: %+v", c)
		}
		g.ReadFeeds()
		g.WantPayin(paid, payment.PayinPaid, 100_00, 1)
	})
}

// A charge that is not canceled for half a day has a case, which closes once it is.
func TestChargeThatIsNotCanceledHasACase(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		g.Bank.AnswerCancel = func(*coretest.Bank, processor.CancelRequest) processor.CancelAnswer { return processor.CancelAnswer{} }
		_, err := g.Payins.Cancel(t.Context(), p.Merchant, p.ID)
		g.Must(err)
		for range 11 {
			g.Charge()
			g.Jump(8 * time.Hour)
		}
		g.WantCases()
		for range 3 {
			g.Charge()
			g.Jump(25 * time.Hour)
		}
		g.WantCases(store.CaseChargeOpen)
		g.Jump(-24 * time.Hour)
		g.Charge()
		if g.Bank.Cancels != 14 {
			t.Errorf("%d calls: then there is one a day", g.Bank.Cancels)
		}
		g.Bank.AnswerCancel = nil
		g.Jump(48 * time.Hour)
		g.Charge()
		g.WantCases()
		if c := work(g, p); c.State != store.ChargeEnded {
			t.Errorf("left to do: %+v", c)
		}
	})
}

// An order that is canceled while its charge is unknown is not charged any more, and is
// canceled until the processor can no longer have it.
func TestCanceledBeforeItsChargeIsKnown(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		calls := 0
		g.Bank.AnswerCharge = func(*coretest.Bank, processor.ChargeRequest) processor.ChargeAnswer {
			calls++
			return processor.ChargeAnswer{}
		}
		p, _ := create(g, coretest.PayinRequest("order", ""))
		before := calls
		_, err := g.Payins.Cancel(t.Context(), g.Merchant.ID, p.ID)
		g.Must(err)
		g.Heartbeat()
		g.Charge()
		if c := work(g, p); c.State != store.ChargeToCancel || g.Bank.Cancels != 1 {
			t.Errorf("not found within the quiet period: %+v", c)
		}
		g.Jump(3 * time.Minute)
		g.Charge()
		if c := work(g, p); c.State != store.ChargeEnded || calls != before || g.Bank.Cancels != 2 {
			t.Errorf("not found after it: %+v, %d more charges, %d cancels", c, calls-before, g.Bank.Cancels)
		}
	})
}

// An order whose customer cannot be decrypted is parked with a case, and delays no other.
func TestDamagedChargeIsParked(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		var orders []payment.Payin
		for _, name := range []string{"damaged", "sound"} {
			op, err := g.Payins.NewCreateOp(g.Merchant, coretest.PayinRequest(name, ""))
			g.Must(err)
			g.Must(g.Writer.Do(t.Context(), op))
			orders = append(orders, op.Payin)
		}
		g.Execute("UPDATE payins SET personal = '' WHERE reference_id = 'damaged'")
		g.Charge()
		if stored(g, orders[0]).Ready() || !stored(g, orders[1]).Ready() {
			t.Error("the damaged order was charged, or the sound one was not")
		}
		list, err := g.Store.OpenCases(t.Context(), 10)
		g.Must(err)
		if len(list) != 1 || list[0].Kind != store.CaseDamaged || list[0].Subject != orders[0].ID || list[0].Params["table"] != "charges" {
			t.Errorf("cases: %+v", list)
		}
	})
}

// An account that hangs delays no other account's work.
func TestHangingAccountDelaysNoOthersCharge(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		release := make(chan struct{})
		hanging := coretest.NewBank()
		hanging.AnswerCharge = func(b *coretest.Bank, _ processor.ChargeRequest) processor.ChargeAnswer {
			b.Mu.Unlock()
			defer b.Mu.Lock()
			<-release
			return processor.ChargeAnswer{}
		}
		g.Processor("hanging", hanging)
		g.Concurrent()
		other := g.Merchant
		other.Routes = payment.AllRoutes("hanging")
		for i := range 100 {
			op, err := g.Payins.NewCreateOp(other, coretest.PayinRequest(fmt.Sprint(i), ""))
			g.Must(err)
			g.Must(g.Writer.Do(t.Context(), op))
		}
		op, err := g.Payins.NewCreateOp(g.Merchant, coretest.PayinRequest("healthy", ""))
		g.Must(err)
		g.Must(g.Writer.Do(t.Context(), op))
		_, err = g.Payins.Charge(t.Context())
		g.Must(err)
		for real := time.Now(); !stored(g, op.Payin).Ready() && time.Since(real) < 10*time.Second; {
		}
		if !stored(g, op.Payin).Ready() {
			t.Error("the healthy account waits for the hanging one")
		}
		close(release)
	})
}

// A charge that was made by another process than the one that has claimed it needs no more
// work, also if the latter dies.
func TestReleasedChargeThatIsMade(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		other := g.Second()
		g.Execute("UPDATE charges SET claimed_by = (SELECT id FROM nodes ORDER BY id LIMIT 1)")
		other.Pass(4 * time.Second) // g is stopped
		if c := work(other, p); c.State != store.ChargeMade || !c.ClaimedBy.IsZero() || !c.NextAt.IsZero() {
			t.Errorf("left to do: %+v", c)
		}
	})
}
