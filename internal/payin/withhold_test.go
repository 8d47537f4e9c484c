package payin_test

import (
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/store"
)

// oneCent is a code of one cent for another order.
func oneCent(r processor.ChargeRequest) *payment.PIXDetail {
	r.Amount, r.ExternalID = 1, "00001thief0thief0thief0thief0thi"
	return processortest.PIX(r)
}

// A charge that differs from its order is not shown: the order stays without one, a
// case says what differs, and the right answer of a later request closes it.
func TestChargeThatDiffersIsNotShown(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		calls := 0
		g.Bank.AnswerCharge = func(b *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
			calls++
			c := processor.Charge{PIX: processortest.PIX(r)}
			if calls < 3 {
				c.PIX = oneCent(r)
			}
			return processor.ChargeAnswer{Outcome: processor.Done, Charge: c}
		}
		for n := range 2 {
			p, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
			if !problem.Is(err, problem.ProcessorRefused) || p.Status != payment.PayinPending || p.Ready() || calls != n+1 {
				t.Fatalf("answered %+v, %v, after %d calls", p, err, calls)
			}
			refused := problem.From(err).Detail
			stored, err := g.Store.Payin(t.Context(), p.Merchant, p.ID)
			g.Must(err)
			if stored.Ready() || stored.Status != payment.PayinPending {
				t.Errorf("stored: %+v", stored)
			}
			list, err := g.Store.OpenCases(t.Context(), 10)
			g.Must(err)
			if len(list) != 1 || list[0].Kind != store.CaseCharge || list[0].Subject != p.ID || list[0].Amount != p.Amount ||
				list[0].Params["field"] != "pix.txid" || list[0].Params["problem"] != "is not the order's" || !strings.Contains(refused, "pix.txid is not the order's") || list[0].Params["processor"] != coretest.BankName || list[0].Params["externalId"] != p.ExternalID {
				t.Errorf("cases after %d requests: %+v", n+1, list)
			}
		}
		p, replayed, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
		if err != nil || !replayed || !p.Ready() {
			t.Errorf("answered %+v, replayed %v, %v", p, replayed, err)
		}
		list, err := g.Store.OpenCases(t.Context(), 10)
		g.Must(err)
		if len(list) != 0 {
			t.Errorf("cases are still open: %+v", list)
		}
		g.WantEvents(payment.EventPayinUpdated)
	})
}
