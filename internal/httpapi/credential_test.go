package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/store"
)

func TestCredentials(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	old := h.keys.SecretHash("old")
	h.credential("rotating", "new", h.first.ID, func(c *store.Credential) {
		c.SecondHash, c.SecondUntil = old[:], start.Add(time.Minute)
	})
	h.credential("expiring", "s", h.first.ID, func(c *store.Credential) { c.ExpiresAt = start.Add(time.Minute) })
	h.credential("revoked", "s", h.first.ID, func(c *store.Credential) { c.RevokedAt = start })
	closed := h.merchant(3, "closed", "")
	closed.ClosedAt = start
	h.gateway.merchants[closed.ID] = closed
	h.credential("closed", "s", closed.ID, nil)
	for _, tt := range []struct {
		name   string
		change sending
		status int
	}{
		{"right", as("key1", "secret1"), 200},
		{"wrong secret", as("key1", "secret2"), 401},
		{"last byte wrong", as("key1", "secret0"), 401},
		{"unknown key", as("key3", "secret1"), 401},
		{"another's secret", as("key2", "secret1"), 401},
		{"other case", as("KEY1", "secret1"), 401},
		{"nothing", anonymously, 401},
		{"no secret", header("x-api-secret"), 401},
		{"no key", header("x-api-key"), 401},
		{"empty secret", header("x-api-secret", ""), 401},
		{"two keys", header("x-api-key", "key1", "key1"), 401},
		{"two secrets", header("x-api-secret", "secret1", "secret1"), 401},
		{"huge key", header("x-api-key", strings.Repeat("k", 1000)), 401},
		{"new secret", as("rotating", "new"), 200},
		{"old secret", as("rotating", "old"), 200},
		{"expiring", as("expiring", "s"), 200},
		{"revoked", as("revoked", "s"), 401},
		{"merchant closed", as("closed", "s"), 401},
	} {
		a := h.do("GET", "/balance", "", tt.change)
		if a.status != tt.status || a.status == 401 && a.text("code") != "unauthorized" {
			t.Errorf("%s: answered %d %s, want %d", tt.name, a.status, a.body, tt.status)
		}
	}
	h.clock.Advance(time.Minute)
	h.want("old secret, after its time", h.do("GET", "/balance", "", as("rotating", "old")), 401, "unauthorized")
	h.want("new secret", h.do("GET", "/balance", "", as("rotating", "new")), 200, "")
	h.want("expired", h.do("GET", "/balance", "", as("expiring", "s")), 401, "unauthorized")
}

// An unknown key and a wrong secret have the same answer.
func TestUnknownKeyLooksLikeWrongSecret(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.want("warm", h.do("GET", "/balance", ""), 200, "")
	var bodies [2]string
	for i, who := range []sending{as("key1", "wrong"), as("nobody", "wrong")} {
		a := h.do("GET", "/balance", "", who)
		bodies[i] = strings.Replace(a.body, a.header.Get("X-Request-Id"), "", 1)
	}
	if bodies[0] != bodies[1] {
		t.Errorf("%s\n%s", bodies[0], bodies[1])
	}
}

// A key id that no credential can have is refused like an unknown one, with the same reads.
// PostgreSQL answered 500 if it was not UTF-8.
func TestImpossibleKeyLooksLikeUnknownKey(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, key := range []string{"\x80\x81", "a-b", "chave\u00e3", "a b", "a'--", strings.Repeat("k", 65), strings.Repeat("k", 256)} {
		h.credential(key, "secret", h.first.ID, nil) // must not be read
		before := h.gateway.reads
		h.want(key, h.do("GET", "/balance", "", as(key, "secret")), 401, "unauthorized")
		if h.gateway.reads != before+2 {
			t.Errorf("%q: %d reads, want 2", key, h.gateway.reads-before)
		}
	}
	longest := strings.Repeat("k", 60) + "_Az9"
	h.credential(longest, "secret", h.first.ID, nil)
	h.want("the longest", h.do("GET", "/balance", "", as(longest, "secret")), 200, "")
}

// Credentials are cached for a second, and never used longer than two.
func TestRevocationHoldsWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for range 50 {
		h.want("warm", h.do("GET", "/balance", ""), 200, "")
	}
	if h.gateway.reads != 1 {
		t.Errorf("%d reads for 50 requests", h.gateway.reads)
	}
	h.credential("key1", "secret1", h.first.ID, func(c *store.Credential) { c.RevokedAt = start })
	h.clock.Advance(999 * time.Millisecond)
	h.want("not yet known", h.do("GET", "/balance", ""), 200, "")
	h.clock.Advance(time.Millisecond)
	h.want("known", h.do("GET", "/balance", ""), 401, "unauthorized")
	h.clock.Advance(time.Second)
	for range 2 {
		h.want("known to every request", h.do("GET", "/balance", ""), 401, "unauthorized")
	}
	// A new secret works at once, because a wrong one is always looked up.
	h.credential("key2", "newer", h.second.ID, nil)
	h.want("a new secret", h.do("GET", "/balance", "", as("key2", "newer")), 200, "")
}

func TestAllowedAddresses(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.credential("office", "s", h.first.ID, func(c *store.Credential) { c.AllowedIPs = prefixes("203.0.113.0/24", "2001:db8::/32") })
	for address, status := range map[string]int{
		"203.0.113.9:1": 200, "[::ffff:203.0.113.9]:1": 200, "[2001:db8::7]:1": 200,
		"203.0.114.9:1": 403, "[2001:db9::7]:1": 403, "127.0.0.1:1": 403,
	} {
		a := h.do("GET", "/balance", "", as("office", "s"), from(address), header("X-Forwarded-For", "203.0.113.9"))
		if a.status != status {
			t.Errorf("%s: answered %d %s", address, a.status, a.body)
		}
	}
}

// Every merchant route requires credentials with its scope.
// without is the id of a credential that has all scopes except one.
func without(scope string) string { return "not_" + strings.ReplaceAll(scope, ":", "_") }

func TestEveryRouteIsGuarded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for i, scope := range store.Scopes {
		rest := append(append([]string{}, store.Scopes[:i]...), store.Scopes[i+1:]...)
		h.credential(without(scope), "s", h.first.ID, func(c *store.Credential) { c.Scopes = rest })
	}
	guarded := 0
	for _, rt := range httpapi.Routes() {
		if rt.Scope == "" {
			continue
		}
		guarded++
		path := strings.NewReplacer("{id}", "019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a").Replace(rt.Path)
		h.want(rt.Path, h.do(rt.Method, path, "", anonymously), 401, "unauthorized")
		if rt.Scope == httpapi.AnyCredential {
			continue
		}
		h.want(rt.Path, h.do(rt.Method, path, "", as(without(rt.Scope), "s")), 403, "forbidden_scope")
	}
	if guarded < 16 {
		t.Errorf("only %d routes are guarded", guarded)
	}
}

func TestAnonymousOrders(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) { o.PublicMerchant[0], o.AnyWebhookHost = 1, true })
	h.want("first", h.do("POST", "/payin", payinBody, anonymously), 201, "")
	again := h.do("POST", "/payin", payinBody, anonymously)
	h.want("again", again, 201, "")
	if again.header.Get("Idempotency-Replayed") != "true" {
		t.Error("not replayed")
	}
	for _, body := range []string{strings.Replace(payinBody, "12345", "54321", 1), strings.Replace(payinBody, "12345", "0", 1)} {
		conflict := h.do("POST", "/payin", body, anonymously)
		h.want("conflict", conflict, 409, "reference_conflict")
		if conflict.field("errors") != nil {
			t.Errorf("without credentials, the conflict shows how an order differs: %s", conflict.body)
		}
	}
	own := h.do("POST", "/payin", payinBody)
	h.want("the merchant's own request", own, 201, "")
	if own.header.Get("Idempotency-Replayed") != "" || own.field("origin") != nil || again.text("origin") != "public" || own.text("id") == again.text("id") {
		t.Errorf("an order without credentials took the merchant's reference: %s and %s", again.body, own.body)
	}
	if both := h.do("GET", "/payin?referenceId=r1", ""); !strings.Contains(both.body, own.text("id")) || !strings.Contains(both.body, again.text("id")) {
		t.Errorf("orders of the reference: %s", both.body)
	}
	h.want("wrong credentials", h.do("POST", "/payin", payinBody, as("key1", "wrong")), 401, "unauthorized")
	h.want("incomplete credentials", h.do("POST", "/payin", payinBody, header("x-api-secret")), 401, "unauthorized")
	h.want("other routes", h.do("GET", "/payin", "", anonymously), 401, "unauthorized")
	h.want("payouts", h.do("POST", "/payout", payoutBody, anonymously), 401, "unauthorized")
	if h.gateway.payinRows[0].Merchant != h.first.ID {
		t.Error("the order is not the public merchant's")
	}
}

// Orders without credentials may name registered hosts only in webhookUrl.
func TestAnonymousWebhookHosts(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) { o.PublicMerchant[0] = 1 })
	order := func(reference, url string) string {
		return strings.NewReplacer(`"r1"`, `"`+reference+`"`, "http://127.0.0.1:1/hook", url).Replace(payinBody)
	}
	a := h.do("POST", "/payin", order("a", "https://hooks.example/x"), anonymously)
	h.want("no host is registered", a, 422, "validation_failed")
	if a.text("errors.0.field") != "webhookUrl" || a.text("errors.0.code") != "not_allowed" || strings.Contains(a.body, "hooks.example") {
		t.Errorf("answered %s", a.body)
	}
	h.want("with credentials", h.do("POST", "/payin", order("own", "https://hooks.example/x")), 201, "")
	m := h.gateway.merchants[h.first.ID]
	m.WebhookHosts = []string{"hooks.example"}
	h.gateway.mu.Lock()
	h.gateway.merchants[m.ID] = m
	h.gateway.mu.Unlock()
	h.clock.Advance(2 * time.Second)
	for _, url := range []string{"https://hooks.example/x", "https://HOOKS.example:8443/", "http://hooks.example"} {
		h.want(url, h.do("POST", "/payin", order(url, url), anonymously), 201, "")
	}
	for _, url := range []string{"https://a.hooks.example/", "https://hooks.example.evil/", "https://hooks.example@evil.example/", "https://evil.example/hooks.example"} {
		h.want(url, h.do("POST", "/payin", order(url, url), anonymously), 422, "validation_failed")
	}
	m.WebhookHosts = nil
	h.gateway.mu.Lock()
	h.gateway.merchants[m.ID] = m
	h.gateway.mu.Unlock()
	h.clock.Advance(2 * time.Second)
	h.want("a repeat, after the host was removed", h.do("POST", "/payin", order("https://hooks.example/x", "https://hooks.example/x"), anonymously), 201, "")
}

// All orders without credentials share a limit; those with credentials have none of it.
func TestAnonymousTotal(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) {
		o.PublicMerchant[0] = 1
		o.AnyWebhookHost = true
		o.AnonymousTotal = httpapi.Rate{PerSecond: 2, Burst: 3}
	})
	order := func(reference, address string) answer {
		return h.do("POST", "/payin", strings.Replace(payinBody, "r1", reference, 1), anonymously, from(address))
	}
	for i := range 3 {
		h.want("burst", order(fmt.Sprint(i), fmt.Sprintf("192.0.2.%d:1", i)), 201, "")
	}
	a := order("beyond", "192.0.2.9:1")
	h.want("beyond", a, 429, "rate_limited")
	if a.header.Get("Retry-After") != "1" || a.header.Get("RateLimit") != `"public";r=0;t=1` || a.header.Get("RateLimit-Policy") != `"public";q=3;w=2` {
		t.Errorf("headers are %v", a.header)
	}
	h.want("with credentials", h.do("POST", "/payin", payinBody), 201, "")
	h.clock.Advance(500 * time.Millisecond)
	h.want("one token came back", order("later", "192.0.2.9:1"), 201, "")
}

func TestAnonymousRate(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) {
		o.PublicMerchant[0] = 1
		o.AnyWebhookHost = true
		o.AnonymousRate = httpapi.Rate{PerSecond: 2, Burst: 4}
	})
	order := func(address string) answer {
		body := strings.Replace(payinBody, "r1", fmt.Sprint("r", len(h.gateway.payinRows)), 1)
		return h.do("POST", "/payin", body, anonymously, from(address))
	}
	for range 4 {
		h.want("burst", order("192.0.2.1:1"), 201, "")
	}
	a := order("192.0.2.1:2")
	h.want("beyond", a, 429, "rate_limited")
	if a.header.Get("Retry-After") != "1" || a.header.Get("RateLimit") != `"address";r=0;t=1` || a.header.Get("RateLimit-Policy") != `"address";q=4;w=2` {
		t.Errorf("headers are %v", a.header)
	}
	h.want("invalid, but limited too", h.do("POST", "/payin", "{", anonymously, from("192.0.2.1:3")), 429, "rate_limited")
	h.want("another address", order("192.0.2.2:1"), 201, "")
	h.want("with credentials", h.do("POST", "/payin", strings.Replace(payinBody, "r1", "own", 1), from("192.0.2.1:1")), 201, "")
	for range 4 {
		h.want("IPv6", order("[2001:db8::1]:1"), 201, "")
	}
	h.want("the same IPv6 customer", order("[2001:db8::ffff]:1"), 429, "rate_limited")
	h.clock.Advance(500 * time.Millisecond)
	h.want("one token came back", order("192.0.2.1:1"), 201, "")
	h.want("just one", order("192.0.2.1:1"), 429, "rate_limited")
	h.clock.Advance(time.Hour)
	for range 4 {
		h.want("full again", order("192.0.2.1:1"), 201, "")
	}
	h.want("but not fuller", order("192.0.2.1:1"), 429, "rate_limited")
}
