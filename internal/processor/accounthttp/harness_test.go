package accounthttp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
)

// start is when tests begin. Certificates are checked by the machine's clock.
var start = time.Now()

const (
	oldSecret, newSecret = "secret-of-the-old-one", "secret-of-the-new-one"
	personal             = "52998224725"
)

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	c := a.issue(t, "authority")
	a.certificate, a.key = c.Leaf, c.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.certificate)
	return p
}

func (a *authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.serial++
	c := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: name},
		NotBefore: start.Add(-time.Hour), NotAfter: start.Add(time.Duration(a.serial) * 24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: a.certificate == nil,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	parent, signer := c, key
	if a.certificate != nil {
		parent, signer = a.certificate, a.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

// bank is a processor with client certificates and tokens.
type bank struct {
	t         *testing.T
	server    *httptest.Server
	authority *authority
	clock     *env.VirtualClock

	mu      sync.Mutex
	accepts map[string]bool // names of certificates
	valid   map[string]bool // tokens
	fetched int
	calls   []string // method, path and name of the certificate
	// answer replaces the answer to a call, and issue that of the token endpoint.
	answer, issue http.HandlerFunc
}

// newBank starts a bank; configure may be nil.
func newBank(t *testing.T, configure func(*httptest.Server)) *bank {
	t.Helper()
	_, clock := env.Virtual(start, 1)
	b := &bank{t: t, authority: newAuthority(t), clock: clock, accepts: map[string]bool{"old": true, "new": true}, valid: map[string]bool{}}
	b.server = httptest.NewUnstartedServer(b)
	b.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	b.server.TLS = &tls.Config{
		Certificates: []tls.Certificate{b.authority.issue(t, "bank")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: b.authority.pool(),
		VerifyConnection: func(s tls.ConnectionState) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if name := s.PeerCertificates[0].Subject.CommonName; !b.accepts[name] {
				return fmt.Errorf("certificate %s is refused", name)
			}
			return nil
		},
	}
	if configure != nil {
		configure(b.server)
	}
	b.server.StartTLS()
	t.Cleanup(b.server.Close)
	return b
}

// ServeHTTP implements [http.Handler].
func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	name := r.TLS.PeerCertificates[0].Subject.CommonName
	w.Header().Set("Content-Type", "application/json")
	b.mu.Lock()
	replaced := b.answer
	if r.URL.Path == "/token" {
		replaced = b.issue
		b.fetched++
	} else {
		b.calls = append(b.calls, r.Method+" "+r.URL.Path+" "+name)
	}
	number := b.fetched
	refused := r.URL.Path != "/token" && !b.valid[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	b.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	switch {
	case replaced != nil:
		replaced(w, r)
	case r.URL.Path == "/token" && (id != "client" || secret != map[string]string{"old": oldSecret, "new": newSecret}[name]):
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":"invalid_client","error_description":"%s"}`, secret)
	case r.URL.Path == "/token":
		token := fmt.Sprintf("token-%d", number)
		b.mu.Lock()
		b.valid[token] = true
		b.mu.Unlock()
		_, _ = fmt.Fprintf(w, `{"access_token":"%s","token_type":"bearer","expires_in":100}`, token)
	case refused:
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{}`)
	default:
		_, _ = io.WriteString(w, `{"state":"done"}`)
	}
}

func (b *bank) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// fetches waits until there have been n fetches, and fails if there are more.
func (b *bank) fetches(n int) {
	b.t.Helper()
	b.until(func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.fetched >= n })
	b.set(func() {
		if b.fetched != n {
			b.t.Errorf("%d fetches of a token, want %d", b.fetched, n)
		}
	})
}

// until waits for a condition of another goroutine.
func (b *bank) until(condition func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); runtime.Gosched() {
		if time.Now().After(deadline) {
			b.t.Fatal("the condition does not come true")
		}
	}
}

func (b *bank) wantCalls(want ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := strings.Join(b.calls, ", "); got != strings.Join(want, ", ") {
		b.t.Errorf("calls %s, want %s", got, strings.Join(want, ", "))
	}
	b.calls = nil
}

// identity is one of the bank's clients.
func (b *bank) identity(name, secret string) Identity {
	c := b.authority.issue(b.t, name)
	return Identity{
		Certificate: &c, Roots: b.authority.pool(),
		Credentials: &Credentials{URL: b.server.URL + "/token", ID: "client", Secret: secret, Scope: "cob.read cob.write"},
	}
}

// client returns a client with tokens, of the identity old if change is nil.
func (b *bank) client(change func(*Options)) *Client {
	b.t.Helper()
	o := Options{BaseURL: b.server.URL, Transport: outbound(b.t), Clock: b.clock, Identity: b.identity("old", oldSecret)}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		closeIdle(c.current.transport)
		if p := c.previous.Load(); p != nil {
			closeIdle(p.transport)
		}
	})
	return c
}

func outbound(t *testing.T) http.RoundTripper {
	t.Helper()
	transport := env.NewOutbound(env.OutboundOptions{}).Processor()
	t.Cleanup(func() { closeIdle(transport) })
	return transport
}

func closeIdle(transport http.RoundTripper) {
	(&http.Client{Transport: transport}).CloseIdleConnections()
}

func effect() Request {
	return Request{
		Method: http.MethodPut, Path: "/effect", Body: []byte(`{"cpf":"` + personal + `"}`), ContentType: "application/json", Effect: true,
		Guard: func() error { return nil },
	}
}

func query() Request { return Request{Method: http.MethodGet, Path: "/query?cpf=" + personal} }

// want checks a result: status 0 is none. No cause may have a secret or personal data.
func want(t *testing.T, what string, r Result, status int, outcome processor.Outcome) {
	t.Helper()
	got := 0
	if r.Answer != nil {
		got = r.Answer.Status
	}
	if got != status || r.Outcome != outcome || (r.Cause == nil) != (r.Answer != nil) {
		t.Errorf("%s: status %d, %v (%v), want status %d, %v", what, got, r.Outcome, r.Cause, status, outcome)
	}
	text := fmt.Sprint(r.Cause)
	for _, word := range []string{oldSecret, newSecret, personal, "token-", "Bearer", "Basic"} {
		if strings.Contains(text, word) {
			t.Errorf("%s: the cause has %q: %s", what, word, text)
		}
	}
}

// do makes a call that always ends in time.
func do(t *testing.T, c *Client, r Request) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return c.Do(ctx, r)
}
