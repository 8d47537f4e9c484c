package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/store"
)

// exchange sends bytes over a new connection and returns all answers.
func (h *harness) exchange(text string) (answers string) {
	h.t.Helper()
	h.connect(text, func(conn net.Conn) {
		all, _ := io.ReadAll(conn)
		answers = string(all)
	})
	return answers
}

// connect sends bytes over a new connection.
func (h *harness) connect(text string, then func(net.Conn)) {
	h.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	server := httpapi.Server(h.handler, slog.New(slog.DiscardHandler))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	defer func() {
		_ = server.Close()
		<-ended
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
		h.t.Fatal(err)
	}
	then(conn)
}

// A proxy may see the end of a request with both lengths elsewhere. Bytes after
// such a request are not read as another one (RFC 9112, section 6.1).
func TestNothingFollowsAChunkedRequest(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const smuggled = "GET /healthz HTTP/1.1\nHost: x\nConnection: close\n\n"
	for name, head := range map[string]string{
		"both lengths":  "Content-Length: 60\nTransfer-Encoding: chunked\n",
		"other way":     "Transfer-Encoding: chunked\nContent-Length: 60\n",
		"chunked alone": "Transfer-Encoding: chunked\n",
	} {
		got := h.exchange("POST /payin HTTP/1.1\nHost: x\nContent-Type: application/json\n" + head + "\n0\n\n" + smuggled)
		if n := strings.Count(got, "HTTP/1.1 "); n != 1 || !strings.Contains(got, "Connection: close\r\n") {
			t.Errorf("%s: %d answers:\n%s", name, n, got)
		}
	}
	plain := "GET /healthz HTTP/1.1\nHost: x\n\n" + smuggled
	if n := strings.Count(h.exchange(plain), "HTTP/1.1 200"); n != 2 {
		t.Errorf("%d answers to two requests of a connection", n)
	}
}

// A client that sends all of a large body before it reads gets the answer, and nothing that
// follows is a request. One that waits for 100 is not waited for.
func TestLargeBodyIsReadAfterItsAnswer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.handler = h.api
	body := strings.Repeat("a", 7<<20)
	const head = "POST /payout-batches HTTP/1.1\nHost: x\nContent-Type: application/json\n"
	const key = "x-api-key: key1\nx-api-secret: secret1\n"
	length := fmt.Sprintf("Content-Length: %d\n\n", len(body))
	for name, v := range map[string]struct{ request, answer string }{
		"too large":       {head + key + length + body, "HTTP/1.1 413 "},
		"unknown length":  {head + key + "Transfer-Encoding: chunked\n\n" + fmt.Sprintf("%x\n%s\n0\n\n", len(body), body), "HTTP/1.1 413 "},
		"not authorised":  {head + length + body, "HTTP/1.1 401 "},
		"another type":    {strings.Replace(head, "application/json", "text/plain", 1) + key + length + body, "HTTP/1.1 415 "},
		"waits for 100":   {head + key + "Expect: 100-continue\n" + length, "HTTP/1.1 413 "},
		"nothing follows": {head + key + length + body + "GET /healthz HTTP/1.1\nHost: x\n\n", "HTTP/1.1 413 "},
	} {
		got := h.exchange(v.request)
		if !strings.HasPrefix(got, v.answer) || strings.Count(got, "HTTP/1.1 ") != 1 {
			t.Errorf("%s: %.300s", name, got)
		}
	}
	if len(h.gateway.batchRows) != 0 {
		t.Error("a refused request left a batch")
	}
}

// A client that waits for 100 has sent no body: each refusal is answered while it waits.
func TestRefusalsDoNotWaitForABody(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.handler = h.api
	h.credential("limited", "s", h.first.ID, func(c *store.Credential) { c.Scopes = []string{store.ScopeRead} })
	h.credential("office", "s", h.first.ID, func(c *store.Credential) { c.AllowedIPs = prefixes("192.0.2.0/24") })
	key := func(id, secret string) string { return "x-api-key: " + id + "\nx-api-secret: " + secret + "\n" }
	right, asJSON := key("key1", "secret1"), "Content-Type: application/json\n"
	for name, v := range map[string]struct {
		path, head string
		length     int
		status     int
	}{
		"credentials": {"/payin", key("key1", "wrong"), 9, 401}, "scope": {"/payin", key("limited", "s"), 9, 403}, "address": {"/payin", key("office", "s"), 9, 403},
		"path": {"/nothing", right, 9, 404}, "method": {"/balance", right, 9, 405}, "type": {"/payin", right, 9, 415}, "size": {"/payin", right + asJSON, 70_000, 413},
		"header": {"/payin", right + asJSON + "Idempotency-Key: " + strings.Repeat("k", 300) + "\n", 9, 422},
	} {
		h.connect(fmt.Sprintf("POST %s HTTP/1.1\nHost: x\nExpect: 100-continue\n%sContent-Length: %d\n\n", v.path, v.head, v.length), func(conn net.Conn) {
			_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || answer.StatusCode != v.status {
				t.Errorf("%s: %v, %v, want %d", name, answer, err, v.status)
				return
			}
			_ = answer.Body.Close()
		})
	}
}
