package app_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/config"
)

// floodBytesMax bounds the memory of a gateway under a flood; it was 2.9 GB.
const floodBytesMax = 300 << 20

// 400 connections that send 64 KiB of invalid fields and do not read the answers do not
// exhaust the memory, and health checks are answered.
func TestInvalidFieldsDoNotExhaustMemory(t *testing.T) {
	const connections = 400
	p := newCluster(t, "sqlite", 1).gateways[0]
	p.start()
	for i := range connections {
		body := `{"items":[` + strings.TrimSuffix(strings.Repeat("0,", 30_000), ",") + `]}`
		if i%2 == 0 { // with as many values as are allowed
			body = `{"items":[` + strings.TrimSuffix(strings.Repeat("0,      ", 8_000), ",") + `0]}`
		}
		socket, err := net.Dial("tcp", strings.TrimPrefix(p.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = socket.Close() })
		if _, err := fmt.Fprintf(socket, "POST /payin HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nX-Api-Secret: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			app.SandboxKey, app.SandboxSecret, len(body), body); err != nil {
			t.Fatal(err)
		}
	}
	apptest.Until(t, func() string {
		if n := answered(t, p.base, "/payin"); n < connections {
			return fmt.Sprintf("%d of %d requests are answered", n, connections)
		}
		return ""
	})
	if got := p.send("GET", "/healthz", ""); got.status != 200 {
		t.Errorf("the health check: %v", got)
	}
	if peak := peakMemory(t, p.cmd.Process.Pid); peak > floodBytesMax {
		t.Errorf("%d MB were resident, want at most %d", peak>>20, floodBytesMax>>20)
	}
}

// answered is how many POST requests of a route were answered.
func answered(t *testing.T, base, route string) (n int) {
	t.Helper()
	answers := regexp.MustCompile(`(?m)^porteira_http_request_duration_seconds_count{method="POST",route="` + regexp.QuoteMeta(route) + `",status="[0-9]+"} ([0-9]+)$`)
	for _, found := range answers.FindAllStringSubmatch(get(t, base+"/metrics"), -1) {
		count, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		n += count
	}
	return n
}

var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s+([0-9]+) kB$`)

// peakMemory is the largest resident memory that a process has had, in bytes (proc(5)).
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := peakLine.FindSubmatch(text)
	if found == nil {
		t.Fatalf("no VmHWM in %s", text)
	}
	kilobytes, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// A genuine notice is recorded while one address has 1,100 sockets, each with one byte of
// a notice.
func TestFloodOfNoticesKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	const sockets, share = 1100, 128
	g := apptest.Run(t, apptest.Config(t, config.Dev, apptest.Secrets(), "data", t.TempDir()))
	for range sockets {
		l := dialFrom(t, g, "127.0.0.2")
		if _, err := io.WriteString(l.socket, "POST "+g.NoticePath()+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
	}
	apptest.Until(t, func() string { // all have arrived
		if n := answered(t, g.Base, "/inbound/{account}/{token}"); n < sockets-share {
			return fmt.Sprintf("%d of %d sockets beyond the share are refused", n, sockets-share)
		}
		return ""
	})
	body := `{"id":"n1","subject":"charge","externalId":"0000000000000000000000000000nobody","createdAt":"2026-01-01T00:00:00Z"}`
	for i := range 20 {
		got := g.Anonymous().Ask(http.MethodPost, g.NoticePath(), body, strings.Split(signed(body, apptest.BankSecret, 0), "\n")...)
		if got.Status != 200 {
			t.Errorf("genuine notice %d: %d %s", i+1, got.Status, got.Body)
		}
	}
}
