package payin_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// disputed is an order with an open dispute, whose end the bank neither lists nor notices.
func disputed(g *coretest.Gateway) payment.Payin {
	g.T.Helper()
	p := g.Payin(g.Merchant, "order", "")
	g.Bank.Receive(p.ExternalID, "A", 100_00)
	ends(g, p, processor.DisputeOpen)
	g.Notify("disputed", "charge "+p.ExternalID)
	g.Apply()
	g.WantPayin(p, payment.PayinDisputed, 100_00, 1)
	return p
}

// ends records the state of the dispute at the bank, without a notice.
func ends(g *coretest.Gateway, p payment.Payin, state processor.DisputeState) {
	g.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "its", Amount: 100_00, State: state, Current: true})
}

// A dispute ends although its notice is lost, and no list has it. The next one is followed too.
func TestDisputeEndsWithoutANotice(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := disputed(g)
		if c := work(g, p); c.State != store.ChargeFollowed || c.NextAt.IsZero() {
			t.Fatalf("left to do: %+v", c)
		}
		for range 3 { // days without a decision
			g.Jump(30 * time.Hour)
			g.Charge()
		}
		g.WantPayin(p, payment.PayinDisputed, 100_00, 1)
		ends(g, p, processor.DisputeWon)
		g.Jump(30 * time.Hour)
		g.Charge()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		if c := work(g, p); c.State != store.ChargeEnded || !c.NextAt.IsZero() {
			t.Errorf("left to do after it was won: %+v", c)
		}
		ends(g, p, processor.DisputeOpen)
		g.Notify("again", "charge "+p.ExternalID)
		g.Apply()
		ends(g, p, processor.DisputeLost)
		queries := g.Bank.Queries
		g.Jump(2 * time.Minute)
		g.Charge()
		g.WantPayin(p, payment.PayinChargeback, 100_00, 1)
		g.Jump(100 * time.Hour)
		g.Charge()
		if n := g.Bank.Queries - queries; n != 1 {
			t.Errorf("%d look-ups", n)
		}
		g.WantCases()
		g.WantProven()
	})
}

// Look-ups of a dispute without an answer are repeated, and open no case: months may pass.
func TestDisputeIsFollowedWhileTheBankIsDown(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := disputed(g)
		ends(g, p, processor.DisputeWon)
		g.Bank.Down = true
		for range 20 {
			g.Jump(30 * time.Hour)
			g.Charge()
		}
		g.Bank.Down = false
		g.Restart(nil)
		g.Jump(30 * time.Hour)
		g.Charge()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		g.WantCases()
		g.WantProven()
	})
}

// A dispute at an account that the order has left is looked up there.
func TestDisputeAtAnEarlierAccountIsFollowed(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		second, _ := threeAccounts(g, "refused, done, done")
		p, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
		g.Must(err)
		g.Bank.Receive(p.ExternalID, "A", 100_00) // its charge was made nevertheless
		ends(g, p, processor.DisputeOpen)
		g.Notify("disputed", "charge "+p.ExternalID)
		g.Apply()
		g.WantPayin(p, payment.PayinDisputed, 100_00, 1)
		for range 3 { // days without a decision, and then without an answer
			g.Jump(30 * time.Hour)
			g.Charge()
		}
		g.Bank.Down = true
		g.Jump(30 * time.Hour)
		g.Charge()
		g.WantPayin(p, payment.PayinDisputed, 100_00, 1)
		g.Bank.Down = false
		ends(g, p, processor.DisputeLost)
		g.Jump(30 * time.Hour)
		g.Charge()
		g.WantPayin(p, payment.PayinChargeback, 100_00, 1)
		if second.Queries != 0 {
			t.Errorf("%d queries to the order's account, which has no dispute", second.Queries)
		}
		if c := work(g, p); c.State != store.ChargeEnded || !c.NextAt.IsZero() {
			t.Errorf("left to do: %+v", c)
		}
		queries := g.Bank.Queries
		g.Jump(100 * time.Hour)
		g.Charge()
		if g.Bank.Queries != queries {
			t.Errorf("%d further queries", g.Bank.Queries-queries)
		}
		g.WantProven()
	})
}
