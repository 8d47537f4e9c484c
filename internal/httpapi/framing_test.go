package httpapi_test

import (
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
