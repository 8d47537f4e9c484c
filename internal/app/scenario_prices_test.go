package app_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/payment"
)

// beforeChristmas advances the sandbox's clock to the next 23 December, and returns by how much,
// and the second business day of banks after it.
func beforeChristmas(g *apptest.Installed) (offset time.Duration, second string) {
	now := time.Now().UTC()
	day := time.Date(now.Year(), time.December, 23, 15, 0, 0, 0, time.UTC)
	if day.Before(now) {
		day = day.AddDate(1, 0, 0)
	}
	offset = day.Sub(now).Truncate(time.Second) + time.Second
	g.Must(204, "POST", "/sandbox/clock", fmt.Sprintf(`{"advance":%d}`, int(offset.Seconds())))
	for n := 0; n < 2; {
		day = day.AddDate(0, 0, 1)
		holiday := day.Month() == time.December && day.Day() == 25 || day.YearDay() == 1
		if !holiday && day.Weekday() != time.Saturday && day.Weekday() != time.Sunday {
			n++
		}
	}
	return offset, day.Format(time.DateOnly)
}

// setPrices sets prices of Pix and of payouts, and waits until gateways follow.
func setPrices(t *testing.T, g *apptest.Installed) {
	t.Helper()
	if got := g.Must(200, "GET", "/prices", "").Body; got != `{"data":[]}` {
		t.Errorf("prices %s", got)
	}
	m, err := g.Admin.Store.MerchantByName(t.Context(), "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	terms := payment.Terms{BasisPoints: 99, Fixed: 10, Days: 2, Business: true}
	for method, terms := range map[payment.Method]payment.Terms{payment.PIX: terms, payment.PayoutPrice: {Fixed: 50}} {
		if _, err := g.Admin.Merchants.SetPrice(t.Context(), m.ID, payment.Price{Method: method, Range: payment.Range{Terms: terms}}, merchant.Unnamed{}); err != nil {
			t.Fatal(err)
		}
	}
	apptest.Until(t, func() string { // running gateways follow within 2 s
		got := g.Must(200, "GET", "/prices", "")
		if got.Get("data.1.settlement.kind") != "BUSINESS" || got.Get("data.0.fixed") != "50" || got.Get("data.0.method") != "PAYOUT" {
			return fmt.Sprintf("prices %s", got.Body)
		}
		return ""
	})
}

// A price of 0.99 % and 10 cents with settlement B+2, from the command to available money, by
// the sandbox's clock and across a holiday; it leaves nothing else.
func TestPricesAndSettlement(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		offset, date := beforeChristmas(g)
		before := g.Rows(t)
		setPrices(t, g)
		id := g.Must(201, "POST", "/payin", with(with(pixOf, "{ref}", "priced"), `"amount":1000`, `"amount":10000`)).Get("id")
		g.Must(204, "POST", "/sandbox/payin/"+id+"/pay", "")
		paid := g.Must(200, "GET", "/payin/"+id, "")
		if paid.Get("fee") != "109" || paid.Get("netAmount") != "9891" {
			t.Errorf("paid %s", paid.Body)
		}
		wants := func(when, available, pending string) {
			t.Helper()
			apptest.Until(t, func() string {
				if got := g.Must(200, "GET", "/balance", ""); got.Get("available") != available || got.Get("pending") != pending {
					return fmt.Sprintf("%s: balance %s", when, got.Body)
				}
				return ""
			})
		}
		funds := int(app.SandboxFunds)
		wants("paid", fmt.Sprint(funds), "9891")
		days := g.Must(200, "GET", "/receivables", "")
		if days.Get("data.0.date") != date || days.Get("data.0.amount") != "9891" || days.Get("data.0.count") != "1" || days.Get("data.1.date") != "" {
			t.Errorf("receivables %s", days.Body)
		}
		inside := g.Must(200, "GET", "/receivables/"+date, "")
		if inside.Get("data.0.net") != "9891" || inside.Get("data.0.orderId") != id || inside.Get("data.0.referenceId") != "priced" || inside.Get("data.0.settledAt") != "" {
			t.Errorf("in it %s", inside.Body)
		}
		at, err := time.Parse(time.RFC3339, date+"T09:00:00Z") // 06:00 in São Paulo
		if err != nil {
			t.Fatal(err)
		}
		left := int((time.Until(at) - offset).Seconds())
		g.Must(204, "POST", "/sandbox/clock", fmt.Sprintf(`{"advance":%d}`, left-3600))
		wants("an hour before", fmt.Sprint(funds), "9891")
		g.Must(204, "POST", "/sandbox/clock", `{"advance":3602}`)
		wants("settled", fmt.Sprint(funds+9891), "0")
		if got := g.Must(200, "GET", "/statement?kind=settled&account=pending", ""); got.Get("data.0.installment") != "1" {
			t.Errorf("the statement has %s", got.Body)
		}
		if got := g.Must(200, "GET", "/receivables", "").Body; got != `{"data":[]}` {
			t.Errorf("receivables %s", got)
		}
		if got := g.Must(200, "GET", "/receivables/"+date, ""); got.Get("data.0.settledAt") == "" {
			t.Errorf("in it %s", got.Body)
		}
		payout := g.Must(201, "POST", "/payout", with(with(payoutOf, "{ref}", "priced"), `"amount":500`, `"amount":9891`))
		if payout.Get("fee") != "50" {
			t.Errorf("payout %s", payout.Body)
		}
		awaitFinal(t, g.Client)
		const want = "entry payout_held 1, entry payout_paid 1, entry received_pending 1, entry settled 1, event payin.paid 1, event payout.completed 1, " +
			"event payout.processing 1, notices 2, payins 1, payouts 1, receipt_claims 1, receipts 1, receivables 1"
		apptest.Until(t, func() string {
			if rows := g.Rows(t).Since(before); rows != want {
				return "it left " + rows
			}
			return ""
		})
		g.Verify(t)
	})
}
