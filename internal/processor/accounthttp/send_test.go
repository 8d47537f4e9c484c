package accounthttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
)

// plainClient calls an address without TLS and tokens.
func plainClient(t *testing.T, address string, transport http.RoundTripper, limit int) *Client {
	t.Helper()
	_, clock := env.Virtual(start, 1)
	c, err := New(Options{BaseURL: address, Transport: transport, Clock: clock, AnswerLimit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answered is the result of an effect and of a query, whose answers are alike.
func answered(t *testing.T, handler http.HandlerFunc, limit int) (Result, Result) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	c := plainClient(t, server.URL, outbound(t), limit)
	return do(t, c, effect()), do(t, c, query())
}

// Only a complete answer of JSON or without a body is one.
func TestAnswers(t *testing.T) {
	body := func(status int, mediaType, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{mediaType}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	const asJSON = "application/json"
	large := `"` + strings.Repeat("x", 2<<20) + `"`
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		limit  int
		status int // 0: cannot be read
	}{
		{"JSON", body(200, asJSON, `{"a":1}`), 0, 200},
		{"JSON with a charset", body(201, "application/json; charset=utf-8", `{}`), 0, 201},
		{"problem", body(422, "application/problem+json", `{}`), 0, 422},
		{"no body", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 0, 204},
		{"server error", body(500, asJSON, `{}`), 0, 500},
		{"HTML", body(200, "text/html", "<html>"+personal), 0, 0},
		{"HTML error", body(502, "text/html", "<html>"), 0, 0},
		{"no type", body(200, "", `{}`), 0, 0},
		{"like JSON", body(200, "text/x+json", `{}`), 0, 0},
		{"2 MB", body(200, asJSON, large), 0, 0},
		{"2 MB, allowed", body(200, asJSON, large), 4 << 20, 200},
		{"exactly the limit", body(200, asJSON, `"`+strings.Repeat("x", 8)+`"`), 10, 200},
		{"one more", body(200, asJSON, `"`+strings.Repeat("x", 9)+`"`), 10, 0},
		{"compressed", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			body(200, asJSON, "\x1f\x8b")(w, r)
		}, 0, 0},
		{"hung up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, 0},
		{"cut", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			body(200, asJSON, `{"cpf":"`+personal)(w, r)
		}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one, two := answered(t, tt.answer, tt.limit)
			want(t, "effect", one, tt.status, processor.Unknown)
			want(t, "query", two, tt.status, processor.Unknown)
		})
	}
}

// An effect that is answered 401 is unknown, also without tokens; a query is answered.
func TestUnauthorizedEffectIsUnknown(t *testing.T) {
	one, two := answered(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, 0)
	want(t, "effect", one, 0, processor.Unknown)
	want(t, "query", two, 401, processor.Unknown)
}

// A request has the driver's method, path and body, the identity's header, and little else.
func TestRequest(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprint(r.Method, r.URL, string(content), r.ContentLength, r.TransferEncoding, r.Header))
	}))
	defer server.Close()
	c, err := New(Options{
		BaseURL: server.URL + "/v3/", Transport: outbound(t), Clock: env.NewSystemClock(),
		Identity: Identity{Header: http.Header{"Access_token": {"key"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "effect", do(t, c, effect()), 200, processor.Unknown)
	want(t, "query", do(t, c, query()), 200, processor.Unknown)
	want(t, "without a body", do(t, c, Request{Method: http.MethodDelete, Path: "/effect", Effect: true}), 200, processor.Unknown)
	const common = "Accept:[application/json, application/problem+json] Access_token:[key]"
	for i, line := range []string{
		`PUT/v3/effect{"cpf":"` + personal + `"}21 [] map[` + common + ` Content-Length:[21] Content-Type:[application/json] User-Agent:[porteira]]`,
		`GET/v3/query?cpf=` + personal + `0 [] map[` + common + ` User-Agent:[porteira]]`,
		`DELETE/v3/effect0 [] map[` + common + ` User-Agent:[porteira]]`,
	} {
		if got[i] != line {
			t.Errorf("sent %s\nwant %s", got[i], line)
		}
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	var elsewhere atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	one, two := answered(t, mux.ServeHTTP, 0)
	want(t, "effect", one, 307, processor.Unknown)
	want(t, "query", two, 307, processor.Unknown)
	if elsewhere.Load() != 0 {
		t.Error("the redirect was followed")
	}
}

// A slow answer ends with the context, in its header as in its body.
func TestSlowAnswers(t *testing.T) {
	for _, begun := range []string{"", `{"a":`} {
		ctx, cancel := context.WithCancel(t.Context())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if begun != "" {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, begun)
				_ = http.NewResponseController(w).Flush()
			}
			cancel()
			<-r.Context().Done()
		}))
		r := plainClient(t, server.URL, outbound(t), 0).Do(ctx, effect())
		want(t, begun, r, 0, processor.Unknown)
		if !errors.Is(r.Cause, context.Canceled) {
			t.Errorf("cause %v", r.Cause)
		}
		server.Close()
	}
}

// listen serves each connection by hand.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				serve(conn)
			}()
		}
	}()
	return l.Addr().String()
}

// Without a connection for the request nothing was sent; with one it is unknown.
func TestNoAnswer(t *testing.T) {
	closed := listen(t, func(net.Conn) {})
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = nobody.Close()
	resolver := func(resolve func(context.Context, string) ([]netip.Addr, error)) http.RoundTripper {
		return env.NewOutbound(env.OutboundOptions{Resolve: resolve}).Processor()
	}
	scripted := func(err error) http.RoundTripper { return failing{err} }
	malformed := listen(t, func(conn net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_, _ = io.WriteString(conn, "SECRET "+oldSecret+" "+personal+"\r\n\r\n")
	})
	header := listen(t, func(conn net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+oldSecret+"\r\n\r\n")
	})
	for _, tt := range []struct {
		name      string
		address   string
		transport http.RoundTripper
		outcome   processor.Outcome
	}{
		{"connection refused", "http://" + nobody.Addr().String(), outbound(t), processor.NotSent},
		{"no such name", "http://bank.invalid", resolver(func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }), processor.NotSent},
		{"closed before the handshake", "https://" + closed, outbound(t), processor.NotSent},
		{"closed before the request", "http://" + closed, outbound(t), processor.Unknown},
		{"malformed answer", "http://" + malformed, outbound(t), processor.Unknown},
		{"malformed header", "http://" + header, outbound(t), processor.Unknown},
		{"no TLS", "https://" + malformed, outbound(t), processor.NotSent},
		{"path that is none", "http://bank.invalid/%zz", outbound(t), processor.NotSent},

		{"simulated: refused", "http://bank.invalid", scripted(&net.OpError{Op: "dial", Err: errors.New("refused")}), processor.NotSent},
		{"simulated: no such name", "http://bank.invalid", scripted(&net.DNSError{Err: "no such host"}), processor.NotSent},
		{"simulated: reset", "http://bank.invalid", scripted(&net.OpError{Op: "read", Err: errors.New("reset")}), processor.Unknown},
		{"simulated: broken", "http://bank.invalid", scripted(fmt.Errorf("quotes: %w", errors.New(oldSecret))), processor.Unknown},
		{"simulated: time-out", "http://bank.invalid", scripted(context.DeadlineExceeded), processor.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base, path, _ := strings.Cut(tt.address, "/%")
			c := plainClient(t, base, tt.transport, 0)
			e, q := effect(), query()
			if path != "" {
				e.Path, q.Path = "/%"+path+personal, "/%"+path+personal
			}
			want(t, "effect", do(t, c, e), 0, tt.outcome)
			want(t, "query", do(t, c, q), 0, tt.outcome)
		})
	}
}

// failing is a transport of a simulation.
type failing struct{ err error }

// RoundTrip implements [http.RoundTripper].
func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// A call that ends while it connects has sent nothing.
func TestEndedWhileConnecting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	transport := env.NewOutbound(env.OutboundOptions{Resolve: func(ctx context.Context, _ string) ([]netip.Addr, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}}).Processor()
	want(t, "effect", plainClient(t, "http://bank.invalid", transport, 0).Do(ctx, effect()), 0, processor.NotSent)
}

// The guard is the last step before the first byte.
func TestGuard(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer server.Close()
	c := plainClient(t, server.URL, outbound(t), 0)
	lost := errors.New("the claim is lost")
	r := effect()
	r.Guard = func() error { return lost }
	refused := do(t, c, r)
	want(t, "guard", refused, 0, processor.NotSent)
	if !errors.Is(refused.Cause, lost) {
		t.Errorf("cause %v", refused.Cause)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Guard = func() error { t.Error("the guard is called though the context has ended"); return nil }
	want(t, "ended before", c.Do(ctx, r), 0, processor.NotSent)
	if calls.Load() != 0 {
		t.Errorf("%d calls", calls.Load())
	}
	guarded := 0
	r.Guard = func() error { guarded++; return nil }
	want(t, "sent", do(t, c, r), 200, processor.Unknown)
	if calls.Load() != 1 || guarded != 1 {
		t.Errorf("%d calls, %d guards", calls.Load(), guarded)
	}
}

// An effect on a connection that the processor closes meanwhile is sent once, with or
// without a body.
func TestEffectIsNeverRepeated(t *testing.T) {
	for _, r := range []Request{effect(), {Method: http.MethodDelete, Path: "/effect", Effect: true}, {Method: http.MethodPost, Path: "/effect", Effect: true}} {
		var requests atomic.Int32
		address := listen(t, func(conn net.Conn) {
			reader := bufio.NewReader(conn)
			for {
				request, err := http.ReadRequest(reader)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, request.Body)
				if requests.Add(1) > 1 {
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
			}
		})
		c := plainClient(t, "http://"+address, outbound(t), 0)
		want(t, "first", do(t, c, r), 204, processor.Unknown)
		want(t, r.Method, do(t, c, r), 0, processor.Unknown)
		if n := requests.Load(); n != 2 {
			t.Errorf("%s: %d requests", r.Method, n)
		}
	}
}

// No transport can repeat a body.
func TestNoGetBody(t *testing.T) {
	request, err := newRequest(t.Context(), http.MethodPut, "http://bank.invalid", []byte("{}"))
	if err != nil || request.GetBody != nil || request.ContentLength != 2 {
		t.Errorf("%+v, %v", request, err)
	}
}
