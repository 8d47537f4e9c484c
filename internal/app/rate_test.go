package app_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
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
	blocked := g.Must(429, "POST", "/payout", with(payoutOf, "{ref}", "blocked"), here)
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
