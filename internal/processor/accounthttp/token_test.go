package accounthttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/processor"
)

// 100 calls at once fetch one token. One that gives up returns at once, and stops no other.
func TestOneFetchForAll(t *testing.T) {
	b := newBank(t, nil)
	proceed := make(chan struct{})
	b.issue = func(w http.ResponseWriter, _ *http.Request) {
		<-proceed
		b.set(func() { b.valid["token-1"] = true })
		_, _ = io.WriteString(w, `{"access_token":"token-1","expires_in":100}`)
	}
	c := b.client(nil)
	source := c.current.tokens
	waiting := func(n int) func() bool {
		return func() bool { source.mu.Lock(); defer source.mu.Unlock(); return source.waiters == n }
	}
	ctx, cancel := context.WithCancel(t.Context())
	impatient := make(chan Result, 1)
	go func() { impatient <- c.Do(ctx, effect()) }() // it begins the fetch
	b.until(waiting(1))
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() { want(t, "a call", do(t, c, effect()), 200, processor.Unknown) })
	}
	b.until(waiting(101))
	cancel()
	want(t, "the one that gave up", <-impatient, 0, processor.NotSent)
	source.mu.Lock()
	source.waiters += tokenWaitersMax
	source.mu.Unlock()
	if r := do(t, c, effect()); !errors.Is(r.Cause, errTokenWaiters) || r.Outcome != processor.NotSent {
		t.Errorf("one too many: %v, %v", r.Outcome, r.Cause)
	}
	source.mu.Lock()
	source.waiters -= tokenWaitersMax
	source.mu.Unlock()
	close(proceed)
	group.Wait()
	b.fetches(1)
	if !waiting(0)() {
		t.Error("callers are counted that wait no longer")
	}
}

// A token is renewed at 80 % of its life beside the callers, and used until its end if the
// endpoint does not answer.
func TestTokenIsRenewed(t *testing.T) {
	b := newBank(t, nil)
	c := b.client(nil)
	call := func(what string) { t.Helper(); want(t, what, do(t, c, query()), 200, processor.Unknown) }
	call("first")
	b.clock.Advance(79 * time.Second)
	call("at 79 %")
	b.fetches(1)
	b.set(func() {
		b.issue = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	})
	b.clock.Advance(time.Second)
	call("at 80 %")
	b.fetches(2)
	idle := func() bool { s := c.current.tokens; s.mu.Lock(); defer s.mu.Unlock(); return s.fetching == nil }
	b.until(idle)
	call("with the endpoint down")
	b.fetches(2)
	b.set(func() { b.issue = nil })
	b.clock.Advance(time.Second)
	call("while it is renewed")
	b.fetches(3)
	b.until(idle)
	b.set(func() { b.valid = map[string]bool{"token-3": true} })
	call("with the next token")
	b.fetches(3)
	b.clock.Advance(100 * time.Second)
	call("after its end")
	b.fetches(4)
}

// 401 drops the token. A query is sent again with a new one; an effect is unknown and sent
// once.
func TestTokenExpiresInMidFlight(t *testing.T) {
	b := newBank(t, nil)
	c := b.client(nil)
	want(t, "first", do(t, c, effect()), 200, processor.Unknown)
	b.wantCalls("PUT /effect old")
	b.set(func() { clear(b.valid) })
	r := do(t, c, effect())
	want(t, "effect", r, 0, processor.Unknown)
	b.wantCalls("PUT /effect old")
	want(t, "next effect", do(t, c, effect()), 200, processor.Unknown)
	b.wantCalls("PUT /effect old")
	b.fetches(2)
	b.set(func() { clear(b.valid) })
	want(t, "query", do(t, c, query()), 200, processor.Unknown)
	b.wantCalls("GET /query old", "GET /query old")
	b.fetches(3)

	html := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "<html>"+personal)
	}
	b.set(func() { b.answer = html })
	want(t, "effect, answered by a proxy", do(t, c, effect()), 0, processor.Unknown)
	b.wantCalls("PUT /effect old")
	want(t, "query, answered by a proxy", do(t, c, query()), 0, processor.Unknown)
}

// A processor that refuses every token that it issues gets no storm of fetches.
func TestRefusedTokensBackOff(t *testing.T) {
	b := newBank(t, nil)
	c := b.client(nil)
	b.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	want(t, "query", do(t, c, query()), 401, processor.Unknown)
	b.wantCalls("GET /query old", "GET /query old")
	for range 10 {
		r := do(t, c, effect())
		want(t, "effect", r, 0, processor.NotSent)
		if !errors.Is(r.Cause, errTokenRefused) {
			t.Errorf("cause %v", r.Cause)
		}
	}
	b.fetches(2)
	for i, wait := range []time.Duration{1, 2, 4, 8} {
		b.clock.Advance(wait*time.Second - time.Millisecond)
		want(t, "too soon", do(t, c, effect()), 0, processor.NotSent)
		b.clock.Advance(time.Millisecond)
		want(t, "effect after the wait", do(t, c, effect()), 0, processor.Unknown)
		b.fetches(3 + i)
	}
	b.set(func() { b.answer = nil })
	b.clock.Advance(time.Minute)
	want(t, "accepted again", do(t, c, effect()), 200, processor.Unknown)
	b.set(func() { clear(b.valid) })
	want(t, "and renewed at once", do(t, c, query()), 200, processor.Unknown)
}

// A token endpoint that fails is asked once per wait, which doubles up to a minute.
func TestTokenEndpointFails(t *testing.T) {
	plain := func(status int, mediaType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const asJSON = "application/json"
	for name, issue := range map[string]http.HandlerFunc{
		"down":              plain(503, asJSON, `{}`),
		"HTML":              plain(200, "text/html", `<html>`),
		"refused":           plain(401, asJSON, `{"error":"invalid_client","error_description":"`+oldSecret+`"}`),
		"large":             plain(200, asJSON, `{"access_token":"token-1","x":"`+strings.Repeat("x", 2<<20)+`"}`),
		"no token":          plain(200, asJSON, `{"error":"`+personal+`"}`),
		"moved":             http.RedirectHandler("/query", http.StatusTemporaryRedirect).ServeHTTP,
		"cut":               func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"created":           plain(201, asJSON, `{"access_token":"token-1","expires_in":100}`),
		"line in the token": plain(200, asJSON, `{"access_token":"token-1\r\nX: y","expires_in":100}`),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t, nil)
			c := b.client(nil)
			b.issue = issue
			fetches := 0
			for _, wait := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
				fetches++
				for range 3 {
					want(t, "effect", do(t, c, effect()), 0, processor.NotSent)
					want(t, "query", do(t, c, query()), 0, processor.NotSent)
				}
				b.fetches(fetches)
				b.clock.Advance(wait * time.Second)
			}
			b.wantCalls()
			b.set(func() { b.issue = nil })
			want(t, "it works again", do(t, c, effect()), 200, processor.Unknown)
			b.set(func() { b.issue = issue })
			b.clock.Advance(100 * time.Second)
			want(t, "it fails again", do(t, c, effect()), 0, processor.NotSent)
			b.set(func() { b.issue = nil })
			b.clock.Advance(time.Second)
			want(t, "after the first wait", do(t, c, effect()), 200, processor.Unknown)
		})
	}
}

// The endpoint's own wait counts, up to a minute.
func TestTokenEndpointNamesAWait(t *testing.T) {
	b := newBank(t, nil)
	c := b.client(nil)
	b.issue = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	want(t, "first", do(t, c, query()), 0, processor.NotSent)
	b.clock.Advance(19 * time.Second)
	want(t, "too soon", do(t, c, query()), 0, processor.NotSent)
	b.fetches(1)
	b.clock.Advance(time.Second)
	b.set(func() { b.issue = nil })
	want(t, "later", do(t, c, query()), 200, processor.Unknown)
}

// Refused credentials are distinguished from an endpoint that fails, and from a token that expired.
func TestCredentialsAreRefused(t *testing.T) {
	answer := func(status int, mediaType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const asJSON = "application/json"
	for name, tt := range map[string]struct {
		issue, answer http.HandlerFunc
		refused, hint bool
	}{
		"accepted":                      {nil, nil, false, false},
		"secret refused":                {answer(401, asJSON, `{"error":"invalid_client"}`), nil, true, true},
		"secret refused, 400":           {answer(400, asJSON, `{"error":"unauthorized_client"}`), nil, true, true},
		"forbidden":                     {answer(403, asJSON, `{}`), nil, true, true},
		"a request that is invalid":     {answer(400, asJSON, `{"error":"invalid_request"}`), nil, false, false},
		"endpoint down":                 {answer(503, asJSON, `{}`), nil, false, false},
		"a proxy in front of it":        {answer(403, "text/html", `<html>`), nil, false, false},
		"each token refused":            {nil, answer(401, asJSON, `{}`), true, true},
		"tokens without the permission": {nil, answer(403, asJSON, `{}`), true, true},
		"a proxy answers":               {nil, answer(403, "text/html", `<html>`), false, true},
		"the processor is down":         {nil, answer(500, asJSON, `{}`), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t, nil)
			c := b.client(nil)
			b.issue, b.answer = tt.issue, tt.answer
			if r := do(t, c, query()); r.Refused() != tt.refused || c.Refused() != tt.hint {
				t.Errorf("refused: %t, hint %t, want %t, %t: %v", r.Refused(), c.Refused(), tt.refused, tt.hint, r.Cause)
			}
			b.set(func() { b.issue, b.answer = nil, nil })
			b.clock.Advance(2 * time.Minute)
			if r := do(t, c, query()); r.Refused() || c.Refused() {
				t.Errorf("refused after it was accepted: %v", r.Cause)
			}
		})
	}
}

func TestParseToken(t *testing.T) {
	for body, life := range map[string]time.Duration{
		`{"access_token":"a","token_type":"Bearer","expires_in":3600,"scope":"x"}`: time.Hour,
		`{"access_token":"a","token_type":"BEARER","expires_in":1}`:                time.Second,
		`{"access_token":"a"}`:                                    time.Minute,
		`{"access_token":"a","expires_in":9007199254740993}`:      24 * time.Hour,
		`{"access_token":"a","expires_in":0}`:                     0,
		`{"access_token":"a","expires_in":-5}`:                    0,
		`{"access_token":"a","expires_in":"60"}`:                  0,
		`{"access_token":"a","token_type":"mac","expires_in":60}`: 0,
		`{"access_token":"","expires_in":60}`:                     0,
		`{"access_token":"a b","expires_in":60}`:                  0,
		`{"access_token":"é","expires_in":60}`:                    0,
		`{"access_token":"a","access_token":"b"}`:                 0,
		`{"access_token":"` + strings.Repeat("a", 20<<10) + `"}`:  0,
		`[]`: 0, ``: 0, `null`: 0,
	} {
		value, got, err := parseToken([]byte(body))
		if got != life || (err == nil) != (life > 0) || (value == "a") != (life > 0) {
			t.Errorf("%.60s: %q for %v, %v", body, value, got, err)
		}
	}
}

// FuzzToken parses anything: what passes can stand in a header, and lives for a while.
func FuzzToken(f *testing.F) {
	for _, body := range []string{
		`{"access_token":"a.b-c","token_type":"Bearer","expires_in":3600}`, `{"access_token":"a\n","expires_in":1}`,
		`{"access_token":"a","expires_in":1e3}`, `{"error":"invalid_client"}`, `{`, `null`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		value, life, err := parseToken(body)
		if err != nil {
			if value != "" || life != 0 {
				t.Fatalf("%q for %v with %v", value, life, err)
			}
			return
		}
		request, err := newRequest(t.Context(), http.MethodGet, "http://bank.invalid", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+value)
		if value == "" || strings.ContainsAny(value, " \t\r\n\x00") || life <= 0 || life > tokenLifeMax {
			t.Fatalf("%q for %v", value, life)
		}
		var head strings.Builder
		if err := request.Header.Write(&head); err != nil || !strings.Contains(head.String(), "Authorization: Bearer "+value+"\r\n") {
			t.Fatalf("header %q, %v", head.String(), err)
		}
		if code := oauthError(body); strings.ContainsAny(code, "\r\n\"") {
			t.Fatalf("code %q", code)
		}
	})
}

// The request for a token is a form, or JSON if the processor wants it, with the scope.
func TestTokenRequest(t *testing.T) {
	for _, c := range []struct {
		credentials Credentials
		media, body string
	}{
		{Credentials{}, "application/x-www-form-urlencoded", "grant_type=client_credentials"},
		{Credentials{Scope: "a b"}, "application/x-www-form-urlencoded", "grant_type=client_credentials&scope=a+b"},
		{Credentials{JSON: true}, "application/json", `{"grant_type":"client_credentials"}`},
		{Credentials{JSON: true, Scope: "a b"}, "application/json", `{"grant_type":"client_credentials","scope":"a b"}`},
	} {
		body, media, err := c.credentials.request()
		if err != nil || media != c.media || string(body) != c.body {
			t.Errorf("%+v: %s %s, %v", c.credentials, media, body, err)
		}
	}
}
