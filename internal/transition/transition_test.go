package transition_test

import (
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// move is a transition of a pay-in, or of a payout.
type move func(l *store.Loaded, c *store.Changes, in *payment.Payin, out *payment.Payout) (moved bool, err error)

// moves runs a move of a pay-in and a payout of the merchant, and returns the changes.
func moves(g *coretest.Gateway, do move, in payment.Payin, out payment.Payout) (moved bool, changes string, err error) {
	g.T.Helper()
	var needs store.Needs
	needs.Payin(in.Merchant, in.ID)
	needs.Payout(out.Merchant, out.ID)
	needs.Balances(in.Merchant)
	changes = g.Changes(func() {
		err = g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
			return tx.Apply(g.T.Context(), &needs, func(l *store.Loaded, c *store.Changes) (err error) {
				in, _ := l.Payin(in.Merchant, in.ID)
				out, _ := l.Payout(out.Merchant, out.ID)
				moved, err = do(l, c, &in, &out)
				return err
			})
		})
	})
	return moved, changes, err
}

func TestTransitions(t *testing.T) {
	links := func(*payment.Payin) payment.Links { return payment.Links{} }
	payin := func(on payment.Trigger, entries ...ledger.Entry) move {
		return func(l *store.Loaded, c *store.Changes, in *payment.Payin, _ *payment.Payout) (bool, error) {
			return transition.Payin(l, c, in, links, on, entries...)
		}
	}
	payout := func(on payment.Trigger, entries ...ledger.Entry) move {
		return func(l *store.Loaded, c *store.Changes, _ *payment.Payin, out *payment.Payout) (bool, error) {
			return transition.Payout(l, c, out, on, entries...)
		}
	}
	paid, released := ledger.Receive(coretest.BankName, 100_00, 0), ledger.ReleasePayout(10_00, 0)
	rows := []struct {
		name    string
		do      move
		changes string
		wrong   string // in the error
	}{
		{"a pay-in without entries", payin(payment.OnExpire), `
			payins next_at:in 1h0m0s→- status:PENDING→EXPIRED version:2→3
			+events payin.expired
			+deliveries pending -`, ""},
		{"a pay-in without an event", payin(payment.OnAttemptRefused), "payins version:2→3", ""},
		{"a pay-in with entries", payin(payment.OnPay, paid), `
			payins next_at:in 1h0m0s→- status:PENDING→PAID version:2→3
			+postings received clearing:bank -10000
			+postings received available 10000
			+events payin.paid
			+deliveries pending -`, ""},
		{"a payout", payout(payment.OnCancel, released), `
			payouts status:PENDING→CANCELED version:1→2
			limit_counters amount:1000→0 payouts:1→0
			+postings payout_released held -1000
			+postings payout_released available 1000
			+events payout.canceled`, ""},
		{"an illegal cell", payin(payment.OnWin), "", ""},
		{"an illegal cell with entries", payout(payment.OnComplete, released), "", ""},
		{"entries that the cell does not name", payin(payment.OnExpire, paid), "", "with 1 entries"},
		{"no entries, and the cell names a recipe", payin(payment.OnPay), "", "with 0 entries"},
		{"entries of another recipe", payin(payment.OnPay, released), "", "the table has"},
		{"entries that the balances do not allow", payout(payment.OnCancel, ledger.ReleasePayout(10_01, 0)), "", "post payout_released"},
	}
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				g := g.For(t)
				in, out := g.Payin(g.Merchant, "in", "https://shop.example/hook"), g.Payout("out", 10_00)
				moved, changes, err := moves(g, row.do, in, out)
				if want := coretest.Lines(row.changes); changes != want || moved != (want != "") {
					t.Errorf("moved %v, changes\n%s\nwant\n%s", moved, changes, want)
				}
				if (err != nil) != (row.wrong != "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
					t.Errorf("error %v, want %q", err, row.wrong)
				}
			})
		}
	})
}

// The order's events are not delivered once its receiver has disabled them.
func TestDisabledEventsAreNotDelivered(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "in", "https://shop.example/hook")
		g.Execute("UPDATE payins SET webhook_disabled = 1")
		changes := g.Changes(func() {
			_, err := g.Payins.Cancel(t.Context(), p.Merchant, p.ID)
			g.Must(err)
		})
		if !strings.HasSuffix(changes, "+events payin.canceled") {
			t.Errorf("changes\n%s", changes)
		}
	})
}
