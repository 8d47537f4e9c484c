package payin_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
)

// A refusal that a process got after it had lost its claim fails no order, so it is not answered as
// one: another process goes on, and may get the charge.
func TestRefusalWithoutAClaim(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerCharge = func(*coretest.Bank, processor.ChargeRequest) processor.ChargeAnswer {
			g.DeclareDead(g)
			return processor.ChargeAnswer{Outcome: processor.Refused, Failure: &payment.Failure{Code: "account_blocked"}}
		}
		p, err := create(g, coretest.PayinRequest("order", ""))
		if p = *stored(g, p); p.Status != payment.PayinPending || !problem.Is(err, problem.ProcessorTimeout) {
			t.Errorf("answered %v; the order is %s", err, p.Status)
		}
		g.Bank.AnswerCharge = nil
		g.Heartbeat() // under another id
		g.Charge()
		if !stored(g, p).Ready() {
			t.Errorf("left to do: %+v", work(g, p))
		}
	})
}
