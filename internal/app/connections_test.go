package app_test

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
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
	var d net.Dialer
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

// A connection beyond max-connections waits until another one is closed.
func TestConnectionsAreBounded(t *testing.T) {
	const most = 16
	g := apptest.Run(t, apptest.Config(t, config.Dev, nil, "data", t.TempDir(), "max-connections", "16"))
	lines := make([]*line, most)
	for i := range lines {
		if lines[i] = dial(t, g); !lines[i].healthy() {
			t.Fatalf("connection %d is not served", i+1)
		}
	}
	var left atomic.Bool
	late := dial(t, g)
	served := make(chan bool)
	go func() {
		ok := late.healthy()
		if !left.Load() {
			t.Error("a connection beyond the limit was served before another was closed")
		}
		served <- ok
	}()
	for range 300 { // the gateway has time to serve the late one
		if !lines[0].healthy() {
			t.Fatal("a connection within the limit is not served")
		}
	}
	left.Store(true)
	if err := lines[1].socket.Close(); err != nil {
		t.Fatal(err)
	}
	if !<-served {
		t.Error("the waiting connection was not served after another was closed")
	}
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
		`porteira_worker_runs_total{`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(text, "canary") {
		t.Error("the metrics contain a word of a request")
	}
}
