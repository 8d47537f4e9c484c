package app_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/limits"
)

// Rates and blocks of a gateway behind a proxy: those of a client do not affect another one,
// and what is refused leaves no row.
func TestRates(t *testing.T) {
	t.Parallel()
	g := apptest.Start(t, "sqlite", "trusted-proxies", "127.0.0.0/8,::1/128", "credential-rate", "1", "credential-burst", "100", "credential-in-flight", "5")
	const here, there = "X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 192.0.2.2"
	before := g.Rows(t)
	for i := range 20 {
		got := g.Must(401, "POST", "/payout", payoutOf, here, "X-Api-Secret: wrong")
		if got.Get("code") != "unauthorized" {
			t.Errorf("wrong secret %d: %s", i, got.Body)
		}
	}
	blocked := g.Must(429, "POST", "/payout", with(payoutOf, "{ref}", "blocked"), here, "X-Api-Secret: wrong")
	if blocked.Get("code") != "rate_limited" || blocked.Header.Get("Retry-After") == "" || blocked.Header.Get("RateLimit") == "" {
		t.Errorf("blocked: %v %s", blocked.Header, blocked.Body)
	}
	if rows := g.Rows(t).Since(before); rows != "" {
		t.Errorf("refused requests left %s", rows)
	}
	for left := 99; ; left-- {
		got := g.Ask("GET", "/balance", "", there)
		if got.Status == 429 {
			break
		}
		if got.Status != 200 || got.Header.Get("RateLimit") == "" || left < -1000 {
			t.Fatalf("%d left: %d %v", left, got.Status, got.Header)
		}
		if left == 99 && got.Header.Get("RateLimit") != `"credential";r=99;t=1` {
			t.Errorf("first: RateLimit is %s", got.Header.Get("RateLimit"))
		}
	}
	if got := g.Ask("GET", "/balance", "", there); got.Status == 429 && got.Header.Get("RateLimit-Policy") != `"credential";q=100;w=100` {
		t.Errorf("limited: %v", got.Header)
	}
	g.Anonymous().Must(201, "POST", "/payin", with(pixOf, "{ref}", "public"), here)
	_, other := g.NewMerchant("Another", 1)
	other.Must(200, "GET", "/balance", "", there)
}

// The operator's limits of a merchant's requests take effect on every running gateway, and
// are none of another merchant's.
func TestRateOfAMerchant(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		m, client := g.NewMerchant("Limited", 1)
		clients := []*apptest.Client{client}
		if g.Engine == "postgres" {
			second := *apptest.Run(t, apptest.Config(t, config.Dev, apptest.Secrets(), "data", t.TempDir(), "database", g.Database)).Client
			second.Key, second.Secret = client.Key, client.Secret
			clients = append(clients, &second)
		}
		set := func(rate *int64) {
			t.Helper()
			if _, err := g.Admin.Merchants.SetLimits(t.Context(), m.ID, func(l *limits.Limits) { l.Requests.Rate = rate }); err != nil {
				t.Fatal(err)
			}
		}
		until := func(what, policy string) {
			t.Helper()
			for _, c := range clients {
				apptest.Until(t, func() string {
					if got := c.Ask("GET", "/credential", ""); got.Header.Get("RateLimit-Policy") != policy {
						return what + ": " + got.Header.Get("RateLimit-Policy")
					}
					return ""
				})
			}
		}
		until("dev has none", "")
		set(new(int64(500)))
		until("its own", `"credential";q=1000;w=2`)
		if got := g.Must(200, "GET", "/credential", ""); got.Header.Get("RateLimit-Policy") != "" {
			t.Errorf("another merchant's: %v", got.Header)
		}
		set(nil)
		until("none again", "")
	})
}
