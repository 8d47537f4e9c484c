package httpapi_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/httpapi"
)

// exchange sends bytes over a new connection and returns all answers.
func (h *harness) exchange(text string) string {
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
	answers, _ := io.ReadAll(conn)
	return string(answers)
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
