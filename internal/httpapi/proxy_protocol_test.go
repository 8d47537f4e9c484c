package httpapi_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"

	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/httpapi"
)

// behindProxy serves the client's address on a listener that requires PROXY headers of
// proxies, at most two connections per client.
func behindProxy(t *testing.T, proxies httpapi.Proxies) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w, _ := env.Virtual(start, 1)
	c := httpapi.Limit(proxies.Listener(l), httpapi.ConnectionLimits{Total: 20, PerAddress: 2, Proxies: proxies, Clock: w.Clock, Log: slog.New(slog.DiscardHandler)})
	server := httpapi.Server(proxies.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "client="+r.RemoteAddr)
	}), nil, nil), slog.New(slog.NewTextHandler(&apptest.Log{}, nil)))
	server.ConnState = c.StateChanged
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(c) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return l.Addr().String()
}

// send sends bytes on a connection and returns the answer until the end; "" if the
// connection is closed without one.
func send(t *testing.T, address string, text string) (answer string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, text) // the server may have closed it
	all, _ := io.ReadAll(conn)
	return string(all)
}

const lastRequest = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

func version2(t *testing.T, source string) string {
	t.Helper()
	h := proxyproto.HeaderProxyFromAddrs(2, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(source)), net.TCPAddrFromAddrPort(netip.MustParseAddrPort("198.51.100.1:80")))
	text, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	address := behindProxy(t, httpapi.Proxies(prefixes("127.0.0.0/8", "10.0.0.0/8")))
	forwarded := strings.Replace(lastRequest, "\r\n\r\n", "\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n", 1)
	for _, tt := range []struct{ name, sent, want string }{
		{"version 1", "PROXY TCP4 203.0.113.7 198.51.100.1 4711 80\r\n" + lastRequest, "client=203.0.113.7:4711"},
		{"version 1, IPv6", "PROXY TCP6 2001:db8::7 2001:db8::1 4711 80\r\n" + lastRequest, "client=[2001:db8::7]:4711"},
		{"version 2", version2(t, "203.0.113.8:99") + lastRequest, "client=203.0.113.8:99"},
		{"unknown", "PROXY UNKNOWN\r\n" + lastRequest, "client=127.0.0.1:"},
		{"a header of the client is not believed", "PROXY TCP4 203.0.113.7 198.51.100.1 4711 80\r\n" + forwarded, "client=203.0.113.7:4711"},
		{"a header of a second proxy is", "PROXY TCP4 10.1.1.1 198.51.100.1 4711 80\r\n" + forwarded, "client=203.0.113.9:0"},
	} {
		if got := send(t, address, tt.sent); !strings.Contains(got, tt.want) {
			t.Errorf("%s: answered %q, want %s", tt.name, got, tt.want)
		}
	}
	for name, sent := range map[string]string{
		"none": lastRequest, "garbage": "PROXY TCP4 a b c d\r\n" + lastRequest, "too long": "PROXY TCP4 " + strings.Repeat("1", 5000) + "\r\n" + lastRequest,
		"half of version 2": version2(t, "203.0.113.8:99")[:16] + lastRequest, "wrong version": "\r\n\r\n\x00\r\nQUIT\n\x31\x11\x00\x0c" + lastRequest,
	} {
		if got := send(t, address, sent); strings.Contains(got, "client=") {
			t.Errorf("%s: answered %q", name, got)
		}
	}
}

// A PROXY header of a peer that is no trusted proxy is no header.
func TestProxyProtocolOfOthers(t *testing.T) {
	t.Parallel()
	address := behindProxy(t, httpapi.Proxies(prefixes("10.0.0.0/8")))
	if got := send(t, address, lastRequest); !strings.Contains(got, "client=127.0.0.1:") {
		t.Errorf("answered %q", got)
	}
	if got := send(t, address, "PROXY TCP4 203.0.113.7 198.51.100.1 4711 80\r\n"+lastRequest); !strings.HasPrefix(got, "HTTP/1.1 400") {
		t.Errorf("answered %q", got)
	}
}

// Connections per address are those of the client, not of the proxy; the client is counted
// when its header has come.
func TestProxyProtocolShares(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w, _ := env.Virtual(start, 1)
	proxies := httpapi.Proxies(prefixes("127.0.0.0/8"))
	c := httpapi.Limit(proxies.Listener(l), httpapi.ConnectionLimits{Total: 100, PerAddress: 2, Proxies: proxies, Clock: w.Clock, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { _ = c.Close() })
	open := func(source string) (client, server net.Conn) {
		t.Helper()
		client = connect(t, c)
		server = accept(t, c) // before the header has come
		if _, err := io.WriteString(client, version2(t, source)); err != nil {
			t.Fatal(err)
		}
		if got := server.RemoteAddr().String(); got != source {
			t.Errorf("the client is %s, want %s", got, source)
		}
		return client, server
	}
	first, server := open("203.0.113.1:1")
	open("203.0.113.1:2")
	for i := range 5 {
		open(netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(10 + i)}), 1).String())
	}
	third, _ := open("203.0.113.1:3")
	closedBy(t, third, "a third connection of one client")
	c.StateChanged(server, http.StateIdle)
	open("203.0.113.1:4")
	closedBy(t, first, "the idle connection of that client")
	fifth, _ := open("203.0.113.1:5")
	closedBy(t, fifth, "a third connection again")
	_, other := open("127.0.0.1:7") // a proxy has no share
	_, another := open("127.0.0.1:8")
	open("127.0.0.1:9")
	_, _ = other.Close(), another.Close()
}

// Without the PROXY protocol, trusted proxies have no share.
func TestProxiesHaveNoShare(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w, _ := env.Virtual(start, 1)
	c := httpapi.Limit(l, httpapi.ConnectionLimits{Total: 100, PerAddress: 1, Proxies: httpapi.Proxies(prefixes("127.0.0.1/32")), Clock: w.Clock, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { _ = c.Close() })
	for range 10 {
		connect(t, c)
		accept(t, c)
	}
}
