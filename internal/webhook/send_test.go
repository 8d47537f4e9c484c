package webhook_test

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quietLog keeps servers' log lines about broken handshakes out of test output.
var quietLog = log.New(io.Discard, "", 0)

// newSender returns a sender whose clock stands still, so that nothing times out
// unless a test makes it. It may connect to this machine.
func newSender(t *testing.T, roots *x509.CertPool) (*webhook.Sender, *env.VirtualClock) {
	t.Helper()
	outbound := env.NewOutbound(env.OutboundOptions{
		AnyPort:       true,
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		RootCAs:       roots,
	})
	t.Cleanup((&http.Client{Transport: outbound.Webhooks()}).CloseIdleConnections)
	clock := env.NewVirtualClock(epoch)
	return &webhook.Sender{Transport: outbound.Webhooks(), Clock: clock}, clock
}

func newReceiver(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func deliveryTo(t *testing.T, target string) webhook.Delivery {
	t.Helper()
	return webhook.Delivery{
		URL: target, EventID: "evt_01", Body: []byte(`{"id":"evt_01"}`),
		Secrets: []webhook.Secret{mustSecret(t, vectorSecret)},
	}
}

// TestSendVerified has a receiver check the request with the reference library,
// including the clock.
func TestSendVerified(t *testing.T) {
	t.Parallel()
	random := env.SystemRandom()
	current, former := webhook.NewSecret(random), webhook.NewSecret(random)
	var problems atomic.Value
	receiver := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, secret := range []webhook.Secret{current, former} {
			verifier, _ := standardwebhooks.NewWebhook(secret.Reveal())
			if err := verifier.Verify(body, r.Header); err != nil {
				problems.Store(err.Error())
			}
		}
		switch {
		case r.Method != http.MethodPost, r.URL.RequestURI() != "/hooks?a=1":
			problems.Store("requested " + r.Method + " " + r.URL.RequestURI())
		case r.Header.Get("Content-Type") != "application/json", r.Header.Get("User-Agent") != "Porteira-Webhook/1":
			problems.Store("headers are not as promised")
		case r.Header.Get("Webhook-Id") != "evt_01", r.ContentLength != int64(len(body)):
			problems.Store("id or length is wrong")
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "thanks")
	})
	sender, _ := newSender(t, nil)
	sender.Clock = env.NewSystemClock()
	delivery := deliveryTo(t, receiver.URL+"/hooks?a=1")
	delivery.Secrets = []webhook.Secret{current, former}
	attempt := sender.Send(t.Context(), delivery)
	if attempt.Outcome != webhook.Delivered || attempt.StatusCode != 202 || attempt.Response != "thanks" ||
		attempt.Reason != "" || attempt.Latency <= 0 {
		t.Errorf("attempt = %+v", attempt)
	}
	if problem := problems.Load(); problem != nil {
		t.Error(problem)
	}
}

// TestSendEncoded: what is not ASCII in a URL is encoded in the request line, which servers refuse
// otherwise.
func TestSendEncoded(t *testing.T) {
	t.Parallel()
	lines := make(chan string, 1)
	receiver := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) { lines <- r.RequestURI })
	sender, _ := newSender(t, nil)
	for _, path := range []string{"/ção?loja=São", "/%C3%A7%C3%A3o?loja=S%C3%A3o"} {
		attempt := sender.Send(t.Context(), deliveryTo(t, receiver.URL+path))
		if line := <-lines; attempt.Outcome != webhook.Delivered || line != "/%C3%A7%C3%A3o?loja=S%C3%A3o" {
			t.Errorf("%s is sent as %s: %+v", path, line, attempt)
		}
	}
}

func TestSendStatus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status     int
		retryAfter string
		outcome    webhook.Outcome
		reason     webhook.Reason
		wait       time.Duration
	}{
		{status: 200, outcome: webhook.Delivered},
		{status: 204, outcome: webhook.Delivered},
		{status: 299, outcome: webhook.Delivered},
		{status: 200, retryAfter: "10", outcome: webhook.Delivered},
		{status: 301, outcome: webhook.Retry, reason: webhook.ReasonRedirect},
		{status: 304, outcome: webhook.Retry, reason: webhook.ReasonRedirect},
		{status: 307, outcome: webhook.Retry, reason: webhook.ReasonRedirect},
		{status: 308, outcome: webhook.Retry, reason: webhook.ReasonRedirect},
		{status: 400, outcome: webhook.Retry, reason: webhook.ReasonStatus},
		{status: 401, outcome: webhook.Retry, reason: webhook.ReasonStatus},
		{status: 404, retryAfter: "10", outcome: webhook.Retry, reason: webhook.ReasonStatus},
		{status: 410, outcome: webhook.Gone, reason: webhook.ReasonStatus},
		{status: 429, outcome: webhook.Retry, reason: webhook.ReasonStatus},
		{status: 429, retryAfter: "10", outcome: webhook.Retry, reason: webhook.ReasonStatus, wait: 10 * time.Second},
		{status: 429, retryAfter: "junk", outcome: webhook.Retry, reason: webhook.ReasonStatus},
		{status: 500, retryAfter: "10", outcome: webhook.Retry, reason: webhook.ReasonStatus},
		{status: 503, retryAfter: "315360000", outcome: webhook.Retry, reason: webhook.ReasonStatus, wait: 24 * time.Hour},
		{
			status: 503, retryAfter: epoch.Add(time.Minute).Format(http.TimeFormat),
			outcome: webhook.Retry, reason: webhook.ReasonStatus, wait: time.Minute,
		},
		{status: 599, outcome: webhook.Retry, reason: webhook.ReasonStatus},
	}
	sender, _ := newSender(t, nil)
	for _, test := range tests {
		var requests atomic.Int64
		receiver := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.Header().Set("Location", "/elsewhere")
			if test.retryAfter != "" {
				w.Header().Set("Retry-After", test.retryAfter)
			}
			w.WriteHeader(test.status)
		})
		got := sender.Send(t.Context(), deliveryTo(t, receiver.URL))
		want := webhook.Attempt{
			Outcome: test.outcome, At: epoch, StatusCode: test.status, Reason: test.reason, RetryAfter: test.wait,
		}
		if got != want {
			t.Errorf("%d, Retry-After %q: %+v, want %+v", test.status, test.retryAfter, got, want)
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("%d: %d requests, want 1", test.status, n)
		}
	}
}

// TestSendSlowHeaders has a receiver that accepts the request and does not
// answer.
func TestSendSlowHeaders(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	receiver := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(arrived)
		<-r.Context().Done() // until the sender gives up
	})
	sender, clock := newSender(t, nil)
	done := make(chan webhook.Attempt)
	go func() { done <- sender.Send(t.Context(), deliveryTo(t, receiver.URL)) }()
	<-arrived
	clock.Advance(15*time.Second - 1)
	select {
	case attempt := <-done:
		t.Fatalf("gave up early: %+v", attempt)
	default:
	}
	clock.Advance(1)
	want := webhook.Attempt{Outcome: webhook.Retry, At: epoch, Latency: 15 * time.Second, Reason: webhook.ReasonTimeout}
	if got := <-done; got != want {
		t.Errorf("attempt = %+v, want %+v", got, want)
	}
	if _, waits := clock.Next(); waits {
		t.Error("the time-out was left behind")
	}
}

// TestSendSlowBody has a receiver that answers 200 and then drips.
func TestSendSlowBody(t *testing.T) {
	t.Parallel()
	receiver := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "x")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	sender, clock := newSender(t, nil)
	answered := make(chan struct{})
	inner := sender.Transport
	sender.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := inner.RoundTrip(r)
		close(answered)
		return response, err
	})
	done := make(chan webhook.Attempt)
	go func() { done <- sender.Send(t.Context(), deliveryTo(t, receiver.URL)) }()
	<-answered
	clock.Advance(15 * time.Second)
	got := <-done
	if got.Outcome != webhook.Delivered || got.StatusCode != 200 || got.Latency != 15*time.Second {
		t.Errorf("attempt = %+v", got)
	}
}

// TestSendEndlessBody would never end, as the clock stands still.
func TestSendEndlessBody(t *testing.T) {
	t.Parallel()
	for status, outcome := range map[int]webhook.Outcome{200: webhook.Delivered, 500: webhook.Retry} {
		var written atomic.Int64
		ended := make(chan struct{})
		receiver := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			defer close(ended)
			w.WriteHeader(status)
			chunk := []byte(strings.Repeat("é", 512) + "\x00")
			for {
				n, err := w.Write(chunk)
				written.Add(int64(n))
				if err != nil {
					return // the sender hung up
				}
			}
		})
		sender, _ := newSender(t, nil)
		got := sender.Send(t.Context(), deliveryTo(t, receiver.URL))
		if got.Outcome != outcome || len(got.Response) > 4096 || len(got.Response) < 4000 || !utf8.ValidString(got.Response) {
			t.Errorf("%d: %s, %d bytes kept", status, got.Outcome, len(got.Response))
		}
		<-ended
		if n := written.Load(); n > 64<<20 {
			t.Errorf("%d: the receiver could send %d bytes", status, n)
		}
	}
}

// TestSendFailures breaks the exchange in each way that has a reason.
func TestSendFailures(t *testing.T) {
	t.Parallel()
	hijack := func(f func(net.Conn)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			f(conn)
			_ = conn.Close()
		}
	}
	for reason, handler := range map[webhook.Reason]http.HandlerFunc{
		webhook.ReasonReset: hijack(func(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }),
		webhook.ReasonProtocol: hijack(func(conn net.Conn) {
			_, _ = io.WriteString(conn, "220 mail.example ESMTP secret-banner\r\n\r\n")
		}),
		webhook.ReasonTooLarge: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		},
	} {
		sender, _ := newSender(t, nil)
		got := sender.Send(t.Context(), deliveryTo(t, newReceiver(t, handler).URL))
		if want := (webhook.Attempt{Outcome: webhook.Retry, At: epoch, Reason: reason}); got != want {
			t.Errorf("%s: %+v", reason, got)
		}
	}

	sender, _ := newSender(t, nil)
	// An answer that ends too early: before its status, and after it.
	got := sender.Send(t.Context(), deliveryTo(t, newReceiver(t, hijack(func(net.Conn) {})).URL))
	if got.Reason != webhook.ReasonReset || got.Outcome != webhook.Retry {
		t.Errorf("hung up: %+v", got)
	}
	cut := newReceiver(t, hijack(func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
	}))
	if got := sender.Send(t.Context(), deliveryTo(t, cut.URL)); got.Outcome != webhook.Delivered || got.Response != "part" {
		t.Errorf("cut off: %+v", got)
	}

	closed := newReceiver(t, nil)
	closed.Close()
	if got := sender.Send(t.Context(), deliveryTo(t, closed.URL)); got.Reason != webhook.ReasonConnectRefused {
		t.Errorf("nobody there: %+v", got)
	}
	if got := sender.Send(t.Context(), deliveryTo(t, "https://user:pass@x.example/")); got.Reason != webhook.ReasonInvalidURL {
		t.Errorf("invalid URL: %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopping := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	})
	if got := sender.Send(ctx, deliveryTo(t, stopping.URL)); got.Reason != webhook.ReasonInterrupted {
		t.Errorf("stopped by us: %+v", got)
	}
}

// TestSendBlocked expects that nothing arrives at a private address, and that
// nothing is reported about it.
func TestSendBlocked(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int64
	receiver := newReceiver(t, func(http.ResponseWriter, *http.Request) { arrived.Add(1) })
	names := func(_ context.Context, host string) ([]netip.Addr, error) {
		if host == "unknown.example" {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	outbound := env.NewOutbound(env.OutboundOptions{AnyPort: true, Resolve: names})
	t.Cleanup((&http.Client{Transport: outbound.Webhooks()}).CloseIdleConnections)
	sender := &webhook.Sender{Transport: outbound.Webhooks(), Clock: env.NewVirtualClock(epoch)}
	port := receiver.URL[strings.LastIndex(receiver.URL, ":"):]
	for target, reason := range map[string]webhook.Reason{
		receiver.URL:                    webhook.ReasonBlocked,
		"http://rebind.example" + port:  webhook.ReasonBlocked,
		"https://rebind.example" + port: webhook.ReasonBlocked,
		"http://unknown.example" + port: webhook.ReasonDNS,
	} {
		want := webhook.Attempt{Outcome: webhook.Retry, At: epoch, Reason: reason}
		if got := sender.Send(t.Context(), deliveryTo(t, target)); got != want {
			t.Errorf("%s: %+v", target, got)
		}
	}
	if n := arrived.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

func TestSendTLS(t *testing.T) {
	t.Parallel()
	future := epoch.AddDate(70, 0, 0)
	for name, test := range map[string]struct {
		host    string
		expires time.Time
		version uint16
		trusted bool
		reason  webhook.Reason
	}{
		"good":        {"127.0.0.1", future, tls.VersionTLS13, true, ""},
		"TLS 1.2":     {"127.0.0.1", future, tls.VersionTLS12, true, ""},
		"expired":     {"127.0.0.1", epoch.AddDate(-5, 0, 0), tls.VersionTLS13, true, webhook.ReasonTLS},
		"self-signed": {"127.0.0.1", future, tls.VersionTLS13, false, webhook.ReasonTLS},
		"wrong host":  {"127.0.0.2", future, tls.VersionTLS13, true, webhook.ReasonTLS},
		"TLS 1.1":     {"127.0.0.1", future, tls.VersionTLS11, true, webhook.ReasonTLS},
	} {
		certificate, roots := newCertificate(t, test.host, test.expires)
		if !test.trusted {
			roots = x509.NewCertPool()
		}
		var arrived atomic.Int64
		receiver := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
		receiver.Config.ErrorLog = quietLog
		receiver.TLS = &tls.Config{
			Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS10, MaxVersion: test.version,
		}
		receiver.StartTLS()
		t.Cleanup(receiver.Close)
		sender, _ := newSender(t, roots)
		got := sender.Send(t.Context(), deliveryTo(t, receiver.URL))
		if got.Reason != test.reason || (test.reason == "") != (arrived.Load() == 1) {
			t.Errorf("%s: %+v, %d arrived", name, got, arrived.Load())
		}
	}
	plain := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	plain.Config.ErrorLog = quietLog
	sender, _ := newSender(t, nil)
	got := sender.Send(t.Context(), deliveryTo(t, strings.Replace(plain.URL, "http:", "https:", 1)))
	if got.Reason != webhook.ReasonTLS {
		t.Errorf("no TLS at all: %+v", got)
	}
}

func TestCleanText(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                            "",
		"plain":                       "plain",
		"nul\x00l":                    "null",
		"bad\xff\xfebyte":             "bad\uFFFDbyte",
		"cut \xc3":                    "cut \uFFFD",
		"\xed\xa0\x80 surrogate half": "\uFFFD surrogate half",
	} {
		if got := webhook.CleanText([]byte(raw)); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Byte(), 0, 4096).Draw(t, "raw")
		text := webhook.CleanText(raw)
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") || len(text) > 4096 {
			t.Fatalf("%q", text)
		}
	})
	if got := webhook.CleanText([]byte(strings.Repeat("\xffa", 2048))); len(got) > 4096 || !utf8.ValidString(got) {
		t.Errorf("replacement made %d bytes", len(got))
	}
}

// newCertificate returns a self-signed certificate for an address, and a pool
// that trusts it.
func newCertificate(t *testing.T, host string, expires time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    epoch.AddDate(-10, 0, 0),
		NotAfter:     expires,
		IPAddresses:  []net.IP{net.ParseIP(host)},
		IsCA:         true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(strings.NewReader(""), template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
