package payin_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

// inAnalysis is an order whose payment is in analysis at the bank, which sends no more
// notices.
func inAnalysis(g *coretest.Gateway) payment.Payin {
	g.T.Helper()
	p := g.Payin(g.Merchant, "order", "")
	g.Bank.Charges[p.ExternalID].State = processor.ChargeAnalysis
	g.Must(g.Payins.Receive(g.T.Context(), coretest.BankName, p.ExternalID, g.Bank.QueryCharge(g.T.Context(), p.ExternalID), nil))
	if stored(g, p).Status != payment.PayinProcessing {
		g.T.Fatalf("it is %s", stored(g, p).Status)
	}
	return p
}

// An order in analysis ends although every notice is lost.
func TestProcessingEndsWithoutANotice(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := inAnalysis(g)
		queries := g.Bank.Queries
		g.Charge()
		for range 3 {
			g.Jump(24 * time.Hour)
			g.Charge()
			g.Charge()
		}
		if n := g.Bank.Queries - queries; n != 3 || stored(g, p).Status != payment.PayinProcessing {
			t.Errorf("%d look-ups, it is %s", n, stored(g, p).Status)
		}
		g.Bank.Charges[p.ExternalID].State, g.Bank.Charges[p.ExternalID].Failure = processor.ChargeFailed, refused.Failure
		g.Jump(24 * time.Hour)
		g.Charge()
		if p := stored(g, p); p.Status != payment.PayinFailed || work(g, *p).State != store.ChargeEnded {
			t.Errorf("it is %s, left to do: %+v", p.Status, work(g, *p))
		}
		g.WantCases()
	})
}

// An order in analysis at an account that a person suspended is looked up; the charges of other
// orders there are not canceled.
func TestProcessingAtASuspendedAccountEnds(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		accounts, registry := g.Accounts(coretest.Driver{Name: "test", Banks: map[string]processor.Processor{"b": g.Bank}})
		g.Account(accounts, "acc", "test", "b")
		follow := func() {
			t.Helper()
			_, err := registry.Follow(t.Context())
			g.Must(err)
		}
		follow()
		g.SetRoutes(accounts, payment.OperationPayin, "", "acc")
		p, canceled := g.Payin(g.Merchant, "order", ""), g.Payin(g.Merchant, "canceled", "")
		g.Bank.Charges[p.ExternalID].State = processor.ChargeAnalysis
		g.Must(g.Payins.Receive(t.Context(), "acc", p.ExternalID, g.Bank.QueryCharge(t.Context(), p.ExternalID), nil))
		_, err := g.Payins.Cancel(t.Context(), g.Merchant.ID, canceled.ID)
		g.Must(err)
		_, err = accounts.SetState(t.Context(), "acc", payment.AccountSuspended)
		g.Must(err)
		follow()
		g.Bank.Charges[p.ExternalID].State, g.Bank.Charges[p.ExternalID].Failure = processor.ChargeFailed, refused.Failure
		g.Jump(24 * time.Hour)
		g.Charge()
		if p := stored(g, p); p.Status != payment.PayinFailed {
			t.Errorf("it is %s", p.Status)
		}
		if c := work(g, canceled); g.Bank.Cancels != 0 || c.State != store.ChargeToCancel {
			t.Errorf("%d requests to cancel, left to do: %+v", g.Bank.Cancels, c)
		}
		_, err = accounts.SetState(t.Context(), "acc", payment.AccountLive)
		g.Must(err)
		follow()
		g.Charge()
		if c := work(g, canceled); g.Bank.Cancels != 1 || c.State != store.ChargeEnded {
			t.Errorf("%d requests to cancel, left to do: %+v", g.Bank.Cancels, c)
		}
	})
}

// Work on a charge whose order has its charge offline begins with the analysis; without it
// there is none.
func TestProcessingOfAnOfflineChargeIsFollowed(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		g.Execute("DELETE FROM charges")
		for range 2 {
			g.Must(g.Payins.Receive(t.Context(), coretest.BankName, p.ExternalID, reported(g.Clock.Now(), "analyze"), nil))
		}
		if c := work(g, p); c.State != store.ChargeFollowed || !c.NextAt.Equal(g.Clock.Now().Add(time.Minute)) {
			t.Errorf("left to do: %+v", c)
		}
		g.Must(g.Payins.Receive(t.Context(), coretest.BankName, p.ExternalID, reported(g.Clock.Now(), "pay", "A", "100"), nil))
		queries := g.Bank.Queries
		g.Pass(time.Minute)
		g.Charge()
		if c := work(g, p); c.State != store.ChargeEnded || g.Bank.Queries != queries {
			t.Errorf("left to do when it is paid: %+v, %d look-ups", c, g.Bank.Queries-queries)
		}
	})
}

// After days in analysis there is a case, which closes once the bank has decided.
func TestLongProcessingHasACase(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := inAnalysis(g)
		g.Bank.Down = true // a look-up without an answer counts too
		days := func(n int) {
			for range n {
				g.Jump(27 * time.Hour) // beyond the longest wait
				g.Charge()
			}
		}
		days(6)
		g.WantCases()
		days(2)
		g.WantCases(store.CasePayinProcessing)
		g.Bank.Down = false
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		days(1)
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		g.WantCases()
	})
}

// An operator declares that the payment was refused.
func TestLongProcessingIsDeclaredRefused(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := inAnalysis(g)
		for range 7 {
			g.Jump(27 * time.Hour)
			g.Charge()
		}
		list, err := g.Store.OpenCases(t.Context(), 10)
		g.Must(err)
		if len(list) != 1 {
			t.Fatalf("cases: %+v", list)
		}
		reviews := g.Reviews
		r := review.Request{Case: list[0].ID, How: store.ResolvedRelease, Actor: "operator:ana", Reason: "panel", Evidence: "refused"}
		_, err = reviews.Resolve(t.Context(), r)
		g.Must(err)
		if p := stored(g, p); p.Status != payment.PayinFailed || p.Failure == nil || work(g, *p).State != store.ChargeEnded {
			t.Errorf("it is %+v, left to do: %+v", p, work(g, *p))
		}
		g.WantCases()
		g.WantEvents(payment.EventPayinProcessing, payment.EventPayinFailed)
	})
}
