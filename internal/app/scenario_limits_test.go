package app_test

import (
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// A change of limits takes effect by itself; a request beyond one leaves no row and no
// reference, and a repeated request is answered as before.
func TestLimits(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		m, shop := g.NewMerchant("limited", 10_000)
		if got := shop.Must(200, "GET", "/limits", ""); got.Body != `{"payin":{},"payout":{}}` {
			t.Errorf("no limits: %s", got.Body)
		}
		first := shop.Must(201, "POST", "/payin", with(pixOf, "{ref}", "first"))
		set := func(change func(l *limits.Limits), want string) {
			t.Helper()
			if _, err := g.Admin.Merchants.SetLimits(t.Context(), m.ID, change); err != nil {
				t.Fatal(err)
			}
			apptest.Until(t, func() string {
				if got := shop.Must(200, "GET", "/limits", ""); got.Body != want {
					return "limits are " + got.Body + ", want " + want
				}
				return ""
			})
		}
		cents := func(c money.Cents) *money.Cents { return &c }
		set(func(l *limits.Limits) {
			l.Payin = map[payment.Method]limits.Range{payment.PIX: {Maximum: cents(999)}}
			l.Payout = limits.Payout{PerDay: cents(700), PerKeyPerDay: cents(600)}
		}, `{"payin":{"PIX":{"maximum":999}},"payout":{"perDay":700,"perKeyPerDay":600,"usedToday":0}}`)
		refused := func(path, body, limit string) {
			t.Helper()
			before := g.Rows(t)
			got := shop.Must(422, "POST", path, body)
			if got.Get("code") != "limit_exceeded" || got.Get("limit") != limit {
				t.Errorf("%s", got.Body)
			}
			if rows := g.Rows(t).Since(before); rows != "" {
				t.Errorf("a refused request left %s", rows)
			}
		}
		refused("/payin", with(pixOf, "{ref}", "second"), "maximum")
		if got := shop.Must(201, "POST", "/payin", with(pixOf, "{ref}", "first")); !got.Replayed() || got.Get("id") != first.Get("id") {
			t.Errorf("the repeated request got %s", got.Body)
		}
		shop.Must(201, "POST", "/payin", with(billOf, "{ref}", "bill"))
		shop.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "one"))
		awaitFinal(t, shop)
		other := strings.ReplaceAll(payoutOf, "maria@", "ana@")
		refused("/payout", with(with(payoutOf, "{ref}", "two"), "500", "101"), "perKeyPerDay")
		refused("/payout", with(with(other, "{ref}", "two"), "500", "201"), "perDay")
		if got := shop.Must(201, "POST", "/payout", with(with(other, "{ref}", "two"), "500", "200")); got.Replayed() {
			t.Error("the reference of a refused request was used")
		}
		if got := shop.Must(200, "GET", "/limits", "").Get("payout.usedToday"); got != "700" {
			t.Errorf("used %s", got)
		}
		if got := shop.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "one")); !got.Replayed() {
			t.Errorf("the repeated request got %s", got.Body)
		}
		g.Verify(t)
	})
}
