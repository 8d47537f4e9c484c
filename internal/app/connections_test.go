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

// healthy asks for the gateway's health.
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

// Beyond max-connections, whoever comes waits until somebody leaves.
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
			t.Error("a connection too many was served before one had ended")
		}
		served <- ok
	}()
	for range 300 { // the gateway is not busy: it could have served the late one too
		if !lines[0].healthy() {
			t.Fatal("those within the limit are not served")
		}
	}
	left.Store(true)
	if err := lines[1].socket.Close(); err != nil {
		t.Fatal(err)
	}
	if !<-served {
		t.Error("who waited was not served after another had left")
	}
}

// Requests and lanes are told in numbers, and without what a request held.
func TestMetrics(t *testing.T) {
	g := apptest.Run(t, apptest.Config(t, config.Dev, nil, "data", t.TempDir()))
	payin(g, "canary")
	g.Must(404, "GET", "/payin/canary", "")
	text := get(t, g.Base+"/metrics")
	for _, want := range []string{
		`porteira_http_request_duration_seconds_count{method="POST",route="/payin",status="201"} 1`,
		`porteira_http_request_duration_seconds_count{method="GET",route="/payin/{id}",status="404"} 1`,
		`porteira_lane_waiting{lane="0"} `,
		`porteira_lane_batch_seconds{lane="0"} `,
		`porteira_loop_runs_total{`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(text, "canary") {
		t.Error("the metrics hold a word of a request")
	}
}
