package payin_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// hangingAccount is an account whose bank answers nothing.
func hangingAccount(t *testing.T, g *coretest.Gateway, name string, timeout time.Duration, lookUpFirst bool) *coretest.Hanging {
	bank := coretest.NewHanging(t)
	bank.Profiled.Charge.Timeout, bank.Profiled.Charge.LookUpFirst = timeout, lookUpFirst
	g.Processor(name, bank)
	return bank
}

// A request for a pay-in is answered within 4 s, however long its processor may take and however
// many accounts hang; repeated requests too.
func TestTimeOfARequest(t *testing.T) {
	for _, test := range []struct {
		name    string
		timeout time.Duration // of the driver
		hanging []string      // accounts
		look    bool          // before the first request
		at      string        // where the order is then
	}{
		{"a driver with 8 s", 8 * time.Second, []string{"a"}, false, "a"},
		{"a look-up of 8 s", 8 * time.Second, []string{"a"}, true, "a"},
		{"a hanging look-up at each account", 4 * time.Second, []string{"a", "b", "c"}, true, "b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.Concurrent()
				g.Merchant.Routes = nil
				for _, name := range test.hanging {
					hangingAccount(t, g, name, test.timeout, test.look)
					g.Merchant.Routes = append(g.Merchant.Routes, payment.Route{Operation: payment.OperationPayin, Account: name})
				}
				g.Must(g.Store.Administer(t.Context(), storetest.Operator, func(tx *store.AdminTx) error {
					return tx.SetRoutes(t.Context(), g.Merchant.ID, payment.OperationPayin, "", g.Merchant.Routes)
				}))
				began := g.Clock.Monotonic()
				var p payment.Payin
				var err error
				g.UntilWithin(time.Minute, func() { p, _, err = g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", "")) })
				if took := g.Clock.Monotonic() - began; took > 4*time.Second || !problem.Is(err, problem.ProcessorTimeout) {
					t.Errorf("answered after %v: %v", took, err)
				}
				if at := stored(g, p).Processor; at != test.at {
					t.Errorf("the order is at %s, want %s", at, test.at)
				}
				g.WantProven()
			})
		})
	}
}

// If the time of the request is over before it reaches an account that works, the worker charges
// the order there, and the merchant learns of it.
func TestWorkerTriesTheNextAccountAfterTheRequest(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Concurrent()
		hangingAccount(t, g, "a", 4*time.Second, true)
		g.Merchant.Routes = append(payment.AllRoutes("a"), payment.AllRoutes(coretest.BankName)...)
		var p payment.Payin
		g.UntilWithin(time.Minute, func() {
			var err error
			if p, _, err = g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", "")); !problem.Is(err, problem.ProcessorTimeout) {
				t.Errorf("answered %v", err)
			}
		})
		g.Heartbeat()
		g.Charge()
		g.WaitIdle()
		if at := stored(g, p); !at.Ready() || at.Processor != coretest.BankName {
			t.Errorf("the order is at %s, ready %v", at.Processor, at.Ready())
		}
		g.WantEvents(payment.EventPayinUpdated)
		g.WantProven()
	})
}
