package merchant_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A merchant with money or anything open is closed only nevertheless, and everything goes on until it is
// reopened.
func TestClose(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, row := range []struct {
			name  string
			given func(g *coretest.Gateway)
			left  string
		}{
			{"money", func(*coretest.Gateway) {}, "available=100000"},
			{"a debt and a dispute", indebted, "disputed=100000 owed=-100000 dispute OPEN=1"},
			{"an open pay-in", func(g *coretest.Gateway) { g.Payin(g.Merchant, "open", "") }, "available=100000 payin PENDING=1"},
			{"a payout", func(g *coretest.Gateway) { g.Payout("open", 10_00) }, "available=99000 held=1000 payout PENDING=1"},
			{"a pay-in that is paid in part, and a dispute", func(g *coretest.Gateway) {
				p := g.PaidPayin("paid", 50_00)
				g.Bank.Dispute(p.ExternalID, g.T.Name(), 20_00, processor.DisputeOpen)
				g.ReadFeeds()
			}, "available=103000 disputed=2000 payin PENDING=1 dispute OPEN=1"},
			{"money beyond an order", func(g *coretest.Gateway) { g.PaidPayin("twice", 100_00, 50_00) }, "available=110000 unapplied=5000 case =1"},
		} {
			t.Run(row.name, func(t *testing.T) {
				g := g.For(t)
				row.given(g)
				left, err := g.Merchants.Close(t.Context(), g.Merchant.ID, false)
				if got := leftOf(&left); got != row.left || !problem.Is(err, problem.InvalidState) {
					t.Errorf("left %q, %v, want %q", got, err, row.left)
				}
				wantClosed(g, g.Merchant.ID, false)
				again, err := g.Merchants.Close(t.Context(), g.Merchant.ID, true)
				if g.Must(err); leftOf(&again) != row.left {
					t.Errorf("closed nevertheless, left %q", leftOf(&again))
				}
				wantClosed(g, g.Merchant.ID, true)
				g.Send()
				g.Must(g.Merchants.Reopen(t.Context(), g.Merchant.ID))
				wantClosed(g, g.Merchant.ID, false)
				g.WantProven()
			})
		}
	})
}

// A merchant whose orders are final is closed without a question, once.
func TestCloseWithNothingLeft(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		m, err := g.Merchants.Create(t.Context(), store.Merchant{Name: "Vazia", City: "OLINDA", Routes: payment.AllRoutes(coretest.BankName)}, "")
		g.Must(err)
		p := g.Payin(m, "canceled", "")
		_, err = g.Payins.Cancel(t.Context(), m.ID, p.ID)
		g.Must(err)
		left, err := g.Merchants.Close(t.Context(), m.ID, false)
		if g.Must(err); !left.Nothing() {
			t.Errorf("left %q", leftOf(&left))
		}
		wantClosed(g, m.ID, true)
		if _, err := g.Merchants.Close(t.Context(), m.ID, true); err == nil {
			t.Error("closed twice")
		}
	})
}

func wantClosed(g *coretest.Gateway, id payment.ID, want bool) {
	g.T.Helper()
	m, err := g.Store.Merchant(g.T.Context(), id)
	if g.Must(err); m.ClosedAt.IsZero() == want || m.Damaged != nil {
		g.T.Errorf("closed at %v, %v, want closed %v", m.ClosedAt, m.Damaged, want)
	}
}

func leftOf(u *store.Unfinished) string {
	var list []string
	for _, account := range slices.Sorted(maps.Keys(u.Balances)) {
		list = append(list, fmt.Sprintf("%s=%d", account, u.Balances[account]))
	}
	for _, w := range u.Work {
		list = append(list, fmt.Sprintf("%s %s=%d", w.Noun, w.Status, w.Count))
	}
	return strings.Join(list, " ")
}
