package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/store"
)

// wantLimited checks a refusal and its headers.
func (h *harness) wantLimited(what string, a answer, retryAfter, limit, policy string) {
	h.t.Helper()
	h.want(what, a, 429, "rate_limited")
	if a.header.Get("Retry-After") != retryAfter || a.header.Get("RateLimit") != limit || a.header.Get("RateLimit-Policy") != policy {
		h.t.Errorf("%s: headers are %v", what, a.header)
	}
}

func TestCredentialRate(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) {
		o.CredentialLimits = httpapi.CredentialLimits{Rate: httpapi.Rate{PerSecond: 2, Burst: 4}, InFlight: 10}
	})
	const policy = `"credential";q=4;w=2`
	for left := 3; left >= 0; left-- {
		a := h.do("GET", "/balance", "")
		h.want("burst", a, 200, "")
		want := fmt.Sprintf(`"credential";r=%d;t=%d`, left, (5-left)/2)
		if a.header.Get("RateLimit") != want || a.header.Get("RateLimit-Policy") != policy || a.header.Get("Retry-After") != "" {
			t.Errorf("headers are %v, want %s", a.header, want)
		}
	}
	const none = `"credential";r=0;t=1`
	h.wantLimited("beyond", h.do("GET", "/balance", ""), "1", none, policy)
	h.wantLimited("from another address", h.do("GET", "/balance", "", from("192.0.2.7:1")), "1", none, policy)
	h.wantLimited("before the body is checked", h.do("POST", "/payin", "{"), "1", none, policy)
	h.want("after path and method", h.do("PUT", "/payin", ""), 405, "method_not_allowed")
	h.want("after credentials", h.do("GET", "/balance", "", as("key1", "wrong")), 401, "unauthorized")
	h.want("another credential", h.do("GET", "/balance", "", as("key2", "secret2")), 200, "")
	h.want("a public route", h.do("GET", "/openapi.json", "", anonymously), 200, "")
	h.clock.Advance(500 * time.Millisecond)
	h.want("one token came back", h.do("GET", "/balance", ""), 200, "")
	h.wantLimited("just one", h.do("GET", "/balance", ""), "1", none, policy)
	h.clock.Advance(time.Hour)
	for range 4 {
		h.want("full again", h.do("GET", "/balance", ""), 200, "")
	}
	h.wantLimited("but not fuller", h.do("GET", "/balance", ""), "1", none, policy)
}

// A merchant's own limits replace those of the gateway, on the next request after its
// credentials were read again.
func TestCredentialRateOfAMerchant(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) {
		o.CredentialLimits = httpapi.CredentialLimits{Rate: httpapi.Rate{PerSecond: 50, Burst: 100}, InFlight: 9}
	})
	set := func(own limits.Requests) {
		h.gateway.mu.Lock()
		m := h.gateway.merchants[h.first.ID]
		m.Limits.Requests = own
		h.gateway.merchants[m.ID] = m
		h.gateway.mu.Unlock()
		h.clock.Advance(2 * time.Second)
	}
	h.want("the gateway's", h.do("GET", "/balance", ""), 200, "")
	set(limits.Requests{Rate: new(int64(1))})
	for range 2 {
		h.want("twice its own rate at once", h.do("GET", "/balance", ""), 200, "")
	}
	h.wantLimited("beyond", h.do("GET", "/balance", ""), "1", `"credential";r=0;t=1`, `"credential";q=2;w=2`)
	h.want("another merchant", h.do("GET", "/balance", "", as("key2", "secret2")), 200, "")
	set(limits.Requests{Rate: new(int64(1)), Burst: new(int64(5))})
	for range 5 {
		h.want("its own burst", h.do("GET", "/balance", ""), 200, "")
	}
	h.wantLimited("beyond", h.do("GET", "/balance", ""), "1", `"credential";r=0;t=1`, `"credential";q=5;w=5`)
	set(limits.Requests{Burst: new(int64(3))})
	if a := h.do("GET", "/balance", ""); a.header.Get("RateLimit-Policy") != `"credential";q=3;w=1` {
		t.Errorf("its own burst, at the gateway's rate: %v", a.header)
	}
	set(limits.Requests{})
	for range 50 {
		h.want("the gateway's again", h.do("GET", "/balance", ""), 200, "")
	}
}

// Without limits there are no headers.
func TestNoCredentialRate(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for range 100 {
		a := h.do("GET", "/balance", "")
		h.want("unlimited", a, 200, "")
		if a.header.Get("RateLimit")+a.header.Get("RateLimit-Policy") != "" {
			t.Fatalf("headers are %v", a.header)
		}
	}
}

func TestCredentialInFlight(t *testing.T) {
	t.Parallel()
	t.Run("of the gateway", func(t *testing.T) {
		t.Parallel()
		inFlight(t, newHarness(t, func(o *httpapi.Options) { o.CredentialLimits.InFlight = 2 }))
	})
	t.Run("of the merchant", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		m := h.gateway.merchants[h.first.ID]
		m.Limits.Requests.InFlight = new(int64(2))
		h.gateway.merchants[m.ID] = m
		inFlight(t, h)
	})
}

// inFlight sends more requests at once than the two that the credential may.
func inFlight(t *testing.T, h *harness) {
	t.Helper()
	h.gateway.begun, h.gateway.proceed = make(chan struct{}), make(chan struct{})
	answers := make(chan answer, 2)
	for i := range 2 {
		go func() { answers <- h.do("POST", "/payin", strings.Replace(payinBody, "r1", fmt.Sprint("r", i), 1)) }()
		<-h.gateway.begun
	}
	const limit, policy = `"in-flight";r=0;t=1`, `"in-flight";q=2;qu="concurrent-requests"`
	h.wantLimited("a third one", h.do("GET", "/credential", ""), "1", limit, policy)
	h.want("another credential", h.do("GET", "/credential", "", as("key2", "secret2")), 200, "")
	close(h.gateway.proceed)
	for range 2 {
		h.want("the first two", <-answers, 201, "")
	}
	for range 5 {
		h.want("after them", h.do("GET", "/credential", ""), 200, "")
	}
}

const logInPolicy = `"log-in";q=20;w=300`

// 20 wrong secrets for a key block that key from that address only, and only wrong ones.
func TestWrongSecretsForAKey(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	here, there := from("192.0.2.1:1"), from("192.0.2.2:1")
	for _, key := range []string{"unknown", "key1"} {
		wrong := as(key, "wrong")
		for range 19 {
			h.want("wrong", h.do("GET", "/balance", "", wrong, here), 401, "unauthorized")
		}
		h.clock.Advance(wrongWindow)
		for range 20 { // the others are too old
			h.want("wrong", h.do("GET", "/balance", "", wrong, here), 401, "unauthorized")
		}
		h.wantLimited("blocked", h.do("GET", "/balance", "", wrong, here), "300", `"log-in";r=0;t=300`, logInPolicy)
		h.want("from elsewhere", h.do("GET", "/balance", "", wrong, there), 401, "unauthorized")
	}
	wrong := as("key1", "wrong")
	h.want("the right secret from there", h.do("GET", "/balance", "", here), 200, "")
	h.want("the right secret from elsewhere", h.do("GET", "/balance", "", there), 200, "")
	h.want("another key from there", h.do("GET", "/balance", "", as("key2", "wrong"), here), 401, "unauthorized")
	h.clock.Advance(wrongWindow - time.Second)
	h.wantLimited("until the end", h.do("GET", "/balance", "", wrong, here), "1", `"log-in";r=0;t=1`, logInPolicy)
	h.clock.Advance(time.Second)
	for range 19 {
		h.want("a wrong one after the end", h.do("GET", "/balance", "", wrong, here), 401, "unauthorized")
	}
	h.want("the right one between them", h.do("GET", "/balance", "", here), 200, "")
}

// 100 wrong secrets from an address block all wrong ones from it. An IPv6 customer is one address.
// Others that share the address, as behind a proxy, are served: with a credential that is cached, and
// with one that must be read.
func TestWrongSecretsFromAnAddress(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for i := range 100 {
		h.want("wrong", h.do("GET", "/balance", "", as(fmt.Sprint("k", i), "wrong"), from(fmt.Sprintf("[2001:db8::%x]:1", i))), 401, "unauthorized")
	}
	wrong := as("key1", "wrong")
	for range 3 {
		h.wantLimited("blocked", h.do("GET", "/balance", "", wrong, from("[2001:db8::ffff]:1")), "300", `"log-in";r=0;t=300`, `"log-in";q=100;w=300`)
		h.want("a right secret", h.do("GET", "/balance", "", from("[2001:db8::ffff]:1")), 200, "")
	}
	h.want("another customer", h.do("GET", "/balance", "", wrong, from("[2001:db8:0:1::1]:1")), 401, "unauthorized")
	h.want("public routes", h.do("GET", "/openapi.json", "", anonymously, from("[2001:db8::1]:1")), 200, "")
	h.clock.Advance(wrongWindow)
	h.want("after the end", h.do("GET", "/balance", "", wrong, from("[2001:db8::1]:1")), 401, "unauthorized")
}

// A blocked source adds a line a second to the log, and not one for each request.
func TestRefusalsOfABlockedSourceAreCounted(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	wrong := as("key1", "wrong")
	for range 20 {
		h.want("wrong", h.do("GET", "/balance", "", wrong), 401, "unauthorized")
	}
	before := strings.Count(h.log.String(), "\n")
	for _, advance := range []time.Duration{0, 999 * time.Millisecond, time.Millisecond} {
		h.clock.Advance(advance)
		for range 100 {
			h.want("blocked", h.do("GET", "/balance", "", wrong), 429, "rate_limited")
		}
	}
	log := h.log.String()
	if lines := strings.Count(log, "\n") - before; lines != 2 || !strings.Contains(log, `"rejected":1}`) || !strings.Contains(log, `"rejected":200}`) {
		t.Errorf("%d lines: %s", lines, log)
	}
}

// Requests without credentials, and those that a right credential is refused, are no wrong
// secrets.
func TestWhatIsNoWrongSecret(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.credential("limited", "s", h.first.ID, func(c *store.Credential) { c.Scopes = []string{store.ScopeRead} })
	for range 120 {
		h.want("nothing", h.do("GET", "/balance", "", anonymously), 401, "unauthorized")
		h.want("half", h.do("GET", "/balance", "", header("x-api-secret")), 401, "unauthorized")
		h.want("another scope", h.do("POST", "/payin", payinBody, as("limited", "s")), 403, "forbidden_scope")
	}
	h.want("right", h.do("GET", "/balance", ""), 200, "")
}

// The memory for wrong secrets is bounded, and a flood ends no block.
func TestWrongSecretsAreBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.handler = h.api // without validation, for speed
	for range 20 {
		h.do("GET", "/balance", "", as("key1", "wrong"), from("192.0.2.1:1"))
	}
	for i := range httpapi.LoginsMax + 500 {
		h.do("GET", "/balance", "", as(fmt.Sprint("k", i), "wrong"), from(fmt.Sprintf("10.%d.%d.1:1", i/250, i%250)))
	}
	if n := httpapi.Logins(h.api); n > httpapi.LoginsMax {
		t.Errorf("%d entries, at most %d are allowed", n, httpapi.LoginsMax)
	}
	h.want("still blocked", h.do("GET", "/balance", "", as("key1", "wrong"), from("192.0.2.1:1")), 429, "rate_limited")
	h.clock.Advance(2 * wrongWindow)
	h.do("GET", "/balance", "", as("key1", "wrong"), from("192.0.2.1:1"))
	if n := httpapi.Logins(h.api); n != 1 {
		t.Errorf("%d entries are left", n)
	}
}

const wrongWindow = 5 * time.Minute
