package accounthttp

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/processor"
)

// Each connection has the account's certificate and roots, in HTTP/1 and HTTP/2.
func TestIdentity(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t, func(s *httptest.Server) { s.EnableHTTP2 = http2 })
			var major int
			b.answer = func(w http.ResponseWriter, r *http.Request) { b.set(func() { major = r.ProtoMajor }) }
			c := b.client(nil)
			want(t, "effect", do(t, c, effect()), 200, processor.Unknown)
			b.wantCalls("PUT /effect old")
			if (major == 2) != http2 {
				t.Errorf("HTTP/%d", major)
			}
			if leaf := c.current.transport.(*http.Transport).TLSClientConfig; leaf.MinVersion != tls.VersionTLS12 {
				t.Errorf("minimum version %x", leaf.MinVersion)
			}
		})
	}
}

// A server without TLS 1.2, one of other authorities, and one that refuses the certificate
// before the first byte get nothing.
func TestIdentityIsRefused(t *testing.T) {
	type change func(*bank, *Options)
	for name, tt := range map[string]struct {
		configure func(*httptest.Server)
		change    change
	}{
		"TLS 1.1":            {func(s *httptest.Server) { s.TLS.MinVersion, s.TLS.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, func(*bank, *Options) {}},
		"other authority":    {nil, func(_ *bank, o *Options) { o.Identity.Roots = newAuthority(t).pool() }},
		"the system's roots": {nil, func(_ *bank, o *Options) { o.Identity.Roots = nil }},
		"no certificate, TLS 1.2": {func(s *httptest.Server) { s.TLS.MaxVersion = tls.VersionTLS12 },
			func(_ *bank, o *Options) { o.Identity.Certificate = nil }},
		"refused, TLS 1.2": {func(s *httptest.Server) { s.TLS.MaxVersion = tls.VersionTLS12 },
			func(b *bank, _ *Options) { b.accepts = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t, tt.configure)
			for _, tokens := range []bool{true, false} {
				c := b.client(func(o *Options) {
					tt.change(b, o)
					if !tokens {
						o.Identity.Credentials = nil
					}
				})
				want(t, "effect", do(t, c, effect()), 0, processor.NotSent)
				want(t, "query", do(t, c, query()), 0, processor.NotSent)
			}
			b.wantCalls()
		})
	}
}

// With TLS 1.3 the client learns of the refusal after it has sent the request.
func TestCertificateRefusedAfterTheRequest(t *testing.T) {
	b := newBank(t, nil)
	b.accepts = nil
	c := b.client(func(o *Options) { o.Identity.Credentials = nil })
	want(t, "effect", do(t, c, effect()), 0, processor.Unknown)
	b.wantCalls()
}

func rotate(b *bank, tokens bool) *Client {
	return b.client(func(o *Options) {
		previous := o.Identity
		o.Identity = b.identity("new", newSecret)
		if !tokens {
			previous.Credentials, o.Identity.Credentials = nil, nil
		}
		o.Previous = &previous
	})
}

// The previous identity is used until the token endpoint has accepted the new one, and
// never after that.
func TestRotationWithTokens(t *testing.T) {
	b := newBank(t, nil)
	b.accepts = map[string]bool{"old": true}
	c := rotate(b, true)
	for range 3 {
		want(t, "effect before the processor has the new one", do(t, c, effect()), 200, processor.Unknown)
	}
	b.wantCalls("PUT /effect old", "PUT /effect old", "PUT /effect old")
	b.fetches(1)
	b.set(func() { b.accepts = map[string]bool{"new": true} })
	b.clock.Advance(time.Second)
	want(t, "effect after it", do(t, c, effect()), 200, processor.Unknown)
	if c.previous.Load() != nil {
		t.Error("the previous identity is kept after a token of the new one")
	}
	want(t, "query after it", do(t, c, query()), 200, processor.Unknown)
	b.wantCalls("PUT /effect new", "GET /query new")
	b.fetches(2)
	if c.previous.Load() != nil {
		t.Error("the previous identity is kept")
	}
	b.set(func() { b.accepts = map[string]bool{"old": true}; b.server.CloseClientConnections() })
	b.clock.Advance(100 * time.Second)
	want(t, "effect if the new one is refused later", do(t, c, effect()), 0, processor.NotSent)
	b.wantCalls()
}

// Only the secret is replaced.
func TestRotationOfTheSecret(t *testing.T) {
	b := newBank(t, nil)
	c := b.client(func(o *Options) {
		previous := o.Identity
		o.Identity.Credentials = &Credentials{URL: previous.Credentials.URL, ID: "client", Secret: newSecret}
		o.Previous = &previous
	})
	want(t, "effect", do(t, c, effect()), 200, processor.Unknown)
	b.wantCalls("PUT /effect old")
	b.fetches(2)
	want(t, "next effect", do(t, c, effect()), 200, processor.Unknown)
	b.fetches(2)
	b.issue = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	b.set(func() { clear(b.valid) })
	b.clock.Advance(time.Minute)
	want(t, "without a token of either", do(t, c, effect()), 0, processor.Unknown)
	want(t, "without a token of either", do(t, c, effect()), 0, processor.NotSent)
}

// Without tokens only a query proves the new identity; until then effects have the previous
// one.
func TestRotationWithoutTokens(t *testing.T) {
	for _, status := range []int{400, 401, 403, 0} {
		b := newBank(t, nil)
		refused := true
		b.answer = func(w http.ResponseWriter, r *http.Request) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if r.TLS.PeerCertificates[0].Subject.CommonName == "new" && refused {
				w.WriteHeader(status)
			}
		}
		newCall := []string{"GET /query new"}
		if status == 0 { // refused by TLS
			b.accepts, newCall = map[string]bool{"old": true}, nil
		}
		c := rotate(b, false)
		want(t, "effect", do(t, c, effect()), 200, processor.Unknown)
		b.wantCalls("PUT /effect old")
		want(t, "query", do(t, c, query()), 200, processor.Unknown)
		b.wantCalls(append(newCall, "GET /query old")...)
		want(t, "effect", do(t, c, effect()), 200, processor.Unknown)
		b.wantCalls("PUT /effect old")
		b.set(func() { refused, b.accepts = false, map[string]bool{"old": true, "new": true} })
		want(t, "query", do(t, c, query()), 200, processor.Unknown)
		want(t, "effect", do(t, c, effect()), 200, processor.Unknown)
		b.wantCalls("GET /query new", "PUT /effect new")
	}
}

// A query that finds nothing proves nothing about the identity.
func TestNotFoundDoesNotEndARotation(t *testing.T) {
	b := newBank(t, nil)
	b.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	c := rotate(b, false)
	want(t, "query", do(t, c, query()), 404, processor.Unknown)
	b.wantCalls("GET /query new")
	if c.previous.Load() == nil {
		t.Error("the rotation has ended")
	}
}

func TestCertificateEnd(t *testing.T) {
	a := newAuthority(t)
	c := a.issue(t, "client")
	end := c.Leaf.NotAfter
	_, bank, clock := limited(t, 0)
	o := Options{BaseURL: "https://bank.invalid", Transport: bank, Clock: clock, Identity: Identity{Certificate: &c}}
	for _, leaf := range []bool{true, false} {
		if !leaf {
			c.Leaf = nil
		}
		client, err := New(o)
		if err != nil || !client.CertificateEnd().Equal(end) {
			t.Errorf("end %v, %v", client, err)
		}
	}
	c.Certificate = [][]byte{[]byte("x")}
	if _, err := New(o); err == nil {
		t.Error("an invalid certificate is accepted")
	}
	c.Certificate = nil
	if _, err := New(o); err == nil {
		t.Error("an empty certificate is accepted")
	}
	o.Identity.Certificate = nil
	if client, err := New(o); err != nil || !client.CertificateEnd().IsZero() {
		t.Errorf("without a certificate: %v", err)
	}
}

func TestOptions(t *testing.T) {
	_, bank, clock := limited(t, 0)
	credentials := func(address string) *Credentials { return &Credentials{URL: address, ID: "client", Secret: oldSecret} }
	for name, change := range map[string]func(*Options){
		"no address":          func(o *Options) { o.BaseURL = "" },
		"a file":              func(o *Options) { o.BaseURL = "file:///x" },
		"a query":             func(o *Options) { o.BaseURL += "?a=" + oldSecret },
		"a user":              func(o *Options) { o.BaseURL = "https://user:" + oldSecret + "@bank.invalid" },
		"a control character": func(o *Options) { o.BaseURL += "\n" + oldSecret },
		"tokens without TLS": func(o *Options) {
			o.BaseURL, o.Identity.Credentials = "http://bank.invalid", credentials("https://bank.invalid")
		},
		"token address":         func(o *Options) { o.Identity.Credentials = credentials("http://bank.invalid/" + oldSecret) },
		"token address invalid": func(o *Options) { o.Identity.Credentials = credentials("https://\n" + oldSecret) },
		"no transport":          func(o *Options) { o.Transport = nil },
		"no clock":              func(o *Options) { o.Clock = nil },
		"negative rate":         func(o *Options) { o.Rate = -1 },
		"large answers":         func(o *Options) { o.AnswerLimit = 4<<20 + 1 },
		"negative limit":        func(o *Options) { o.AnswerLimit = -1 },
		"mixed identities":      func(o *Options) { o.Previous = &Identity{Credentials: credentials("https://bank.invalid")} },
	} {
		o := Options{BaseURL: "https://bank.invalid/v1/", Transport: bank, Clock: clock, Rate: 1, AnswerLimit: 4 << 20}
		if _, err := New(o); err != nil {
			t.Fatal(err)
		}
		change(&o)
		if _, err := New(o); err == nil || strings.Contains(err.Error(), oldSecret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
