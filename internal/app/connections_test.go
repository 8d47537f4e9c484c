package app_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/config"
)

// line is one connection to a gateway.
type line struct {
	t      *testing.T
	socket net.Conn
	r      *bufio.Reader
}

func dial(t *testing.T, g *apptest.Gateway) *line {
	t.Helper()
	return dialFrom(t, g, "127.0.0.1")
}

// dialFrom connects from a loopback address, which all Linux systems have.
func dialFrom(t *testing.T, g *apptest.Gateway, from string) *line {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	socket, err := d.DialContext(t.Context(), "tcp", g.App.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	return &line{t, socket, bufio.NewReader(socket)}
}

// healthy requests /healthz and reports whether it answered 200.
func (l *line) healthy() bool {
	if _, err := l.socket.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		l.t.Error(err)
		return false
	}
	answer, err := http.ReadResponse(l.r, nil)
	if err != nil {
		l.t.Error(err)
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == 200
}

// begin sends a part of a request, which keeps the connection busy.
func (l *line) begin() {
	if _, err := l.socket.Write([]byte("POST /payin HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")); err != nil {
		l.t.Error(err)
	}
}

// ended waits until the gateway closes the connection.
func (l *line) ended() {
	_, _ = io.Copy(io.Discard, l.socket)
}

// One address cannot take all connections, even with requests that do not end, and
// connections that are idle give way to others.
func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	t.Parallel()
	g := apptest.Run(t, apptest.Config(t, config.Dev, nil, "data", t.TempDir(), "max-connections", "32", "max-connections-per-address", "8"))
	for range 100 { // each is idle after its request; the oldest is closed for the next
		if !dialFrom(t, g, "127.0.0.2").healthy() {
			t.Fatal("a connection was refused though others were idle")
		}
	}
	for range 100 {
		l := dialFrom(t, g, "127.0.0.3")
		l.begin() // beyond the share, the connection is closed
	}
	for range 20 {
		if !dialFrom(t, g, "127.0.0.1").healthy() {
			t.Fatal("another address is not served")
		}
	}
}

// Near the limit the oldest idle connections of all addresses are closed.
func TestIdleConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	g := apptest.Run(t, apptest.Config(t, config.Dev, nil, "data", t.TempDir(), "max-connections", "20", "max-connections-per-address", "20"))
	first := dial(t, g)
	if !first.healthy() {
		t.Fatal("the first connection is not served")
	}
	for i := range 100 {
		if !dial(t, g).healthy() {
			t.Fatalf("connection %d is not served", i+1)
		}
	}
	first.ended()
}

// Requests, commits and workers have metrics, which contain nothing of a request.
func TestMetrics(t *testing.T) {
	g := apptest.Run(t, apptest.Config(t, config.Dev, nil, "data", t.TempDir()))
	payin(g, "canary")
	g.Must(404, "GET", "/payin/canary", "")
	text := get(t, g.Base+"/metrics")
	for _, want := range []string{
		`porteira_http_request_duration_seconds_count{method="POST",route="/payin",status="201"} 1`,
		`porteira_http_request_duration_seconds_count{method="GET",route="/payin/{id}",status="404"} 1`,
		`porteira_commit_queue_length{lane="0"} `,
		`porteira_commit_batch_seconds{lane="0"} `,
		`porteira_worker_runs_total{`, `porteira_accounts{state="live"} 1`, `porteira_accounts{state="not_open"} 0`, `porteira_accounts{state="stopped"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(text, "canary") {
		t.Error("the metrics contain a word of a request")
	}
	apptest.Until(t, func() string { // the lists are stored, and followed
		if text, want := get(t, g.Base+"/metrics"), `porteira_account_feed_consecutive_failures{account="sandbox",feed="transfers"} 0`; !strings.Contains(text, want) {
			return "the metrics lack " + want
		}
		return ""
	})
}
