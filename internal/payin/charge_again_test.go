package payin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
)

// unanswered is an order whose only request got no answer, at a bank that would make a second
// charge of a repeat. requests counts them; the second one is answered.
func unanswered(g *coretest.Gateway) (p payment.Payin, requests *int) {
	g.T.Helper()
	requests = new(int)
	e := &g.Bank.Profiled.Charge
	e.Repeat, e.LookUpFirst, e.QuietPeriod, e.Confirm = processor.RepeatUnsafe, true, time.Minute, time.Minute
	g.Bank.AnswerCharge = func(b *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
		if *requests++; *requests == 1 {
			return processor.ChargeAnswer{}
		}
		c := processor.Charge{PIX: processortest.PIX(r)}
		b.Charges[r.ExternalID] = &processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeOpen, Charge: c}
		return processor.ChargeAnswer{Outcome: processor.Done, Charge: c}
	}
	p, err := create(g, coretest.PayinRequest("order", ""))
	if !problem.Is(err, problem.ProcessorTimeout) || *requests != 1 {
		g.T.Fatalf("answered %+v, %v, after %d requests", p, err, *requests)
	}
	return p, requests
}

// Finding: a charge that was never answered, and is not found, was never requested again if a
// repeat is unsafe. It is, after the quiet period, if two look-ups do not find it.
func TestChargeThatIsNotFoundIsRequestedAgain(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p, requests := unanswered(g)
		sent := work(g, p).SentAt
		for *requests == 1 && g.Clock.Now().Before(sent.Add(30*time.Minute)) {
			g.Pass(5 * time.Second)
			queries := g.Bank.Queries
			g.Charge()
			if at := g.Clock.Now().Sub(sent); *requests == 2 && (at < 2*time.Minute || g.Bank.Queries != queries+1) {
				t.Errorf("requested again after %v and %d look-ups", at, g.Bank.Queries-queries)
			}
		}
		if !stored(g, p).Ready() || *requests != 2 {
			t.Errorf("left to do after %d requests: %+v", *requests, work(g, p))
		}
		g.Jump(time.Hour)
		g.Charge()
		if *requests != 2 {
			t.Errorf("%d requests", *requests)
		}
		g.WantCases()
	})
}

// A charge that the second look-up finds is the order's, and one look-up without an answer, or a
// crash, begins anew: nothing is requested again before two look-ups in a row did not find it.
func TestChargeThatShowsUpLate(t *testing.T) {
	for name, happens := range map[string]func(g *coretest.Gateway){
		"found": func(*coretest.Gateway) {},
		"no answer": func(g *coretest.Gateway) {
			g.Bank.Down = true
			g.Pass(time.Minute)
			g.Charge()
			g.Bank.Down = false
		},
		"restarted": func(g *coretest.Gateway) { g.Restart(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				p, requests := unanswered(g)
				for work(g, p).Outcome != "not_found_once" {
					g.Pass(time.Minute)
					g.Charge()
				}
				if c := work(g, p); !c.MayExist || !c.NextAt.Equal(g.Clock.Now().Add(time.Minute)) {
					t.Fatalf("after one look-up: %+v", c)
				}
				happens(g)
				request := processor.ChargeRequest{ExternalID: p.ExternalID, Method: p.Method, Amount: p.Amount, ExpiresAt: p.ExpiresAt}
				g.Bank.Charges[p.ExternalID] = &processor.ChargeReport{
					Lookup: processor.Found, State: processor.ChargeOpen, Charge: processor.Charge{PIX: processortest.PIX(request)},
				}
				for range 3 {
					g.Jump(10 * time.Minute)
					g.Charge()
				}
				if !stored(g, p).Ready() || *requests != 1 {
					t.Errorf("left to do after %d requests: %+v", *requests, work(g, p))
				}
			})
		})
	}
}

// Without a second look-up that counts, an unsafe charge is never requested again.
func TestUnsafeChargeIsNotRequestedAgain(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p, requests := unanswered(g)
		g.Bank.Profiled.Charge.Confirm = 0
		for range 5 {
			g.Jump(5 * time.Minute)
			g.Charge()
		}
		if *requests != 1 || stored(g, p).Ready() || !work(g, p).MayExist {
			t.Errorf("%d requests, left to do: %+v", *requests, work(g, p))
		}
	})
}

// A charge that a repeated request gets is announced as one that the worker gets: the merchant's first
// answer lacked it, and pages that other processes serve learn of it by the event.
func TestChargeOfARepeatedRequestIsAnnounced(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerCharge = func(b *coretest.Bank, _ processor.ChargeRequest) processor.ChargeAnswer {
			return processor.ChargeAnswer{}
		}
		if _, err := create(g, coretest.PayinRequest("order", "")); !problem.Is(err, problem.ProcessorTimeout) {
			t.Fatalf("the first answer is %v", err)
		}
		g.WantEvents([]payment.EventType(nil)...)
		g.Bank.AnswerCharge = nil
		g.Pass(time.Minute)
		p, err := create(g, coretest.PayinRequest("order", ""))
		if err != nil || !p.Ready() {
			t.Fatalf("the second answer is %+v, %v", p, err)
		}
		g.WantEvents(payment.EventPayinUpdated)
		list, err := g.Store.Events(t.Context(), g.Merchant.ID, 0, 1)
		g.Must(err)
		if !strings.Contains(string(list[0].Body), p.Details.PIX.QRCode) || list[0].Version != p.Version {
			t.Errorf("event %s of version %d, want the code and version %d", list[0].Body, list[0].Version, p.Version)
		}
		if _, err = create(g, coretest.PayinRequest("order", "")); err != nil {
			t.Errorf("a third request: %v", err)
		}
		g.WantEvents(payment.EventPayinUpdated)
	})
}
