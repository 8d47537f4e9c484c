package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	hostileClients   = 400
	hostileRounds    = 2
	hostileMemoryMax = 300 << 20
	hostileBody      = 64 << 10
)

// hostileBodies are bodies of the largest size that are nothing but faults.
var hostileBodies = map[string]string{
	"entries": `{"items":[` + strings.TrimSuffix(strings.Repeat("0,", 30_000), ",") + `]}`,
	"objects": `{"items":[` + strings.TrimSuffix(strings.Repeat(`{"x":1},`, 8_000), ",") + `]}`,
	"names":   `{` + manyNames("k%04d", "0") + `}`,
	"values":  `{"metadata":{` + manyNames("%d", "[]") + `}}`,
}

// manyNames are members with different names.
func manyNames(name, value string) string {
	list := make([]string, 5_900)
	for i := range list {
		list[i] = fmt.Sprintf(`"`+name+`":%s`, i, value)
	}
	return strings.Join(list, ",")
}

// Hundreds of clients with credentials, and without limits of their own, cannot exhaust the
// process: its memory stays bounded, and health checks are answered.
func TestHostileBodies(t *testing.T) {
	p := newCluster(t, "sqlite", 1).gateways[0]
	p.start()
	target, err := url.Parse(p.base)
	if err != nil {
		t.Fatal(err)
	}
	peak, healthy := 0, 0
	done := make(chan struct{})
	var watched sync.WaitGroup
	watched.Go(func() {
		client := http.Client{Timeout: 10 * time.Second}
		for {
			select {
			case <-done:
				return
			default:
			}
			peak = max(peak, memoryOf(t, p.cmd.Process.Pid))
			answer, err := client.Get(p.base + "/healthz")
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("health check: %v", err)
				return
			}
			_ = answer.Body.Close()
			healthy++
		}
	})
	for name, body := range hostileBodies {
		if len(body) > hostileBody {
			t.Fatalf("%s: %d bytes", name, len(body))
		}
		for range hostileRounds {
			var sent sync.WaitGroup // all but the last byte of each body
			sent.Add(hostileClients)
			together(hostileClients, func(int) {
				if status := sendHostile(target.Host, body, &sent); status != 400 && status != 422 && status != 503 {
					t.Errorf("%s: answered %d", name, status)
				}
			})
		}
	}
	close(done)
	watched.Wait()
	t.Logf("%d bytes of memory at most, %d health checks", peak, healthy)
	if peak > hostileMemoryMax {
		t.Errorf("the process took %d bytes, want at most %d", peak, hostileMemoryMax)
	}
}

// sendHostile sends one body on a connection of its own, its last byte when all others are sent
// too; 0 if it is not answered.
func sendHostile(host, body string, sent *sync.WaitGroup) (status int) {
	conn, err := net.Dial("tcp", host)
	if err == nil {
		defer func() { _ = conn.Close() }()
		_, err = fmt.Fprintf(conn, "POST /payin HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nx-api-key: sandbox_key\r\nx-api-secret: sandbox_secret\r\nContent-Length: %d\r\n\r\n%s",
			host, len(body), body[:len(body)-1])
	}
	sent.Done()
	sent.Wait()
	if err != nil {
		return 0
	}
	if _, err := io.WriteString(conn, body[len(body)-1:]); err != nil {
		return 0
	}
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	if err != nil {
		return 0
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}
